# 图文描述：多卡脚本在单卡上跑（DataParallel 仍然包着模型）
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Captions(Dataset):
    def __init__(self, count, length, vocab):
        g = torch.Generator().manual_seed(6)
        self.patches = torch.randn(count, 49, 256, generator=g)
        self.words = torch.randint(0, vocab, (count, length + 1), generator=g)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return self.patches[i], self.words[i]


class Captioner(nn.Module):
    def __init__(self, vocab, length, width=1024, layers=8):
        super().__init__()
        self.see = nn.Linear(256, width)
        self.words = nn.Embedding(vocab, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerDecoderLayer(width, 16, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, layers)
        self.out = nn.Linear(width, vocab)
        self.register_buffer('mask', nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, patches, words):
        x = self.words(words) + self.place
        x = self.decoder(x, self.see(patches), tgt_mask=self.mask.to(x.dtype), tgt_is_causal=True)
        return self.out(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--gpus', default='0')
    parser.add_argument('--batch_size', type=int, default=192)
    parser.add_argument('--num_workers', type=int, default=6)
    parser.add_argument('--epochs', type=int, default=8)
    opt = parser.parse_args()
    os.environ.setdefault('CUDA_VISIBLE_DEVICES', opt.gpus)
    torch.manual_seed(6)
    torch.set_float32_matmul_precision('high')
    vocab, length = 8000, 64
    loader = DataLoader(Captions(48 * opt.batch_size, length, vocab), opt.batch_size, shuffle=True, drop_last=True,
                        num_workers=opt.num_workers, pin_memory=True, persistent_workers=True, prefetch_factor=4)
    ids = [int(i) for i in opt.gpus.split(',')]
    model = nn.DataParallel(Captioner(vocab, length).cuda(), device_ids=ids)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for epoch in range(opt.epochs):
        total = torch.zeros((), device='cuda')
        for patches, words in loader:
            patches, words = patches.cuda(non_blocking=True), words.cuda(non_blocking=True)
            with torch.autocast('cuda', dtype=torch.bfloat16):
                logits = model(patches, words[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print('epoch %d loss %.4f' % (epoch + 1, total.item() / len(loader)), flush=True)


if __name__ == '__main__':
    main()
