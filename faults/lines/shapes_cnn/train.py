import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(77)


def draw(n, gen):
    """40x40 RGB pictures of discs, squares, diamonds and stripes."""
    y = torch.randint(0, 4, (n,), generator=gen)
    g = torch.linspace(-1, 1, 40)
    yy, xx = torch.meshgrid(g, g, indexing="ij")
    c = torch.rand(n, 2, 1, 1, generator=gen) - 0.5
    r = torch.rand(n, 1, 1, generator=gen) * 0.25 + 0.25
    dx, dy = xx - c[:, 0], yy - c[:, 1]
    k = y.view(-1, 1, 1)
    m = torch.where(k == 0, torch.hypot(dx, dy) < r,
        torch.where(k == 1, torch.maximum(dx.abs(), dy.abs()) < r,
        torch.where(k == 2, dx.abs() + dy.abs() < r, torch.sin(12 * dx / r) > 0)))
    col = torch.rand(n, 3, 1, 1, generator=gen)
    img = m.unsqueeze(1) * col + 0.25 * torch.randn(n, 3, 40, 40, generator=gen)
    return img, y


class Block(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                         nn.MaxPool2d(2))


class Trainer:
    def __init__(self, epochs=6, batch_size=100):
        gen = torch.Generator().manual_seed(0)
        self.train_x, self.train_y = draw(3000, gen)
        self.test_x, self.test_y = draw(500, gen)
        self.epochs, self.batch_size = epochs, batch_size
        self.net = nn.Sequential(Block(3, 32), Block(32, 64), Block(64, 96), nn.Flatten(), nn.Linear(96 * 25, 4))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=5e-4)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, epochs)

    def train_epoch(self):
        self.net.train()
        total = torch.zeros(())
        for idx in torch.randperm(len(self.train_x)).split(self.batch_size):
            x, y = self.train_x[idx], self.train_y[idx]
            if torch.rand(()) < 0.5:
                x = x.flip(3)
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.detach() * len(idx)
        self.sched.step()
        return total.item() / len(self.train_x)

    @torch.no_grad()
    def test(self):
        self.net.eval()
        hits = sum((self.net(x).argmax(1) == y).sum()
                   for x, y in zip(self.test_x.split(250), self.test_y.split(250)))
        return hits.item() / len(self.test_y)

    def fit(self):
        for e in range(self.epochs):
            loss = self.train_epoch()
            print(f"epoch {e + 1}/{self.epochs} loss {loss:.4f} test acc {self.test():.3f}", flush=True)
        torch.save(self.net.state_dict(), "/tmp/shapes_cnn.pt")


if __name__ == "__main__":
    Trainer().fit()
