"""What it takes to make a batch in this process, with nobody beside: where workers make them, their own time holds what disturbs them."""

from time import perf_counter_ns

from .own_loader import by_index

# Batches and seconds that are enough; a part of a batch that takes longer than the last is the only one.
ENOUGH, ENOUGH_S, TOO_LONG_S = 5, 0.3, 0.5


def sizes(torch, loader, parts):
    """Samples and seconds for batches of these sizes, the smallest first; none for data that cannot be asked for by index."""
    sampler, dataset = loader.batch_sampler, loader.dataset
    if not by_index(loader):
        return []
    threads, told = torch.get_num_threads(), []
    # As in a worker.
    torch.set_num_threads(1)
    try:
        for part in parts:
            samples, seconds = taken(loader, dataset, iter(sampler), part)
            told.append((samples, seconds))
            if seconds > TOO_LONG_S:
                break
    except Exception:
        # Data that only a worker can read.
        return []
    finally:
        torch.set_num_threads(threads)
    return told


def taken(loader, dataset, batches, part):
    """Of whole batches: an epoch's last may be smaller."""
    each, begun, whole = [], perf_counter_ns(), 0
    for indices in batches:
        indices = list(indices)[:part]
        whole = whole or len(indices)
        if len(indices) < whole:
            break
        begin = perf_counter_ns()
        many = getattr(dataset, "__getitems__", None)
        loader.collate_fn(many(indices) if many else [dataset[index] for index in indices])
        end = perf_counter_ns()
        each.append((end - begin) / 1e9)
        if (len(each) >= ENOUGH and end - begun >= ENOUGH_S * 1e9) or end - begun >= TOO_LONG_S * 1e9:
            break
    # The first one is cold, where there are others.
    warm = sorted(each[1:] or each)
    return whole, warm[len(warm) // 2]
