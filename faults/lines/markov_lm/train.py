"""Two-layer LSTM language model on a synthetic Markov corpus, truncated BPTT."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB = 500
BPTT = 32
BATCH = 512 if device == "cuda" else 32


def markov_corpus(n_tokens=300_000):
    g = torch.Generator().manual_seed(7)
    jumps = torch.randint(0, 4, (n_tokens,), generator=g)
    return (jumps * 37 + torch.arange(n_tokens) % 11).cumsum(0) % VOCAB


class LSTMLM(nn.Module):
    def __init__(self, dim=128, hidden=160, layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.lstm = nn.LSTM(dim, hidden, layers, batch_first=True, dropout=0.1)
        self.out = nn.Linear(hidden, VOCAB)

    def forward(self, ids, state=None):
        h, state = self.lstm(self.emb(ids), state)
        return self.out(h), state


def detach(state):
    return tuple(s.detach() for s in state)


def main(seconds=14.0):
    torch.manual_seed(0)
    tokens = markov_corpus()
    columns = len(tokens) // BATCH
    stream = tokens[: columns * BATCH].view(BATCH, columns).to(device)
    model = LSTMLM().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    step, epoch, t0 = 0, 0, time.time()
    while time.time() - t0 < seconds:
        state = None
        for i in range(0, columns - BPTT - 1, BPTT):
            x, y = stream[:, i:i + BPTT], stream[:, i + 1:i + 1 + BPTT]
            logits, state = model(x, state)
            state = detach(state)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} ppl {math.exp(loss.item()):.1f}")
            if time.time() - t0 >= seconds:
                break
        epoch += 1
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.time() - t0
    print(f"{step / dt:.2f} steps/s, {step * BATCH / dt:.1f} samples/s")


if __name__ == "__main__":
    main()
