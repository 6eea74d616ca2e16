"""Intent encoder for the help desk, with a watch over every layer and every intent."""
import sys
import time
from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Requests(Dataset):
    """Token rows of one intent each; an index is a whole batch."""

    def __init__(self, batches, batch_size, length, vocabulary, intents):
        self.shape, self.vocabulary, self.intents, self.batches = (batch_size, length), vocabulary, intents, batches

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(self.vocabulary, self.shape, generator=generator)
        return tokens, tokens[:, 0] % self.intents


class Encoder(nn.Module):
    def __init__(self, vocabulary, intents, width=1024, depth=6, heads=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(width, intents)

    def forward(self, tokens):
        return self.out(self.layers(self.embed(tokens)).mean(dim=1))


class HealthWatch:
    """Gradient norm, and its ratio to the weight's norm, of every parameter, and the hits of every intent."""

    def __init__(self, model):
        self.named = list(model.named_parameters())
        self.history = defaultdict(list)
        self.hits = defaultdict(int)

    def observe(self, loss, scores, intent):
        self.history["loss"].append(loss.item())
        for guess, wanted in zip(scores.argmax(dim=1), intent):
            self.hits[wanted.item()] += int(guess == wanted)
        for name, parameter in self.named:
            gradient = parameter.grad.norm().item()
            weight = parameter.detach().norm().item()
            self.history[name].append((gradient, gradient / (weight + 1e-12)))

    def weakest(self):
        return min((name for name, _ in self.named), key=lambda name: self.history[name][-1][1])


class Trainer:
    def __init__(self, epochs=5, batches=80, batch_size=128, length=128, vocabulary=8000, intents=32):
        if not torch.cuda.is_available():
            sys.exit("this training needs a CUDA device")
        torch.manual_seed(9)
        torch.set_float32_matmul_precision("high")
        self.epochs = epochs
        self.loader = DataLoader(
            Requests(batches, batch_size, length, vocabulary, intents),
            batch_size=None,
            shuffle=True,
            num_workers=4,
            pin_memory=True,
            persistent_workers=True,
        )
        self.model = Encoder(vocabulary, intents).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4, fused=True)
        self.watch = HealthWatch(self.model)

    def step(self, tokens, intent):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = self.model(tokens)
            loss = nn.functional.cross_entropy(scores, intent)
        self.optimizer.zero_grad()
        loss.backward()
        self.watch.observe(loss, scores, intent)
        self.optimizer.step()

    def fit(self):
        for epoch in range(self.epochs):
            began = time.perf_counter()
            for tokens, intent in self.loader:
                self.step(tokens.cuda(non_blocking=True), intent.cuda(non_blocking=True))
            torch.cuda.synchronize()
            per_step = (time.perf_counter() - began) / len(self.loader)
            print(
                f"epoch {epoch} loss {self.watch.history['loss'][-1]:.4f} weakest {self.watch.weakest()}"
                f" hits {sum(self.watch.hits.values())} {1000 * per_step:.1f} ms a step",
                flush=True,
            )


if __name__ == "__main__":
    Trainer().fit()
