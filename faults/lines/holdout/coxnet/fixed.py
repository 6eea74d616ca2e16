"""DeepSurv-style Cox model on a simulated cohort."""
import numpy as np
import torch
from torch import nn

SEED = 11
N_TRAIN, N_TEST, N_FEATURES = 3600, 1000, 24
EPOCHS = 105

rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def simulate(n):
    x = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    log_hazard = 0.8 * x[:, 0] - 0.5 * x[:, 1] + 0.6 * np.sin(2 * x[:, 2]) + 0.4 * x[:, 3] * x[:, 4]
    event_time = rng.exponential(1.0, size=n) * np.exp(-log_hazard)
    censor_time = rng.exponential(2.0, size=n)
    time = np.minimum(event_time, censor_time).astype(np.float32)
    event = (event_time <= censor_time).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(time), torch.from_numpy(event)


class RiskNet(nn.Module):
    def __init__(self, n_in, hidden=128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, hidden), nn.SELU(),
            nn.Linear(hidden, hidden), nn.SELU(),
            nn.Linear(hidden, 1, bias=False),
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


def cox_loss(risk, time, event):
    """Negative partial log likelihood (Breslow, continuous times)."""
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    log_denominator = torch.logcumsumexp(risk, dim=0)
    return -((risk - log_denominator) * event).sum() / event.sum()


@torch.no_grad()
def concordance(risk, time, event):
    comparable = (time.unsqueeze(1) < time.unsqueeze(0)) & (event.unsqueeze(1) > 0)
    agree = risk.unsqueeze(1) > risk.unsqueeze(0)
    return (agree & comparable).sum().item() / comparable.sum().item()


x_train, t_train, e_train = simulate(N_TRAIN)
x_test, t_test, e_test = simulate(N_TEST)
print(f"{N_TRAIN} patients, {int(e_train.sum())} events")

model = RiskNet(N_FEATURES)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)

for epoch in range(1, EPOCHS + 1):
    model.train()
    optimizer.zero_grad()
    loss = cox_loss(model(x_train), t_train, e_train)
    loss.backward()
    optimizer.step()
    if epoch % 15 == 0 or epoch == 1:
        model.eval()
        with torch.no_grad():
            c_index = concordance(model(x_test), t_test, e_test)
        print(f"epoch {epoch:3d}  loss {loss.item():.4f}  test c-index {c_index:.3f}")
