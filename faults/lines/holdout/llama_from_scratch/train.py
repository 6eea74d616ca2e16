"""Pretraining run of a Llama-style model on a synthetic token stream."""
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
SEED = 1337
CONTEXT = 1024 if GPU else 32
MICRO_BATCH = 8 if GPU else 2
LOG_EVERY = 50
TIME_LIMIT = 18.0


def build():
    if GPU:
        config = LlamaConfig(vocab_size=16000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=4,
                             num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=CONTEXT)
    else:
        config = LlamaConfig(vocab_size=200, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT)
    config.use_cache = False
    model = LlamaForCausalLM(config)
    return model.to(device=device, dtype=torch.bfloat16), config


class TokenStream:
    """A long stream on the device; windows are cut out by one gather."""

    def __init__(self, vocab, length):
        steps = torch.randint(1, 5, (length,), device=device)
        self.tokens = steps.cumsum(0).remainder(vocab)
        self.window = torch.arange(CONTEXT, device=device)

    def __iter__(self):
        return self

    def __next__(self):
        start = torch.randint(0, len(self.tokens) - CONTEXT, (MICRO_BATCH, 1), device=device)
        return self.tokens[start + self.window]


def lr_at(step, peak=2e-4, warmup=100, total=10_000):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * max(0.1, 1 - (step - warmup) / total)


def main():
    torch.manual_seed(SEED)
    torch.set_float32_matmul_precision("high")
    model, config = build()
    model.train()
    print(f"{model.num_parameters() / 1e6:.0f}M parameters, attention: {config._attn_implementation}")
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    stream = TokenStream(config.vocab_size, 20_000_000 if GPU else 10_000)

    started = time.monotonic()
    total_loss = torch.zeros((), device=device)
    for step, ids in enumerate(stream, 1):
        for group in opt.param_groups:
            group["lr"] = lr_at(step)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        opt.step()
        opt.zero_grad(set_to_none=True)
        total_loss += loss.detach()
        if step % LOG_EVERY == 0:
            mean = total_loss.item() / LOG_EVERY
            total_loss.zero_()
            rate = step * MICRO_BATCH * CONTEXT / (time.monotonic() - started)
            print(f"step {step:5d}  loss {mean:.4f}  {rate:,.0f} tok/s")
        if time.monotonic() - started > TIME_LIMIT:
            break
    print(f"stopped after {step} steps")


if __name__ == "__main__":
    main()
