"""Energy and force fitting for small molecules with continuous-filter convolutions."""
import time
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Frames(NamedTuple):
    z: Tensor
    pos: Tensor
    energy: Tensor
    force: Tensor


def morse(pos, z):
    eye = torch.eye(pos.size(1), dtype=torch.bool)
    diff = pos[:, :, None] - pos[:, None]
    r = (diff.pow(2).sum(-1) + eye).sqrt()
    depth = 0.1 * (z[:, :, None] + z[:, None]).sqrt()
    e = depth * ((1 - torch.exp(-(r - 1.6))) ** 2 - 1)
    return e.masked_fill(eye, 0.0).sum((1, 2)) / 2


def simulate(n, atoms, gen) -> Frames:
    z = torch.randint(1, 9, (1, atoms), generator=gen).expand(n, atoms)
    lattice = torch.cartesian_prod(*[torch.arange(3.0)] * 3)[:atoms] * 1.6
    pos = (lattice + 0.25 * torch.randn(n, atoms, 3, generator=gen)).requires_grad_(True)
    energy = morse(pos, z)
    (grad,) = torch.autograd.grad(energy.sum(), pos)
    energy = energy.detach()
    return Frames(z.contiguous(), pos.detach(), (energy - energy.mean()) / energy.std(), -grad / energy.std())


class FilterConv(nn.Module):
    def __init__(self, dim, n_rbf):
        super().__init__()
        self.filt = nn.Sequential(nn.Linear(n_rbf, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.post = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, h, rbf, cut):
        w = self.filt(rbf) * cut.unsqueeze(-1)
        return h + self.post(torch.einsum("bijd,bjd->bid", w, h))


class ForceNet(nn.Module):
    def __init__(self, dim=64, n_rbf=24, layers=2, cutoff=5.0):
        super().__init__()
        self.embed = nn.Embedding(10, dim)
        self.convs = nn.ModuleList([FilterConv(dim, n_rbf) for _ in range(layers)])
        self.out = nn.Sequential(nn.Linear(dim, 32), nn.SiLU(), nn.Linear(32, 1))
        self.cutoff = cutoff
        self.register_buffer("centres", torch.linspace(0.5, cutoff, n_rbf))

    def forward(self, z, pos):
        pos = pos.detach().requires_grad_(True)
        eye = torch.eye(pos.size(1))
        diff = pos[:, :, None] - pos[:, None]
        r = (diff.pow(2).sum(-1) + eye).sqrt()
        rbf = torch.exp(-8 * (r.unsqueeze(-1) - self.centres) ** 2)
        cut = 0.5 * (torch.cos(torch.pi * r / self.cutoff) + 1) * (r < self.cutoff) * (1 - eye)
        h = self.embed(z)
        for conv in self.convs:
            h = conv(h, rbf, cut)
        energy = self.out(h).sum((1, 2))
        (grad,) = torch.autograd.grad(energy.sum(), pos, create_graph=self.training)
        return energy, -grad


def main():
    torch.manual_seed(9)
    gen = torch.Generator().manual_seed(9)
    data = simulate(6000, atoms=18, gen=gen)
    model = ForceNet()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, amsgrad=True)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.7, patience=5)
    start, n = time.monotonic(), 0
    window = torch.zeros(())
    while (elapsed := time.monotonic() - start) < 18.0:
        idx = torch.randint(0, len(data.energy), (48,), generator=gen)
        energy, force = model(data.z[idx], data.pos[idx])
        loss_e = (energy - data.energy[idx]).abs().mean()
        loss_f = (force - data.force[idx]).pow(2).mean()
        loss = 0.1 * loss_e + loss_f
        opt.zero_grad()
        loss.backward()
        opt.step()
        window += loss.detach()
        n += 1
        if n % 25 == 0:
            mean = window.item() / 25
            plateau.step(mean)
            window.zero_()
            print(f"[{elapsed:5.1f}s] {n} steps, loss {mean:.4f}, lr {opt.param_groups[0]['lr']:.1e}")
    print(f"{n / (time.monotonic() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
