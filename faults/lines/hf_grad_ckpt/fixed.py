"""Small Llama-style language model trained from scratch with the HF Trainer."""
import tempfile
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments
from transformers import default_data_collator

CUDA = torch.cuda.is_available()
VOCAB = 512
SEQ = 256 if CUDA else 128


class Corpus(torch.utils.data.Dataset):
    """Random walks over the vocabulary, cut into blocks of SEQ tokens."""

    def __init__(self, n=4000, seed=0):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, VOCAB, (n, 1), generator=g)
        steps = torch.randint(-2, 3, (n, SEQ), generator=g)
        self.ids = (start + steps.cumsum(1)) % VOCAB

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


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
    width, depth = (512, 8) if CUDA else (128, 4)
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=width, intermediate_size=3 * width,
                         num_hidden_layers=depth, num_attention_heads=width // 64,
                         num_key_value_heads=width // 64, max_position_embeddings=SEQ, use_cache=False)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=64 if CUDA else 8,
        learning_rate=3e-4,
        warmup_steps=100,
        max_steps=1_000_000,
        logging_steps=100,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=CUDA,
    )
    trainer = Trainer(model=LlamaForCausalLM(config), args=args, train_dataset=Corpus(),
                      data_collator=default_data_collator, callbacks=[StopAfter(14)])
    trainer.train()


if __name__ == "__main__":
    main()
