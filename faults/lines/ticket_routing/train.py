"""Route support tickets to one of several teams."""
import os
import pickle
import random
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEAMS = 6


def make_corpus(folder, tickets=1500, words=20_000, seed=27):
    rnd = random.Random(seed)
    lexicon = ["".join(rnd.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(words)]
    vocab = {w: i + 1 for i, w in enumerate(lexicon)}
    path = os.path.join(folder, "vocab.pkl")
    with open(path, "wb") as f:
        pickle.dump(vocab, f)
    texts = [" ".join(rnd.choices(lexicon, k=rnd.randint(150, 250))) for _ in range(tickets)]
    return path, texts, [rnd.randrange(TEAMS) for _ in texts]


def load_vocab(path):
    with open(path, "rb") as f:
        return pickle.load(f)


class Tickets(Dataset):
    def __init__(self, vocab_path, texts, teams):
        self.vocab_path = vocab_path
        self.texts, self.teams = texts, teams

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        vocab = load_vocab(self.vocab_path)
        ids = [vocab[w] for w in self.texts[i].split()]
        return torch.tensor(ids), self.teams[i]


def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    tokens = torch.zeros(len(batch), width, dtype=torch.long)
    mask = torch.zeros(len(batch), width)
    for row, (ids, _) in enumerate(batch):
        for col, token in enumerate(ids):
            tokens[row, col] = token
            mask[row, col] = 1.0
    return tokens, mask, torch.tensor([team for _, team in batch])


class Router(nn.Module):
    def __init__(self, vocab=20_001, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Sequential(nn.Conv1d(dim, dim, 3, padding=1), nn.ReLU(),
                                  nn.Conv1d(dim, dim, 3, padding=1), nn.ReLU())
        self.att = nn.Linear(dim, 1)
        self.out = nn.Linear(dim, TEAMS)

    def forward(self, tokens, mask):
        h = self.conv(self.emb(tokens).transpose(1, 2)).transpose(1, 2)
        score = self.att(h).squeeze(-1).masked_fill(mask == 0, -1e9)
        return self.out((score.softmax(1).unsqueeze(-1) * h).sum(1))


def main(batch_size=24, seconds=14.0):
    torch.manual_seed(27)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as tmp:
        data = Tickets(*make_corpus(tmp))
        loader = DataLoader(data, batch_size, shuffle=True, drop_last=True, collate_fn=collate)
        model = Router().to(device)
        opt = torch.optim.Adam(model.parameters(), lr=2e-3)
        step, t0 = 0, time.perf_counter()
        while time.perf_counter() - t0 < seconds:
            for tokens, mask, team in loader:
                logits = model(tokens.to(device), mask.to(device))
                loss = nn.functional.cross_entropy(logits, team.to(device))
                opt.zero_grad()
                loss.backward()
                opt.step()
                step += 1
                if step % 40 == 0:
                    print(f"step {step} loss {loss.item():.4f}")
                if time.perf_counter() - t0 >= seconds:
                    break
        took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
