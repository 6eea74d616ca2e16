"""Small GPT-2 language model with weight monitoring."""
import json
import os
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, default_data_collator

CUDA = torch.cuda.is_available()
SEQ = 128 if CUDA else 64


class Blocks(torch.utils.data.Dataset):
    def __init__(self, n=5000, vocab=1000):
        g = torch.Generator().manual_seed(0)
        walk = torch.randint(-3, 4, (n, SEQ), generator=g).cumsum(1)
        self.ids = (walk + torch.randint(0, vocab, (n, 1), generator=g)) % vocab

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class WeightMonitor(TrainerCallback):
    """Keeps the spectrum of every weight matrix next to the logged loss."""

    def __init__(self, path):
        self.path = path

    def on_log(self, args, state, control, model=None, logs=None, **kw):
        row = {"step": state.global_step, **(logs or {})}
        for name, p in model.named_parameters():
            if p.ndim < 2:
                continue
            sv = torch.linalg.svdvals(p.detach().float())
            row[name] = {"top": sv[0].item(), "stable_rank": (sv.pow(2).sum() / sv[0] ** 2).item(),
                         "tail": sv[len(sv) // 2:].tolist()}
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")


class StopAfter(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds

    def on_train_begin(self, args, state, control, **kw):
        self.t0 = time.time()

    def on_step_end(self, args, state, control, **kw):
        if time.time() - self.t0 > self.seconds:
            control.should_training_stop = True

    def on_train_end(self, args, state, control, **kw):
        self.elapsed = time.time() - self.t0


def main():
    torch.manual_seed(0)
    out = tempfile.mkdtemp()
    width, depth = (512, 6) if CUDA else (128, 3)
    config = GPT2Config(vocab_size=1000, n_positions=SEQ, n_embd=width, n_layer=depth, n_head=width // 64,
                        bos_token_id=0, eos_token_id=0)
    args = TrainingArguments(
        output_dir=out,
        per_device_train_batch_size=32 if CUDA else 8,
        max_steps=1_000_000,
        learning_rate=3e-4,
        lr_scheduler_type="cosine",
        logging_steps=100,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=CUDA,
    )
    stop = StopAfter(14)
    trainer = Trainer(model=GPT2LMHeadModel(config), args=args, train_dataset=Blocks(),
                      data_collator=default_data_collator,
                      callbacks=[WeightMonitor(os.path.join(out, "weights.jsonl")), stop])
    trainer.train()
    print(f"{trainer.state.global_step} steps, {trainer.state.global_step / stop.elapsed:.2f} steps/s")


if __name__ == "__main__":
    main()
