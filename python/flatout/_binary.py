"""Where the `flatout` program is: next to this package, or on the PATH."""

import os
import shutil
import sys
import sysconfig


class Missing(RuntimeError):
    """There is no program to start."""

    def __init__(self):
        super().__init__("the flatout program was not found; install it with `pip install flatout`, or set FLATOUT_BINARY to its path")


def find():
    """The program's path. Raises `Missing`."""
    chosen = os.environ.get("FLATOUT_BINARY")
    if chosen:
        if os.access(chosen, os.X_OK):
            return chosen
        raise Missing
    # The environment's own first: another flatout on the PATH may be of another version.
    for folder in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
        path = os.path.join(folder or "", "flatout")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("flatout")
    if not found:
        raise Missing
    return found
