"""Records a stretch of the process that calls it: a cell of a notebook, the fit of a trainer. The program runs already, so it loads the probe
by itself; `flatout notebook` watches from outside, as `flatout run` does."""

import ctypes
import json
import os
import select
import subprocess
import sys

from . import _binary

READY_S, REPORT_S = 20, 300
PR_SET_PTRACER = 0x59616D61


def warn(text):
    print("flatout: " + text, file=sys.stderr)


class Watch:
    """The process that records a stretch of this one, from its start to its report."""

    def __init__(self, name, language=""):
        self.environment = {}
        command = [_binary.find(), "notebook", "--pid", str(os.getpid()), "--name", name]
        if language:
            command += ["--lang", language]
        # A session of its own: interrupting the training is not interrupting this.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            # The kernel of Linux lets a child read its parent's stacks only if the parent says so.
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(self.process.pid), 0, 0, 0)
            ready = self.line(READY_S)
            self.load(ready["python"], ready["rings"])
        except BaseException:
            self.stop()
            raise

    def line(self, seconds):
        waiting, _, _ = select.select([self.process.stdout], [], [], seconds)
        text = self.process.stdout.readline() if waiting else b""
        if not text:
            self.process.kill()
            said = self.process.stderr.read().decode("utf-8", "replace").strip()
            raise RuntimeError(said or "`flatout notebook` does not answer")
        return json.loads(text)

    def load(self, python, rings):
        """Loads the probe, or turns the one that is here to the new record."""
        # For processes that are started meanwhile.
        path = os.environ.get("PYTHONPATH")
        for name, value in (("FLATOUT_RING", rings), ("PYTHONPATH", python + (os.pathsep + path if path else ""))):
            self.environment[name] = os.environ.get(name)
            os.environ[name] = value
        hooks = [finder for finder in sys.meta_path if hasattr(finder, "find_probe")]
        for hook in hooks:
            hook.folder = python
        clock = sys.modules.get("_flatout_probe.clock")
        if clock is None:
            if not hooks:
                source = os.path.join(python, "_flatout_probe", "hook.py")
                scope = {"__name__": "_flatout_probe.hook", "__file__": source}
                with open(source, "rb") as file:
                    exec(compile(file.read(), "<flatout>", "exec"), scope)
                scope["install"](python)
            return
        from _flatout_probe import begin, guard, windows

        # One that turned itself off stays off.
        if guard.told:
            raise RuntimeError(guard.told[0].splitlines()[0])
        clock.folder = rings
        windows._folder = os.path.join(python, "_flatout_probe")
        guard.off = False
        begin.forked()

    def stop(self):
        """Puts this process back as it was."""
        clock = sys.modules.get("_flatout_probe.clock")
        if clock is not None:
            clock.ended()
            sys.modules["_flatout_probe.guard"].off = True
            clock.folder = None
        for name, value in self.environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.environment = {}

    def end(self, failed):
        """What was found. Raises where nothing was."""
        try:
            self.stop()
            answer = b"failed\n" if failed else b"done\n"
            output, errors = self.process.communicate(answer, timeout=REPORT_S)
            lines = output.decode("utf-8", "replace").splitlines()
            if not lines:
                raise RuntimeError(errors.decode("utf-8", "replace").strip() or "no report came")
            return json.loads(lines[-1])
        finally:
            if self.process.poll() is None:
                self.process.kill()
