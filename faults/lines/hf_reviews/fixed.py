import random
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainerCallback,
                          TrainingArguments, set_seed)

MAX_LENGTH = 128
GOOD = "lovely crisp sturdy generous bright reliable warm quick tasty charming".split()
BAD = "soggy brittle rude dim noisy stale slow bland broken greasy".split()
PLAIN = ("the a this that room table phone soup waiter battery screen bed street morning evening order "
         "box cable door price staff menu view train garden week friend box was is seemed felt looked and "
         "but with for from again never often quite rather very").split()


def write_review(rng):
    label = rng.randrange(2)
    words = []
    for _ in range(rng.randint(6, 58)):
        r = rng.random()
        if r < 0.15:
            words.append(rng.choice((BAD, GOOD)[label]))
        elif r < 0.20:
            words.append(rng.choice((GOOD, BAD)[label]))
        else:
            words.append(rng.choice(PLAIN))
    return words, label


class WordTokenizer:
    pad_id, cls_id, sep_id, unk_id = 0, 1, 2, 3

    def __init__(self, texts):
        words = sorted({w for text in texts for w in text})
        self.ids = {w: i + 4 for i, w in enumerate(words)}

    def __len__(self):
        return len(self.ids) + 4

    def __call__(self, words):
        body = [self.ids.get(w, self.unk_id) for w in words][: MAX_LENGTH - 2]
        return [self.cls_id, *body, self.sep_id]


class Reviews(Dataset):
    """Token ids are prepared once; items are plain lists of different lengths."""

    def __init__(self, pairs, tokenizer):
        self.items = [{"input_ids": tokenizer(words), "labels": label} for words, label in pairs]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Collator:
    def __init__(self, pad_id):
        self.pad_id = pad_id

    def __call__(self, items):
        ids = torch.full((len(items), max(len(item["input_ids"]) for item in items)), self.pad_id)
        for row, item in zip(ids, items):
            row[: len(item["input_ids"])] = torch.tensor(item["input_ids"])
        return {
            "input_ids": ids,
            "attention_mask": ids.ne(self.pad_id).long(),
            "labels": torch.tensor([item["labels"] for item in items]),
        }


class StopAfter(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds

    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        if time.monotonic() - self.start > self.seconds:
            control.should_training_stop = True


def main():
    set_seed(131)
    rng = random.Random(131)
    pairs = [write_review(rng) for _ in range(3000)]
    tokenizer = WordTokenizer([words for words, _ in pairs])
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=96, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=256, max_position_embeddings=MAX_LENGTH, num_labels=2)
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=16,
            learning_rate=3e-4,
            lr_scheduler_type="constant",
            max_steps=100_000,
            logging_steps=50,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=Reviews(pairs, tokenizer),
            data_collator=Collator(tokenizer.pad_id),
            callbacks=[StopAfter(12)],
        )
        trainer.train()
    print(f"steps: {trainer.state.global_step}")


if __name__ == "__main__":
    main()
