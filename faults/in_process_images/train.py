"""Images are decoded and augmented in the training process."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Images(Dataset):
    def __init__(self):
        self.pixels = torch.randint(0, 255, (512, 3, 48, 48), dtype=torch.uint8)

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        image = self.pixels[index % 512].float() / 255
        for _ in range(12):
            image = torch.nn.functional.avg_pool2d(image.unsqueeze(0), 3, 1, 1).squeeze(0)
            image = (image - image.mean()) / (image.std() + 1e-5)
        return image, index % 10


loader = DataLoader(Images(), batch_size=32, shuffle=True, num_workers=0)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps, begin = 0, time.monotonic()
while time.monotonic() - begin < 12:
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
print("done", steps)
