"""Hand gesture recognition from key point tracks."""
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FRAMES, POINTS, GESTURES = 300, 42, 12


def record(rnd, gesture):
    speed = 0.1 + 0.02 * gesture
    return [[rnd.random() + speed * t for _ in range(POINTS)] for t in range(FRAMES)]


def record_session(n=360, seed=20):
    rnd = random.Random(seed)
    return [{"gesture": i % GESTURES, "track": record(rnd, i % GESTURES)} for i in range(n)]


class Gestures(Dataset):
    def __init__(self, session):
        self.tracks = [torch.tensor(take["track"]) for take in session]
        self.labels = torch.tensor([take["gesture"] for take in session])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        track, label = self.tracks[index], self.labels[index]
        return track - track[0], label


class GestureNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(POINTS, hidden, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(hidden, hidden, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2))
        self.rnn = nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, GESTURES)

    def forward(self, track):
        h = self.conv(track.transpose(1, 2)).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.head(h[:, -1])


def train_one_epoch(model, loader, opt, device, stop_at):
    steps, correct, seen = 0, torch.zeros((), device=device), 0
    for track, label in loader:
        track, label = track.to(device), label.to(device)
        logits = model(track)
        loss = nn.functional.cross_entropy(logits, label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        seen += len(label)
        correct += (logits.argmax(1) == label).sum()
        if time.perf_counter() > stop_at:
            break
    return steps, correct.item() / seen


def main(batch_size=32, lr=1e-3, seconds=14.0):
    torch.manual_seed(20)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(Gestures(record_session()), batch_size=batch_size, shuffle=True, drop_last=True)
    model = GestureNet().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    start = time.perf_counter()
    total = 0
    for epoch in range(1_000_000):
        steps, acc = train_one_epoch(model, loader, opt, device, start + seconds)
        total += steps
        if epoch % 5 == 0:
            print(f"epoch {epoch:4d}  accuracy {acc:.3f}")
        if time.perf_counter() - start > seconds:
            break
    took = time.perf_counter() - start
    print(f"{total / took:.2f} steps/s, {total * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
