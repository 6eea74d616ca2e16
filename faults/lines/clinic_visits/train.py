"""30-day readmission risk from sequences of clinic visits."""
import os
import random
import tempfile
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

N_LABS, N_CODES = 24, 3000
WALL = 18.0


def synth_patients(n, rnd):
    patients = []
    for _ in range(n):
        length = rnd.randint(8, 40)
        sick = rnd.random()
        labs = [[rnd.gauss(sick, 1.0) for _ in range(N_LABS)] for _ in range(length)]
        codes = [rnd.randrange(N_CODES) for _ in range(length)]
        gaps = [rnd.expovariate(0.1) for _ in range(length)]
        patients.append({"labs": labs, "codes": codes, "gaps": gaps, "label": float(sick + rnd.gauss(0, 0.2) > 0.6)})
    return patients


def collate_visits(batch):
    longest = max(len(p["codes"]) for p in batch)
    merged = {"labs": [], "codes": [], "gaps": [], "mask": [], "label": []}
    for p in batch:
        n = len(p["codes"])
        padded = {key: list(p[key]) for key in ("labs", "codes", "gaps")}
        padded["mask"] = [1.0] * n
        for _ in range(longest - n):
            padded["labs"].append([0.0] * N_LABS)
            padded["codes"].append(0)
            padded["gaps"].append(0.0)
            padded["mask"].append(0.0)
        for key, value in padded.items():
            merged[key] = merged[key] + [value]
        merged["label"].append(p["label"])
    return {key: torch.tensor(value) for key, value in merged.items()}


class VisitEncoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.code = nn.Embedding(N_CODES, dim)
        self.lab = nn.Linear(N_LABS + 1, dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.att = nn.Linear(dim, 1)
        self.out = nn.Linear(dim, 1)

    def forward(self, b):
        feats = torch.cat([b["labs"], torch.log1p(b["gaps"]).unsqueeze(-1)], dim=-1)
        h = self.mix(torch.relu(self.code(b["codes"]) + self.lab(feats)))
        w = self.att(h).squeeze(-1).masked_fill(b["mask"] == 0, -1e9).softmax(1)
        return self.out((w.unsqueeze(-1) * h).sum(1)).squeeze(-1)


def save_checkpoint(path, model, opt, step):
    tmp = path + ".tmp"
    with open(tmp, "wb") as f:
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step}, f)
        os.fsync(f.fileno())
    os.replace(tmp, path)


def main():
    torch.manual_seed(8)
    patients = synth_patients(800, random.Random(8))
    loader = DataLoader(patients, batch_size=50, shuffle=True, collate_fn=collate_visits)
    model = VisitEncoder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    ckpt = os.path.join(tempfile.mkdtemp(), "last.pt")
    t0, step = time.monotonic(), 0
    while time.monotonic() - t0 < WALL:
        for batch in loader:
            loss = loss_fn(model(batch), batch["label"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            save_checkpoint(ckpt, model, opt, step)
            if step % 40 == 0:
                print(f"step {step} loss {loss.item():.4f}")
            if time.monotonic() - t0 > WALL:
                break
    print(f"{step} steps at {step / (time.monotonic() - t0):.2f} steps/s")


if __name__ == "__main__":
    main()
