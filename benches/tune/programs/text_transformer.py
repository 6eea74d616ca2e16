"""A small transformer over tokens: batch 16, 2 workers, fp32, AdamW."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
width, layers, length = (512, 6, 256) if device.type == "cuda" else (64, 2, 64)
torch.manual_seed(0)


class Text(Dataset):
    def __len__(self):
        return 200_000

    def __getitem__(self, index):
        tokens = (torch.arange(length + 1) * (index % 97 + 1)) % 1000
        return tokens[:-1], tokens[1:]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, 8, width * 4, batch_first=True, dropout=0.0)
        self.body, self.head = nn.TransformerEncoder(layer, layers), nn.Linear(width, 1000)

    def forward(self, tokens):
        return self.head(self.body(self.embedding(tokens)))


def main():
    loader = DataLoader(Text(), batch_size=16, shuffle=True, num_workers=2)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(1000):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item(), flush=True)


if __name__ == "__main__":
    main()
