"""Molecular energy regression: padded atoms, pair distances and neighbour masks made in collate."""
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

ELEMENTS = 10


class Molecules(Dataset):
    def __init__(self, n=3000, seed=60):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(9, 24, n)
        self.z = [torch.from_numpy(rng.integers(1, ELEMENTS, s)) for s in sizes]
        self.r = [torch.from_numpy(rng.standard_normal((s, 3), dtype=np.float32) * 2) for s in sizes]
        self.energy = torch.from_numpy(rng.standard_normal(n, dtype=np.float32))

    def __len__(self):
        return len(self.z)

    def __getitem__(self, i):
        return self.z[i], self.r[i], self.energy[i]


class MoleculeCollate:
    """Pads a list of molecules and prepares everything the network needs."""

    def __init__(self, cutoff=4.0, centers=32):
        self.cutoff = cutoff
        self.centers = torch.linspace(0, cutoff, centers)

    def expand(self, dist):
        return torch.exp(-4.0 * (dist.unsqueeze(-1) - self.centers) ** 2)

    def __call__(self, batch):
        z = pad_sequence([b[0] for b in batch], batch_first=True)
        r = pad_sequence([b[1] for b in batch], batch_first=True)
        energy = torch.stack([b[2] for b in batch])
        atom = z > 0
        dist = torch.cdist(r, r)
        pair = atom[:, :, None] & atom[:, None, :] & (dist < self.cutoff)
        pair &= ~torch.eye(z.shape[1], dtype=torch.bool)
        count = atom.sum(1, keepdim=True).float()
        return {"z": z, "rbf": self.expand(dist), "pair": pair.float(), "atom": atom.float(),
                "count": count, "energy": energy}


class Interaction(nn.Module):
    def __init__(self, dim, centers=32):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(centers, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.update = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, h, rbf, pair):
        w = self.filter(rbf) * pair.unsqueeze(-1)
        return h + self.update((w * h.unsqueeze(1)).sum(2))


class SchNetLike(nn.Module):
    def __init__(self, dim, blocks):
        super().__init__()
        self.emb = nn.Embedding(ELEMENTS, dim, padding_idx=0)
        self.blocks = nn.ModuleList(Interaction(dim) for _ in range(blocks))
        self.out = nn.Sequential(nn.Linear(dim, dim // 2), nn.SiLU(), nn.Linear(dim // 2, 1))

    def forward(self, b):
        h = self.emb(b["z"])
        for block in self.blocks:
            h = block(h, b["rbf"], b["pair"])
        per_atom = self.out(h).squeeze(-1) * b["atom"]
        return per_atom.sum(1) / b["count"].squeeze(1)


if __name__ == "__main__":
    torch.manual_seed(60)
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    BATCH, SECONDS = (64, 14.0) if cuda else (16, 14.0)
    model = SchNetLike(dim=256 if cuda else 64, blocks=6 if cuda else 3).to(device)
    loader = DataLoader(Molecules(), BATCH, shuffle=True, drop_last=True, collate_fn=MoleculeCollate(),
                        num_workers=4 if cuda else 1, persistent_workers=True, pin_memory=cuda)
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    step, t0, running = 0, time.perf_counter(), True
    while running:
        for batch in loader:
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            loss = nn.functional.mse_loss(model(batch), batch["energy"])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if time.perf_counter() - t0 > SECONDS:
                running = False
                break
        print(f"step {step} mse {loss.item():.4f}")
    took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * BATCH / took:.1f} samples/s")
