"""Small U-Net that segments bright blobs on a textured background."""
import torch
import torch.nn.functional as F
from torch import nn


def make_blobs(n, size, seed):
    g = torch.Generator().manual_seed(seed)
    axis = torch.arange(size, dtype=torch.float32)
    masks = torch.zeros(n, size, size, dtype=torch.bool)
    for _ in range(4):
        cy, cx = (torch.rand(2, n, 1, 1, generator=g) * size).unbind(0)
        radius = 3 + 5 * torch.rand(n, 1, 1, generator=g)
        masks |= (axis[None, :, None] - cy) ** 2 + (axis[None, None, :] - cx) ** 2 < radius ** 2
    texture = F.interpolate(torch.randn(n, 1, 8, 8, generator=g), size=size, mode="bilinear", align_corners=False)
    images = 0.8 * masks.unsqueeze(1) + 0.7 * texture + 0.4 * torch.randn(n, 1, size, size, generator=g)
    return images, masks.unsqueeze(1).float()


def double_conv(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(n_out, n_out, 3, padding=1), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.enc1, self.enc2 = double_conv(1, width), double_conv(width, 2 * width)
        self.middle = double_conv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec2, self.dec1 = double_conv(4 * width, 2 * width), double_conv(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        d = self.dec2(torch.cat([self.up2(c), b], dim=1))
        return self.head(self.dec1(torch.cat([self.up1(d), a], dim=1)))


def dice_bce(logits, target):
    p = torch.sigmoid(logits)
    overlap = 2 * (p * target).sum((1, 2, 3)) + 1
    dice = 1 - overlap / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1)
    return F.binary_cross_entropy_with_logits(logits, target) + dice.mean()


def main():
    torch.manual_seed(31)
    images, masks = make_blobs(640, 64, seed=31)
    valid_images, valid_masks = make_blobs(96, 64, seed=32)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 5):
        model.train()
        total = torch.zeros(())
        for index in torch.randperm(len(images)).split(16):
            x, y = images[index], masks[index]
            flip = torch.rand(()) < 0.5
            if flip:
                x, y = x.flip(3), y.flip(3)
            loss = dice_bce(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(index)
        model.eval()
        with torch.inference_mode():
            pred = torch.cat([model(chunk) for chunk in valid_images.split(32)]) > 0
            truth = valid_masks.bool()
            iou = (pred & truth).sum().item() / (pred | truth).sum().item()
        print(f"epoch {epoch}: loss {total.item() / len(images):.4f} valid IoU {iou:.3f}")


if __name__ == "__main__":
    main()
