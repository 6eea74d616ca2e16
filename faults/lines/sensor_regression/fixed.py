"""Virtual sensor: regress 8 process variables from 64 raw channels."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 4096 if device == "cuda" else 512
N_OUT = 8


def plant_data(n=60000, n_in=64):
    g = torch.Generator().manual_seed(31)
    x = torch.randn(n, n_in, generator=g)
    w = torch.randn(n_in, N_OUT, generator=g) / n_in ** 0.5
    y = torch.sin(2 * x @ w) + 0.1 * torch.randn(n, N_OUT, generator=g)
    return x, y


class Regressor(nn.Module):
    def __init__(self, n_in=64, width=256):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, N_OUT),
        )

    def forward(self, x):
        return self.net(x)


class RunningCorrelation:
    def __init__(self):
        self.n = 0
        self.sums = torch.zeros(5, N_OUT, dtype=torch.float64, device=device)

    def update(self, pred, target):
        p, t = pred, target
        batch = torch.stack([p.sum(0), t.sum(0), (p * t).sum(0), (p * p).sum(0), (t * t).sum(0)])
        self.sums += batch
        self.n += len(p)
        sp, st, spt, spp, stt = self.sums
        cov = spt - sp * st / self.n
        self.value = cov / ((spp - sp * sp / self.n) * (stt - st * st / self.n)).sqrt()
        return self.value


def train(seconds=14, log_every=50):
    torch.manual_seed(0)
    x, y = (t.to(device) for t in plant_data())
    model = Regressor().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    corr = RunningCorrelation()
    step, epoch, t0 = 0, 0, time.time()
    while time.time() - t0 < seconds:
        for rows in torch.randperm(len(x), device=device).split(BATCH):
            pred = model(x[rows])
            loss = F.mse_loss(pred, y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            corr.update(pred.detach(), y[rows])
            step += 1
            if step % log_every == 0:
                r = corr.value.mean().item()
                print(f"epoch {epoch} step {step} mse {loss.item():.4f} corr {r:.3f}")
            if time.time() - t0 >= seconds:
                break
        epoch += 1
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.0f} samples/s")


if __name__ == "__main__":
    train()
