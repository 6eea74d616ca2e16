"""Pretrain a small GPT-2 on support tickets with the Hugging Face Trainer."""
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

device = "cuda" if torch.cuda.is_available() else "cpu"
GPU = device == "cuda"
torch.set_float32_matmul_precision("high")
set_seed(17)

SEQ = 512 if GPU else 32
VOCAB = 16384 if GPU else 256
BATCH = 32 if GPU else 4


class Tickets(Dataset):
    """Tokenised tickets, packed to a fixed length."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        starts = torch.randint(0, VOCAB, (n, 1), generator=g)
        strides = torch.randint(1, 17, (n, 1), generator=g)
        self.ids = (starts + strides * torch.arange(SEQ)) % VOCAB

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i]
        return {"input_ids": ids, "labels": ids}


class Stopwatch(TrainerCallback):
    def __init__(self, limit):
        self.limit = limit

    def on_train_begin(self, args, state, control, **kwargs):
        self.t0 = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        if time.monotonic() - self.t0 > self.limit:
            control.should_training_stop = True

    def on_train_end(self, args, state, control, **kwargs):
        dt = time.monotonic() - self.t0
        print(f"{state.global_step} steps, {state.global_step * BATCH * SEQ / dt:,.0f} tokens/s")


config = GPT2Config(
    vocab_size=VOCAB,
    n_positions=SEQ,
    n_embd=1024 if GPU else 32,
    n_layer=12 if GPU else 2,
    n_head=16 if GPU else 2,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    use_cache=False,
    bos_token_id=0,
    eos_token_id=0,
)

args = TrainingArguments(
    output_dir=tempfile.mkdtemp(prefix="tickets_"),
    per_device_train_batch_size=BATCH,
    max_steps=100_000,
    learning_rate=3e-4,
    weight_decay=0.1,
    warmup_steps=100,
    lr_scheduler_type="cosine",
    optim="adamw_torch_fused",
    bf16=GPU,
    gradient_checkpointing=False,
    dataloader_num_workers=4 if GPU else 0,
    dataloader_drop_last=True,
    logging_steps=100,
    logging_nan_inf_filter=False,
    save_strategy="no",
    eval_strategy="no",
    report_to=[],
    disable_tqdm=True,
    seed=17,
)

model = GPT2LMHeadModel(config)
print(f"{model.num_parameters() / 1e6:.1f}M parameters")
trainer = Trainer(model=model, args=args, train_dataset=Tickets(20_000 if GPU else 400), callbacks=[Stopwatch(18)])
trainer.train()
