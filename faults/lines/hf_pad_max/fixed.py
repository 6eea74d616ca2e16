"""Intent classification on short chat messages with a small DistilBERT."""
import random
import tempfile
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification,
                          PreTrainedTokenizerFast, Trainer, TrainerCallback, TrainingArguments)

CUDA = torch.cuda.is_available()
N_INTENTS = 20


def build_tokenizer(words):
    vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + words)}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]",
                                   cls_token="[CLS]", sep_token="[SEP]", model_max_length=256)


def build_data(n=4000, seed=1):
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(5000)]
    texts, labels = [], []
    for _ in range(n):
        y = rng.randrange(N_INTENTS)
        length = rng.randint(6, 40)
        lo = y * 200
        texts.append(" ".join(words[rng.randrange(lo, lo + 1000)] for _ in range(length)))
        labels.append(y)
    return words, texts, labels


class Messages(torch.utils.data.Dataset):
    def __init__(self, encodings, labels):
        self.rows = [{"input_ids": ids, "attention_mask": mask, "labels": y}
                     for ids, mask, y in zip(encodings["input_ids"], encodings["attention_mask"], labels)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


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
    words, texts, labels = build_data()
    tok = build_tokenizer(words)
    train = Messages(tok(texts, truncation=True, return_token_type_ids=False), labels)
    dim, layers, batch = (768, 6, 128) if CUDA else (128, 2, 16)
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=len(tok), dim=dim, hidden_dim=4 * dim, n_layers=layers, n_heads=dim // 64,
        max_position_embeddings=256, num_labels=N_INTENTS))
    collator = DataCollatorWithPadding(tok, padding=True)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, max_steps=1_000_000,
        learning_rate=2e-4, warmup_steps=50, logging_steps=100, save_strategy="no",
        report_to="none", disable_tqdm=True, bf16=CUDA, dataloader_num_workers=4 if CUDA else 0)
    Trainer(model=model, args=args, train_dataset=train, data_collator=collator,
            callbacks=[StopAfter(14)]).train()


if __name__ == "__main__":
    main()
