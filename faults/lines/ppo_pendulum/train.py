"""PPO on a batch of numpy pendulums."""
import numpy as np
import torch
import torch.nn as nn

N_ENV, HORIZON, UPDATES = 64, 128, 46
EPOCHS, MINIBATCH = 6, 1024
GAMMA, LAM, CLIP = 0.95, 0.92, 0.2


class Pendulums:
    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.th = np.zeros(n)
        self.om = np.zeros(n)
        self.t = self.rng.integers(0, 200, n)
        self._reset(np.ones(n, bool))

    def _reset(self, m):
        self.th[m] = self.rng.uniform(-np.pi, np.pi, m.sum())
        self.om[m] = self.rng.uniform(-1, 1, m.sum())

    def obs(self):
        return np.stack([np.cos(self.th), np.sin(self.th), self.om / 4], 1).astype(np.float32)

    def step(self, u):
        u = np.clip(u, -2, 2)
        ang = (self.th + np.pi) % (2 * np.pi) - np.pi
        rew = -(ang ** 2 + 0.1 * self.om ** 2 + 0.001 * u ** 2) / 8
        self.om = np.clip(self.om + (15 * np.sin(self.th) + 3 * u) * 0.05, -8, 8)
        self.th = self.th + self.om * 0.05
        self.t += 1
        done = self.t >= 200
        self.t[done] = 0
        self._reset(done)
        return self.obs(), rew.astype(np.float32), done


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(3, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
        self.v = nn.Sequential(nn.Linear(3, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def dist(self, o):
        return torch.distributions.Normal(self.pi(o).squeeze(-1), self.log_std.exp(), validate_args=False)


def gae(rew, val, done, last):
    adv = torch.zeros_like(rew)
    run = torch.zeros(rew.size(1))
    nxt = last
    for t in range(rew.size(0) - 1, -1, -1):
        keep = 1 - done[t]
        run = rew[t] + GAMMA * nxt * keep - val[t] + GAMMA * LAM * keep * run
        adv[t] = run
        nxt = val[t]
    return adv


def main():
    torch.manual_seed(0)
    env = Pendulums(N_ENV, 0)
    net = ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    obs = torch.from_numpy(env.obs())
    O = torch.zeros(HORIZON, N_ENV, 3)
    A, LP, R, D = (torch.zeros(HORIZON, N_ENV) for _ in range(4))
    for upd in range(UPDATES):
        with torch.no_grad():
            for t in range(HORIZON):
                d = net.dist(obs)
                a = d.sample()
                O[t], A[t], LP[t] = obs, a, d.log_prob(a)
                o2, r, dn = env.step(a.numpy())
                R[t], D[t] = torch.from_numpy(r), torch.from_numpy(dn)
                obs = torch.from_numpy(o2)
            val = net.v(O).squeeze(-1)
            adv = gae(R, val, D, net.v(obs).squeeze(-1))
        o, a, lp, ret = O.reshape(-1, 3), A.reshape(-1), LP.reshape(-1), (adv + val).reshape(-1)
        adv = ((adv - adv.mean()) / adv.std()).reshape(-1)
        for _ in range(EPOCHS):
            for i in torch.randperm(len(o)).split(MINIBATCH):
                d = net.dist(o[i])
                ratio = (d.log_prob(a[i]) - lp[i]).exp()
                pg = -torch.min(ratio * adv[i], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[i]).mean()
                vl = (net.v(o[i]).squeeze(-1) - ret[i]).pow(2).mean()
                loss = pg + 0.5 * vl - 0.001 * net.log_std.mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                opt.step()
        print(f"update {upd} mean reward {R.mean():.4f} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
