"""Learn the vector field of a double pendulum from short trajectories (neural ODE with RK4)."""
import time

import numpy as np
import torch
from torch import nn

G, DT, HORIZON = 9.81, 0.02, 10


def physics(s):
    a, b, wa, wb = s.T
    d = a - b
    den = 3 - np.cos(2 * d)
    acc_a = (-3 * G * np.sin(a) - G * np.sin(a - 2 * b) - 2 * np.sin(d) * (wb ** 2 + wa ** 2 * np.cos(d))) / den
    acc_b = (2 * np.sin(d) * (2 * wa ** 2 + 2 * G * np.cos(a) + wb ** 2 * np.cos(d))) / den
    return np.stack([wa, wb, acc_a, acc_b], axis=1)


def simulate(n, length, seed):
    rng = np.random.default_rng(seed)
    s = np.concatenate([rng.uniform(-1.5, 1.5, (n, 2)), rng.normal(0, 0.5, (n, 2))], axis=1)
    path = [s]
    for _ in range(length):
        for _ in range(4):
            h = DT / 4
            k1 = physics(s)
            k2 = physics(s + h / 2 * k1)
            s = s + h * k2
        path.append(s)
    return np.stack(path, axis=1)


class Field(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, s):
        angles, speeds = s[:, :2], s[:, 2:]
        features = torch.cat([torch.sin(angles), torch.cos(angles), speeds], dim=1)
        return torch.cat([speeds, self.net(features)], dim=1)


def rk4(field, s, h):
    k1 = field(s)
    k2 = field(s + 0.5 * h * k1)
    k3 = field(s + 0.5 * h * k2)
    k4 = field(s + h * k3)
    return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def rollout_loss(field, traj):
    s, loss = traj[:, 0], 0.0
    for t in range(1, HORIZON + 1):
        s = rk4(field, s, DT)
        loss = loss + (s - traj[:, t]).pow(2).mean()
    return loss / HORIZON


def main():
    torch.manual_seed(5)
    data = torch.from_numpy(simulate(4096, HORIZON, seed=5)).float()
    field = Field()
    opt = torch.optim.Adam(field.parameters(), lr=2e-3)
    began, n = time.monotonic(), 0
    while True:
        batch = data[torch.randint(0, len(data), (128,))]
        loss = rollout_loss(field, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        n += 1
        if n % 20 == 0:
            print(f"{n:5d}  rollout error {loss.item():.6f}")
        if time.monotonic() - began > 18.0:
            break
    print(f"{n / (time.monotonic() - began):.2f} steps/s")


if __name__ == "__main__":
    main()
