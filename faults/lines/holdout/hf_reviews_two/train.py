"""Sentiment classifier on synthetic product reviews: own BPE tokenizer + small BERT + HF Trainer."""
import random
from collections import Counter

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

SYLLABLES = ["ka", "lo", "mi", "ren", "tas", "vu", "pel", "dor", "shi", "gan", "bri", "zen", "qua", "fol", "ner"]


def make_corpus(n, seed):
    rng = random.Random(seed)
    lexicon = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 5))) for _ in range(800)]
    good, bad, neutral = lexicon[:150], lexicon[150:300], lexicon[300:]
    texts, labels = [], []
    for _ in range(n):
        label = rng.randint(0, 1)
        words = rng.choices(neutral, k=rng.randint(40, 50)) + rng.choices(good if label else bad, k=6)
        rng.shuffle(words)
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


class BPETokenizer:
    PAD, CLS, UNK = 0, 1, 2

    def __init__(self, texts, n_merges=300):
        counts = Counter(word for text in texts for word in text.split())
        words = {word: list(word) + ["</w>"] for word in counts}
        self.ranks = {}
        for rank in range(n_merges):
            pairs = Counter()
            for word, symbols in words.items():
                for pair in zip(symbols, symbols[1:]):
                    pairs[pair] += counts[word]
            if not pairs:
                break
            best = pairs.most_common(1)[0][0]
            self.ranks[best] = rank
            for word, symbols in words.items():
                words[word] = self.merge(symbols, best)
        vocab = sorted({s for symbols in words.values() for s in symbols} | set("abcdefghijklmnopqrstuvwxyz"))
        self.ids = {symbol: i + 3 for i, symbol in enumerate(vocab)}

    @staticmethod
    def merge(symbols, pair):
        merged, i = [], 0
        while i < len(symbols):
            if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
                merged.append(symbols[i] + symbols[i + 1])
                i += 2
            else:
                merged.append(symbols[i])
                i += 1
        return merged

    def encode(self, text, max_length=128):
        ids = [self.CLS]
        for word in text.split():
            symbols = list(word) + ["</w>"]
            while len(symbols) > 1:
                pair = min(zip(symbols, symbols[1:]), key=lambda p: self.ranks.get(p, 1 << 30))
                if pair not in self.ranks:
                    break
                symbols = self.merge(symbols, pair)
            ids.extend(self.ids.get(s, self.UNK) for s in symbols)
        return ids[:max_length]


class ReviewDataset(Dataset):
    def __init__(self, texts, labels, tokenizer):
        self.texts = texts
        self.labels = labels
        self.tokenizer = tokenizer

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return {"input_ids": self.tokenizer.encode(self.texts[i]), "labels": self.labels[i]}


def collate(examples):
    longest = max(len(e["input_ids"]) for e in examples)
    input_ids = torch.zeros(len(examples), longest, dtype=torch.long)
    for row, e in enumerate(examples):
        input_ids[row, :len(e["input_ids"])] = torch.tensor(e["input_ids"])
    return {
        "input_ids": input_ids,
        "attention_mask": (input_ids != BPETokenizer.PAD).long(),
        "labels": torch.tensor([e["labels"] for e in examples]),
    }


def compute_metrics(prediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=1) == prediction.label_ids).mean())}


def main():
    set_seed(17)
    texts, labels = make_corpus(1700, seed=17)
    tokenizer = BPETokenizer(texts)
    train_set = ReviewDataset(texts[:1500], labels[:1500], tokenizer)
    eval_set = ReviewDataset(texts[1500:], labels[1500:], tokenizer)
    config = BertConfig(
        vocab_size=len(tokenizer.ids) + 3, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128, num_labels=2,
    )
    arguments = TrainingArguments(
        output_dir="/tmp/hf_reviews_out", num_train_epochs=10, per_device_train_batch_size=32,
        per_device_eval_batch_size=100, learning_rate=2e-3, logging_steps=50, save_strategy="no",
        report_to=[], use_cpu=True, disable_tqdm=True, seed=17, dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config), args=arguments, train_dataset=train_set,
        eval_dataset=eval_set, data_collator=collate, compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
