"""Two-tower retrieval of books for readers, softmax over the whole batch."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(808)
device = "cuda" if torch.cuda.is_available() else "cpu"
cuda = device == "cuda"
torch.set_float32_matmul_precision("high")

N_BOOKS, HISTORY = (100_000, 20) if cuda else (500, 5)
DIM, WIDTH, OUT = (256, 8192, 256) if cuda else (16, 32, 16)
BATCH, READERS = (16384, 1_000_000) if cuda else (64, 2000)


def tower():
    return nn.Sequential(
        nn.Linear(DIM, WIDTH), nn.ReLU(inplace=True),
        nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True),
        nn.Linear(WIDTH, OUT))


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.books = nn.Embedding(N_BOOKS, DIM)
        nn.init.normal_(self.books.weight, std=0.1)
        self.reader_tower, self.book_tower = tower(), tower()
        self.log_scale = nn.Parameter(torch.tensor(2.5))

    def forward(self, history, book, log_pop):
        reader = F.normalize(self.reader_tower(self.books(history).mean(1)), dim=-1)
        item = F.normalize(self.book_tower(self.books(book)), dim=-1)
        scores = self.log_scale.exp() * (reader @ item.t()) - log_pop
        return scores


class Interactions:
    """Reading histories on the device; popularity follows a power law."""

    def __init__(self):
        u = torch.rand(READERS, HISTORY + 1, device=device)
        self.books = (u.pow(3) * N_BOOKS).long().clamp_(max=N_BOOKS - 1)
        counts = torch.bincount(self.books.flatten(), minlength=N_BOOKS).float() + 1
        self.log_pop = (counts / counts.sum()).log()

    def sample(self):
        rows = self.books[torch.randint(0, READERS, (BATCH,), device=device)]
        book = rows[:, -1].contiguous()
        return rows[:, :-1], book, self.log_pop[book]


@torch.no_grad()
def recall_in_batch(model, data, k=100):
    with torch.autocast(device, dtype=torch.bfloat16):
        scores = model(*data.sample())
    k = min(k, scores.shape[1])
    top = scores.topk(k, dim=1).indices
    return (top == torch.arange(BATCH, device=device).unsqueeze(1)).any(1).float().mean().item()


def main():
    data = Interactions()
    model = TwoTower().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.0, fused=True)
    truth = torch.arange(BATCH, device=device)
    smoothed = torch.zeros((), device=device)

    begin, step = time.monotonic(), 0
    while time.monotonic() - begin < 18:
        history, book, log_pop = data.sample()
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(history, book, log_pop)
            loss = F.cross_entropy(scores, truth)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        smoothed.lerp_(loss.detach(), 0.05)
        step += 1
        if step % 50 == 0:
            print(f"step {step}: loss {smoothed.item():.4f}")
        if step % 1000 == 0:
            print(f"  recall@100 {recall_in_batch(model, data):.3f}")
    rate = step * BATCH / (time.monotonic() - begin)
    print(f"{step} steps, {rate:,.0f} pairs/s, recall@100 {recall_in_batch(model, data):.3f}")


if __name__ == "__main__":
    main()
