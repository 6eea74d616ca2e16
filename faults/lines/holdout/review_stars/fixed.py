"""Star rating of short product reviews with a small BERT, using Accelerate."""
import random
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

PAD, CLS, SEP = 0, 1, 2
VOCAB = 2000
TIME_LIMIT = 18.0

GOOD = list(range(100, 160))
BAD = list(range(160, 220))


def make_review(rng):
    stars = rng.randint(1, 5)
    body = []
    for _ in range(rng.randint(10, 38)):
        r = rng.random()
        if r < 0.06 * stars:
            body.append(rng.choice(GOOD))
        elif r < 0.36:
            body.append(rng.choice(BAD))
        else:
            body.append(rng.randrange(300, VOCAB))
    return {"input_ids": [CLS] + body + [SEP], "label": stars - 1}


class ReviewCollator:
    def __init__(self, max_length=256):
        self.max_length = max_length

    def __call__(self, features):
        width = min(self.max_length, max(len(f["input_ids"]) for f in features))
        ids = torch.full((len(features), width), PAD)
        mask = torch.zeros((len(features), width), dtype=torch.long)
        for row, f in enumerate(features):
            tokens = torch.tensor(f["input_ids"][:width])
            ids[row, :len(tokens)] = tokens
            mask[row, :len(tokens)] = 1
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([f["label"] for f in features])}


def main():
    set_seed(1234)
    rng = random.Random(1234)
    accelerator = Accelerator(cpu=True)
    reviews = [make_review(rng) for _ in range(3000)]
    loader = DataLoader(reviews, batch_size=16, shuffle=True, collate_fn=ReviewCollator())
    config = BertConfig(
        vocab_size=VOCAB, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=384, max_position_embeddings=256, num_labels=5,
    )
    model = BertForSequenceClassification(config)
    no_decay = ("bias", "LayerNorm.weight")
    groups = [
        {"params": [p for n, p in model.named_parameters() if not n.endswith(no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if n.endswith(no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-4)
    scheduler = get_linear_schedule_with_warmup(optimizer, 50, 5000)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    model.train()
    started, step = time.monotonic(), 0
    stop = False
    while not stop:
        for batch in loader:
            out = model(**batch)
            accelerator.backward(out.loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            if step % 10 == 0:
                accelerator.print(f"step {step}: loss {out.loss.item():.4f}")
            if time.monotonic() - started > TIME_LIMIT:
                stop = True
                break
    accelerator.print(f"{step / (time.monotonic() - started):.2f} steps/s")


if __name__ == "__main__":
    main()
