import threading
import queue
import time

import numpy as np
import torch
import torch.nn as nn


class Poles:
    """Many cart-poles advanced together in numpy."""

    def __init__(self, n, seed):
        self.n = n
        self.rng = np.random.default_rng(seed)
        self.state = self.fresh(n)

    def fresh(self, k):
        return self.rng.uniform(-0.05, 0.05, (k, 4))

    def advance(self, push):
        x, v, a, w = self.state.T
        force = np.where(push == 1, 10.0, -10.0)
        temp = (force + 0.05 * w**2 * np.sin(a)) / 1.1
        acc_a = (9.8 * np.sin(a) - np.cos(a) * temp) / (0.5 * (4 / 3 - 0.1 * np.cos(a) ** 2 / 1.1))
        acc_x = temp - 0.05 * acc_a * np.cos(a) / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * acc_x, a + 0.02 * w, w + 0.02 * acc_a], 1)
        fallen = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)
        if fallen.any():
            self.state[fallen] = self.fresh(int(fallen.sum()))
        return (~fallen).astype(np.float32), fallen.astype(np.float32)

    def observe(self):
        return torch.from_numpy(self.state.astype(np.float32))


class Agent(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy = nn.Linear(width, 2)
        self.value = nn.Linear(width, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.policy(h), self.value(h).squeeze(-1)


class Actor(threading.Thread):
    """Plays one segment per request with the learner's current weights."""

    def __init__(self, agent, envs, horizon):
        super().__init__(daemon=True)
        self.agent, self.envs, self.horizon = agent, envs, horizon
        self.closing = False
        self.wanted = queue.Queue()
        self.segments = queue.Queue()

    @torch.no_grad()
    def play(self):
        obs, act, rew, end, logp = [], [], [], [], []
        for _ in range(self.horizon):
            o = self.envs.observe()
            logits, _ = self.agent(o)
            dist = torch.distributions.Categorical(logits=logits, validate_args=False)
            a = dist.sample()
            r, e = self.envs.advance(a.numpy())
            for store, item in zip((obs, act, rew, end, logp),
                                   (o, a, torch.from_numpy(r), torch.from_numpy(e), dist.log_prob(a))):
                store.append(item)
        return [torch.stack(s) for s in (obs, act, rew, end, logp)] + [self.envs.observe()]

    def run(self):
        while True:
            self.wanted.get()
            if self.closing:
                return
            self.segments.put(self.play())

    def request(self):
        self.wanted.put(True)
        return self.segments.get()


def returns(rew, end, last, gamma=0.98):
    out = torch.empty_like(rew)
    for t in range(len(rew) - 1, -1, -1):
        last = rew[t] + gamma * (1 - end[t]) * last
        out[t] = last
    return out


def improve(agent, opt, segment, rounds=3, clip=0.2):
    obs, act, rew, end, old, final = segment
    with torch.no_grad():
        goal = returns(rew, end, agent(final)[1])
        adv = goal - agent(obs)[1]
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    for _ in range(rounds):
        logits, value = agent(obs)
        logp = logits.log_softmax(-1).gather(-1, act.unsqueeze(-1)).squeeze(-1)
        ratio = (logp - old).exp()
        gain = torch.minimum(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
        loss = 0.5 * (value - goal).square().mean() / 100 - gain
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    return float(1 - end.mean())


def main():
    torch.manual_seed(121)
    agent = Agent()
    opt = torch.optim.Adam(agent.parameters(), lr=3e-4)
    actor = Actor(agent, Poles(64, seed=121), horizon=16)
    actor.start()
    steps, start = 0, time.monotonic()
    while time.monotonic() - start < 12:
        segment = actor.request()
        upright = improve(agent, opt, segment)
        steps += 1
        if steps % 40 == 0:
            print(f"update {steps}: upright {upright:.3f}", flush=True)
    actor.closing = True
    actor.wanted.put(None)
    actor.join()
    print(f"steps: {steps}")


if __name__ == "__main__":
    main()
