"""One fit of a trainer: recorded from its first step on, reported and logged at its end. Nothing that fails here touches the training."""

import os
import sys

from .. import _trackers
from .._watch import Watch, warn


class Fit:
    def __init__(self, name, language):
        self.name, self.language = name, language
        self.watch = None

    def start(self):
        if self.watch is not None:
            return
        if os.environ.get("FLATOUT_RING"):
            warn("this program runs under `flatout run` already, which records it; the callback does nothing")
            return
        try:
            self.watch = Watch(self.name, self.language)
        except Exception as error:
            warn("this training runs without a record: {}".format(error))

    def end(self, failed, log=None):
        """Prints the report and logs it to the trackers that are under way; `log` gets it, too."""
        watch, self.watch = self.watch, None
        if watch is None:
            return None
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
        for name, error in _trackers.log_active(report):
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
