"""The file through which the probe speaks to `flatout run`: counters that are added to in place, then a ring of messages.

One file a process, one writer, one reader, no locks across processes. The layout is that of crates/flatout-run/src/ring/layout.rs:
64-bit little-endian words, then the ring: (length: u32, sequence: u32, JSON), each padded to 8 bytes.
The file's blocks are allocated before use, because writing to a map on a full disk would kill the program.
"""

import json
import mmap
import os
import struct
import threading
import time
from collections import deque

SIZE, DATA_AT = 128 * 1024, 32 * 1024
CAPACITY = SIZE - DATA_AT
MAGIC = int.from_bytes(b"FLATOUT1", "little")
(W_MAGIC, W_VERSION, W_PID, W_CREATED, W_HEAD, W_TAIL, W_DROPPED, W_CLOSED, W_PHASE, W_SINCE) = range(10)
(W_STEPS, W_BATCHES, W_SAMPLES, W_LOSS, W_LOSSES, W_BUSY, W_BUSY_STEPS, W_GC, W_GC_NS, W_EVAL_BATCHES) = range(10, 20)
# While the loop coasts: when the phase under way began, times eight, plus the phase; else 0, and `W_PHASE` and `W_SINCE` say it.
W_LIVE = 20
# For whoever takes samples: one more than the phase that a read, a copy or a presumed evaluation under way will be charged to; 0 for none.
W_WITHIN = 21
W_GPU_UTIL = 24  # written by the reader: parts per million plus one, 0 unknown
W_WINDOW = 25  # written by the reader: the number of the GPU window that should be open, 0 for none
# Collectives of the default group that ended, time in all collectives; the site of the one under way (0 for none), and since when.
W_COLLECTIVES, W_COLLECTIVE_NS, W_IN_COLLECTIVE, W_IN_SINCE = 26, 27, 28, 29
W_SUMS = 32
W_HIST = 40
BUCKETS = 384
STEP_HIST = 7
W_LOADERS = W_HIST + 8 * BUCKETS
LOADER_SLOTS, LOADER_WORDS = 16, 8
# Of a loader's words: preparing (data set, collate, batches), its number plus one, then what the training thread took
# (batches, wait) for training and for evaluation.
L_FETCH, L_COLLATE, L_PREPARED, L_NUMBER, L_BATCHES, L_WAIT, L_EVAL_BATCHES, L_EVAL_WAIT = range(8)
# The last collectives, each in the slot of its number: the number plus one, the site, when this rank arrived, when it left.
W_SLOTS = W_LOADERS + LOADER_SLOTS * LOADER_WORDS
SLOTS, SLOT_WORDS = 192, 4
WORDS = DATA_AT // 8
LONGEST = 8 * 1024
SKIP = 0xFFFFFFFF

_pack = struct.Struct("<II").pack_into


def private_words():
    """Counters that nobody reads yet: until something worth telling happens there is no file."""
    return memoryview(bytearray(DATA_AT)).cast("Q")


def mapping(descriptor):
    """The file in memory. Python's own `mmap` keeps a descriptor, before 3.13 in any case, and closes it at the end: the program's files
    would have other numbers, and where it closes all of them (a daemon does) one of its own would be closed with the map."""
    try:
        import ctypes

        function = ctypes.CDLL(None, use_errno=True).mmap
    except (ImportError, OSError, AttributeError):
        return mmap.mmap(descriptor, SIZE)
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    address = function(None, SIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    # Never unmapped: a process has one, and each fork of it one more.
    return memoryview((ctypes.c_ubyte * SIZE).from_address(address)).cast("B")


class Ring:
    def __init__(self):
        self.words = private_words()
        self.bytes = None
        self.sequence = 0
        self.pending = deque(maxlen=4096)
        self.writing = threading.Lock()

    @property
    def is_open(self):
        return self.bytes is not None

    def open(self, folder, hello):
        """Makes the file and moves the counters into it. Raises OSError when there is no room."""
        created = time.perf_counter_ns()
        name = os.path.join(folder, "%d-%d" % (os.getpid(), created))
        descriptor = os.open(name + ".new", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, SIZE)
            mapped = mapping(descriptor)
        except BaseException:
            os.unlink(name + ".new")
            raise
        finally:
            os.close(descriptor)
        whole = memoryview(mapped)
        words = whole[:DATA_AT].cast("Q")
        words[:] = self.words
        words[W_VERSION], words[W_PID], words[W_CREATED] = 1, os.getpid(), created
        words[W_MAGIC] = MAGIC
        self.words, self.bytes = words, whole
        self.pending.appendleft(hello)
        self.drain()
        os.rename(name + ".new", name + ".ring")

    def emit(self, message):
        """Never blocks: a message that comes while another is being written (a signal handler, a thread) waits in line."""
        self.pending.append(message)
        if self.bytes is not None:
            self.drain()

    def drain(self):
        while self.pending and self.writing.acquire(False):
            try:
                while self.pending:
                    self.write(self.pending.popleft())
            finally:
                self.writing.release()

    def write(self, message):
        text = json.dumps(message, separators=(",", ":"), default=str).encode("utf-8", "replace")
        words, view = self.words, self.bytes
        need = (8 + len(text) + 7) & ~7
        head = words[W_HEAD]
        at = head % CAPACITY
        gap = CAPACITY - at if at + need > CAPACITY else 0
        if len(text) > LONGEST or head + gap + need - words[W_TAIL] > CAPACITY:
            words[W_DROPPED] += 1
            return
        if gap:
            _pack(view, DATA_AT + at, SKIP, self.sequence & 0xFFFFFFFF)
            head, at = head + gap, 0
        _pack(view, DATA_AT + at, len(text), self.sequence & 0xFFFFFFFF)
        view[DATA_AT + at + 8 : DATA_AT + at + 8 + len(text)] = text
        self.sequence += 1
        words[W_HEAD] = head + need
