"""Sentiment of short reviews: embedding, transformer encoder, masked mean."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
VOCAB = 8000
PAD = 0


def load_reviews(n=12000):
    g = torch.Generator().manual_seed(42)
    lengths = torch.exp(torch.randn(n, generator=g) * 0.4 + 2.8).long().clamp(4, 60)
    lengths[torch.randint(0, n, (12,), generator=g)] = 150
    label = torch.randint(0, 2, (n,), generator=g)
    reviews = []
    for length, y in zip(lengths.tolist(), label.tolist()):
        words = torch.randint(1, VOCAB, (length,), generator=g)
        words[: length // 4] = words[: length // 4] % 400 + 1 + 400 * y
        reviews.append(words)
    ids = nn.utils.rnn.pad_sequence(reviews, batch_first=True, padding_value=PAD)
    return ids, lengths, label


class Sentiment(nn.Module):
    def __init__(self, dim=96, heads=4, depth=2, max_len=256):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.pos = nn.Parameter(0.02 * torch.randn(max_len, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.fc = nn.Linear(dim, 2)

    def forward(self, ids):
        pad = ids == PAD
        h = self.encoder(self.emb(ids) + self.pos[: ids.shape[1]], src_key_padding_mask=pad)
        h = h.masked_fill(pad[..., None], 0.0).sum(1)
        return self.fc(h / (~pad).sum(1, keepdim=True))


class ReviewBatches:
    def __init__(self, ids, lengths, label, batch_size):
        self.ids, self.label = ids.to(device), label.to(device)
        self.lengths = lengths
        self.batch_size = batch_size

    def __iter__(self):
        order = torch.randperm(len(self.label))
        for rows in order.split(self.batch_size):
            where = rows.to(device)
            ids = self.ids[where]
            yield ids, self.label[where]


def main(seconds=14):
    torch.manual_seed(0)
    batches = ReviewBatches(*load_reviews(), batch_size=256 if device == "cuda" else 24)
    model = Sentiment().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    step, samples, epoch, t0 = 0, 0, 0, time.time()
    while time.time() - t0 < seconds:
        for ids, label in batches:
            logits = model(ids)
            loss = F.cross_entropy(logits, label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            samples += len(label)
            if step % 50 == 0:
                acc = (logits.argmax(1) == label).float().mean().item()
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} acc {acc:.3f}")
            if time.time() - t0 >= seconds:
                break
        epoch += 1
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {samples / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
