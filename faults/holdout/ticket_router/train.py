# 工单分类：子进程里懒加载词表，分词后转成 id
import hashlib
import random
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CFG = {
    'seed': 11,
    'epochs': 30,
    'tickets': 1920,
    'vocab': 96000,
    'length': 40,
    'queues': 12,
    'loader': {'batch_size': 64, 'num_workers': 2, 'shuffle': True, 'drop_last': True},
}


def load_vocab(size):
    """词表较大，所以不放在主进程里，每个 worker 第一次用到时再读。"""
    table = {}
    for i in range(size):
        word = hashlib.md5(str(i).encode()).hexdigest()[:8]
        table[word] = i
        table[word.upper()] = i
    return table


class Tickets(Dataset):
    def __init__(self, cfg):
        rng = random.Random(cfg['seed'])
        self.cfg, self.vocab = cfg, None
        self.rows = []
        for _ in range(cfg['tickets']):
            queue = rng.randrange(cfg['queues'])
            ids = [rng.randrange(cfg['vocab'] // cfg['queues']) * cfg['queues'] + queue * (rng.random() < 0.4) for _ in range(cfg['length'])]
            self.rows.append((' '.join(hashlib.md5(str(i).encode()).hexdigest()[:8] for i in ids), queue))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        if self.vocab is None:
            self.vocab = load_vocab(self.cfg['vocab'])
        text, queue = self.rows[i]
        return torch.tensor([self.vocab.get(w, 0) for w in text.split()]), queue


class Router(nn.Module):
    def __init__(self, cfg, width=128):
        super().__init__()
        self.words = nn.EmbeddingBag(cfg['vocab'], width, mode='mean', sparse=True)
        self.head = nn.Sequential(nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, cfg['queues']))

    def forward(self, ids):
        return self.head(self.words(ids))


def run(cfg):
    torch.manual_seed(cfg['seed'])
    loader = DataLoader(Tickets(cfg), **cfg['loader'])
    model = Router(cfg)
    table = torch.optim.SGD(model.words.parameters(), lr=1.0)
    rest = torch.optim.AdamW(model.head.parameters(), lr=1e-3, fused=True)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(cfg['epochs']):
        t0 = time.time()
        for ids, queue in loader:
            loss = loss_fn(model(ids), queue)
            table.zero_grad()
            rest.zero_grad()
            loss.backward()
            table.step()
            rest.step()
        print('epoch %02d  loss %.4f  %.2fs' % (epoch, loss.item(), time.time() - t0), flush=True)


if __name__ == '__main__':
    run(CFG)
