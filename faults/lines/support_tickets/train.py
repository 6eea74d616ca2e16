import os
import random
import re
import sqlite3
import tempfile
import time
from collections import Counter
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

TOPICS = ["billing", "login", "shipping", "refund", "outage", "feedback"]
FILLER = [f"{a}{b}" for a in ("re", "un", "pre", "con", "dis", "ex", "tra", "mo") for b in
          ("form", "late", "port", "tract", "pose", "duce", "scribe", "mit", "fer", "ject", "voke", "tend")]

RULES = [
    (re.compile(r"<[^>]+>"), " "),
    (re.compile(r"https?://\S+"), " _url_ "),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"), " _mail_ "),
    (re.compile(r"\b\d{4}-\d{2}-\d{2}\b"), " _date_ "),
    (re.compile(r"#\d+"), " _ref_ "),
    (re.compile(r"\d+(?:[.,]\d+)?"), " _num_ "),
    (re.compile(r"([!?.])\1+"), r"\1"),
    (re.compile(r"[^\w\s!?.]"), " "),
    (re.compile(r"\s+"), " "),
]
TOKEN = re.compile(r"\w+|[!?.]")


@dataclass
class Config:
    tickets: int = 1000
    words: int = 400
    max_len: int = 96
    batch: int = 48
    dim: int = 48
    seconds: float = 12.0


def write_tickets(cfg, seed=11):
    rng = random.Random(seed)
    out = []
    for _ in range(cfg.tickets):
        topic = rng.randrange(len(TOPICS))
        parts = []
        for _ in range(cfg.words):
            r = rng.random()
            if r < 0.08:
                parts.append(TOPICS[topic] + rng.choice(["!!!", "??", ".", ""]))
            elif r < 0.12:
                parts.append(f"<b>{rng.choice(FILLER)}</b>")
            elif r < 0.15:
                parts.append(f"user{rng.randrange(99)}@mail.example.com")
            elif r < 0.18:
                parts.append(f"2024-0{rng.randrange(1, 9)}-1{rng.randrange(9)}")
            elif r < 0.24:
                parts.append(f"#{rng.randrange(10000)} {rng.random() * 100:.2f}")
            else:
                parts.append(rng.choice(FILLER).capitalize())
        out.append((" ".join(parts), topic))
    return out


def clean(text):
    for pattern, repl in RULES:
        text = pattern.sub(repl, text)
    return TOKEN.findall(text.lower())


class Tickets(Dataset):
    def __init__(self, rows, max_len):
        self.rows, self.max_len = rows, max_len
        counts = Counter()
        for text, _ in rows[:500]:
            counts.update(clean(text))
        self.vocab = {w: i + 2 for i, (w, _) in enumerate(counts.most_common(4000))}

    def __len__(self):
        return len(self.rows)

    def encode(self, text):
        ids = [self.vocab.get(w, 1) for w in clean(text)[: self.max_len]]
        ids += [0] * (self.max_len - len(ids))
        return torch.tensor(ids)

    def __getitem__(self, i):
        text, topic = self.rows[i]
        return i, self.encode(text), topic


class Router(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, len(TOPICS))

    def forward(self, ids):
        pad = ids.eq(0)
        h = self.encoder(self.embed(ids), src_key_padding_mask=pad)
        h = h.masked_fill(pad.unsqueeze(-1), 0).sum(1) / (~pad).sum(1, keepdim=True)
        return self.head(h)


class Audit:
    """Keeps the hardest tickets of each batch for the reviewers."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.execute("create table seen (step integer, ticket integer, loss real)")

    def record(self, step, ids, losses, top=3):
        hardest = losses.topk(top)
        ids = ids[hardest.indices]
        for ticket, value in zip(ids.tolist(), hardest.values.tolist()):
            self.db.execute("insert into seen values (?, ?, ?)", (step, ticket, value))
            self.db.commit()


def main():
    cfg = Config()
    torch.manual_seed(0)
    data = Tickets(write_tickets(cfg), cfg.max_len)
    loader = DataLoader(data, cfg.batch, shuffle=True, drop_last=True)
    model = Router(len(data.vocab) + 2, cfg.dim)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        audit = Audit(os.path.join(folder, "audit.db"))
        steps, start = 0, time.monotonic()
        while time.monotonic() - start < cfg.seconds:
            for ids, tokens, topic in loader:
                each = F.cross_entropy(model(tokens), topic, reduction="none")
                opt.zero_grad()
                each.mean().backward()
                opt.step()
                audit.record(steps, ids, each.detach())
                steps += 1
                if time.monotonic() - start >= cfg.seconds:
                    break
        audit.db.commit()
        rows = audit.db.execute("select count(*) from seen").fetchone()[0]
        audit.db.close()
    print(f"loss {each.mean().item():.3f}, {rows} audit rows")
    print("steps:", steps)


if __name__ == "__main__":
    main()
