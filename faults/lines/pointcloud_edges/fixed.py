import math
import time
from dataclasses import dataclass, field

import torch
from torch import nn, Tensor
from torch.nn import functional as F


@dataclass
class Settings:
    points: int = 1024
    k: int = 8
    batch: int = 4
    widths: list = field(default_factory=lambda: [32, 32, 32, 32])
    lr: float = 1e-3
    run_seconds: float = 12.0
    shapes: int = 240


def surface(kind: int, n: int, g: torch.Generator) -> Tensor:
    u = torch.rand(n, generator=g) * 2 * math.pi
    v = torch.rand(n, generator=g)
    if kind == 0:    # sphere
        z = 2 * v - 1
        r = (1 - z * z).sqrt()
        return torch.stack([r * u.cos(), r * u.sin(), z], 1)
    if kind == 1:    # torus
        w = 2 * math.pi * v
        r = 0.7 + 0.3 * w.cos()
        return torch.stack([r * u.cos(), r * u.sin(), 0.3 * w.sin()], 1)
    if kind == 2:    # cylinder
        return torch.stack([0.6 * u.cos(), 0.6 * u.sin(), 2 * v - 1], 1)
    if kind == 3:    # cone
        return torch.stack([v * u.cos(), v * u.sin(), 1 - 2 * v], 1)
    p = torch.rand(n, 3, generator=g) * 2 - 1    # cube
    axis = torch.randint(0, 3, (n,), generator=g)
    p[torch.arange(n), axis] = p[torch.arange(n), axis].sign()
    return p


def build(cfg: Settings) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(21)
    kinds = torch.arange(cfg.shapes) % 5
    return torch.stack([surface(int(k), cfg.points, g) for k in kinds]), kinds


def neighbours(xyz: Tensor, k: int) -> Tensor:
    distance = torch.cdist(xyz, xyz)
    return distance.topk(k + 1, dim=-1, largest=False).indices[..., 1:]


def gather(feat: Tensor, index: Tensor) -> Tensor:
    b, n, k = index.shape
    flat = (index + torch.arange(b).view(-1, 1, 1) * n).reshape(-1)
    return feat.reshape(b * n, -1).index_select(0, flat).view(b, n, k, -1)


class EdgeLayer(nn.Module):
    def __init__(self, d_in: int, d_out: int, k: int):
        super().__init__()
        self.k = k
        self.self_term = nn.Linear(d_in, d_out)
        self.edge_term = nn.Linear(d_in + 3, d_out, bias=False)

    def forward(self, xyz: Tensor, feat: Tensor, index: Tensor) -> Tensor:
        offset = gather(xyz, index) - xyz.unsqueeze(2)
        edge = self.edge_term(torch.cat([gather(feat, index), offset], -1))
        return F.gelu(self.self_term(feat) + edge.amax(2))


class ShapeNet(nn.Module):
    def __init__(self, cfg: Settings):
        super().__init__()
        dims = [3] + cfg.widths
        self.k = cfg.k
        self.layers = nn.ModuleList(EdgeLayer(a, b, cfg.k) for a, b in zip(dims, dims[1:]))
        self.head = nn.Sequential(nn.Linear(sum(cfg.widths), 64), nn.GELU(), nn.Linear(64, 5))

    def forward(self, xyz: Tensor) -> Tensor:
        feat, kept = xyz, []
        index = neighbours(xyz, self.k)
        for layer in self.layers:
            feat = layer(xyz, feat, index)
            kept.append(feat)
        return self.head(torch.cat(kept, -1).amax(1))


def jitter(xyz: Tensor) -> Tensor:
    angle = torch.rand(len(xyz)) * 2 * math.pi
    c, s = angle.cos(), angle.sin()
    zero, one = torch.zeros_like(c), torch.ones_like(c)
    rot = torch.stack([c, -s, zero, s, c, zero, zero, zero, one], 1).view(-1, 3, 3)
    return xyz @ rot + 0.01 * torch.randn_like(xyz)


def main() -> None:
    cfg = Settings()
    torch.manual_seed(2)
    clouds, kinds = build(cfg)
    net = ShapeNet(cfg)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    steps, right = 0, 0
    start = time.monotonic()
    while time.monotonic() - start < cfg.run_seconds:
        pick = torch.randint(0, len(clouds), (cfg.batch,))
        logits = net(jitter(clouds[pick]))
        loss = F.cross_entropy(logits, kinds[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        right += int((logits.argmax(1) == kinds[pick]).sum())
        steps += 1
    print(f"running accuracy {right / (steps * cfg.batch):.3f}, last loss {loss.item():.3f}")
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
