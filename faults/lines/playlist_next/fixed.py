"""Next-track recommendation on listening sessions (GRU4Rec style, sampled softmax)."""
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class SessionModel(nn.Module):
    def __init__(self, n_tracks, dim):
        super().__init__()
        self.tracks = nn.Embedding(n_tracks, dim, sparse=True)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, dim)

    def forward(self, sessions):
        h, _ = self.gru(self.tracks(sessions))
        return self.out(h)


class WeightHealth:
    """Relative update size and typical magnitude of every parameter."""

    def __init__(self):
        self.before = None
        self.rows = {}

    def snapshot(self, model):
        self.before = copy.deepcopy(model)

    def compare(self, model):
        old = dict(self.before.named_parameters())
        for name, p in model.named_parameters():
            with torch.no_grad():
                delta = (p - old[name]).norm() / (p.norm() + 1e-12)
                typical = p.abs().median()
                self.rows[name] = (delta.item(), typical.item(), p.std().item())

    def worst(self):
        return max(self.rows, key=lambda k: self.rows[k][0])


def fake_sessions(n, length, n_tracks, gen):
    start = torch.randint(0, n_tracks, (n, 1), generator=gen)
    hop = torch.randint(1, 12, (n, length), generator=gen).cumsum(1)
    return (start + hop) % n_tracks


class Recommender:
    n_tracks = 12000
    dim = 64
    negatives = 256
    seconds = 18.0

    def __init__(self):
        torch.manual_seed(21)
        self.gen = torch.Generator().manual_seed(21)
        self.data = fake_sessions(20000, 16, self.n_tracks, self.gen)
        self.model = SessionModel(self.n_tracks, self.dim)
        dense = [p for n, p in self.model.named_parameters() if not n.startswith("tracks")]
        self.opt_dense = torch.optim.Adam(dense, lr=1e-3)
        self.opt_emb = torch.optim.SparseAdam(list(self.model.tracks.parameters()), lr=2e-3)
        self.health = WeightHealth()

    def loss(self, sess):
        state = self.model(sess[:, :-1]).reshape(-1, self.dim)
        pos = sess[:, 1:].reshape(-1)
        neg = torch.randint(0, self.n_tracks, (self.negatives,), generator=self.gen)
        pos_score = (state * self.model.tracks(pos)).sum(1, keepdim=True)
        neg_score = state @ self.model.tracks(neg).T
        logits = torch.cat([pos_score, neg_score], dim=1)
        return F.cross_entropy(logits, torch.zeros(len(pos), dtype=torch.long))

    def run(self):
        start, step = time.monotonic(), 0
        while time.monotonic() - start < self.seconds:
            rows = torch.randint(0, len(self.data), (32,), generator=self.gen)
            loss = self.loss(self.data[rows])
            self.opt_dense.zero_grad()
            self.opt_emb.zero_grad()
            loss.backward()
            report = (step + 1) % 50 == 0
            if report:
                self.health.snapshot(self.model)
            self.opt_dense.step()
            self.opt_emb.step()
            if report:
                self.health.compare(self.model)
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f} largest update: {self.health.worst()}")
        print(f"{step} steps ({step / (time.monotonic() - start):.2f} steps/s)")


Recommender().run()
