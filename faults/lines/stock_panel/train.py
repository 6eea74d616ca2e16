"""Return prediction for a panel of stocks from windows of daily factors."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Panel(Dataset):
    def __init__(self, device, stocks=200, days=800, factors=10, window=32, seed=23):
        g = torch.Generator().manual_seed(seed)
        self.factors = torch.randn(stocks, days, factors, generator=g)
        self.returns = torch.randn(stocks, days, generator=g) * 0.01
        self.window, self.device = window, device
        self.per_stock = days - window

    def __len__(self):
        return len(self.factors) * self.per_stock

    def __getitem__(self, i):
        s, d = divmod(i, self.per_stock)
        x = self.factors[s, d:d + self.window]
        y = self.returns[s, d + self.window]
        return x.to(self.device), y.to(self.device), torch.tensor(s).to(self.device)


class Causal(nn.Module):
    def __init__(self, c, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(c, c, 3, dilation=dilation)
        self.norm = nn.BatchNorm1d(c)

    def forward(self, x):
        h = self.conv(nn.functional.pad(x, (self.pad, 0)))
        return x + torch.relu(self.norm(h))


class FactorNet(nn.Module):
    def __init__(self, factors=10, width=64, stocks=200):
        super().__init__()
        self.inp = nn.Conv1d(factors, width, 1)
        self.stack = nn.Sequential(*(Causal(width, 2 ** (k % 4)) for k in range(8)))
        self.stock = nn.Embedding(stocks, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x, stock):
        h = self.stack(self.inp(x.transpose(1, 2)))[:, :, -1]
        return self.out(h + self.stock(stock)).squeeze(1)


def correlation(a, b):
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / (a.norm() * b.norm() + 1e-9)


def main(batch_size=96, lr=1e-3, seconds=14.0):
    torch.manual_seed(23)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(Panel(device), batch_size=batch_size, shuffle=True, drop_last=True)
    model = FactorNet().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    step, t0 = 0, time.perf_counter()
    while time.perf_counter() - t0 < seconds:
        for x, y, stock in loader:
            pred = model(x, stock)
            loss = nn.functional.mse_loss(pred, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 100 == 0:
                print(f"step {step} mse {loss.item():.6f} ic {correlation(pred.detach(), y).item():+.3f}")
            if time.perf_counter() - t0 >= seconds:
                break
    took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.0f} samples/s")


if __name__ == "__main__":
    main()
