"""Neural ODE that learns damped pendulum dynamics from noisy trajectories."""
import argparse
import sys

import torch
from torch import nn


def pendulum(state):
    angle, velocity = state[..., 0], state[..., 1]
    return torch.stack([velocity, -4.0 * torch.sin(angle) - 0.3 * velocity], dim=-1)


def rk4_step(f, y, dt):
    k1 = f(y)
    k2 = f(y + 0.5 * dt * k1)
    k3 = f(y + 0.5 * dt * k2)
    k4 = f(y + dt * k3)
    return y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def integrate(f, y0, n_steps, dt):
    states = [y0]
    for _ in range(n_steps):
        states.append(rk4_step(f, states[-1], dt))
    return torch.stack(states, dim=1)


class VectorField(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, y):
        return self.net(y)


class Experiment:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(args.seed)
        torch.autograd.set_detect_anomaly(True)
        with torch.no_grad():
            y0 = torch.rand(args.trajectories, 2) * 3.0 - 1.5
            clean = integrate(pendulum, y0, args.length, args.dt)
        self.data = clean + 0.01 * torch.randn_like(clean)
        self.field = VectorField(args.hidden)
        self.optimizer = torch.optim.Adam(self.field.parameters(), lr=args.lr)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, args.iterations)

    def loss(self, batch):
        rollout = integrate(self.field, batch[:, 0], batch.shape[1] - 1, self.args.dt)
        return (rollout - batch).pow(2).mean()

    def run(self):
        for it in range(1, self.args.iterations + 1):
            pick = torch.randint(0, len(self.data), (self.args.batch_size,))
            loss = self.loss(self.data[pick])
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.field.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            if it % 25 == 0:
                print(f"iter {it:4d}  mse {loss.item():.5f}")
        return 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--trajectories", type=int, default=512)
    p.add_argument("--length", type=int, default=40)
    p.add_argument("--dt", type=float, default=0.05)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--iterations", type=int, default=150)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--seed", type=int, default=8)
    return Experiment(p.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
