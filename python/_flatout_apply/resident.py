"""`loader.resident`: the columns of an in-memory data set are copied to the GPU once, and batches are indexed there."""

from torch.utils.data import Subset, TensorDataset, default_collate

from . import batched, expression, whole
from .same import same

# Of the memory that is free, what the data may take.
SHARE = 0.5


def columns_of(dataset):
    """The tensors and arrays that a plan gathers from."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    if type(dataset) is TensorDataset:
        return list(dataset.tensors)
    if whole.is_column(dataset):
        return [dataset]
    return [value for value in vars(dataset).values() if whole.is_column(value)] if hasattr(dataset, "__dict__") else []


def size_of(columns):
    return sum(column.numel() * column.element_size() if hasattr(column, "numel") else column.nbytes for column in columns)


class Resident(batched.Plan):
    """A plan whose columns are on a device. Compared with the program's own batches like any other."""

    def __init__(self, torch, dataset, collate, device, free_bytes):
        self.torch, self.device, self.copies = torch, device, {}
        columns = columns_of(dataset)
        super().__init__(dataset, collate)
        if self.reason is None and not columns:
            self.reason = "data-kind"
        if self.reason is None and size_of(columns) > SHARE * free_bytes:
            self.reason = "does-not-fit"
        if self.reason is None:
            self.copies = {id(column): (column, torch.as_tensor(column).to(device)) for column in columns}
            self.on_host, self.whole = self.whole, self.on_device
            try:
                self.compare_spread(dataset)
            except Exception as error:
                self.reason = batched.reason_of(error)

    def on_device(self, indices):
        before, expression.moved = expression.moved, self.copies
        try:
            return self.on_host(indices)
        finally:
            expression.moved = before

    def compare_spread(self, dataset):
        if not self.copies:
            return super().compare_spread(dataset)
        count = len(dataset)
        indices = sorted({round(at * (count - 1) / (batched.SPREAD - 1)) for at in range(batched.SPREAD)})
        found = to_host(self.torch, self.whole(indices))
        if not same(found, default_collate([dataset[index] for index in indices])):
            raise whole.NoPlan("differs")

    def prove(self, indices, own):
        batch = own(indices)
        try:
            found = self.whole(indices)
            self.proofs += 1
            if same(to_host(self.torch, found), batch):
                return found
            self.reason = "differs"
        except Exception as error:
            self.reason = batched.reason_of(error)
        return batch


def to_host(torch, value):
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: to_host(torch, one) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_host(torch, one) for one in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_host(torch, one) for one in value)
    return value


def maker(torch):
    """Makes plans on the GPU that the program uses when the first batch is fetched."""

    def make(dataset, collate):
        if not torch.cuda.is_available():
            return batched.Off("no-cuda")
        device = torch.device("cuda", torch.cuda.current_device())
        return Resident(torch, dataset, collate, device, torch.cuda.mem_get_info(device)[0])

    return make
