"""A tiny autoencoder: batch 8, everything else as PyTorch has it. Most of a step is its fixed cost."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)


def main():
    x = torch.randn(200_000, 64)
    loader = DataLoader(TensorDataset(x), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        for (inputs,) in loader:
            inputs = inputs.to(device)
            loss = nn.functional.mse_loss(model(inputs), inputs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item(), flush=True)


if __name__ == "__main__":
    main()
