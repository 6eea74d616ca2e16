"""Deep ensemble: several regressors trained in turn on bootstrap batches."""
import time

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
MEMBERS, DIM = 4, 40


def make_data(n):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, DIM, generator=g).exp()
    w = torch.randn(DIM, 2, generator=g) / DIM ** 0.5
    h = x.log() @ w
    return x.to(DEV), (torch.sin(h[:, 0]) * h[:, 1]).to(DEV)


def scale_of(x_all):
    center = x_all.median(dim=0).values
    spread = x_all.kthvalue(3 * len(x_all) // 4, dim=0).values - x_all.kthvalue(len(x_all) // 4, dim=0).values
    return center, spread


def standardize(batch, center, spread):
    """Robust scaling: median and interquartile range."""
    return (batch - center) / spread.clamp_min(1e-6)


def member(width):
    return nn.Sequential(nn.Linear(DIM, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                         nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)).to(DEV)


def main():
    torch.manual_seed(0)
    x_all, y_all = make_data(200_000 if DEV == "cuda" else 5000)
    width, batch = (2048, 1024) if DEV == "cuda" else (192, 128)
    models = [member(width) for _ in range(MEMBERS)]
    opts = [torch.optim.RMSprop(m.parameters(), lr=3e-4) for m in models]
    losses = torch.zeros(MEMBERS, device=DEV)
    center, spread = scale_of(x_all)
    step, start = 0, time.time()
    while time.time() - start < 14:
        for k, (model, opt) in enumerate(zip(models, opts)):
            pick = torch.randint(0, len(x_all), (batch,), device=DEV)
            x = standardize(x_all[pick], center, spread)
            loss = nn.functional.smooth_l1_loss(model(x).squeeze(-1), y_all[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses[k] = 0.95 * losses[k] + 0.05 * loss.detach()
        step += 1
        if step % 100 == 0:
            print(f"step {step} losses " + " ".join(f"{v:.3f}" for v in losses.tolist()))
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
