"""The same training under Hugging Face Trainer, Accelerate and Lightning: `python auto_frameworks.py NAME STEPS FILE`."""

import logging
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

NAME, STEPS, LOG = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "w")
ROWS, BATCH, WAIT = 640, 8, 0.002
logging.disable(logging.WARNING)


class Sleepy(Dataset):
    def __init__(self):
        self.x = torch.rand(ROWS, 8, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        time.sleep(WAIT)
        return {"x": self.x[index], "labels": self.x[index].sum().reshape(1)}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))

    def forward(self, x, labels):
        loss = (self.inner(x) - labels).square().mean()
        print(loss.item().hex(), x.sum().item().hex(), file=LOG, flush=True)
        return {"loss": loss}


def accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = Model()
    loader = DataLoader(Sleepy(), BATCH, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), 1e-3), loader)
    step = 0
    while step < STEPS:
        for batch in loader:
            accelerator.backward(model(**batch)["loss"])
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step >= STEPS:
                return


def trainer():
    from transformers import Trainer, TrainingArguments

    asked = TrainingArguments(
        "out", max_steps=STEPS, per_device_train_batch_size=BATCH, use_cpu=True, save_strategy="no", report_to=[], disable_tqdm=True, seed=3, logging_strategy="no"
    )
    Trainer(Model(), asked, train_dataset=Sleepy()).train()


def lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, number):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-3)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    made = lightning.Trainer(accelerator="cpu", max_steps=STEPS, max_epochs=-1, **quiet)
    made.fit(Module(), DataLoader(Sleepy(), BATCH, shuffle=True))


torch.manual_seed(0)
globals()[NAME]()
print("done", flush=True)
