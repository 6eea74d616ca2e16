import os
import time

import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
cuda = device == "cuda"
BATCH, FRAMES, DIM, LAYERS = (128, 128, 256, 32) if cuda else (2, 16, 32, 3)


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(80, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, 35)

    def forward(self, mel):
        return self.head(self.encoder(self.front(mel)).mean(1))


def clip_gradients(model, limit):
    return nn.utils.clip_grad_norm_(model.parameters(), limit)


def make_data():
    g = torch.Generator(device).manual_seed(1)
    n = 4096 if cuda else 32
    return torch.randn(n, FRAMES, 80, device=device, generator=g), torch.randint(0, 35, (n,), device=device, generator=g)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    mel, words = make_data()
    model = Spotter().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=cuda)
    step, began = 0, None
    while True:
        rows = torch.randint(0, len(mel), (BATCH,), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(mel[rows]), words[rows])
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model, 0.5)
        optimizer.step()
        step += 1
        if step == 10:
            began = time.time()
        if began and time.time() - began > limit:
            break
    print(f"{(step - 10) / (time.time() - began):.2f} steps/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
