"""A callback for the Trainer of Hugging Face transformers:

>>> from flatout.integrations.transformers import FlatoutCallback
>>> trainer = Trainer(..., callbacks=[FlatoutCallback()])
"""

import os

from transformers import TrainerCallback

from .. import _trackers
from ._fit import Fit, end_current


class FlatoutCallback(TrainerCallback):
    """Records `Trainer.train`, prints findings and account at its end, and adds them to the trackers of `report_to`."""

    def __init__(self, name="fit", lang=""):
        self._fit = Fit(name, lang)
        #: What was found, after the training: `record`, `steps`, `text`, `html`, `tracking`.
        self.report = None

    def on_init_end(self, args, state, control, **rest):
        # Before this trainer makes its optimizer: that is not one of the training that raised.
        end_current()

    def on_train_begin(self, args, state, control, **rest):
        if state.is_world_process_zero:
            self._fit.start()

    def on_train_end(self, args, state, control, **rest):
        if state.is_world_process_zero:
            self.report = self._fit.end(False, lambda found: log(args, found)) or self.report


def log(args, found):
    """W&B and MLflow have runs under way in this process and got everything already; TensorBoard has a folder."""
    trackers = args.report_to if isinstance(args.report_to, (list, tuple)) else [args.report_to]
    if "tensorboard" not in trackers:
        return
    try:
        from torch.utils.tensorboard import SummaryWriter

        folder = os.environ.get("TENSORBOARD_LOGGING_DIR") or getattr(args, "logging_dir", None) or os.path.join(args.output_dir, "runs")
        writer = SummaryWriter(os.path.join(folder, "flatout"))
        _trackers.into_tensorboard(writer, found)
        writer.close()
        yield "TensorBoard", None
    except Exception as error:
        yield "TensorBoard", error
