"""A callback for Lightning:

>>> from flatout.integrations.lightning import FlatoutCallback
>>> trainer = Trainer(callbacks=[FlatoutCallback()])
"""

from .. import _trackers
from ._fit import Fit

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback


class FlatoutCallback(Callback):
    """Records `Trainer.fit`, prints findings and account at its end, and adds them to the trainer's loggers."""

    def __init__(self, name="fit", lang=""):
        self._fit = Fit(name, lang)
        #: What was found, after the fit: `record`, `steps`, `text`, `html`, `tracking`.
        self.report = None

    def on_train_start(self, trainer, module):
        # One process speaks for all ranks; its own loader and its own steps are what it sees.
        if trainer.is_global_zero:
            self._fit.start()

    def on_train_end(self, trainer, module):
        self._end(trainer, failed=False)

    def on_exception(self, trainer, module, exception):
        self._end(trainer, failed=True)

    def _end(self, trainer, failed):
        if trainer.is_global_zero:
            self.report = self._fit.end(failed, lambda found: log(trainer, found)) or self.report


def log(trainer, found):
    """Every logger has `log_metrics`; TensorBoard's gets the curves and the text as well. Runs of W&B and MLflow that are under way in this
    process got everything already."""
    for logger in trainer.loggers:
        name = type(logger).__name__
        try:
            if name == "TensorBoardLogger":
                _trackers.into_tensorboard(logger.experiment, found)
            elif name == "MLFlowLogger":
                _trackers.into_mlflow(logger.experiment, logger.run_id, found)
            elif name != "WandbLogger":
                logger.log_metrics({key.replace("/", "_"): value for key, value in _trackers.scalars(found)}, trainer.global_step)
                logger.save()
            yield name, None
        except Exception as error:
            yield name, error
