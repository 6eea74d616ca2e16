"""All windows are cut once, at start; reading a sample is one index into a tensor."""
import torch
from torch.utils.data import TensorDataset


def load_windows(count=1920, length=96, channels=16, seed=42):
    generator = torch.Generator().manual_seed(seed)
    series = torch.randn(count + length + 1, channels, generator=generator).cumsum(dim=0) * 0.1
    windows = series.unfold(0, length, 1)[:count].transpose(1, 2).contiguous()
    target = series[length : length + count, 0] - series[length - 1 : length - 1 + count, 0]
    return TensorDataset(windows, target)
