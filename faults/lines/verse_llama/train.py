import os
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

CUDA = torch.cuda.is_available()
LENGTH, VOCAB = (1024, 16_000) if CUDA else (32, 300)


class Verses(Dataset):
    def __init__(self, n=8192 if CUDA else 128):
        self.tokens = torch.randint(0, VOCAB, (n, LENGTH), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i]


def collate(rows):
    tokens = torch.stack(rows)
    return {"input_ids": tokens, "labels": tokens}


class Until(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds
        self.begin = None

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 6:
            self.begin = time.time()
        elif self.begin and time.time() - self.begin > self.seconds:
            print(f"{(state.global_step - 6) / (time.time() - self.begin):.2f} steps/s")
            control.should_training_stop = True
        return control


if __name__ == "__main__":
    torch.manual_seed(0)
    size = dict(hidden_size=1536, intermediate_size=4096, num_hidden_layers=10, num_attention_heads=12)
    if not CUDA:
        size = dict(hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, max_position_embeddings=LENGTH, use_cache=False, **size))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder, max_steps=50_000, per_device_train_batch_size=16 if CUDA else 2, learning_rate=2e-4,
            bf16=CUDA, tf32=True if CUDA else None, optim="adamw_torch_fused" if CUDA else "adamw_torch",
            dataloader_num_workers=4 if CUDA else 0, dataloader_persistent_workers=CUDA, dataloader_pin_memory=CUDA,
            dataloader_drop_last=True, logging_steps=50, logging_nan_inf_filter=False, save_strategy="no", report_to=[],
            disable_tqdm=True, seed=0,
        )
        seconds = float(os.environ.get("FLATOUT_LOOP_SECONDS", 15))
        Trainer(model=model, args=args, train_dataset=Verses(), data_collator=collate, callbacks=[Until(seconds)]).train()
