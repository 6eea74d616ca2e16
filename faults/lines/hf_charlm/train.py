"""Character language model on generated recipes, with the Hugging Face Trainer."""
import random
import tempfile
import time
from dataclasses import dataclass

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

VERBS = ["chop", "fry", "stir", "boil", "season", "rest", "slice", "whisk", "bake", "drain"]
THINGS = ["onions", "rice", "two eggs", "the dough", "carrots", "a leek", "butter", "stock", "beans", "fennel"]
ENDS = ["until soft", "for ten minutes", "with salt", "in a hot pan", "and set aside", "over low heat"]


@dataclass
class Plan:
    block: int = 64
    train_chars: int = 200_000
    held_out_chars: int = 12_000
    batch: int = 16
    eval_every: int = 4
    log_every: int = 50
    seconds: float = 12.0


def cook(n, rng):
    parts, size = [], 0
    while size < n:
        s = f"{rng.choice(VERBS)} {rng.choice(THINGS)} {rng.choice(ENDS)}. "
        parts.append(s)
        size += len(s)
    return "".join(parts)[:n]


class Blocks(Dataset):
    def __init__(self, codes, block, stride):
        self.windows = codes.unfold(0, block, stride).contiguous()

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        return {"input_ids": self.windows[i], "labels": self.windows[i]}


def stack(items):
    ids = torch.stack([item["input_ids"] for item in items])
    return {"input_ids": ids, "labels": ids}


class Clock(TrainerCallback):
    def __init__(self, seconds):
        self.seconds, self.start, self.held_out = seconds, None, []

    def on_step_begin(self, args, state, control, **kwargs):
        if self.start is None:
            self.start = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        if time.monotonic() - self.start > self.seconds:
            control.should_training_stop = True

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        self.held_out.append(metrics["eval_loss"])


def build_trainer(plan, out):
    rng = random.Random(141)
    text, other = cook(plan.train_chars, rng), cook(plan.held_out_chars, rng)
    alphabet = {c: i for i, c in enumerate(sorted(set(text)))}
    train, held_out = (torch.tensor([alphabet[c] for c in s]) for s in (text, other))
    config = GPT2Config(vocab_size=len(alphabet), n_positions=plan.block, n_embd=96, n_layer=2, n_head=4,
                        bos_token_id=0, eos_token_id=0)
    args = TrainingArguments(
        output_dir=out,
        max_steps=100_000,
        per_device_train_batch_size=plan.batch,
        per_device_eval_batch_size=32,
        eval_strategy="steps",
        eval_steps=plan.eval_every,
        logging_steps=plan.log_every,
        save_strategy="no",
        prediction_loss_only=True,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        log_level="error",
    )
    clock = Clock(plan.seconds)
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=args,
        data_collator=stack,
        train_dataset=Blocks(train, plan.block, 16),
        eval_dataset=Blocks(held_out, plan.block, plan.block),
        callbacks=[clock],
    )
    return trainer, clock


def main():
    set_seed(141)
    plan = Plan()
    with tempfile.TemporaryDirectory() as out:
        trainer, clock = build_trainer(plan, out)
        trainer.train()
    if clock.held_out:
        print(f"best held-out loss {min(clock.held_out):.4f}")
    print(f"steps: {trainer.state.global_step}")


if __name__ == "__main__":
    main()
