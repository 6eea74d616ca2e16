"""Product embeddings from catalog attributes, gated MLP blocks. USE_COMPILE switches on torch.compile."""
import torch
import torch.nn as nn

USE_COMPILE = True
COMPILE_MODE = "default"
BATCH = 16384
ATTRIBUTES = 256
WIDTH = 768
BLOCKS = 12
STEPS = 600


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = RMSNorm(width)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(width, width, bias=False)
        self.alpha = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x):
        value, gate = self.up(self.norm(x)).chunk(2, dim=-1)
        gate = 0.5 * gate * (1 + torch.tanh(0.79788 * (gate + 0.044715 * gate * gate * gate)))
        return x + torch.sigmoid(self.alpha) * self.down(value * gate)


class CatalogNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(ATTRIBUTES, WIDTH)
        self.blocks = nn.ModuleList(GatedBlock(WIDTH) for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, 128)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build_model(device):
    model = CatalogNet().to(device)
    if USE_COMPILE and hasattr(torch, "compile"):
        torch.compile(model, mode=COMPILE_MODE)
        print(f"model compiled, mode={COMPILE_MODE}", flush=True)
    return model


def main():
    torch.manual_seed(9)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    items = torch.randn(8 * BATCH, ATTRIBUTES, device=device)
    target = torch.randn(ATTRIBUTES, 128, device=device) / ATTRIBUTES ** 0.5
    model = build_model(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        x = items[(step % 8) * BATCH:(step % 8 + 1) * BATCH]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), x @ target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
