"""Review stars from text. No autocast anywhere: the weights themselves are bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F

conf = {
    "amp": "none",
    "param_dtype": "bfloat16",
    "batch_size": 96,
    "length": 256,
    "vocab": 16000,
    "width": 1024,
    "layers": 10,
    "steps": 420,
    "log_every": 60,
}


class Layer(nn.Module):
    def __init__(self, width, heads=16):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Stars(nn.Module):
    def __init__(self, conf):
        super().__init__()
        self.embed = nn.Embedding(conf["vocab"], conf["width"])
        self.layers = nn.Sequential(*(Layer(conf["width"]) for _ in range(conf["layers"])))
        self.head = nn.Linear(conf["width"], 5)

    def forward(self, ids):
        return self.head(self.layers(self.embed(ids)).mean(1))


def main():
    torch.manual_seed(12)
    device = "cuda"
    model = Stars(conf).to(device=device, dtype=getattr(torch, conf["param_dtype"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    amp = torch.autocast(device, dtype=torch.float16, enabled=conf["amp"] != "none")
    reviews = torch.randint(0, conf["vocab"], (64 * conf["batch_size"], conf["length"]), device=device)
    stars = reviews[:, :16].sum(1) % 5
    running = torch.zeros((), device=device)
    for step in range(1, conf["steps"] + 1):
        rows = torch.randint(0, len(stars), (conf["batch_size"],), device=device)
        with amp:
            loss = F.cross_entropy(model(reviews[rows]).float(), stars[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % conf["log_every"] == 0:
            print(f"{step}/{conf['steps']} loss {running.item() / conf['log_every']:.4f}", flush=True)
            running.zero_()


if __name__ == "__main__":
    main()
