"""Surface images kept compressed in memory, as the camera station hands them over."""
import zlib

import torch
from torch.utils.data import Dataset

CAMERA_SIDE = 256
SIDE = 128


def make_station_dump(count, seed):
    """`count` compressed grey images with a scratch of one of four kinds."""
    generator = torch.Generator().manual_seed(seed)
    blobs, labels = [], []
    for _ in range(count):
        label = int(torch.randint(4, (1,), generator=generator))
        image = torch.randint(90, 130, (CAMERA_SIDE, CAMERA_SIDE), generator=generator, dtype=torch.uint8)
        row = int(torch.randint(100, 150, (1,), generator=generator))
        if label == 0:
            image[row : row + 4, :] = 220
        elif label == 1:
            image[:, row : row + 4] = 220
        elif label == 2:
            image.fill_diagonal_(230)
        blobs.append(zlib.compress(image.numpy().tobytes(), 1))
        labels.append(label)
    return blobs, labels


class DefectImages(Dataset):
    def __init__(self, blobs, labels):
        self.blobs, self.labels = blobs, labels

    def __len__(self):
        return len(self.blobs)

    def __getitem__(self, index):
        raw = bytearray(zlib.decompress(self.blobs[index]))
        image = torch.frombuffer(raw, dtype=torch.uint8).view(CAMERA_SIDE, CAMERA_SIDE)
        return self.augment(self.equalise(self.crop(image))), self.labels[index]

    def crop(self, image):
        top, left = torch.randint(CAMERA_SIDE - SIDE, (2,)).tolist()
        return image[top : top + SIDE, left : left + SIDE]

    def equalise(self, image):
        """Levels out the lamp: histogram equalisation over the crop."""
        levels = torch.bincount(image.flatten(), minlength=256).cumsum(0)
        return (levels.float() / levels[-1])[image.long()]

    def augment(self, image):
        if torch.rand(()) < 0.5:
            image = image.flip(int(torch.randint(2, ())))
        image = image + 0.05 * torch.randn_like(image)
        ordered = image.flatten().sort().values  # robust contrast: 2% and 98% quantile
        low, high = ordered[len(ordered) // 50], ordered[-len(ordered) // 50]
        return ((image - low) / (high - low + 1e-5)).clamp(0, 1).unsqueeze(0) - 0.5
