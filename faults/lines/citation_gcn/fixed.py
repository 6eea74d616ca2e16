"""Node classification on a made-up citation graph (full batch, two rounds of propagation)."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def community_graph(n, k, per_node, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, k, (n,), generator=g)
    order = torch.argsort(label)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(n)
    src = torch.arange(n).repeat_interleave(per_node)
    near = order[(rank[src] + torch.randint(1, n // k, src.shape, generator=g)) % n]
    far = torch.randint(0, n, src.shape, generator=g)
    keep = torch.rand(src.shape, generator=g) < 0.8
    dst = torch.where(keep, near, far)
    edges = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
    return edges, label


def propagation(edges, n):
    loops = torch.arange(n).repeat(2, 1)
    edges = torch.unique(torch.cat([edges, loops], 1), dim=1)
    degree = torch.bincount(edges[0], minlength=n).float()
    weight = degree[edges[0]].rsqrt() * degree[edges[1]].rsqrt()
    matrix = torch.sparse_coo_tensor(edges, weight, (n, n)).coalesce()
    return matrix


class Propagate(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out)
        self.skip = nn.Linear(d_in, d_out, bias=False)

    def forward(self, a, x):
        return torch.sparse.mm(a, self.lin(x)) + self.skip(x)


class PaperNet(nn.Module):
    def __init__(self, d_in, hidden, k):
        super().__init__()
        self.enc = nn.Linear(d_in, hidden)
        self.layers = nn.ModuleList([Propagate(hidden, hidden), Propagate(hidden, hidden)])
        self.norms = nn.ModuleList([nn.LayerNorm(hidden), nn.LayerNorm(hidden)])
        self.out = nn.Linear(hidden, k)

    def forward(self, a, x):
        h = F.relu(self.enc(F.dropout(x, 0.3, self.training)))
        for layer, norm in zip(self.layers, self.norms):
            h = h + F.relu(norm(layer(a, h)))
        return self.out(F.dropout(h, 0.3, self.training))


def run(n=3600, k=7, d=300, hidden=64, seconds=12):
    torch.manual_seed(1)
    edges, label = community_graph(n, k, per_node=5, seed=1)
    a = propagation(edges, n)
    centers = torch.randn(k, d)
    x = (centers[label] * 0.15 + torch.randn(n, d)) / d**0.5
    split = torch.rand(n)
    train_idx = (split < 0.6).nonzero().squeeze(1)
    test_idx = (split >= 0.8).nonzero().squeeze(1)

    net = PaperNet(d, hidden, k)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=1e-3)
    steps = 0
    t0 = time.monotonic()
    while time.monotonic() - t0 < seconds:
        net.train()
        logits = net(a, x)
        loss = F.cross_entropy(logits[train_idx], label[train_idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        steps += 1
        if steps % 100 == 0:
            print(f"{steps:5d} {loss.item():.4f}")

    net.eval()
    with torch.no_grad():
        hit = (net(a, x)[test_idx].argmax(1) == label[test_idx]).float().mean().item()
    print(f"held-out accuracy {hit:.3f}")
    print(f"steps: {steps}")


run()
