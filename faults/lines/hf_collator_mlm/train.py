"""Masked-LM pretraining on synthetic protein-like sequences."""
import random
import tempfile
import time

import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainerCallback, TrainingArguments

CUDA = torch.cuda.is_available()
PAD, MASK, VOCAB = 0, 1, 30
SEQ = 128


class Sequences(torch.utils.data.Dataset):
    def __init__(self, n=4000):
        g = torch.Generator().manual_seed(0)
        steps = torch.randint(1, 4, (n, SEQ), generator=g).cumsum(1)
        self.ids = 2 + steps % (VOCAB - 2)
        self.lengths = torch.randint(SEQ // 2, SEQ + 1, (n,), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i, : self.lengths[i]]


class MaskingCollator:
    def __init__(self, prob=0.15):
        self.prob = prob

    def __call__(self, rows):
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        labels = torch.full_like(ids, -100)
        attention = torch.zeros_like(ids)
        for b in range(ids.size(0)):
            for t in range(ids.size(1)):
                if ids[b, t] == PAD:
                    continue
                attention[b, t] = 1
                if random.random() > self.prob:
                    continue
                labels[b, t] = ids[b, t]
                roll = random.random()
                if roll < 0.8:
                    ids[b, t] = MASK
                elif roll < 0.9:
                    ids[b, t] = random.randrange(2, VOCAB)
        return {"input_ids": ids, "attention_mask": attention, "labels": labels}


class StopAfter(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds

    def on_train_begin(self, args, state, control, **kw):
        self.t0 = time.time()

    def on_step_end(self, args, state, control, **kw):
        if time.time() - self.t0 > self.seconds:
            control.should_training_stop = True

    def on_train_end(self, args, state, control, **kw):
        print(f"{state.global_step} steps, {state.global_step / (time.time() - self.t0):.2f} steps/s")


def main():
    torch.manual_seed(0)
    random.seed(0)
    width, depth, heads, batch = (512, 6, 8, 64) if CUDA else (32, 2, 2, 32)
    model = BertForMaskedLM(BertConfig(
        vocab_size=VOCAB, hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads,
        intermediate_size=4 * width, max_position_embeddings=SEQ))
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, max_steps=1_000_000,
        learning_rate=5e-4, logging_steps=100, save_strategy="no", report_to="none",
        remove_unused_columns=False, disable_tqdm=True, bf16=CUDA)
    Trainer(model=model, args=args, train_dataset=Sequences(), data_collator=MaskingCollator(),
            callbacks=[StopAfter(14)]).train()


if __name__ == "__main__":
    main()
