"""The files of a trial. A trial is a rehearsal: it must leave the checkpoints of earlier runs alone, and the program must still be able
to read back whatever it saves.

Until the first step the program's files are its own, except that a checkpoint that exists already is not replaced. From the first step
on, checkpoints are written to the trial's folder (`root` + the absolute path), which is removed with the trial. Every function below
that takes a path looks there first, in every process of the trial. A checkpoint is what a saving function of torch or safetensors
writes, a file with one of the `SUFFIXES`, and everything in a folder that is named after checkpoints.

Only Python's own functions are changed, and only in trials of `flatout tune`.
"""

import builtins
import io
import mmap
import os
import shutil
import time

SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".distcp", ".pkl", ".pickle", ".joblib", ".tar")
# The index of torch.distributed.checkpoint.
NAMES = (".metadata", ".metadata.tmp")
FOLDERS = ("checkpoint", "ckpt")
# Functions that only look at a path or change what is there, with the path as their first argument.
LOOKING = ("stat", "lstat", "access", "chmod", "chown", "utime", "truncate", "readlink", "listxattr", "getxattr", "setxattr", "statvfs", "rmdir")

root = None
# The program trains: its first step is done.
begun = False
# One byte that all processes of the trial share: whether anything is in the folder.
_used = bytearray(1)
# Folders and files that the program removed and that were there before the trial: left alone, and gone for the program.
_spared = set()
_started = 0.0
_lexists = os.path.lexists


class Replacement:
    """In the place of a built-in function. Not a Python function: as a class attribute it must not become a method."""

    def __init__(self, original, call):
        self.original, self.call = original, call
        self.__name__ = self.__qualname__ = original.__name__
        self.__doc__ = original.__doc__
        self.__module__ = "io" if original is _original["open"] else "os"

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)

    def __reduce__(self):
        return self.__name__


_original = {name: getattr(os, name) for name in LOOKING if hasattr(os, name)}
_original.update({"open": builtins.open, "os.open": os.open, "mkdir": os.mkdir, "listdir": os.listdir, "scandir": os.scandir})
_original.update({name: getattr(os, name) for name in ("rename", "replace", "remove", "unlink", "link", "symlink")})
_rmtree = shutil.rmtree


