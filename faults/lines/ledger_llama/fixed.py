"""Next-token model over bookkeeping entries, with Accelerate."""
import os
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM

CUDA = torch.cuda.is_available()
SEQ, BATCH, VOCAB = (1024, 16, 16_000) if CUDA else (32, 2, 300)


class Ledger(Dataset):
    def __init__(self, n=2048):
        self.tokens = torch.randint(0, VOCAB, (n, SEQ), generator=torch.Generator().manual_seed(9))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i]


def make_model():
    if CUDA:
        size = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16)
    else:
        size = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2)
    config = LlamaConfig(vocab_size=VOCAB, max_position_embeddings=SEQ, use_cache=False, **size)
    model = LlamaForCausalLM(config)
    return model


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
    accelerator = Accelerator(mixed_precision="bf16" if CUDA else "no")
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=CUDA)
    loader = DataLoader(
        Ledger(), batch_size=BATCH, shuffle=True, drop_last=True, pin_memory=CUDA,
        num_workers=3 if CUDA else 0, persistent_workers=CUDA,
    )
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()
    steps, start = 0, None
    while True:
        for tokens in loader:
            loss = model(input_ids=tokens, labels=tokens).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if steps == 5:
                start = time.time()
            if start and time.time() - start > limit:
                accelerator.print(f"{(steps - 5) / (time.time() - start):.2f} steps/s, loss {loss.item():.3f}")
                return


if __name__ == "__main__":
    main()
