"""门店销量预测：每轮都验证、每轮都存最优模型。"""
import os
import tempfile
import time

import torch
from torch import nn

SEED = 8
EPOCHS = 4
BATCH_SIZE = 128
TRAIN_DAYS, VALID_DAYS = 6400, 512   # 训练、验证样本数
HISTORY = 28                         # 用过去四周
FEATURES = 24


class Mixer(nn.Module):
    """时间维、特征维交替混合。"""

    def __init__(self, width=256, depth=3):
        super().__init__()
        self.embed = nn.Linear(FEATURES, width)
        self.time = nn.ModuleList(nn.Linear(HISTORY, HISTORY) for _ in range(depth))
        self.feature = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.embed(x)
        for mix_time, mix_feature in zip(self.time, self.feature):
            x = x + mix_time(x.transpose(1, 2)).transpose(1, 2)
            x = x + mix_feature(x)
        return self.head(x.mean(dim=1)).squeeze(1)


def make_sales(count, g):
    x = torch.randn(count, HISTORY, FEATURES, generator=g)
    y = x[:, -7:, 0].mean(dim=1) + 0.3 * x[:, -1, 1] + 0.1 * torch.randn(count, generator=g)
    return x, y


def train_epoch(model, optimizer, x, y):
    model.train()
    for rows in torch.randperm(len(y)).split(BATCH_SIZE):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.inference_mode()
def evaluate(model, x, y):
    """验证集不大，一轮只要几十毫秒。"""
    model.eval()
    error = sum((model(a) - b).abs().sum() for a, b in zip(x.split(256), y.split(256)))
    return error.item() / len(y)


def main():
    torch.manual_seed(SEED)
    g = torch.Generator().manual_seed(SEED)
    train_x, train_y = make_sales(TRAIN_DAYS, g)
    valid_x, valid_y = make_sales(VALID_DAYS, g)
    model = Mixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    best = float('inf')
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(EPOCHS):
            start = time.time()
            train_epoch(model, optimizer, train_x, train_y)
            trained = time.time()
            error = evaluate(model, valid_x, valid_y)
            torch.save(model.state_dict(), os.path.join(folder, 'last.pt'))
            if error < best:
                best = error
                torch.save(model.state_dict(), os.path.join(folder, 'best.pt'))
            print(f'第{epoch + 1}轮 MAE {error:.4f} 训练{trained - start:.2f}s 验证和保存{time.time() - trained:.2f}s', flush=True)


if __name__ == '__main__':
    main()
