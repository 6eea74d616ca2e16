"""Language model over menus with the Hugging Face Trainer."""
import os
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

CUDA = torch.cuda.is_available()
LENGTH, VOCAB = (512, 16_000) if CUDA else (32, 500)


class Menus(Dataset):
    def __init__(self, n=4000):
        g = torch.Generator().manual_seed(3)
        self.ids = torch.randint(0, VOCAB, (n, LENGTH), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class Watch(TrainerCallback):
    def __init__(self):
        self.limit = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
        self.start = None

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 5:
            self.start = time.time()
        if self.start and time.time() - self.start > self.limit:
            print(f"{(state.global_step - 5) / (time.time() - self.start):.2f} steps/s")
            control.should_training_stop = True
        return control


def build_model():
    size = dict(n_embd=1024, n_layer=12, n_head=16) if CUDA else dict(n_embd=64, n_layer=2, n_head=2)
    config = GPT2Config(vocab_size=VOCAB, n_positions=LENGTH, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **size)
    return GPT2LMHeadModel(config)


def main():
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            max_steps=100_000,
            per_device_train_batch_size=16 if CUDA else 4,
            learning_rate=2e-4,
            optim="adamw_torch_fused" if CUDA else "adamw_torch",
            bf16=False,
            tf32=False if CUDA else None,
            dataloader_num_workers=4 if CUDA else 0,
            dataloader_persistent_workers=CUDA,
            dataloader_pin_memory=CUDA,
            logging_steps=50,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=0,
        )
        trainer = Trainer(model=build_model(), args=args, train_dataset=Menus(), callbacks=[Watch()])
        trainer.train()


if __name__ == "__main__":
    main()
