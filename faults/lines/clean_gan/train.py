"""GAN on synthetic 32px textures with a hinge loss."""
import time

import torch
from torch import nn

DEV = "cuda" if torch.cuda.is_available() else "cpu"
Z, SIZE = 64, 32


def textures(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    xs = torch.linspace(0, 1, SIZE)
    freq = torch.rand(n, 2, generator=g) * 20 + 4
    phase = torch.rand(n, 1, 1, generator=g) * 6.28
    img = torch.sin(freq[:, :1, None] * xs[None, :, None] + freq[:, 1:, None] * xs[None, None, :] + phase)
    return img[:, None].to(DEV)


class Generator(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w
        self.fc = nn.Linear(Z, 4 * w * 16)
        self.net = nn.Sequential(
            nn.BatchNorm2d(4 * w), nn.ReLU(True), nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1),
            nn.BatchNorm2d(2 * w), nn.ReLU(True), nn.ConvTranspose2d(2 * w, w, 4, 2, 1),
            nn.BatchNorm2d(w), nn.ReLU(True), nn.ConvTranspose2d(w, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(self.fc(z).view(-1, 4 * self.w, 4, 4))


def discriminator(w):
    return nn.Sequential(nn.Conv2d(1, w, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(w, 2 * w, 4, 2, 1),
                         nn.LeakyReLU(0.2), nn.Conv2d(2 * w, 4 * w, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Flatten(), nn.Linear(4 * w * 16, 1))


def main():
    torch.manual_seed(0)
    cuda = DEV == "cuda"
    torch.backends.cudnn.benchmark = cuda
    w, batch = (128, 512) if cuda else (16, 32)
    data = textures(4096)
    G, D = Generator(w).to(DEV), discriminator(w).to(DEV)
    opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=cuda)
    opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=cuda)
    step, start = 0, time.time()
    while time.time() - start < 14:
        real = data[torch.randint(0, len(data), (batch,), device=DEV)]
        z = torch.randn(batch, Z, device=DEV)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            fake = G(z)
            d_loss = (torch.relu(1 - D(real)) + torch.relu(1 + D(fake.detach()))).mean()
        opt_d.zero_grad(set_to_none=True)
        d_loss.backward()
        opt_d.step()

        D.requires_grad_(False)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            g_loss = -D(fake).mean()
        opt_g.zero_grad(set_to_none=True)
        g_loss.backward()
        opt_g.step()
        D.requires_grad_(True)

        step += 1
        if step % 200 == 0:
            print(f"step {step} d {d_loss.item():.3f} g {g_loss.item():.3f}")
    if cuda:
        torch.cuda.synchronize()
    print(f"{step} steps, {step / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
