"""推荐模型预训练：用户行为序列 -> 下一个点击的视频类目。"""
import os
import tempfile
import time

import torch
from torch import nn

# ---------------- 配置 ----------------
SEED = 2024
EPOCHS = 44            # 训练轮数
BATCH_SIZE = 256
SAMPLES = 768          # 每轮样本数（按天增量训练，数据不多）
ITEM_COUNT = 6000      # 视频数
SEQ_LEN = 16           # 行为序列长度
DIM = 768
CLASSES = 64


class UserTower(nn.Module):
    """序列平均池化 + 两层大 MLP。"""

    def __init__(self):
        super().__init__()
        self.item = nn.Embedding(ITEM_COUNT, DIM)
        self.mlp = nn.Sequential(
            nn.Linear(DIM, 2 * DIM), nn.ReLU(),
            nn.Linear(2 * DIM, 2 * DIM), nn.ReLU(),
            nn.Linear(2 * DIM, CLASSES),
        )

    def forward(self, history):
        return self.mlp(self.item(history).mean(dim=1))


def make_samples():
    """造数据：类目由序列里第一个视频决定，再加一点噪声。"""
    g = torch.Generator().manual_seed(SEED)
    history = torch.randint(ITEM_COUNT, (SAMPLES, SEQ_LEN), generator=g)
    label = (history[:, 0] + torch.randint(2, (SAMPLES,), generator=g)) % CLASSES
    return history, label


def save_checkpoint(folder, epoch, model, optimizer):
    """先写临时文件再改名，断电也不会留下坏文件。"""
    path = os.path.join(folder, 'last.pt')
    state = {'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}
    torch.save(state, path + '.tmp')
    os.replace(path + '.tmp', path)


def train_one_epoch(model, optimizer, criterion, history, label):
    model.train()
    loss_sum = torch.zeros(())
    for idx in torch.randperm(SAMPLES).split(BATCH_SIZE):
        loss = criterion(model(history[idx]), label[idx])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach()
    return loss_sum.item() * BATCH_SIZE / SAMPLES   # 每轮只取一次


def main():
    torch.manual_seed(SEED)
    history, label = make_samples()
    model = UserTower()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    criterion = nn.CrossEntropyLoss()
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(EPOCHS):
            t0 = time.time()
            loss = train_one_epoch(model, optimizer, criterion, history, label)
            # 每轮都保存，防止任务被抢占
            save_checkpoint(folder, epoch, model, optimizer)
            print(f'第{epoch + 1}轮 loss={loss:.4f} 用时{time.time() - t0:.2f}s', flush=True)


if __name__ == '__main__':
    main()
