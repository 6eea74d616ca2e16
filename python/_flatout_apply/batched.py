"""`loader.batched`: whole batches where the data set allows it. Each plan is compared with the program's own way before it is used: on
samples from all over the data, and on the first batches. One difference turns it off."""

from time import perf_counter_ns

from torch.utils.data import default_collate

from _flatout_probe import guard

from .same import same
from .whole import NoPlan, plan_of

# Samples over the whole data that are compared before the first batch, and batches that are compared before a plan is trusted.
SPREAD, PROVED = 32, 2


class Plan:
    """A way to fetch whole batches of one data set. `reason` says why it is not used."""

    def __init__(self, dataset, collate):
        self.reason, self.proofs = None, 0
        self.own_ns = self.whole_ns = 0
        try:
            if collate is not default_collate:
                raise NoPlan("own-collate")
            self.whole = plan_of(dataset)
            self.compare_spread(dataset)
        except NoPlan as reason:
            self.reason = str(reason)
        except Exception as error:
            self.reason = reason_of(error)

    def compare_spread(self, dataset):
        """The first and last samples, and some between."""
        count = len(dataset)
        indices = sorted({round(at * (count - 1) / (SPREAD - 1)) for at in range(SPREAD)}) if count > 0 else []
        if not indices:
            raise NoPlan("empty")
        if not same(self.whole(indices), default_collate([dataset[index] for index in indices])):
            raise NoPlan("differs")

    def fetch(self, indices, own):
        """The batch; `own` fetches it the program's way."""
        if self.proofs < PROVED:
            return self.prove(indices, own)
        try:
            return self.whole(indices)
        except Exception as error:
            # The program's own way gives the batch, or the error that it has alone.
            self.reason = reason_of(error)
            return own(indices)

    def prove(self, indices, own):
        begin = perf_counter_ns()
        batch = own(indices)
        middle = perf_counter_ns()
        try:
            found = self.whole(indices)
            self.whole_ns = perf_counter_ns() - middle
            self.own_ns, self.proofs = middle - begin, self.proofs + 1
            if not same(found, batch):
                self.reason = "differs"
        except Exception as error:
            self.reason = reason_of(error)
        return batch


def reason_of(error):
    kind = type(error).__name__
    return str(error) if kind in ("NoPlan", "NotPlain") else "differs" if isinstance(error, (TypeError, ValueError, IndexError)) else kind


# By the data set's id.
_plans = {}


def plan_for(dataset, collate, make=Plan):
    """The plan for a data set, made once. The data set is held, so that its id stays its own."""
    found = _plans.get(id(dataset))
    if found is None or found[0] is not dataset or found[1] is not collate:
        if len(_plans) > 100:
            _plans.clear()
        found = _plans[id(dataset)] = dataset, collate, make(dataset, collate)
    return found[2]


def install(tell, make=None):
    """Puts it in force for every loader of the process and its forked workers. `tell(reason)` is called once per data set, with None where
    it is in force. `make` makes the plan for a data set."""
    from torch.utils.data._utils import fetch

    cls = fetch._MapDatasetFetcher
    original = cls.fetch

    @guard.like(original)
    def fetched(self, indices):
        plan = self.__dict__.get("_flatout_plan")
        if plan is None:
            plan = self._flatout_plan = begin(self, tell, make or Plan)
        if plan.reason is not None or type(indices) is not list:
            return original(self, indices)
        batch = plan.fetch(indices, lambda asked: original(self, asked))
        if plan.proofs <= PROVED:
            tell(plan.reason)
        return batch

    cls.fetch = fetched


class Off:
    def __init__(self, reason):
        self.reason, self.proofs = reason, 0


def begin(fetcher, tell, make):
    if guard.off or not fetcher.auto_collation:
        return Off("no-batching")
    plan = plan_for(fetcher.dataset, fetcher.collate_fn, make)
    if plan.reason is not None:
        tell(plan.reason)
    return plan
