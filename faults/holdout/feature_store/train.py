#!/usr/bin/env python3
"""点击率模型，特征逐条从内网特征服务读取（一次往返约 4 毫秒）。"""
import multiprocessing
import random
import socket
import socketserver
import struct
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WIDTH = 64
ROWS = 3000


class Lookup(socketserver.BaseRequestHandler):
    """特征服务：收到行号，返回这一行的特征。真实环境里它在另一台机器上。"""

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := self.request.recv(4):
            rng = random.Random(struct.unpack('i', data)[0])
            time.sleep(0.004)
            self.request.sendall(struct.pack(f'{WIDTH}f', *(rng.random() - 0.5 for _ in range(WIDTH))))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def serve(ready):
    with Server(('127.0.0.1', 0), Lookup) as server:
        ready.send(server.server_address)
        server.serve_forever()


class RemoteFeatures(Dataset):
    def __init__(self, address):
        self.address, self.link = address, None

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        if self.link is None:
            self.link = socket.create_connection(self.address)
        self.link.sendall(struct.pack('i', i))
        data = bytearray()
        while len(data) < 4 * WIDTH:
            data += self.link.recv(4 * WIDTH - len(data))
        x = torch.frombuffer(data, dtype=torch.float32)
        return x, (x[:8].sum() > 0).float()


class Trainer:
    def __init__(self, loader, epochs):
        self.loader, self.epochs = loader, epochs
        self.model = nn.Sequential(nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.criterion = nn.BCEWithLogitsLoss()

    def step(self, x, y):
        loss = self.criterion(self.model(x).squeeze(1), y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self):
        for epoch in range(self.epochs):
            losses = [self.step(x, y) for x, y in self.loader]
            print(f'epoch {epoch} loss {torch.stack(losses).mean():.4f}', flush=True)


def main():
    torch.manual_seed(5)
    mine, theirs = multiprocessing.Pipe()
    service = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    service.start()
    loader = DataLoader(RemoteFeatures(mine.recv()), batch_size=60, shuffle=True, num_workers=2,
                        persistent_workers=True, prefetch_factor=4)
    Trainer(loader, epochs=3).fit()
    service.terminate()


if __name__ == '__main__':
    main()
