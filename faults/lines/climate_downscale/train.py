"""Bias-correct coarse reanalysis fields: 20 atmospheric variables -> near-surface temperature."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = True

N_VARS = 20
SIDE = 256 if GPU else 32
DAYS, CHUNK = (320, 64) if GPU else (32, 8)
WIDTH = 64 if GPU else 16


def load_archive():
    base = torch.randn(8, N_VARS, SIDE, SIDE)
    base = F.avg_pool2d(base, 5, stride=1, padding=2)
    fields = base.repeat(DAYS // 8, 1, 1, 1)
    fields += torch.randn(DAYS, N_VARS, 1, 1)
    target = 0.6 * fields[:, :1] + 0.3 * fields[:, 3:4].roll(1, -1) - 0.1 * fields[:, 7:8]
    return fields, target.contiguous()


class Residual(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        return x + F.gelu(self.conv(x))


class Downscaler(nn.Module):
    def __init__(self, ch=WIDTH):
        super().__init__()
        self.stem = nn.Conv2d(N_VARS, ch, 3, padding=1)
        self.body = nn.Sequential(Residual(ch), Residual(ch))
        self.head = nn.Conv2d(ch, 1, 1)

    def forward(self, x):
        return self.head(self.body(F.gelu(self.stem(x))))


def main():
    fields, target = load_archive()
    print(f"archive: {fields.numel() * 4 / 2**30:.2f} GiB")
    net = Downscaler().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2000)

    step, start = 0, time.monotonic()
    while time.monotonic() - start < 18:
        for chunk in torch.randperm(DAYS // CHUNK).tolist():
            days = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
            x = fields[days].to(device)
            y = target[days].to(device)
            with torch.autocast(device, dtype=torch.bfloat16):
                pred = net(x.contiguous(memory_format=torch.channels_last))
            loss = F.smooth_l1_loss(pred.float(), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            if step % 100 == 0:
                print(f"step {step:5d}  loss {loss.item():.4f}")
            if time.monotonic() - start > 18:
                break
    took = time.monotonic() - start
    print(f"{step} steps, {step / took:.2f} steps/s, final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
