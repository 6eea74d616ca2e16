"""Sentiment classification of product reviews with a small transformer."""
import random
import re
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SYLLABLES = "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu".split()
URL = re.compile(r"https?://\S+|www\.\S+")
TAG = re.compile(r"<[^>]+>")
TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|[0-9]+|[!?.,;]")
REPEAT = re.compile(r"(.)\1{2,}")


def write_reviews(n=600, words=1200, seed=4):
    rnd = random.Random(seed)
    lexicon = ["".join(rnd.choices(SYLLABLES, k=rnd.randint(1, 4))) for _ in range(3000)]
    reviews = []
    for i in range(n):
        text = rnd.choices(lexicon, k=words)
        text[5] = "<br />"
        text[17] = "https://shop.example/" + text[3]
        text[40] = "soooo"
        reviews.append((" ".join(text).capitalize() + "!!!", i % 2))
    return reviews


def clean(text):
    text = URL.sub(" ", text.lower())
    text = TAG.sub(" ", text)
    text = REPEAT.sub(r"\1\1", text)
    return re.sub(r"\s+", " ", text).strip()


class Vocabulary:
    def __init__(self, texts, size=4000):
        counts = {}
        for t in texts:
            for tok in TOKEN.findall(clean(t)):
                counts[tok] = counts.get(tok, 0) + 1
        top = sorted(counts, key=counts.get, reverse=True)[:size - 2]
        self.index = {tok: i + 2 for i, tok in enumerate(top)}

    def encode(self, text, length):
        ids = [self.index.get(tok, 1) for tok in TOKEN.findall(clean(text))][:length]
        return torch.tensor(ids + [0] * (length - len(ids)))


class Reviews(Dataset):
    def __init__(self, rows, vocab, length=64):
        self.rows, self.vocab, self.length = rows, vocab, length

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        return self.vocab.encode(text, self.length), label


class Classifier(nn.Module):
    def __init__(self, vocab=4000, dim=64, length=64):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim, padding_idx=0)
        self.pos = nn.Parameter(torch.zeros(length, dim))
        block = nn.TransformerEncoderLayer(dim, 4, 128, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 2)

    def forward(self, ids):
        return self.out(self.enc(self.tok(ids) + self.pos).mean(1))


def main(batch_size=32, seconds=14):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = write_reviews()
    vocab = Vocabulary(t for t, _ in rows)
    loader = DataLoader(Reviews(rows, vocab), batch_size, shuffle=True, drop_last=True)
    model = Classifier().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    start, step, epoch = time.perf_counter(), 0, 0
    while time.perf_counter() - start < seconds:
        for ids, label in loader:
            loss = nn.functional.cross_entropy(model(ids.to(device)), label.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if time.perf_counter() - start > seconds:
                break
        print(f"epoch {epoch} loss {loss.item():.4f}")
        epoch += 1
    took = time.perf_counter() - start
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
