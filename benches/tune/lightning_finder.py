"""Lightning's batch-size finder on the MLP of `programs/interactions_mlp.py`: the batch it chooses, and how long it took.

    python benches/tune/lightning_finder.py --seconds 60

It doubles the batch until memory is full; where memory does not end (a CPU), the trials do. `measure.py` measures the
batch it gives as it measures every other point.
"""

import argparse
import importlib.util
import json
import pathlib
import time

import pytorch_lightning as lightning
import torch
from pytorch_lightning.tuner import Tuner
from torch import nn
from torch.utils.data import DataLoader

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "interactions_mlp.py"


def program():
    spec = importlib.util.spec_from_file_location("interactions_mlp", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Model(lightning.LightningModule):
    def __init__(self, original):
        super().__init__()
        self.batch_size, self.table = 128, original.Table()
        parts = [nn.Linear(128, original.width), nn.ReLU()]
        for _ in range(original.layers - 1):
            parts += [nn.Linear(original.width, original.width), nn.ReLU()]
        self.model = nn.Sequential(*parts, nn.Linear(original.width, 3))

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.binary_cross_entropy_with_logits(self.model(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def train_dataloader(self):
        return DataLoader(self.table, batch_size=self.batch_size, shuffle=True, num_workers=0)


class Deadline(lightning.Callback):
    """The finder knows no time limit: the step that comes after it ends the search."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def on_train_batch_start(self, *_):
        if time.monotonic() > self.end:
            raise TimeoutError


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    model, began = Model(program()), time.monotonic()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_steps=-1, callbacks=[Deadline(arguments.seconds)], **quiet)
    try:
        Tuner(trainer).scale_batch_size(model, mode="power", steps_per_trial=3, init_val=128, max_trials=12)
        ended = "by itself"
    except TimeoutError:
        ended = "out of time"
    print(json.dumps({"batch": model.batch_size, "seconds": time.monotonic() - began, "ended": ended}))


if __name__ == "__main__":
    main()
