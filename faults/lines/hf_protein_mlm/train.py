import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import (EsmConfig, EsmForMaskedLM, Trainer, TrainerCallback, TrainingArguments,
                          set_seed)

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
PAD, MASK, FIRST = 0, 1, 2
VOCAB = FIRST + len(RESIDUES)
LENGTH = 96


class Sequences(Dataset):
    """Fixed-length chains built from a small set of motifs with mutations."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        motifs = torch.randint(FIRST, VOCAB, (40, 12), generator=g)
        pick = torch.randint(0, 40, (n, LENGTH // 12), generator=g)
        chains = motifs[pick].reshape(n, LENGTH)
        other = torch.randint(FIRST, VOCAB, chains.shape, generator=g)
        mutate = torch.rand(chains.shape, generator=g) < 0.1
        self.chains = torch.where(mutate, other, chains)

    def __len__(self):
        return len(self.chains)

    def __getitem__(self, i):
        return {"input_ids": self.chains[i]}


class MaskCollator:
    def __init__(self, rate=0.15, seed=0):
        self.rate = rate
        self.gen = torch.Generator().manual_seed(seed)

    def __call__(self, items):
        ids = torch.stack([item["input_ids"] for item in items])
        draw = torch.rand(ids.shape, generator=self.gen)
        chosen = draw < self.rate
        labels = ids.masked_fill(~chosen, -100)
        random_ids = torch.randint(FIRST, VOCAB, ids.shape, generator=self.gen)
        ids = torch.where(draw < 0.8 * self.rate, torch.full_like(ids, MASK), ids)
        swap = (draw >= 0.8 * self.rate) & (draw < 0.9 * self.rate)
        ids = torch.where(swap, random_ids, ids)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


class Deadline(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds
        self.at = None

    def on_step_end(self, args, state, control, **kwargs):
        if self.at is None:
            self.at = time.monotonic() + self.seconds
        elif time.monotonic() > self.at:
            control.should_training_stop = True


def model_from_scratch():
    return EsmForMaskedLM(EsmConfig(
        vocab_size=VOCAB,
        pad_token_id=PAD,
        mask_token_id=MASK,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=LENGTH + 2,
        position_embedding_type="rotary",
        token_dropout=False,
    ))


def main():
    set_seed(231)
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(
            model=model_from_scratch(),
            args=TrainingArguments(
                output_dir=out,
                max_steps=50_000,
                per_device_train_batch_size=16,
                learning_rate=5e-4,
                warmup_steps=20,
                lr_scheduler_type="cosine",
                logging_steps=100,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                use_cpu=True,
                dataloader_pin_memory=False,
            ),
            train_dataset=Sequences(8000, seed=231),
            data_collator=MaskCollator(),
            callbacks=[Deadline(12)],
        )
        result = trainer.train()
    print(f"training loss {result.training_loss:.4f}")
    print(f"steps: {trainer.state.global_step}")


if __name__ == "__main__":
    main()
