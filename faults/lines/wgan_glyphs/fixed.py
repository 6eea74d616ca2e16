# WGAN on synthetic 32x32 glyphs (bars / rings / crosses)
import torch
import torch.nn as nn

torch.manual_seed(1234)

Z = 64
BATCH = 48
N_CRITIC = 4
ITERS = 30
CLIP = 0.02


def make_glyphs(n):
    g = torch.Generator().manual_seed(5)
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
    c = torch.rand(n, 2, 1, 1, generator=g) * 0.8 - 0.4
    w = torch.rand(n, 1, 1, generator=g) * 0.12 + 0.06
    kind = torch.randint(0, 3, (n, 1, 1), generator=g)
    dx, dy = xx - c[:, 0], yy - c[:, 1]
    ring = ((dx ** 2 + dy ** 2).sqrt() - 0.4).abs() < w
    bar = dx.abs() < w
    cross = (dx.abs() < w) | (dy.abs() < w)
    img = torch.where(kind == 0, ring, torch.where(kind == 1, bar, cross))
    return img.float().mul(2).sub(1).unsqueeze(1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(Z, 128 * 8 * 8)
        self.net = nn.Sequential(
            nn.BatchNorm2d(128), nn.ReLU(),
            nn.Conv2d(128, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(128, 96, 3, padding=1), nn.BatchNorm2d(96), nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(96, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(),
            nn.Conv2d(48, 1, 3, padding=1), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.fc(z).view(-1, 128, 8, 8))


critic = nn.Sequential(
    nn.Conv2d(1, 24, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(24, 48, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(48, 64, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Flatten(), nn.Linear(64 * 16, 1),
)
gen = Generator()
opt_g = torch.optim.RMSprop(gen.parameters(), lr=1e-4)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-4)

data = make_glyphs(6000)
g_rng = torch.Generator().manual_seed(9)

for it in range(ITERS):
    for _ in range(N_CRITIC):
        real = data[torch.randint(0, len(data), (BATCH,), generator=g_rng)]
        z = torch.randn(BATCH, Z, generator=g_rng)
        with torch.no_grad():
            fake = gen(z)
        loss_c = critic(fake).mean() - critic(real).mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
        with torch.no_grad():
            for p in critic.parameters():
                p.clamp_(-CLIP, CLIP)

    for p in critic.parameters():
        p.requires_grad_(False)
    loss_g = -critic(gen(torch.randn(BATCH, Z, generator=g_rng))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    for p in critic.parameters():
        p.requires_grad_(True)

    if it % 10 == 0:
        print(f"iter {it:4d}  critic {loss_c.item():+.5f}  gen {loss_g.item():+.5f}", flush=True)
print("done")
