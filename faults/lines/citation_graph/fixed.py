"""Node classification on a citation graph with sampled neighbourhoods (GraphSAGE-like)."""
import random
import time
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn

NODES, EDGES, FEATURES, CLASSES = 2000, 12_000, 128, 7


class CitationGraph:
    def __init__(self, seed=6):
        rnd = random.Random(seed)
        self.edges = [(rnd.randrange(NODES), rnd.randrange(NODES)) for _ in range(EDGES)]
        g = torch.Generator().manual_seed(seed)
        self.features = torch.randn(NODES, FEATURES, generator=g)
        self.labels = torch.randint(0, CLASSES, (NODES,), generator=g)
        self.adjacency = defaultdict(list)
        for a, b in self.edges:
            self.adjacency[a].append(b)
            if a != b:
                self.adjacency[b].append(a)

    def neighbours(self, node):
        return self.adjacency[node]


def sample_neighbours(graph, nodes, fanout):
    rows = []
    for node in nodes:
        near = graph.neighbours(node) or [node]
        rows.append(random.choices(near, k=fanout))
    return torch.tensor(rows)


def batches(graph, size, fanout):
    order = list(range(NODES))
    random.shuffle(order)
    for k in range(0, NODES - size + 1, size):
        nodes = order[k:k + size]
        near = sample_neighbours(graph, nodes, fanout)
        idx = torch.tensor(nodes)
        yield graph.features[idx], graph.features[near], graph.labels[idx]


class Sage(nn.Module):
    def __init__(self, hidden=512):
        super().__init__()
        self.own = nn.Linear(FEATURES, hidden)
        self.near = nn.Sequential(nn.Linear(FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.out = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES))

    def forward(self, own, near):
        pooled = self.near(near).amax(dim=1)
        return self.out(torch.cat([torch.relu(self.own(own)), pooled], dim=1))


def main(batch_size=32, fanout=15, seconds=14.0):
    random.seed(6)
    torch.manual_seed(6)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    graph = CitationGraph()
    model = Sage().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=5e-4)
    steps, epoch = 0, 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for own, near, label in batches(graph, batch_size, fanout):
            own, near, label = own.to(device), near.to(device), label.to(device)
            loss = F.cross_entropy(model(own, near), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
            if time.perf_counter() - start >= seconds:
                break
        epoch += 1
        print(f"epoch {epoch} loss {loss.item():.4f}")
    took = time.perf_counter() - start
    print(f"{steps / took:.2f} steps/s, {steps * batch_size / took:.1f} samples/s")


if __name__ == "__main__":
    main()
