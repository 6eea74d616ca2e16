"""Windows of daily prices into an LSTM. As its team began: batch 64, 4 workers, fp32, the loss read at every step."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
hidden, layers, stocks = (256, 3, 500) if device.type == "cuda" else (64, 2, 50)
torch.manual_seed(0)


class Stocks(Dataset):
    def __init__(self, days=1500, features=20, window=60):
        self.values = np.random.default_rng(0).standard_normal((stocks, days, features), dtype=np.float32)
        self.window, self.windows = window, days - window

    def __len__(self):
        return stocks * self.windows

    def __getitem__(self, index):
        stock, day = divmod(index, self.windows)
        window = self.values[stock, day : day + self.window]
        return torch.from_numpy(window), stock, torch.tensor(float(window[-5:, 0].mean()))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5000, 64)
        self.lstm = nn.LSTM(20 + 64, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, stock):
        embedded = self.embedding(stock)[:, None, :].expand(-1, x.shape[1], -1)
        return self.head(self.lstm(torch.cat([x, embedded], 2))[0][:, -1])[:, 0]


def main():
    loader = DataLoader(Stocks(), batch_size=64, shuffle=True, num_workers=4)
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        total = 0.0
        for x, stock, y in loader:
            x, stock, y = x.to(device), stock.to(device), y.to(device)
            loss = nn.functional.mse_loss(model(x, stock), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, total, flush=True)


if __name__ == "__main__":
    main()
