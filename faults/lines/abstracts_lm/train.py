"""Language model on paper abstracts; text is cleaned and tokenized before training starts."""
import random
import re
import time
from collections import Counter

import torch
from torch import nn

WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


def abstracts(n=3000, seed=50):
    rnd = random.Random(seed)
    lexicon = ["".join(rnd.choices("aeioubdfgklmnprst", k=rnd.randint(3, 9))) for _ in range(4000)]
    return [" ".join(rnd.choices(lexicon, k=110)).capitalize() + ", see [12]." for _ in range(n)]


def tokenize(text):
    text = re.sub(r"\[[0-9]+\]", " ", text.lower())
    return WORD.findall(re.sub(r"\s+", " ", text))


class Corpus:
    def __init__(self, texts, vocab_size=4096):
        counts = Counter()
        tokens = []
        for t in texts:
            words = tokenize(t)
            counts.update(words)
            tokens.append(words)
        index = {w: i + 2 for i, (w, _) in enumerate(counts.most_common(vocab_size - 2))}
        flat = []
        for words in tokens:
            flat.extend(index.get(w, 1) for w in words)
            flat.append(0)
        self.ids = torch.tensor(flat)

    def batches(self, batch_size, length):
        offset = int(torch.randint(0, length, ()))
        usable = (len(self.ids) - offset - 1) // length * length
        x = self.ids[offset:offset + usable].view(-1, length)
        y = self.ids[offset + 1:offset + usable + 1].view(-1, length)
        for rows in torch.randperm(len(x)).split(batch_size):
            if len(rows) == batch_size:
                yield x[rows], y[rows]


class Decoder(nn.Module):
    def __init__(self, dim, layers, vocab=4096, length=64):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))
        self.register_buffer("where", torch.arange(length))
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        h = self.tok(ids) + self.pos(self.where)
        return self.out(self.blocks(h, mask=self.mask, is_causal=True))


def main(length=64, seconds=14.0):
    torch.manual_seed(50)
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    batch_size, dim, layers = (64, 512, 6) if cuda else (12, 128, 3)
    began = time.perf_counter()
    corpus = Corpus(abstracts())
    print(f"prepared {len(corpus.ids)} tokens in {time.perf_counter() - began:.1f} s")
    model = Decoder(dim, layers).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, t0 = 0, time.perf_counter()
    while time.perf_counter() - t0 < seconds:
        for x, y in corpus.batches(batch_size, length):
            x, y = x.to(device), y.to(device)
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.3f}")
            if time.perf_counter() - t0 >= seconds:
                break
    if cuda:
        torch.cuda.synchronize()
    took = time.perf_counter() - t0
    print(f"{step / took:.2f} steps/s, {step * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
