"""Hand keypoint heatmaps from depth images, with run statistics written next to the run."""
import json
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1234)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
side, joints, width, batch, n_frames = (128, 21, 128, 64, 2048) if device == "cuda" else (32, 5, 8, 8, 64)


class RunLog:
    """A small stand-in for tensorboard: one json line per event, previews as npy."""

    def __init__(self, folder):
        self.folder = folder
        self.file = open(os.path.join(folder, "events.jsonl"), "w")

    def scalar(self, tag, value, step):
        self.file.write(json.dumps({"tag": tag, "value": value, "step": step}) + "\n")

    def histogram(self, tag, tensor, step, bins=64):
        values = tensor.detach().cpu().numpy()
        counts, edges = np.histogram(values.astype(np.float64), bins=bins)
        self.file.write(json.dumps({"tag": tag, "counts": counts.tolist(), "edges": edges.tolist(), "step": step}) + "\n")

    def preview(self, tag, maps, step):
        grid = maps.detach().float().cpu().numpy()
        np.save(os.path.join(self.folder, f"{tag}.npy"), (grid * 255).clip(0, 255).astype(np.uint8))


def conv(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class PoseNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.down = nn.Sequential(conv(1, w // 2, 2), conv(w // 2, w), conv(w, 2 * w, 2), conv(2 * w, 2 * w),
                                  conv(2 * w, 4 * w, 2), conv(4 * w, 4 * w), conv(4 * w, 4 * w))
        self.up = nn.Sequential(nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1), conv(2 * w, 2 * w),
                                nn.ConvTranspose2d(2 * w, w, 4, 2, 1), conv(w, w), nn.Conv2d(w, joints, 1))

    def forward(self, x):
        return self.up(self.down(x))


def make_frames():
    xy = torch.rand(n_frames, joints, 2, device=device)
    axis = torch.linspace(0, 1, side // 2, device=device)
    dx = (axis.view(1, 1, 1, -1) - xy[..., 0, None, None]) ** 2
    dy = (axis.view(1, 1, -1, 1) - xy[..., 1, None, None]) ** 2
    heat = torch.exp(-(dx + dy) / 0.003)
    depth = F.interpolate(heat.amax(1, keepdim=True), scale_factor=2) + 0.1 * torch.rand(n_frames, 1, side, side, device=device)
    return depth, heat.to(torch.bfloat16)


def log_everything(log, net, heat, pred, loss, step):
    log.scalar("loss", float(loss), step)
    for name, p in net.named_parameters():
        log.histogram(f"weight/{name}", p, step)
        log.histogram(f"grad/{name}", p.grad, step)
    log.preview("target", heat[:4], step)
    log.preview("prediction", pred[:4], step)


def main():
    depth, heat = make_frames()
    net = PoseNet(width).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    log_every = 1
    with tempfile.TemporaryDirectory() as folder:
        log = RunLog(folder)
        t0, step = time.monotonic(), 0
        while time.monotonic() - t0 < 18:
            idx = torch.randint(0, n_frames, (batch,), device=device)
            x, y = depth[idx].contiguous(memory_format=torch.channels_last), heat[idx]
            with torch.autocast(device, dtype=torch.bfloat16):
                pred = net(x)
            loss = F.mse_loss(pred.float(), y.float()) * 100
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % log_every == 0:
                log_everything(log, net, y, pred, loss, step)
            if step % 50 == 0:
                print(f"step {step}: loss {loss.item():.4f}")
        dt = time.monotonic() - t0
        log.file.close()
    print(f"{step} steps, {step * batch / dt:.0f} frames/s")


if __name__ == "__main__":
    main()
