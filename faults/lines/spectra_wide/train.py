import time

import torch
from torch import nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
torch.manual_seed(0)


class WideNet(nn.Module):
    def __init__(self, n_in=512, width=1536, n_out=32):
        super().__init__()
        self.fc1 = nn.Linear(n_in, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, width)
        self.out = nn.Linear(width, n_out)

    def forward(self, x):
        h = F.gelu(self.fc1(x))
        h = h + F.gelu(self.fc2(h))
        h = h + F.gelu(self.fc3(h))
        return self.out(h)


def spectra(n=16000, n_in=512, n_out=32):
    g = torch.Generator().manual_seed(1)
    concentrations = torch.rand(n, n_out, generator=g)
    pure = torch.rand(n_out, n_in, generator=g) ** 6
    absorbance = 1 - torch.exp(-concentrations @ pure)
    return absorbance + 0.01 * torch.randn(n, n_in, generator=g), concentrations


class Runner:
    def __init__(self):
        x, c = spectra()
        self.x, self.c = x.to(device), c.to(device)
        self.model = WideNet().to(device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)
        self.batch = 8192 if device == "cuda" else 512
        self.loss_sum = torch.zeros((), device=device)

    def step(self):
        idx = torch.randint(0, len(self.x), (self.batch,), device=device)
        loss = F.mse_loss(self.model(self.x[idx]), self.c[idx])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.loss_sum += loss.detach()

    def run(self, seconds=14, every=20):
        n, t0 = 0, time.perf_counter()
        while time.perf_counter() - t0 < seconds:
            self.step()
            n += 1
            if n % every == 0:
                print(f"step {n} mse {self.loss_sum.item() / every:.5f}")
                self.loss_sum.zero_()
        if device == "cuda":
            torch.cuda.synchronize()
        dt = time.perf_counter() - t0
        print(f"{n / dt:.2f} steps/s, {n * self.batch / dt:.1f} samples/s")


if __name__ == "__main__":
    Runner().run()
