"""Regress joint positions from small depth frames."""
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    frames: int = 1000
    size: int = 48
    joints: int = 8
    batch: int = 32
    workers: int = 2
    lr: float = 1e-3
    seconds: float = 14.0


def write_data(root: Path, cfg: Config):
    rng = np.random.default_rng(3)
    frames = rng.integers(0, 255, (cfg.frames, cfg.size, cfg.size), dtype=np.uint8)
    np.save(root / "frames.npy", frames)
    joints = rng.random((cfg.frames, cfg.joints, 2)).round(4)
    ann = {f"frame_{i:06d}": {"joints": joints[i].tolist(), "subject": i % 7}
           for i in range(cfg.frames)}
    (root / "annotations.json").write_text(json.dumps(ann))


def read_annotations(path):
    with open(path) as f:
        return json.load(f)


class PoseFrames(Dataset):
    def __init__(self, root: Path, n: int):
        self.root = root
        self.frames = np.load(root / "frames.npy", mmap_mode="r")
        self.keys = [f"frame_{i:06d}" for i in range(n)]
        self.annotations = read_annotations(root / "annotations.json")

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        ann = self.annotations[self.keys[i]]
        frame = torch.from_numpy(np.array(self.frames[i], dtype=np.float32)) / 255.0
        target = torch.tensor(ann["joints"], dtype=torch.float32)
        return frame.unsqueeze(0), target.flatten()


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
                         nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
                         nn.MaxPool2d(2))


def build_model(joints):
    return nn.Sequential(conv_block(1, 32), conv_block(32, 64), conv_block(64, 128),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(512, joints * 2))


def fit(cfg: Config, root: Path):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(PoseFrames(root, cfg.frames), cfg.batch, shuffle=True, drop_last=True,
                        num_workers=cfg.workers, persistent_workers=True,
                        pin_memory=device == "cuda")
    model = build_model(cfg.joints).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    steps, t0 = 0, time.perf_counter()
    for epoch in range(100_000):
        for frames, joints in loader:
            frames = frames.to(device, non_blocking=True)
            joints = joints.to(device, non_blocking=True)
            loss = F.mse_loss(model(frames), joints)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
            if time.perf_counter() - t0 > cfg.seconds:
                if device == "cuda":
                    torch.cuda.synchronize()
                return steps, time.perf_counter() - t0
        print(f"epoch {epoch}: last loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    cfg = Config()
    with tempfile.TemporaryDirectory() as tmp:
        write_data(Path(tmp), cfg)
        n, sec = fit(cfg, Path(tmp))
    print(f"finished: {n / sec:.2f} steps/s  {n * cfg.batch / sec:.1f} samples/s")
