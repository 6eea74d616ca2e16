"""Two-tower recommender with hard negatives mined in the batch."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
ITEMS, BATCH, BASKET, DIM = (8000, 2048, 24, 512) if CUDA else (300, 32, 6, 32)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = nn.EmbeddingBag(ITEMS, DIM, mode="mean")
        self.user = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))
        self.items = nn.Embedding(ITEMS, DIM)

    def forward(self, baskets):
        return self.user(self.history(baskets))


def hard_negatives(users, items, k=8):
    """The k most similar items of other users in the batch."""
    scores = (users @ items.T).detach().fill_diagonal_(-torch.inf)
    return scores.topk(k, dim=1).indices


def loss_of(model, baskets, bought):
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        users = model(baskets)
        logits = users @ model.items.weight.T
        items = model.items(bought).to(users.dtype)
        negatives = items[hard_negatives(users, items)]
        margin = (users[:, None] * (negatives - items[:, None])).sum(-1)
    softmax = F.cross_entropy(logits.float(), bought)
    return softmax + 0.1 * F.softplus(margin.float()).mean()


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    baskets = torch.randint(0, ITEMS, (20 * BATCH, BASKET), device=DEVICE)
    bought = torch.randint(0, ITEMS, (20 * BATCH,), device=DEVICE)
    model = Towers().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=CUDA)
    step, start = 0, None
    while True:
        at = step % 20 * BATCH
        loss = loss_of(model, baskets[at : at + BATCH], bought[at : at + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == 10:
            start = time.time()
        if start and time.time() - start > seconds:
            break
    print(f"{(step - 10) / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
