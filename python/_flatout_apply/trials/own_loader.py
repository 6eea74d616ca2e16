"""Loaders of our own over the program's data, for what a trial asks of other workers than the program has."""

import gc
import os
import resource

from _flatout_probe.patches import loader

from ..available import available_bytes

# Batches that wait for each worker's turn, unless the program asks for another number.
PREFETCH = 2
# A worker that gives no batch for so long is given up.
PATIENCE_S = 5


def suitable(torch, samples):
    """The one loader that feeds the steps, if its data can be asked for by index, a step takes one batch of it, its workers are
    forked and there is memory for them, shared memory too."""
    ours = [one for one, info in loader.known() if info.feeds]
    if len(ours) != 1 or not by_index(ours[0]):
        return None
    one = ours[0]
    # Several batches a step, or sizes that are no number of samples, would be taken for larger batches.
    plain = getattr(one.batch_sampler, "batch_size", None) == samples
    plain = plain and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < available_bytes() / 2
    return one if plain and is_forked(torch, one) and has_shared_memory() else None


def has_shared_memory():
    """Whether half of what batches are handed over in is free: the program's own workers end where it is full."""
    try:
        shared = os.statvfs("/dev/shm")
    except OSError:
        return False
    return shared.f_bavail * 2 >= shared.f_blocks


def by_index(one):
    """Whether its data can be asked for by index, in batches."""
    from torch.utils.data import IterableDataset

    return one.batch_sampler is not None and not isinstance(one.dataset, IterableDataset)


def is_forked(torch, one):
    """Whether its workers are: others would run the program's beginning once more."""
    return (one.multiprocessing_context or torch.multiprocessing).get_start_method() == "fork"


def endless(batches):
    """The indices in them, from the beginning again at the end, as long as there are any."""
    found = True
    while found:
        found = False
        for batch in batches:
            for index in batch:
                found = True
                yield index


def batches(one, size):
    """Its samples in the program's own order, in batches of the size that `size()` gives at the time, without an end: workers that
    run out of work would leave the others more room."""
    batch = []
    for index in endless(one.batch_sampler):
        batch.append(index)
        if len(batch) >= size():
            yield batch
            batch = []


def prefetched(one):
    return one.prefetch_factor or PREFETCH


def frozen(begin):
    """What a worker begins with; before that, what it has from the program is put where no collection of garbage walks it."""

    def begin_frozen(worker):
        gc.freeze()
        if begin is not None:
            begin(worker)

    return begin_frozen


def over(torch, one, count, batches, pin_memory, freeze):
    """Goes over these batches with so many workers."""
    more = {}
    if count:
        begin = frozen(one.worker_init_fn) if freeze else one.worker_init_fn
        more = {"timeout": PATIENCE_S, "worker_init_fn": begin, "prefetch_factor": prefetched(one)}
        more["multiprocessing_context"] = one.multiprocessing_context
    made = torch.utils.data.DataLoader(
        one.dataset, batch_sampler=batches, num_workers=count, collate_fn=one.collate_fn, pin_memory=pin_memory, **more
    )
    return iter(made)
