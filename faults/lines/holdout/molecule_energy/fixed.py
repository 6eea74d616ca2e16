"""Message passing on small molecules: predict atomisation energy."""
import random
import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
SIZE = "full" if device == "cuda" else "tiny"
N_MOLS = {"full": 4096, "tiny": 200}[SIZE]
BATCH = {"full": 256, "tiny": 16}[SIZE]
DIM = {"full": 256, "tiny": 32}[SIZE]
MAX_ATOMS = 32
N_ELEMENTS = 9


def build_molecules(seed=4):
    rng = random.Random(seed)
    g = torch.Generator().manual_seed(seed)
    mols = []
    for _ in range(N_MOLS):
        n = rng.randint(8, MAX_ATOMS)
        z = torch.randint(1, N_ELEMENTS, (n,), generator=g)
        xyz = torch.randn(n, 3, generator=g) * 2
        w = torch.exp(-torch.cdist(xyz, xyz)) * (1 - torch.eye(n))
        energy = -(w.sum() * 0.5 + 0.1 * z.sum()) / 10
        mols.append((z.to(device), w.to(device), energy.to(device)))
    return mols


class Interaction(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Linear(dim, dim)
        self.update = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, w):
        m = w @ self.message(h)
        return self.norm(h + self.update(torch.cat([h, m], dim=-1)))


class EnergyNet(nn.Module):
    def __init__(self, dim, depth=4):
        super().__init__()
        self.embed = nn.Embedding(N_ELEMENTS, dim, padding_idx=0)
        self.layers = nn.ModuleList(Interaction(dim) for _ in range(depth))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, z, w):
        h = self.embed(z)
        for layer in self.layers:
            h = layer(h, w)
        per_atom = self.readout(h).squeeze(-1)
        return (per_atom * (z > 0)).sum(-1)


def main():
    torch.manual_seed(4)
    torch.set_float32_matmul_precision("high")
    mols = build_molecules()
    Z = nn.utils.rnn.pad_sequence([m[0] for m in mols], batch_first=True)
    W = torch.zeros(N_MOLS, Z.shape[1], Z.shape[1], device=device)
    for i, (z, w, _) in enumerate(mols):
        W[i, : len(z), : len(z)] = w
    E = torch.stack([m[2] for m in mols])
    net = EnergyNet(DIM).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9995)

    order, steps, clock = list(range(N_MOLS)), 0, time.monotonic()
    out_of_time = False
    while not out_of_time:
        random.Random(steps).shuffle(order)
        for s in range(0, N_MOLS - BATCH + 1, BATCH):
            chosen = torch.tensor(order[s : s + BATCH], device=device)
            pred = net(Z[chosen], W[chosen])
            target = E[chosen]
            loss = nn.functional.mse_loss(pred, target)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            steps += 1
            if steps % 50 == 0:
                print(f"step {steps}: mse {loss.item():.5f}")
            if time.monotonic() - clock > 18:
                out_of_time = True
                break
    secs = time.monotonic() - clock
    print(f"{steps} steps ({steps * BATCH / secs:.0f} molecules/s), mse {loss.item():.5f}")


if __name__ == "__main__":
    main()
