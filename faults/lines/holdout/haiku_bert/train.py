"""Masked language model over a toy corpus, with the Hugging Face Trainer."""
import os
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainerCallback, TrainingArguments

VOCAB, LENGTH, MASK = 2000, 64, 4


class Haikus(Dataset):
    """Blocks of tokens, masked once when they are made."""

    def __init__(self, n=6000):
        g = torch.Generator().manual_seed(5)
        ids = torch.randint(5, VOCAB, (n, LENGTH), generator=g)
        ids[:, 1::2] = (ids[:, ::2] * 3) % (VOCAB - 5) + 5
        masked = torch.rand(ids.shape, generator=g) < 0.15
        self.labels = torch.where(masked, ids, torch.full_like(ids, -100))
        self.inputs = torch.where(masked, torch.full_like(ids, MASK), ids)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, i):
        return {"input_ids": self.inputs[i], "labels": self.labels[i]}


class Limit(TrainerCallback):
    def __init__(self, seconds):
        self.seconds, self.start = seconds, None

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 3:
            self.start = time.time()
        elif self.start and time.time() - self.start > self.seconds:
            print(f"{(state.global_step - 3) / (time.time() - self.start):.3f} steps/s")
            control.should_training_stop = True
        return control


def main():
    config = BertConfig(
        vocab_size=VOCAB, hidden_size=192, num_hidden_layers=2, num_attention_heads=4, intermediate_size=768,
        max_position_embeddings=LENGTH, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=32, max_steps=100_000, learning_rate=3e-4, use_cpu=True,
            logging_steps=100, save_strategy="no", report_to=[], disable_tqdm=True, seed=0,
        )
        seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
        Trainer(BertForMaskedLM(config), args, train_dataset=Haikus(), callbacks=[Limit(seconds)]).train()


if __name__ == "__main__":
    main()
