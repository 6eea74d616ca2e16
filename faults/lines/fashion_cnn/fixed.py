"""Small CNN on synthetic garment images."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
EVAL_EVERY = 300


def garments(n, seed):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(10, 1, 20, 20, generator=torch.Generator().manual_seed(77))
    y = torch.randint(0, 10, (n,), generator=g)
    return (proto[y] + 2.5 * torch.randn(n, 1, 20, 20, generator=g)).to(device), y.to(device)


class Net(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.c1 = nn.Conv2d(1, ch, 3, padding=1)
        self.c2 = nn.Conv2d(ch, 2 * ch, 3, padding=1)
        self.fc1 = nn.Linear(2 * ch * 25, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


@torch.no_grad()
def evaluate(model, x, y, batch=1000):
    model.eval()
    correct = torch.zeros((), device=device)
    for i in range(0, len(x), batch):
        logits = model(x[i:i + batch])
        correct += (logits.argmax(1) == y[i:i + batch]).sum()
    model.train()
    return correct.item() / len(x)


def train_epochs(model, train_set, val_set, batch, budget=14):
    x, y = train_set
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    best, step, epoch = 0.0, 0, 0
    t0 = time.perf_counter()
    while True:
        for idx in torch.randperm(len(x), device=device).split(batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % EVAL_EVERY == 0:
                acc = evaluate(model, *val_set)
                best = max(best, acc)
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} val {acc:.4f} best {best:.4f}")
            if time.perf_counter() - t0 > budget:
                if device == "cuda":
                    torch.cuda.synchronize()
                return step, time.perf_counter() - t0
        epoch += 1


if __name__ == "__main__":
    torch.manual_seed(0)
    batch = 512 if device == "cuda" else 64
    n_train, n_val = (40000, 20000) if device == "cuda" else (20000, 4000)
    model = Net().to(device)
    steps, secs = train_epochs(model, garments(n_train, 1), garments(n_val, 2), batch)
    print(f"trained {steps} steps, {steps / secs:.2f} steps/s, {steps * batch / secs:.1f} samples/s")
