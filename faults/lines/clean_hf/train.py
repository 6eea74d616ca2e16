"""Text classification with the HF Trainer: pre-tokenized data, dynamic padding."""
import random
import tempfile
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (DataCollatorWithPadding, DistilBertConfig, DistilBertForSequenceClassification,
                          PreTrainedTokenizerFast, Trainer, TrainerCallback, TrainingArguments)

CUDA = torch.cuda.is_available()
LABELS = 8


def build_tokenizer(words):
    vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]"] + words)}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", model_max_length=256)


def build_corpus(n, seed):
    rng = random.Random(seed)
    words = [f"tok{i}" for i in range(3000)]
    texts, labels = [], []
    for _ in range(n):
        y = rng.randrange(LABELS)
        texts.append(" ".join(words[rng.randrange(y * 250, y * 250 + 1000)] for _ in range(rng.randint(90, 128))))
        labels.append(y)
    return words, texts, labels


class Encoded(torch.utils.data.Dataset):
    def __init__(self, tok, texts, labels):
        enc = tok(texts, truncation=True, return_token_type_ids=False)
        self.rows = [{"input_ids": i, "attention_mask": m, "labels": y}
                     for i, m, y in zip(enc["input_ids"], enc["attention_mask"], labels)]

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
    words, texts, labels = build_corpus(3000, 0)
    tok = build_tokenizer(words)
    dim, layers, batch = (768, 12, 256) if CUDA else (128, 2, 16)
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=len(tok), dim=dim, hidden_dim=4 * dim, n_layers=layers, n_heads=dim // 64,
        max_position_embeddings=256, num_labels=LABELS))
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=batch,
        max_steps=1_000_000,
        learning_rate=2e-4,
        optim="adamw_torch_fused",
        logging_steps=200,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=CUDA,
        dataloader_num_workers=8 if CUDA else 0,
        dataloader_persistent_workers=CUDA,
        dataloader_pin_memory=CUDA,
        dataloader_drop_last=True,
    )
    Trainer(model=model, args=args, train_dataset=Encoded(tok, texts, labels),
            data_collator=DataCollatorWithPadding(tok, pad_to_multiple_of=8), callbacks=[StopAfter(14)]).train()


if __name__ == "__main__":
    main()
