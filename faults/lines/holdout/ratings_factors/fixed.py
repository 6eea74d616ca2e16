import time

import torch


def ratings(users, films, per_user, seed):
    g = torch.Generator().manual_seed(seed)
    taste = torch.randn(users, 6, generator=g)
    style = torch.randn(films, 6, generator=g)
    u = torch.arange(users).repeat_interleave(per_user)
    f = torch.randint(0, films, u.shape, generator=g)
    score = (taste[u] * style[f]).sum(1) / 6**0.5
    stars = (3 + score + 0.3 * torch.randn(u.shape, generator=g)).clamp(1, 5)
    return u, f, stars


def init_weights(sizes):
    params = []
    for a, b in zip(sizes, sizes[1:]):
        params += [torch.randn(a, b) * (2 / a) ** 0.5, torch.zeros(b)]
    return params


class Table:
    """An embedding table with its own row-wise Adagrad."""

    def __init__(self, rows, dim, lr):
        self.w = torch.randn(rows, dim) * 0.1
        self.acc = torch.full((rows,), 1e-6)
        self.lr = lr

    def look_up(self, ids):
        rows = self.w[ids]
        return rows.requires_grad_(True)

    @torch.no_grad()
    def update(self, ids, grad):
        distinct, back = torch.unique(ids, return_inverse=True)
        summed = torch.zeros(len(distinct), grad.shape[1]).index_add_(0, back, grad)
        self.acc[distinct] += summed.square().mean(1)
        self.w[distinct] -= self.lr * summed / self.acc[distinct].sqrt().unsqueeze(1)


class Momentum:
    def __init__(self, params, lr, beta=0.9):
        self.params, self.lr, self.beta = params, lr, beta
        self.speed = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def update(self, grads):
        torch._foreach_mul_(self.speed, self.beta)
        torch._foreach_add_(self.speed, grads)
        torch._foreach_add_(self.params, self.speed, alpha=-self.lr)


def mlp(params, x):
    last = len(params) - 2
    for i in range(0, len(params), 2):
        x = torch.addmm(params[i + 1], x, params[i])
        if i < last:
            x = torch.relu(x)
    return x


def main(seconds=12.0, dim=48, batch=512):
    torch.manual_seed(101)
    user, film, stars = ratings(4000, 2500, 60, seed=101)
    mean = stars.mean()
    people, films = Table(4000, dim, lr=0.02), Table(2500, dim, lr=0.02)
    dense = [p.requires_grad_() for p in init_weights([3 * dim, 768, 384, 1])]
    rule = Momentum(dense, lr=1e-3)
    order = torch.randperm(len(stars))
    at, steps, smooth = 0, 0, 1.0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if at + batch > len(order):
            order, at = torch.randperm(len(stars)), 0
        pick = order[at:at + batch]
        at += batch
        u, f, y = user[pick], film[pick], stars[pick] - mean

        p, q = people.look_up(u), films.look_up(f)
        guess = mlp(dense, torch.cat([p, q, p * q], 1)).squeeze(1) + (p * q).sum(1)
        loss = (guess - y).square().mean()
        grads = torch.autograd.grad(loss, [p, q, *dense])

        people.update(u, grads[0])
        films.update(f, grads[1])
        rule.update(grads[2:])
        smooth += 0.02 * (loss.item() - smooth)
        steps += 1
        if steps % 100 == 0:
            print(f"step {steps:5d}  mse {smooth:.4f}", flush=True)
    print(f"rmse {smooth ** 0.5:.4f}")
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
