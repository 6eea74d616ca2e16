"""Sequence classification with a BERT encoder from a config and Accelerate."""
import os
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

CUDA = torch.cuda.is_available()
TOKENS, BATCH, VOCAB, GLOSSES = (256, 128, 8000, 64) if CUDA else (16, 4, 200, 8)


def dataset():
    g = torch.Generator().manual_seed(10)
    n = 16_384 if CUDA else 64
    return TensorDataset(torch.randint(0, VOCAB, (n, TOKENS), generator=g), torch.randint(0, GLOSSES, (n,), generator=g))


def network():
    size = dict(hidden_size=1024, num_hidden_layers=8, num_attention_heads=16, intermediate_size=4096)
    if not CUDA:
        size = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    config = BertConfig(
        vocab_size=VOCAB, max_position_embeddings=TOKENS, num_labels=GLOSSES, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, problem_type="single_label_classification", **size,
    )
    return BertForSequenceClassification(config)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    accelerator = Accelerator(mixed_precision="bf16" if CUDA else "no")
    loader = DataLoader(
        dataset(), batch_size=BATCH, shuffle=True, drop_last=True, pin_memory=CUDA,
        num_workers=4 if CUDA else 0, persistent_workers=CUDA,
    )
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=CUDA)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    step, start = 0, None
    while start is None or time.time() - start < limit:
        for tokens, glosses in loader:
            loss = model(input_ids=tokens, labels=glosses).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == 8:
                start = time.time()
            if step % 50 == 0:
                accelerator.print(f"step {step}: {loss.item():.3f}")
            if start is not None and time.time() - start >= limit:
                break
    accelerator.print(f"{(step - 8) / (time.time() - start):.2f} steps per second")


if __name__ == "__main__":
    main()
