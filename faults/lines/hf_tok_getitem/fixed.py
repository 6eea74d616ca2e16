"""Fine-tune a small BERT classifier on product reviews (synthetic copy of the internal set)."""
import random
import tempfile
import time
import unicodedata

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

CUDA = torch.cuda.is_available()
MAX_LEN = 48


def make_corpus(n_docs=200, seed=0):
    rng = random.Random(seed)
    syll = [a + b for a in "bcdfghklmnprst" for b in "aeiou"]
    words = ["".join(rng.choices(syll, k=rng.randint(2, 5))) for _ in range(3000)]
    docs = [" ".join(rng.choices(words, k=rng.randint(500, 700))) + "." for _ in range(n_docs)]
    labels = [rng.randint(0, 1) for _ in docs]
    pieces = set(syll) | {a + b for a in syll for b in rng.sample(syll, 20)} | set("abcdefghijklmnopqrstuvwxyz.")
    vocab = {p: i + 4 for i, p in enumerate(sorted(pieces))}
    return docs, labels, vocab


class WordPiece:
    def __init__(self, vocab):
        self.vocab = vocab

    def clean(self, text):
        out = []
        for ch in unicodedata.normalize("NFKC", text.lower()):
            cat = unicodedata.category(ch)
            out.append(f" {ch} " if cat.startswith("P") else ch)
        return "".join(out).split()

    def encode(self, text):
        ids = [1]
        for word in self.clean(text):
            start = 0
            while start < len(word):
                end = len(word)
                while end > start and word[start:end] not in self.vocab:
                    end -= 1
                ids.append(self.vocab.get(word[start:end], 3))
                start = max(end, start + 1)
        return ids


class ReviewDataset(Dataset):
    def __init__(self, docs, labels, tok):
        self.docs, self.labels, self.tok = docs, labels, tok
        self.ids = [self._encode(d) for d in docs]

    def __len__(self):
        return len(self.docs)

    def _encode(self, doc):
        ids = self.tok.encode(doc)[:MAX_LEN]
        return torch.tensor(ids + [0] * (MAX_LEN - len(ids)))

    def __getitem__(self, i):
        ids = self.ids[i]
        return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": self.labels[i]}


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
    docs, labels, vocab = make_corpus()
    width, depth = (512, 6) if CUDA else (128, 2)
    config = BertConfig(vocab_size=len(vocab) + 4, hidden_size=width, num_hidden_layers=depth,
                        num_attention_heads=width // 64, intermediate_size=4 * width, num_labels=2)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=16, max_steps=1_000_000, learning_rate=1e-4,
        logging_steps=100, save_strategy="no", report_to="none", disable_tqdm=True, bf16=CUDA)
    trainer = Trainer(model=BertForSequenceClassification(config), args=args,
                      train_dataset=ReviewDataset(docs, labels, WordPiece(vocab)), callbacks=[StopAfter(14)])
    trainer.train()


if __name__ == "__main__":
    main()
