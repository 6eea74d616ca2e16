"""Forecast storm tracks: encode 24 past fixes, then predict 8 future fixes autoregressively."""
import math
import time

import torch
from torch import nn

PAST, FUTURE, HIDDEN, BATCH = 24, 8, 384, 256
SECONDS = 18.0


def storm_database(n, gen):
    heading = torch.rand(n, 1, generator=gen) * 2 * math.pi
    turn = 0.05 * torch.randn(n, 1, generator=gen)
    speed = 0.2 + 0.3 * torch.rand(n, 1, generator=gen)
    k = torch.arange(PAST + FUTURE)
    angle = heading + turn * k
    steps = torch.stack([speed * angle.cos(), speed * angle.sin()], dim=-1)
    position = steps.cumsum(1) + 0.02 * torch.randn(n, PAST + FUTURE, 2, generator=gen)
    pressure = 1 - 0.3 * torch.sin(k / 9.0 + heading).unsqueeze(-1)
    return torch.cat([position, pressure, speed.expand(-1, PAST + FUTURE).unsqueeze(-1)], dim=-1)


class TrackForecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(4, HIDDEN, batch_first=True)
        self.cell = nn.GRUCell(4, HIDDEN)
        self.delta = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 4))

    def forward(self, past, future=None, teacher=0.0):
        _, h = self.encoder(past)
        h, fix = h[0], past[:, -1]
        coin = torch.rand(FUTURE).tolist()
        track = []
        for t in range(FUTURE):
            h = self.cell(fix, h)
            fix = fix + self.delta(h)
            track.append(fix)
            if future is not None and coin[t] < teacher:
                fix = future[:, t]
        return torch.stack(track, dim=1)


def great_circle_error(pred, truth):
    return (pred[..., :2] - truth[..., :2]).norm(dim=-1).mean()


def evaluate(model, tracks):
    model.eval()
    with torch.inference_mode():
        err = great_circle_error(model(tracks[:, :PAST]), tracks[:, PAST:]).item()
    model.train()
    return err


def main():
    torch.manual_seed(55)
    gen = torch.Generator().manual_seed(55)
    tracks = storm_database(16000, gen)
    held_out = storm_database(256, gen)
    model = TrackForecaster()
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    t0 = time.monotonic()
    step = 0
    best, best_state = float("inf"), None
    while time.monotonic() - t0 < SECONDS:
        batch = tracks[torch.randint(0, len(tracks), (BATCH,), generator=gen)]
        past, future = batch[:, :PAST], batch[:, PAST:]
        teacher = max(0.0, 1 - step / 400)
        loss = nn.functional.smooth_l1_loss(model(past, future, teacher), future)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 50 == 0:
            err = evaluate(model, held_out)
            if err < best:
                best = err
                best_state = {k: v.detach().clone() for k, v in model.state_dict().items()}
            print(f"step {step}: loss {loss.item():.4f}, track error {err:.4f}")
    if best_state is not None:
        model.load_state_dict(best_state)
    print(f"best {best:.4f}; {step / (time.monotonic() - t0):.2f} steps/s")


if __name__ == "__main__":
    main()
