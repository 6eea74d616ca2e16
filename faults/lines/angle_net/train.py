"""Image-to-angle regression with gradient accumulation."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
EFFECTIVE_BATCH = 256 if device == "cuda" else 32
MICRO_BATCH = 1
ACCUMULATE = EFFECTIVE_BATCH // MICRO_BATCH


def gratings(n=5000, size=24):
    g = torch.Generator().manual_seed(10)
    angle = torch.rand(n, generator=g) * torch.pi
    phase = torch.rand(n, generator=g) * 6.28
    lin = torch.linspace(-3, 3, size)
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    wave = xx * torch.cos(angle)[:, None, None] + yy * torch.sin(angle)[:, None, None]
    img = torch.sin(3 * wave + phase[:, None, None]) + 0.3 * torch.randn(n, size, size, generator=g)
    target = torch.stack([torch.cos(2 * angle), torch.sin(2 * angle)], dim=1)
    return img.unsqueeze(1), target


def conv(n_in, n_out, stride=1):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1), nn.GroupNorm(4, n_out), nn.SiLU()
    )


class AngleNet(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.body = nn.Sequential(
            conv(1, ch), conv(ch, ch, 2), conv(ch, 2 * ch), conv(2 * ch, 2 * ch, 2),
            conv(2 * ch, 4 * ch), conv(4 * ch, 4 * ch, 2),
        )
        self.head = nn.Linear(4 * ch, 2)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=(2, 3)))


def optimizer_step(model, opt, images, targets):
    opt.zero_grad()
    total = torch.zeros((), device=device)
    for k in range(ACCUMULATE):
        part = slice(k * MICRO_BATCH, (k + 1) * MICRO_BATCH)
        loss = F.mse_loss(model(images[part]), targets[part]) / ACCUMULATE
        loss.backward()
        total += loss.detach()
    opt.step()
    return total


def main(seconds=14.0):
    torch.manual_seed(0)
    images, targets = (t.to(device) for t in gratings())
    model = AngleNet().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step, t0 = 0, time.time()
    while time.time() - t0 < seconds:
        rows = torch.randint(0, len(images), (EFFECTIVE_BATCH,), device=device)
        loss = optimizer_step(model, opt, images[rows], targets[rows])
        step += 1
        if step % 50 == 0:
            print(f"step {step} mse {loss.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * EFFECTIVE_BATCH / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
