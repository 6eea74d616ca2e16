//! The line to write into the source for a change.

use super::Change;
use flatout_core::{Message, message};
use flatout_record::RunData;

/// The location of the call that the change belongs to, and what to write there; `None` where no source line does it.
pub fn of(change: &Change, data: &RunData) -> Option<Message> {
    let value = change.setting.split('=').nth(1).unwrap_or("on");
    let (fact, code) = match change.key() {
        "loader.num_workers" => (
            Some("loader.num_workers"),
            format!("DataLoader(…, num_workers={value}, persistent_workers=True)"),
        ),
        "loader.pin_memory" => (
            Some("loader.pin_memory"),
            "DataLoader(…, pin_memory=True)".to_owned(),
        ),
        "loader.batch_size" => (
            Some("loader.batch_size"),
            format!("DataLoader(…, batch_size={value})"),
        ),
        "loader.persistent_workers" => (
            Some("loader.persistent_workers"),
            "DataLoader(…, persistent_workers=True)".to_owned(),
        ),
        "loader.prefetch_factor" => (
            Some("loader.prefetch_factor"),
            format!("DataLoader(…, prefetch_factor={value})"),
        ),
        "loader.batched" => (Some("loader.batch_size"), batched(data)),
        "copy.non_blocking" => (None, "batch.to(device, non_blocking=True)".to_owned()),
        "optimizer.fused" => (
            Some("optimizer.fused"),
            format!("{}(…, fused=True)", optimizer(data)),
        ),
        "zero_grad.set_to_none" => (Some("zero_grad.set_to_none"), "optimizer.zero_grad()".to_owned()),
        "cudnn.benchmark" => (None, "torch.backends.cudnn.benchmark = True".to_owned()),
        "gc.freeze" => (
            None,
            "gc.collect(); gc.freeze()  # before the training loop".to_owned(),
        ),
        "amp" => (
            None,
            "with torch.autocast(device.type, dtype=torch.bfloat16):  # around the forward pass and the loss"
                .to_owned(),
        ),
        "tf32" => (None, "torch.backends.cuda.matmul.allow_tf32 = True".to_owned()),
        "compile" => (None, "model.compile()".to_owned()),
        _ => return None,
    };
    let place = fact.and_then(|key| place(key, data));
    let place = place.map_or_else(String::new, |place| format!("{place}: "));
    if code.is_empty() {
        return Some(message!(
            en: "  {place}give the dataset a `__getitems__` that indexes whole batches, and a collate_fn \
            that accepts them",
            zh: "  {place}为数据集实现按整个 batch 取值的 `__getitems__`，以及接收它的 collate_fn"
        ));
    }
    Some(message!(en: "  {place}{code}", zh: "  {place}{code}"))
}

/// Where the fact was seen: for an argument, the call.
fn place(key: &str, data: &RunData) -> Option<String> {
    let mut known = data.facts.iter().filter(|fact| fact.key == key);
    known.find_map(|fact| fact.place.as_ref().map(ToString::to_string))
}

/// PyTorch's own way to whole batches, for data sets that take a list of indices; empty for others.
fn batched(data: &RunData) -> String {
    let kind = data.facts.iter().find(|fact| fact.key == "loader.dataset");
    let of_tensors = kind.is_some_and(|fact| fact.value == "TensorDataset");
    let size = data
        .facts
        .iter()
        .find(|fact| fact.key == "loader.batch_size")
        .and_then(|fact| fact.value.as_u64())
        .map_or_else(|| "batch_size".to_owned(), |size| size.to_string());
    if of_tensors {
        format!(
            "DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), {size}, drop_last=False))"
        )
    } else {
        String::new()
    }
}

fn optimizer(data: &RunData) -> String {
    let class = data.facts.iter().find(|fact| fact.key == "optimizer.class");
    class
        .and_then(|fact| fact.value.as_str())
        .unwrap_or("Adam")
        .to_owned()
}
