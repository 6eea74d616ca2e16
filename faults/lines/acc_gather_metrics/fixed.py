"""accelerate: click-through model with a running ROC-AUC."""
import time
from collections import deque

import numpy as np
import torch
from accelerate import Accelerator
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FIELDS, CARD = 16, 1000


def make_clicks(n=32768):
    g = torch.Generator().manual_seed(0)
    x = torch.randint(0, CARD, (n, FIELDS), generator=g)
    score = (x.float() / CARD - 0.5) @ torch.randn(FIELDS, generator=g)
    y = (torch.rand(n, generator=g) < torch.sigmoid(3 * score)).float()
    return TensorDataset(x, y)


class CTR(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.register_buffer("offset", torch.arange(FIELDS) * CARD)
        self.emb = nn.Embedding(FIELDS * CARD, dim)
        self.mlp = nn.Sequential(nn.Linear(FIELDS * dim, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, 1))

    def forward(self, x):
        return self.mlp(self.emb(x + self.offset).flatten(1)).squeeze(-1)


def main():
    torch.manual_seed(0)
    accelerator = Accelerator()
    cuda = accelerator.device.type == "cuda"
    dim, width, batch = (64, 2048, 1024) if cuda else (16, 256, 128)
    model = CTR(dim, width)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(make_clicks(), batch_size=batch, shuffle=True, drop_last=True, num_workers=8 if cuda else 0,
                        persistent_workers=cuda, pin_memory=cuda)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    window = deque(maxlen=8192 // batch)
    step, start, running = 0, time.time(), True
    while running:
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            step += 1
            window.append((logits.detach(), y))
            if step % 200 == 0:
                scores, truth = accelerator.gather_for_metrics(
                    (torch.cat([w[0] for w in window]), torch.cat([w[1] for w in window])))
                s, t = scores.cpu().numpy(), truth.cpu().numpy()
                auc, ap = roc_auc_score(t, s), average_precision_score(t, s)
                accelerator.print(f"step {step} loss {loss.item():.4f} auc {auc:.4f} ap {ap:.4f}")
            if time.time() - start > 14:
                running = False
                break
    if cuda:
        torch.cuda.synchronize()
    accelerator.print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
