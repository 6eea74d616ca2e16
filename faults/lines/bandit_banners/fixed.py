"""Neural bandit for banner placement with a delayed target network."""
import copy
import os
import time

import torch
from torch import nn


class Monitor:
    """Stands in for the team's metrics service."""

    def __init__(self, latency=0.008):
        self.latency = latency
        self.sent = 0

    def push(self, **values):
        time.sleep(self.latency)
        self.sent += 1


class Agent:
    def __init__(self, contexts=64, arms=50, width=1600):
        self.net = nn.Sequential(
            nn.Linear(contexts, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, arms),
        )
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-2, momentum=0.9)
        self.updates = 0

    def update(self, context, arm, reward):
        with torch.no_grad():
            bonus = self.target(context).amax(1) * 0.1
        value = self.net(context).gather(1, arm[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, reward + bonus)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % 200 == 0:
            self.target.load_state_dict(self.net.state_dict())
        return loss


def main():
    torch.manual_seed(3)
    seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    agent, monitor = Agent(), Monitor()
    taste = torch.randn(64, 50)
    step, start, total = 0, None, torch.zeros(())
    while start is None or time.time() - start < seconds:
        context = torch.randn(16, 64)
        arm = torch.randint(0, 50, (16,))
        reward = (context @ taste).gather(1, arm[:, None]).squeeze(1).sigmoid()
        loss = agent.update(context, arm, reward)
        total += loss.detach()
        if step % 100 == 0:
            monitor.push(step=step, loss=total / (step + 1))
        step += 1
        if step == 5:
            start = time.time()
    print(f"{(step - 5) / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
