"""Evolution strategy (no backward) for a small controller network."""
import random
import time

import torch

DEV = "cuda" if torch.cuda.is_available() else "cpu"
IN, HID, OUT = 8, 32, 3
SIZES = [(IN, HID), (HID,), (HID, HID), (HID,), (HID, OUT), (OUT,)]
N_PARAMS = sum(torch.Size(s).numel() for s in SIZES)


def sample_noise(pop):
    rows = []
    for _ in range(pop):
        rows.append([random.gauss(0.0, 1.0) for _ in range(N_PARAMS)])
    return torch.tensor(rows, device=DEV)


def unpack(flat):
    out, k = [], 0
    for s in SIZES:
        n = torch.Size(s).numel()
        out.append(flat[:, k:k + n].view(-1, *s))
        k += n
    return out


def controller(weights, obs):
    w1, b1, w2, b2, w3, b3 = weights
    h = torch.tanh(torch.bmm(obs, w1) + b1[:, None])
    h = torch.tanh(torch.bmm(h, w2) + b2[:, None])
    return torch.tanh(torch.bmm(h, w3) + b3[:, None])


def rollout(flat, start_state, horizon):
    """Linear system steered by the network; returns the negative cost of each member."""
    weights = unpack(flat)
    state = start_state.expand(len(flat), -1, -1).clone()
    cost = torch.zeros(len(flat), device=DEV)
    for _ in range(horizon):
        act = controller(weights, state)
        state = state @ rollout.A + act @ rollout.B
        cost += state.pow(2).mean((1, 2)) + 0.01 * act.pow(2).mean((1, 2))
    return -cost


def rank_shape(score):
    ranks = score.argsort().argsort().float()
    return ranks / (len(score) - 1) - 0.5


def main():
    torch.manual_seed(0)
    random.seed(0)
    pop, starts, horizon = (512, 256, 50) if DEV == "cuda" else (32, 16, 10)
    rollout.A = (torch.eye(IN) * 0.98 + 0.05 * torch.randn(IN, IN)).to(DEV)
    rollout.B = (0.3 * torch.randn(OUT, IN)).to(DEV)
    theta = 0.1 * torch.randn(N_PARAMS, device=DEV)
    sigma, lr = 0.05, 0.1
    step, start = 0, time.time()
    with torch.no_grad():
        while time.time() - start < 14:
            s0 = torch.randn(1, starts, IN, device=DEV)
            eps = sample_noise(pop // 2)
            eps = torch.cat([eps, -eps])
            score = rollout(theta + sigma * eps, s0, horizon)
            theta += lr / (pop * sigma) * (rank_shape(score) @ eps)
            theta *= 0.999
            step += 1
            if step % 100 == 0:
                print(f"generation {step} best {score.max().item():.4f}")
    if DEV == "cuda":
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
