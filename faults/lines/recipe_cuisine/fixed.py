import argparse
import os
import random
import time
import unicodedata
import zlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=96)
parser.add_argument("--buckets", type=int, default=20000)
parser.add_argument("--seconds", type=float, default=float(os.environ.get("FLATOUT_LOOP_SECONDS", 15)))
args = parser.parse_args()

random.seed(11)
torch.manual_seed(11)
SYLLABLES = ["ka", "ri", "to", "ména", "sol", "bu", "gra", "nish", "pé", "lo", "ço", "za", "wen", "ti", "ru"]
WORDS = ["".join(random.choices(SYLLABLES, k=random.randint(1, 4))) for _ in range(3000)]


def make_recipes(n):
    recipes = []
    for _ in range(n):
        cuisine = random.randrange(12)
        vocabulary = WORDS[cuisine * 200 : cuisine * 200 + 800]
        recipes.append((" ".join(random.choices(vocabulary, k=120)), cuisine))
    return recipes


def tokenize(text, length=640):
    text = unicodedata.normalize("NFKD", text.lower())
    text = "".join(c for c in text if not unicodedata.combining(c))
    ids = []
    for word in text.split():
        word = f"<{word}>"
        for i in range(len(word) - 2):
            ids.append(zlib.crc32(word[i : i + 3].encode()) % (args.buckets - 1) + 1)
    ids = ids[:length]
    return ids + [0] * (length - len(ids))


class Recipes(Dataset):
    def __init__(self, recipes):
        self.ids = torch.tensor([tokenize(text) for text, _ in recipes])
        self.cuisines = [cuisine for _, cuisine in recipes]

    def __len__(self):
        return len(self.cuisines)

    def __getitem__(self, i):
        return self.ids[i], self.cuisines[i]


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(args.buckets, 32, padding_idx=0)
        self.conv = nn.Conv1d(32, 32, 3, padding=1)
        self.head = nn.Linear(32, 12)

    def forward(self, ids):
        h = F.relu(self.conv(self.embed(ids).transpose(1, 2)))
        return self.head(h.amax(-1))


data = Recipes(make_recipes(5000))
loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True)
model = Bag()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

step, began = 0, None
done = False
while not done:
    for ids, cuisine in loader:
        loss = F.cross_entropy(model(ids), cuisine)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == 5:
            began = time.perf_counter()
        if began and time.perf_counter() - began > args.seconds:
            done = True
            break
print(f"loss {loss.item():.3f}; {(step - 5) / (time.perf_counter() - began):.2f} steps per second")