def install(folder, shared):
    """`folder` takes what is saved; `shared` is a file of one byte."""
    global root, _used, _started
    if root is not None:
        return
    handle = _original["os.open"](shared, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.ftruncate(handle, 1)
    _used = mmap.mmap(handle, 1)
    os.close(handle)
    _started = time.time()
    for name in LOOKING:
        if name in _original:
            put(os, name, looking(_original[name]))
    builtins.open = io.open = Replacement(_original["open"], opened)
    put(os, "open", opened_low)
    for call in (mkdir, listdir, scandir, remove, link, symlink):
        put(os, call.__name__, call)
    put(os, "unlink", remove)
    put(os, "rename", renaming("rename"))
    put(os, "replace", renaming("replace"))
    shutil.rmtree = Replacement(_rmtree, rmtree)
    shutil.rmtree.__module__, shutil.rmtree.avoids_symlink_attacks = "shutil", _rmtree.avoids_symlink_attacks
    root = folder


def put(module, name, call):
    original = getattr(module, name)
    made = Replacement(original, call)
    for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if original in known:
            known.add(made)
    setattr(module, name, made)


def there(path):
    """The path's double in the trial's folder; None for what has none."""
    if root is None or isinstance(path, int):
        return None
    try:
        path = os.path.abspath(os.fsdecode(path))
    except (TypeError, ValueError, OSError):
        return None
    return None if (path + "/").startswith(root + "/") else root + path


def shown(path):
    """Where the file of this path is: in the trial's folder if the program put it there."""
    if not _used[0]:
        return path
    double = there(path)
    if double is not None and (held(double) or double in _spared):
        return double
    return path


def held(double):
    try:
        _original["lstat"](double)
        return True
    except (OSError, ValueError):
        return False


def exists(path):
    try:
        _original["stat"](path)
        return True
    except (OSError, ValueError):
        return False


def is_checkpoint(path):
    try:
        folder, name = os.path.split(os.fsdecode(path))
    except (TypeError, ValueError):
        return False
    return name.lower().endswith(SUFFIXES) or name in NAMES or is_named(os.path.basename(folder))


def is_named(folder):
    """Whether a folder is for checkpoints, by its name."""
    return any(word in folder.lower() for word in FOLDERS)


def target(path, checkpoint=True):
    """Where a file is to be written that the program wants at this path."""
    double = there(path)
    if double is None:
        return path
    real = double[len(root) :]
    parent, real_parent = os.path.dirname(double), os.path.dirname(real)
    made_here = _used[0] and held(parent) and not exists(real_parent)
    if not made_here and not (held(double) or double in _spared):
        present = exists(real)
        if not checkpoint or not (begun or present) or present and not os.path.isfile(real):
            return path
        if not exists(real_parent):
            # The program's own error.
            return path
    _used[0] = 1
    os.makedirs(parent, exist_ok=True)
    return double


def opened(file, mode="r", *args, **kwargs):
    if isinstance(mode, str) and any(letter in mode for letter in "wax+"):
        file = writable(file, "w" in mode or "x" in mode)
    else:
        file = shown(file)
    return _original["open"](file, mode, *args, **kwargs)


def opened_low(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is None:
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        path = writable(path, flags & os.O_TRUNC) if writes else shown(path)
    return _original["os.open"](path, flags, mode, dir_fd=dir_fd)


def writable(path, anew):
    """As `target`, with what the file holds so far."""
    if not _used[0] and not is_checkpoint(path):
        return path
    double = target(path, is_checkpoint(path))
    if double is not path and not anew and not held(double) and double not in _spared and exists(path):
        shutil.copyfile(double[len(root) :], double)
    return double


def looking(original):
    def look(path, *args, **kwargs):
        if _used[0] and kwargs.get("dir_fd") is None:
            path = shown(path)
        return original(path, *args, **kwargs)

    return look


def mkdir(path, mode=0o777, *, dir_fd=None):
    double = there(path) if dir_fd is None and begun else None
    if double is not None:
        parent, name = os.path.split(double)
        above = os.path.dirname(double[len(root) :])
        named = is_named(name) and exists(above)
        inside = _used[0] and held(parent) and not exists(above)
        if double in _spared or held(double) or (named or inside) and not exists(path):
            _used[0] = 1
            os.makedirs(parent, exist_ok=True)
            return _original["mkdir"](double, mode)
    return _original["mkdir"](path, mode, dir_fd=dir_fd)


def listdir(path="."):
    double = there(path) if _used[0] else None
    if double is None or not held(double):
        return _original["listdir"](path)
    names = _original["listdir"](double)
    own = _original["listdir"](path) if double not in _spared and exists(path) else []
    names = [os.fsencode(name) for name in names] if isinstance(path, bytes) else names
    return names + [name for name in own if name not in names and not gone(double, name)]


def scandir(path="."):
    double = there(path) if _used[0] else None
    if double is None or not held(double):
        return _original["scandir"](path)
    own = path if double not in _spared and exists(path) else None
    return Entries(double, own)


def gone(double, name):
    return os.path.join(double, os.fsdecode(name)) in _spared


class Entries:
    """What `os.scandir` gives, of both folders."""

    def __init__(self, double, own):
        with _original["scandir"](double) as entries:
            found = list(entries)
        names = {entry.name for entry in found}
        if own is not None:
            with _original["scandir"](own) as entries:
                found += [entry for entry in entries if entry.name not in names and not gone(double, entry.name)]
        self.found = iter(found)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.found)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self.found = iter(())


def remove(path, *, dir_fd=None):
    double = there(path) if dir_fd is None else None
    if double is not None and _used[0] and held(double):
        return _original["remove"](double)
    if double is not None and begun and is_checkpoint(path) and older(path):
        return spare(double)
    return _original["remove"](path, dir_fd=dir_fd)


def spare(double):
    _used[0] = 1
    _spared.add(double)


def older(path):
    """Whether it was there before this trial."""
    try:
        return _original["lstat"](path).st_ctime < _started
    except (OSError, ValueError):
        return False


def rmtree(path, *args, **kwargs):
    double = there(path) if begun or _used[0] else None
    if double is not None:
        if held(double):
            _rmtree(double)
            if not exists(path):
                return None
        if begun and any(older(file) for file in checkpoints_in(path)):
            return spare(double)
    return _rmtree(path, *args, **kwargs)


def checkpoints_in(folder):
    for above, _, names in os.walk(folder):
        for name in names:
            if is_checkpoint(name):
                yield os.path.join(above, name)


def renaming(name):
    original = _original[name]

    def rename(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
        if src_dir_fd is not None or dst_dir_fd is not None or not (_used[0] or is_checkpoint(dst)):
            return original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        source = shown(src)
        ours = source is not src or there(src) is None
        double = there(dst)
        goal = target(dst, checkpoint=ours or is_checkpoint(dst))
        if ours and double is not None and goal is dst:
            # A folder, or a file that the program saved before its first step.
            goal = double
            os.makedirs(os.path.dirname(double), exist_ok=True)
        if goal is dst or ours:
            return original(source, goal)
        try:
            return original(source, goal)
        except OSError:
            # The trial's folder may be on another disk.
            shutil.copyfile(source, goal)
            return _original["remove"](source)

    return rename


def link(src, dst, *, src_dir_fd=None, dst_dir_fd=None, follow_symlinks=True):
    if src_dir_fd is None and dst_dir_fd is None and shown(src) is not src:
        return _original["link"](shown(src), target(dst), follow_symlinks=follow_symlinks)
    return _original["link"](src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks)


def symlink(src, dst, target_is_directory=False, *, dir_fd=None):
    if dir_fd is None and (_used[0] or is_checkpoint(dst)):
        goal = target(dst, is_checkpoint(dst) or is_checkpoint(src))
        if goal is not dst:
            # Relative ones lead out of the trial's folder where their file is not in it.
            beside = os.path.join(os.path.dirname(os.path.abspath(os.fsdecode(dst))), os.fsdecode(src))
            return _original["symlink"](shown(beside), goal)
    return _original["symlink"](src, dst, target_is_directory, dir_fd=dir_fd)
