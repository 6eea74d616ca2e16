"""Next-character model on a stream of news articles (JSON lines)."""
import html
import itertools
import json
import os
import random
import re
import tempfile
import time
import unicodedata

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

ALPHABET = " abcdefghijklmnopqrstuvwxyz.,;!?'-"
INDEX = {c: i for i, c in enumerate(ALPHABET)}
CONTEXT = 96


def write_corpus(path, n=1200):
    rnd = random.Random(13)
    stems = ["mark", "trad", "polit", "sport", "wetter", "econom", "café", "naïv", "élect", "rap", "ber", "sol"]
    tails = ["et", "er", "ing", "ion", "isch", "al", "s", ""]
    with open(path, "w", encoding="utf-8") as f:
        for i in range(n):
            words = [rnd.choice(stems) + rnd.choice(tails) for _ in range(rnd.randint(120, 200))]
            body = "<p>" + " ".join(words) + ". &amp; more &mdash; <a href='#'>link</a></p>"
            f.write(json.dumps({"id": i, "title": words[0], "body": body, "tags": words[:5]}) + "\n")


def clean(raw):
    text = html.unescape(re.sub(r"<[^>]+>", " ", raw))
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c)).lower()
    return re.sub(r"\s+", " ", text).strip()


class ArticleStream(IterableDataset):
    def __init__(self, path):
        self.path = path

    def lines(self):
        for _ in itertools.count():
            with open(self.path, encoding="utf-8") as f:
                yield from f

    def articles(self, lines):
        for line in lines:
            record = json.loads(line)
            text = clean(record["title"] + ". " + record["body"])
            yield torch.tensor([INDEX[c] for c in text if c in INDEX])

    def __iter__(self):
        info = get_worker_info()
        wid, total = (info.id, info.num_workers) if info else (0, 1)
        mine = itertools.islice(self.articles(self.lines()), wid, None, total)
        for codes in mine:
            cut = (len(codes) - 1) // CONTEXT * CONTEXT
            yield codes[:cut].view(-1, CONTEXT), codes[1:cut + 1].view(-1, CONTEXT)


def join(items):
    x, y = zip(*items)
    return torch.cat(x), torch.cat(y)


class CharConv(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(len(ALPHABET), dim)
        self.conv = nn.Conv1d(dim, 2 * dim, 6)
        self.out = nn.Linear(2 * dim, len(ALPHABET))

    def forward(self, x):
        h = nn.functional.pad(self.emb(x).transpose(1, 2), (5, 0))
        return self.out(torch.relu(self.conv(h)).transpose(1, 2))


if __name__ == "__main__":
    torch.manual_seed(13)
    corpus = os.path.join(tempfile.mkdtemp(), "articles.jsonl")
    write_corpus(corpus)
    loader = DataLoader(ArticleStream(corpus), batch_size=4, collate_fn=join, num_workers=2, prefetch_factor=4)
    model = CharConv()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    t0, n = time.monotonic(), 0
    for n, (x, y) in enumerate(loader, 1):
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.reshape(-1, len(ALPHABET)), y.reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if n % 50 == 0:
            print(f"batch {n}: {loss.item() / 0.6931:.3f} bits per character")
        if time.monotonic() - t0 > 18.0:
            break
    print(f"{n / (time.monotonic() - t0):.2f} batches/s")
