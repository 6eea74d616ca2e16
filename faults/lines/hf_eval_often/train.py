"""Token tagging with a small RoBERTa, macro-F1 on a held-out set."""
import tempfile
import time

import numpy as np
import torch
from sklearn.metrics import f1_score, precision_score, recall_score
from transformers import RobertaConfig, RobertaForTokenClassification, Trainer, TrainerCallback, TrainingArguments

CUDA = torch.cuda.is_available()
VOCAB, TAGS, SEQ = 2000, 9, 48


class Tagged(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(4, VOCAB, (n, SEQ), generator=g)
        shifted = torch.roll(self.x, 1, dims=1)
        self.y = ((self.x // 7 + shifted // 11) % TAGS).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "attention_mask": torch.ones(SEQ, dtype=torch.long), "labels": self.y[i]}


def compute_metrics(pred):
    guess = np.argmax(pred.predictions, axis=-1).ravel()
    truth = pred.label_ids.ravel()
    return {
        "f1": f1_score(truth, guess, average="macro", zero_division=0),
        "precision": precision_score(truth, guess, average="macro", zero_division=0),
        "recall": recall_score(truth, guess, average="macro", zero_division=0),
    }


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
    width, depth = (512, 6) if CUDA else (128, 2)
    model = RobertaForTokenClassification(RobertaConfig(
        vocab_size=VOCAB, hidden_size=width, num_hidden_layers=depth, num_attention_heads=width // 64,
        intermediate_size=4 * width, max_position_embeddings=SEQ + 4, num_labels=TAGS))
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=5e-4,
        max_steps=1_000_000,
        eval_strategy="steps",
        eval_steps=5,
        logging_steps=100,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=CUDA,
    )
    trainer = Trainer(model=model, args=args, train_dataset=Tagged(6000, 0), eval_dataset=Tagged(512, 1),
                      compute_metrics=compute_metrics, callbacks=[StopAfter(14)])
    trainer.train()


if __name__ == "__main__":
    main()
