"""Next-item recommendation with a bag of recent items and sampled negatives."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
N_ITEMS = 6000
HISTORY = 10
NEGATIVES = 200
BATCH = 1024 if device == "cuda" else 64


class ItemEncoder(nn.Module):
    def __init__(self, n_items, dim):
        super().__init__()
        self.n_items = n_items
        self.table = nn.Embedding(n_items, dim)
        nn.init.normal_(self.table.weight, std=0.05)

    def forward(self, ids):
        return self.table(ids)


class Recommender(nn.Module):
    def __init__(self, dim=64, hidden=512):
        super().__init__()
        self.items = ItemEncoder(N_ITEMS, dim)
        self.user_tower = nn.Sequential(
            nn.Linear(HISTORY * dim, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, dim),
        )
        self.candidates = nn.Embedding(N_ITEMS, dim)
        nn.init.normal_(self.candidates.weight, std=0.05)

    def forward(self, history, positive, negatives):
        user = self.user_tower(self.items(history).flatten(1))
        pos = (user * self.candidates(positive)).sum(1, keepdim=True)
        neg = user @ self.candidates(negatives).t()
        return torch.cat([pos, neg], dim=1)


def sessions(n=100_000):
    g = torch.Generator().manual_seed(12)
    topic = torch.randint(0, 60, (n, 1), generator=g)
    within = torch.randint(0, N_ITEMS // 60, (n, HISTORY + 1), generator=g)
    items = topic * (N_ITEMS // 60) + within
    return items[:, :-1].contiguous(), items[:, -1].contiguous()


def main():
    torch.manual_seed(0)
    history, following = (t.to(device) for t in sessions())
    model = Recommender().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    truth = torch.zeros(BATCH, dtype=torch.long, device=device)
    step, start = 0, time.time()
    while time.time() - start < 14:
        idx = torch.randint(0, len(following), (BATCH,), device=device)
        negatives = torch.randint(0, N_ITEMS, (NEGATIVES,), device=device)
        scores = model(history[idx], following[idx], negatives)
        loss = F.cross_entropy(scores, truth)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 100 == 0:
            hit = (scores.topk(10, dim=1).indices == 0).any(1).float().mean()
            print(f"step {step} loss {loss.item():.3f} hit@10 {hit.item():.3f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - start
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
