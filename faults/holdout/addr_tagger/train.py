"""地址要素标注：Transformer 逐字分类。配置里写了 bf16 混合精度。"""
import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "train": {"precision": "bf16-mixed", "batch_size": 128, "num_workers": 4, "pin_memory": True, "lr": 3e-4},
    "model": {"vocab": 6000, "tags": 24, "width": 1024, "heads": 16, "layers": 8, "length": 128},
}


def make_data(cfg, rows, seed):
    g = torch.Generator().manual_seed(seed)
    chars = torch.randint(0, cfg["vocab"], (rows, cfg["length"]), generator=g)
    return TensorDataset(chars, (chars + chars.roll(1, dims=1)) % cfg["tags"])


class Tagger(nn.Module):
    def __init__(self, vocab, tags, width, heads, layers, length):
        super().__init__()
        self.chars = nn.Embedding(vocab, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, tags)

    def forward(self, x):
        return self.head(self.encoder(self.chars(x) + self.place))


class Engine:
    def __init__(self, config, model, device):
        self.cfg, self.device = config["train"], device
        self.model = model.to(device)
        self.use_amp = self.cfg["precision"] in ("bf16", "fp16", "amp")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.cfg["lr"], fused=True)
        self.loss_fn = nn.CrossEntropyLoss()

    def run_batch(self, chars, tags):
        chars, tags = chars.to(self.device, non_blocking=True), tags.to(self.device, non_blocking=True)
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16, enabled=self.use_amp):
            loss = self.loss_fn(self.model(chars).flatten(0, 1), tags.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run_epoch(self, loader):
        self.model.train()
        total = torch.zeros((), device=self.device)
        for chars, tags in loader:
            total += self.run_batch(chars, tags)
        return total.item() / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    cfg = CONFIG["train"]
    loader = DataLoader(make_data(CONFIG["model"], 64 * cfg["batch_size"], 1), batch_size=cfg["batch_size"], shuffle=True,
                        num_workers=cfg["num_workers"], pin_memory=cfg["pin_memory"], persistent_workers=True)
    engine = Engine(CONFIG, Tagger(**CONFIG["model"]), torch.device(args.device))
    for epoch in range(args.epochs):
        start = time.time()
        loss = engine.run_epoch(loader)
        print(f"epoch {epoch} loss {loss:.4f} {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    main()
