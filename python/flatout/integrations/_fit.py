"""One fit of a trainer: recorded from its first step on, reported and logged at its end. Nothing that fails here touches the training."""

import atexit
import os
import sys

from .. import _trackers
from .._watch import Watch, warn


# The fit under way. A trainer that raises may not say so to its callbacks.
_current = None


def end_current():
    """Reports a fit that raised."""
    if _current is not None:
        _current.end(failed=True)


class Fit:
    def __init__(self, name, language):
        self.name, self.language = name, language
        self.watch = None
        self.mlflow = None

    def start(self):
        global _current
        # One that raised: its report comes now, and its record does not stand in the way of this one's.
        end_current()
        if os.environ.get("FLATOUT_RING"):
            warn("this program runs under `flatout run` already, which records it; the callback does nothing")
            return
        try:
            self.watch = Watch(self.name, self.language)
        except Exception as error:
            warn("this training runs without a record: {}".format(error))
            return
        _current = self
        self.mlflow = _trackers.mlflow_run()
        atexit.register(end_current)

    def end(self, failed, log=None):
        """Prints the report and logs it to the trackers that are under way; `log` gets it, too."""
        global _current
        watch, self.watch = self.watch, None
        if watch is None:
            return None
        _current = None
        atexit.unregister(end_current)
        try:
            found = watch.end(failed)
        except Exception as error:
            warn("no report of this training: {}".format(error))
            return None
        if not found["steps"]:
            warn("no training step was seen. Record: {}".format(found["record"]))
            return found
        print("\n" + found["text"], file=sys.stderr)
        print("flatout: {} steps recorded in {}".format(found["steps"], found["record"]), file=sys.stderr)
        report = found["tracking"]
        for name, error in _trackers.log_active(report, self.mlflow):
            self.told(name, error)
        if log is not None:
            for name, error in log(report):
                self.told(name, error)
        return found

    def told(self, name, error):
        if error is None:
            print("flatout: logged to {}".format(name), file=sys.stderr)
        else:
            warn("not logged to {}: {}".format(name, _trackers.reason(error)))
