"""Semi-supervised text topic model with pseudo-label consistency."""
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
N_WORDS, N_TOPICS = 40000, 20


class TopicNet(nn.Module):
    def __init__(self, dim=192, depth=4):
        super().__init__()
        self.words = nn.EmbeddingBag(N_WORDS, dim, mode="mean", sparse=True)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, dim), nn.LayerNorm(dim), nn.GELU(), nn.Dropout(0.2))
            for _ in range(depth)
        )
        self.out = nn.Linear(dim, N_TOPICS)

    def forward(self, docs):
        h = self.words(docs)
        for layer in self.layers:
            h = h + layer(h)
        return self.out(h)


def documents(n=20000, length=30):
    g = torch.Generator().manual_seed(29)
    y = torch.randint(0, N_TOPICS, (n,), generator=g)
    docs = torch.randint(0, N_WORDS, (n, length), generator=g)
    own = torch.rand(n, length, generator=g) < 0.2
    docs[own] = (docs % (N_WORDS // N_TOPICS) + y[:, None] * (N_WORDS // N_TOPICS))[own]
    return docs, y


def corrupt(docs, rate=0.15):
    noise = torch.randint_like(docs, N_WORDS)
    return torch.where(torch.rand(docs.shape, device=docs.device) < rate, noise, docs)


@torch.no_grad()
def pseudo_labels(model, docs):
    teacher = copy.deepcopy(model).eval()
    probs = F.softmax(teacher(docs), dim=1)
    confidence, label = probs.max(1)
    return label, (confidence > 0.8).float()


def train(seconds=14.0):
    torch.manual_seed(0)
    docs, y = (t.to(device) for t in documents())
    labelled, unlabelled = docs[:4000], docs[4000:]
    model = TopicNet().to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    batch = 2048 if device == "cuda" else 64
    step, t0 = 0, time.time()
    while time.time() - t0 < seconds:
        i = torch.randint(0, len(labelled), (batch,), device=device)
        j = torch.randint(0, len(unlabelled), (batch,), device=device)
        target, keep = pseudo_labels(model, unlabelled[j])
        supervised = F.cross_entropy(model(labelled[i]), y[i])
        extra = F.cross_entropy(model(corrupt(unlabelled[j])), target, reduction="none")
        loss = supervised + (keep * extra).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} supervised {supervised.item():.3f} kept {keep.mean().item():.2f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {2 * step * batch / dt:.0f} samples/s")


if __name__ == "__main__":
    train()
