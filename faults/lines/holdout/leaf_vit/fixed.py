"""Train a ViT on leaf disease photos (timm)."""
import time

import timm
import torch
import torch.nn.functional as F
from timm.data import Mixup

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")

if device == "cuda":
    MODEL, IMG, BATCH, PHOTOS = "vit_base_patch16_224", 224, 128, 6000
else:
    MODEL, IMG, BATCH, PHOTOS = "vit_tiny_patch16_224", 64, 8, 128
CLASSES = 38
TIME_LIMIT = 18.0


def fake_photos():
    # uint8 on the device: 6000 x 3 x 224 x 224 is under 1 GB
    photos = torch.randint(0, 256, (PHOTOS, 3, IMG, IMG), dtype=torch.uint8, device=device)
    labels = torch.randint(0, CLASSES, (PHOTOS,), device=device)
    tint = torch.randint(0, 60, (CLASSES, 3, 1, 1), dtype=torch.uint8, device=device)
    return (photos // 2).add_(tint[labels]), labels


def augment(u8, mean, std):
    x = u8.float().div_(255).sub_(mean).div_(std)
    flip = torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5
    return torch.where(flip, x.flip(-1), x)


def param_groups(model, wd):
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    return [dict(params=decay, weight_decay=wd), dict(params=plain, weight_decay=0.0)]


def main():
    photos, labels = fake_photos()
    mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], device=device).view(1, 3, 1, 1)
    mixup = Mixup(mixup_alpha=0.2, num_classes=CLASSES, label_smoothing=0.1)

    model = timm.create_model(MODEL, pretrained=False, num_classes=CLASSES, img_size=IMG)
    model = model.to(device).train()
    optimizer = torch.optim.AdamW(param_groups(model, 0.05), lr=5e-4, fused=True)

    step, tic = 0, time.monotonic()
    while time.monotonic() - tic < TIME_LIMIT:
        idx = torch.randint(0, PHOTOS, (BATCH,), device=device)
        x = augment(photos[idx], mean, std)
        x, y = mixup(x, labels[idx])

        logits = model(x)
        loss = torch.sum(-y * F.log_softmax(logits, dim=-1), dim=-1).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        step += 1
        if step % 25 == 0:
            print(f"step {step:4d} | loss {loss.item():.4f} | {BATCH * step / (time.monotonic() - tic):.0f} img/s")
    print(f"finished {step} steps, {BATCH * step / (time.monotonic() - tic):.1f} img/s")


if __name__ == "__main__":
    main()
