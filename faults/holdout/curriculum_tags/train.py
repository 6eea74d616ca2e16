"""Tag classifier with a curriculum: each epoch draws longer titles than the one before."""
from dataclasses import dataclass
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Settings:
    epochs: int = 56
    batch_size: int = 64
    titles: int = 512
    vocabulary: int = 4000
    tags: int = 20
    width: int = 64
    workers: int = 2
    seed: int = 5


CFG = Settings()


class Titles(Dataset):
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        self.tokens = torch.randint(1, cfg.vocabulary, (cfg.titles, 32), generator=g)
        self.tag = self.tokens[:, 0] % cfg.tags
        self.difficulty = 8

    def __len__(self):
        return len(self.tag)

    def __getitem__(self, i):
        tokens = self.tokens[i].clone()
        tokens[self.difficulty :] = 0
        tokens[torch.rand(32) < 0.05] = 0  # word dropout
        return tokens, self.tag[i]


def get_loader(dataset, cfg, epoch):
    dataset.difficulty = min(32, 8 + epoch)
    return DataLoader(
        dataset,
        batch_size=cfg.batch_size,
        shuffle=True,
        num_workers=cfg.workers,
        persistent_workers=True,
        prefetch_factor=4,
        generator=torch.Generator().manual_seed(cfg.seed + epoch),
    )


def make_model(cfg):
    layer = nn.TransformerEncoderLayer(cfg.width, 4, 2 * cfg.width, dropout=0.0, batch_first=True)
    return nn.ModuleDict(
        {
            "embed": nn.Embedding(cfg.vocabulary, cfg.width),
            "encode": nn.TransformerEncoder(layer, 1, enable_nested_tensor=False),
            "out": nn.Linear(cfg.width, cfg.tags),
        }
    )


def forward(model, tokens):
    return model["out"](model["encode"](model["embed"](tokens)).mean(dim=1))


def fit(cfg):
    torch.manual_seed(cfg.seed)
    dataset, model = Titles(cfg), make_model(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        start = time.perf_counter()
        loader = get_loader(dataset, cfg, epoch)
        for tokens, tag in loader:
            optimizer.zero_grad()
            loss = loss_function(forward(model, tokens), tag)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"[{epoch + 1:3d}] loss={loss.item():.3f} epoch took {time.perf_counter() - start:.3f}s", flush=True)


if __name__ == "__main__":
    fit(CFG)
