"""Finds the gap and the slider in a 160x320 puzzle: a plain vision transformer with two coordinates out."""
import torch
from torch import nn

HEIGHT, WIDTH, PATCH = 160, 320, 16


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.norm2(x))


class SliderNet(nn.Module):
    def __init__(self, width, depth, heads):
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.place = nn.Parameter(torch.randn(1, (HEIGHT // PATCH) * (WIDTH // PATCH), width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2))

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.place
        return self.head(self.blocks(tokens).mean(dim=1))
