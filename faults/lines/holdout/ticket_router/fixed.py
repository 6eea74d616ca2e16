"""Route support tickets to one of eight queues."""
import argparse
import random
import re
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

SYLLABLES = "ba be bi bo bu ka ke ki ko ku la le li lo lu ma me mi mo mu ra re ri ro ru sta ste sti sto tan ten tin".split()


def make_tickets(n, n_queues, rnd):
    lexicon = ["".join(rnd.choice(SYLLABLES) for _ in range(rnd.randint(2, 4))) for _ in range(1500)]
    topical = [rnd.sample(lexicon, 60) for _ in range(n_queues)]
    texts, queues = [], []
    for _ in range(n):
        q = rnd.randrange(n_queues)
        words = [rnd.choice(topical[q]) if rnd.random() < 0.3 else rnd.choice(lexicon) for _ in range(rnd.randint(25, 60))]
        words[rnd.randrange(len(words))] += "!"
        texts.append(" ".join(words).capitalize() + ".")
        queues.append(q)
    return texts, queues


class SubwordTokenizer:
    """Greedy longest match, like WordPiece."""

    split = re.compile(r"\w+|[^\w\s]")

    def __init__(self, texts, size=900):
        counts = {}
        for t in texts[:400]:
            for w in self.split.findall(t.lower()):
                for i in range(len(w)):
                    for j in range(i + 1, min(len(w), i + 6) + 1):
                        piece = w[i:j] if i == 0 else "##" + w[i:j]
                        counts[piece] = counts.get(piece, 0) + j - i
        kept = sorted(counts, key=counts.get, reverse=True)[:size]
        self.vocab = {"[PAD]": 0, "[UNK]": 1}
        for p in kept:
            self.vocab.setdefault(p, len(self.vocab))

    def encode(self, text):
        ids = []
        for word in self.split.findall(text.lower()):
            start = 0
            while start < len(word):
                end = len(word)
                while end > start:
                    piece = word[start:end] if start == 0 else "##" + word[start:end]
                    if piece in self.vocab:
                        ids.append(self.vocab[piece])
                        break
                    end -= 1
                else:
                    ids.append(1)
                    end = start + 1
                start = end
        return ids


class TicketData(Dataset):
    def __init__(self, texts, queues, tokenizer):
        self.texts, self.queues, self.tok = texts, queues, tokenizer
        self.ids = [torch.tensor(tokenizer.encode(t)) for t in texts]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.ids[i], self.queues[i]

    def collate(self, items):
        texts, queues = zip(*items)
        return pad_sequence(texts, batch_first=True), torch.tensor(queues)


class Router(nn.Module):
    def __init__(self, vocab, n_queues, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, 64, 3, padding=1)
        self.out = nn.Linear(64, n_queues)

    def forward(self, ids):
        h = torch.relu(self.conv(self.emb(ids).transpose(1, 2)))
        return self.out(h.amax(dim=2))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--tickets", type=int, default=1600)
    ap.add_argument("--queues", type=int, default=8)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--seconds", type=float, default=18.0)
    args = ap.parse_args()
    torch.manual_seed(0)
    texts, queues = make_tickets(args.tickets, args.queues, random.Random(5))
    tokenizer = SubwordTokenizer(texts)
    data = TicketData(texts, queues, tokenizer)
    loader = DataLoader(data, args.batch, shuffle=True, collate_fn=data.collate)
    net = Router(len(tokenizer.vocab), args.queues)
    optim = torch.optim.Adam(net.parameters(), 1e-3)
    criterion = nn.CrossEntropyLoss()
    t0, seen, ep = time.monotonic(), 0, 0
    while time.monotonic() - t0 < args.seconds:
        total = 0.0
        for x, y in loader:
            optim.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optim.step()
            total += loss.item() * len(y)
            seen += len(y)
            if time.monotonic() - t0 >= args.seconds:
                break
        ep += 1
        print(f"epoch {ep:3d}  mean loss {total / args.tickets:.4f}")
    print(f"{seen / (time.monotonic() - t0):.1f} tickets/s")
