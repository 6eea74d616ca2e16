"""Text line recogniser (conv + GRU, monospaced) on synthetic strips."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
N_CHARS = 30          # 0 is the space
LABEL_LEN = 48
CHAR_WIDTH = 4
WIDTH = LABEL_LEN * CHAR_WIDTH
HEIGHT = 16
BATCH = 256 if device == "cuda" else 32


def make_lines(n):
    g = torch.Generator().manual_seed(0)
    font = torch.rand(N_CHARS, HEIGHT, CHAR_WIDTH, generator=g)
    text = torch.randint(0, N_CHARS, (n, LABEL_LEN), generator=g)
    img = font[text].permute(0, 2, 1, 3).reshape(n, 1, HEIGHT, WIDTH)
    return img + 0.1 * torch.randn(img.shape, generator=g), text


class Recogniser(nn.Module):
    def __init__(self, ch=24, hidden=48):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, ch, (HEIGHT, 3), padding=(0, 1)), nn.ReLU(), nn.Flatten(1, 2),
            nn.Conv1d(ch, 64, CHAR_WIDTH, stride=CHAR_WIDTH), nn.ReLU(),
        )
        self.rnn = nn.GRU(64, hidden, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, N_CHARS)

    def forward(self, x):
        h = self.cnn(x).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.fc(h)


def edit_distance(a, b):
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        cur = [i]
        for j, cb in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (ca != cb)))
        prev = cur
    return prev[-1]


def greedy_decode(logits):
    return [[c for c in line if c != 0] for line in logits.argmax(-1).tolist()]


def char_error_rate(logits, target):
    hyps = greedy_decode(logits)
    refs = [[c for c in line if c != 0] for line in target.tolist()]
    errors = sum(edit_distance(h, r) for h, r in zip(hyps, refs))
    return errors / sum(len(r) for r in refs)


def train(seconds=14.0, report=40):
    torch.manual_seed(1)
    images, texts = make_lines(6000)
    images, texts = images.to(device), texts.to(device)
    model = Recogniser().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps, started = 0, time.time()
    while time.time() - started < seconds:
        idx = torch.randint(0, len(texts), (BATCH,), device=device)
        target = texts[idx]
        logits = model(images[idx])
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        steps += 1
        if steps % report == 0:
            cer = char_error_rate(logits.detach(), target)
            print(f"step {steps} loss {loss.item():.3f} cer {cer:.3f}")
    if device == "cuda":
        torch.cuda.synchronize()
    took = time.time() - started
    print(f"{steps / took:.2f} steps/s, {steps * BATCH / took:.1f} samples/s")


train()
