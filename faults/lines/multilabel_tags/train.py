import time
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score, roc_auc_score


class TagNet(nn.Module):
    def __init__(self, n_in, n_tags, width=384):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
        )
        self.out = nn.Linear(width, n_tags)

    def forward(self, x):
        return self.out(self.body(x))


class Trainer:
    def __init__(self, device, n_tags=40, n_in=256):
        self.device = device
        self.batch_size = 4096 if device == "cuda" else 512
        self.model = TagNet(n_in, n_tags).to(device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.criterion = nn.BCEWithLogitsLoss()
        self.x, self.y = self._make_data(40000, n_in, n_tags)
        self.log_interval = 100
        self.history = []

    def _make_data(self, n, n_in, n_tags):
        rng = np.random.default_rng(5)
        x = rng.standard_normal((n, n_in), dtype=np.float32)
        w = rng.standard_normal((n_in, n_tags), dtype=np.float32) / np.sqrt(n_in)
        y = (x @ w + 0.3 * rng.standard_normal((n, n_tags), dtype=np.float32) > 0.8)
        return (torch.from_numpy(x).to(self.device),
                torch.from_numpy(y.astype(np.float32)).to(self.device))

    def metrics(self, logits, target):
        scores = torch.sigmoid(logits.detach()).cpu().numpy()
        truth = target.cpu().numpy()
        return {
            "auc": roc_auc_score(truth, scores, average="macro"),
            "map": average_precision_score(truth, scores, average="macro"),
        }

    def train_step(self, idx):
        xb, yb = self.x[idx], self.y[idx]
        logits = self.model(xb)
        loss = self.criterion(logits, yb)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach(), logits, yb

    def fit(self, seconds=14):
        self.model.train()
        step, t0 = 0, time.perf_counter()
        while time.perf_counter() - t0 < seconds:
            perm = torch.randperm(len(self.x), device=self.device)
            for b in range(len(self.x) // self.batch_size):
                idx = perm[b * self.batch_size:(b + 1) * self.batch_size]
                loss, logits, yb = self.train_step(idx)
                step += 1
                m = self.metrics(logits, yb)
                self.history.append(m)
                if step % self.log_interval == 0:
                    print(f"step {step} loss {loss.item():.4f} auc {m['auc']:.3f} map {m['map']:.3f}")
                if time.perf_counter() - t0 >= seconds:
                    break
        if self.device == "cuda":
            torch.cuda.synchronize()
        dt = time.perf_counter() - t0
        print(f"throughput: {step / dt:.2f} steps/s, {step * self.batch_size / dt:.1f} samples/s")


if __name__ == "__main__":
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    Trainer(device).fit()
