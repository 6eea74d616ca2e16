"""One-hour-ahead power forecast of a wind turbine with a temporal conv net."""
import time
from collections import defaultdict

import torch
from torch import nn


class CausalBlock(nn.Module):
    def __init__(self, ch_in, ch_out, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(ch_in, ch_out, 3, dilation=dilation)
        self.act = nn.GELU()
        self.skip = nn.Conv1d(ch_in, ch_out, 1) if ch_in != ch_out else nn.Identity()

    def forward(self, x):
        return self.act(self.conv(self.pad(x))) + self.skip(x)


class TurbineTCN(nn.Module):
    def __init__(self, n_in=6, width=32, levels=5):
        super().__init__()
        chans = [n_in] + [width] * levels
        self.blocks = nn.Sequential(*[CausalBlock(chans[i], chans[i + 1], 2 ** i) for i in range(levels)])
        self.readout = nn.Linear(width, 1)

    def forward(self, x):
        return self.readout(self.blocks(x)[:, :, -1]).squeeze(-1)


class ActivationMonitor:
    """Keeps running magnitudes of the activations, to spot dead layers."""

    def __init__(self, model):
        self.model = model
        self.level = defaultdict(float)

    def _hook(self, name):
        def record(module, inputs, output):
            magnitude = output.detach().abs().mean().item()
            self.level[name] = 0.99 * self.level[name] + 0.01 * magnitude
        return record

    def attach(self):
        for name, module in self.model.named_modules():
            if isinstance(module, nn.GELU):
                module.register_forward_hook(self._hook(name))

    def weakest(self):
        return min(self.level.items(), key=lambda kv: kv[1])


def synth_scada(n, generator):
    t = torch.arange(n) / 144.0
    wind = 8 + 3 * torch.sin(2 * torch.pi * t) + torch.randn(n, generator=generator).cumsum(0) * 0.02
    channels = [wind, wind.clamp(0, 14) ** 3 / 2744, torch.sin(t), torch.cos(t)]
    channels += [torch.randn(n, generator=generator) for _ in range(2)]
    x = torch.stack(channels)
    return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)


class Experiment:
    def __init__(self, context=96, batch=64, budget=18.0):
        torch.manual_seed(1)
        self.gen = torch.Generator().manual_seed(99)
        self.series = synth_scada(40000, self.gen)
        self.windows = self.series.unfold(1, context, 1).permute(1, 0, 2)
        self.context, self.batch, self.budget = context, batch, budget
        self.model = TurbineTCN()
        self.monitor = ActivationMonitor(self.model)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def sample(self):
        start = torch.randint(0, self.windows.size(0) - 6, (self.batch,), generator=self.gen)
        return self.windows[start], self.series[1, start + self.context + 5]

    def fit(self):
        began, step, running = time.monotonic(), 0, 0.0
        self.monitor.attach()
        while time.monotonic() - began < self.budget:
            x, y = self.sample()
            loss = nn.functional.huber_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            running = 0.98 * running + 0.02 * loss.item()
            step += 1
            if step % 50 == 0:
                name, level = self.monitor.weakest()
                print(f"step {step} loss {running:.4f} weakest {name} ({level:.3f})")
        print(f"total {step} steps, {step / (time.monotonic() - began):.1f} steps/s")


if __name__ == "__main__":
    Experiment().fit()
