import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

INTENTS = {
    "balance": "how much money is left in my account balance savings checking total".split(),
    "transfer": "send move transfer wire pay funds to my brother landlord from checking".split(),
    "card": "card lost stolen block freeze replace debit credit new please today".split(),
    "weather": "what is the weather rain snow tomorrow weekend forecast in paris berlin".split(),
    "alarm": "set wake me alarm at seven eight morning cancel snooze reminder".split(),
    "music": "play song artist album louder skip next playlist shuffle jazz rock".split(),
}


def make_corpus(n, seed):
    rng = np.random.default_rng(seed)
    names = list(INTENTS)
    allw = sorted({w for ws in INTENTS.values() for w in ws})
    texts, labels = [], []
    for _ in range(n):
        k = int(rng.integers(len(names)))
        m = int(rng.integers(5, 22))
        ws = [rng.choice(INTENTS[names[k]]) if rng.random() < 0.6 else rng.choice(allw) for _ in range(m)]
        texts.append(" ".join(ws))
        labels.append(k)
    return texts, labels


def build_tokenizer():
    words = sorted({w for ws in INTENTS.values() for w in ws})
    vocab = {t: i for i, t in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + words)}
    tk = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tk.pre_tokenizer = pre_tokenizers.Whitespace()
    tk.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tk, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=256,
    )


class IntentDataset(Dataset):
    def __init__(self, texts, labels, tokenizer):
        self.enc = tokenizer(texts, truncation=True, padding="max_length", max_length=256)
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        item = {k: v[i] for k, v in self.enc.items() if k != "token_type_ids"}
        item["labels"] = self.labels[i]
        return item


def accuracy(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main():
    set_seed(17)
    tokenizer = build_tokenizer()
    train = IntentDataset(*make_corpus(960, 1), tokenizer)
    dev = IntentDataset(*make_corpus(96, 2), tokenizer)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=96, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=256, max_position_embeddings=256, num_labels=len(INTENTS), pad_token_id=0,
    )
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="/tmp/hf_intent_out",
        num_train_epochs=1,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=5e-4,
        warmup_steps=5,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=10,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        use_cpu=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train,
        eval_dataset=dev,
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=accuracy,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
