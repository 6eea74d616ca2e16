"""Token tagging of invoices (amount, date, vendor) with a small DistilBERT and the HF Trainer."""
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForTokenClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

TAGS = ["O", "AMOUNT", "DATE", "VENDOR"]
VOCAB, LENGTH = 1200, 32


class InvoiceLines(Dataset):
    def __init__(self, n, seed):
        gen = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(200, VOCAB, (n, LENGTH), generator=gen)
        self.labels = torch.zeros(n, LENGTH, dtype=torch.long)
        for tag in range(1, len(TAGS)):
            where = torch.rand(n, LENGTH, generator=gen) < 0.08
            self.tokens[where] = torch.randint(60 * tag, 60 * tag + 50, (int(where.sum()),), generator=gen)
            self.labels[where] = tag

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "attention_mask": torch.ones(LENGTH, dtype=torch.long), "labels": self.labels[i]}


class WallClock(TrainerCallback):
    """Stops after a fixed time and reports the throughput."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.t0 = None

    def on_train_begin(self, args, state, control, **kw):
        self.t0 = time.monotonic()

    def _check(self, control):
        if time.monotonic() - self.t0 > self.seconds:
            control.should_training_stop = True
        return control

    def on_step_end(self, args, state, control, **kw):
        return self._check(control)

    def on_train_end(self, args, state, control, **kw):
        took = time.monotonic() - self.t0
        per_update = args.per_device_train_batch_size * args.gradient_accumulation_steps
        print(f"{state.global_step} updates in {took:.1f} s = {state.global_step * per_update / took:.1f} samples/s")


def build_model():
    config = DistilBertConfig(
        vocab_size=VOCAB, dim=96, n_layers=2, n_heads=4, hidden_dim=192,
        max_position_embeddings=LENGTH, num_labels=len(TAGS),
    )
    return DistilBertForTokenClassification(config)


def main():
    set_seed(3)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=32,
        learning_rate=5e-4,
        max_steps=100000,
        warmup_steps=20,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=build_model(), args=args, train_dataset=InvoiceLines(4096, seed=3), callbacks=[WallClock(18.0)],
    )
    trainer.train()


if __name__ == "__main__":
    main()
