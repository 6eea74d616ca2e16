"""Language identification from hashed character trigrams; SGD written by hand."""
import random
import time
import zlib

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
BUCKETS, LANGS = 2048, 12


def make_strings(n=3000, seed=0):
    rng = random.Random(seed)
    alphabets = ["".join(rng.sample("abcdefghijklmnopqrstuvwxyzäöüéèñçßøå", 14)) for _ in range(LANGS)]
    rows = []
    for _ in range(n):
        y = rng.randrange(LANGS)
        words = ["".join(rng.choices(alphabets[y], k=rng.randint(2, 9))) for _ in range(rng.randint(20, 40))]
        rows.append((" ".join(words), y))
    return rows


def featurize(strings):
    out = torch.zeros(len(strings), BUCKETS)
    for i, s in enumerate(strings):
        counts = {}
        s = f"^{s}$"
        for j in range(len(s) - 2):
            h = zlib.crc32(s[j:j + 3].encode("utf-8")) % BUCKETS
            counts[h] = counts.get(h, 0) + 1
        idx = torch.tensor(list(counts))
        out[i, idx] = torch.tensor(list(counts.values()), dtype=torch.float32)
    return torch.log1p(out)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(BUCKETS, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, LANGS)

    def forward(self, x):
        x = torch.relu(self.a(x))
        return self.c(torch.relu(self.b(x)))


def main():
    torch.manual_seed(0)
    rows = make_strings()
    texts = [t for t, _ in rows]
    labels = torch.tensor([y for _, y in rows], device=DEV)
    batch = 256 if DEV == "cuda" else 64
    model = Net(4096 if DEV == "cuda" else 256).to(DEV)
    lr, decay = 0.05, 1e-4
    step, start = 0, time.time()
    while time.time() - start < 14:
        pick = torch.randint(0, len(texts), (batch,))
        x = featurize([texts[k] for k in pick.tolist()]).to(DEV)
        y = labels[pick.to(DEV)]
        loss = nn.functional.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p.data -= lr * (p.grad + decay * p.data)
        step += 1
        if step % 200 == 0:
            lr *= 0.99
            print(f"step {step} loss {loss.item():.4f}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
