# coding: utf-8
# Converted from notebooks/vibration_anomaly_v3.ipynb

# In[1]:
import numpy as np
import torch
import torch.nn as nn

np.random.seed(2)
torch.manual_seed(2)

# In[2]:
# bearing vibration, 8 channels, windows of 256 samples
N, C, W = 3000, 8, 256
t = np.arange(W) / 1000.0
f = np.random.uniform(20, 120, size=(N, C, 1))
ph = np.random.uniform(0, 2 * np.pi, size=(N, C, 1))
X = np.sin(2 * np.pi * f * t + ph) + 0.3 * np.sin(2 * np.pi * 3 * f * t)
X += 0.1 * np.random.randn(N, C, W)
X = (X - X.mean(axis=(0, 2), keepdims=True)) / X.std(axis=(0, 2), keepdims=True)
X = X.astype(np.float32)
X_train, X_test = X[:2600], X[2600:]
print(X_train.shape, X_train.dtype)


# In[3]:
class ConvAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv1d(C, 48, 7, stride=2, padding=3), nn.ReLU(),
            nn.Conv1d(48, 96, 5, stride=2, padding=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(96 * 64, 256), nn.ReLU(), nn.Linear(256, 32),
        )
        self.dec_fc = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 96 * 64), nn.ReLU())
        self.dec = nn.Sequential(
            nn.ConvTranspose1d(96, 48, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose1d(48, C, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.dec(self.dec_fc(self.enc(x)).view(-1, 96, 64))


# In[4]:
model = ConvAE()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()

# In[5]:
B = 100
history = []
for epoch in range(7):
    perm = np.random.permutation(len(X_train))
    losses = []
    for i in range(0, len(perm), B):
        xb = torch.from_numpy(X_train[perm[i:i + B]])
        loss = loss_fn(model(xb), xb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    history.append(np.mean(losses))
    print("epoch", epoch, "mse", round(history[-1], 5), flush=True)

# In[6]:
with torch.no_grad():
    xt = torch.from_numpy(X_test)
    err = ((model(xt) - xt) ** 2).mean(dim=(1, 2)).numpy()
print("test mse", err.mean().round(5), "99% threshold", np.quantile(err, 0.99).round(5))
