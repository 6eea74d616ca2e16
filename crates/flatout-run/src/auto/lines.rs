//! The line to write into the source for a change.

use super::Change;
use flatout_core::{Message, Place, message};
use flatout_diagnose::Analysis;
use flatout_diagnose::analysis::loaders::Loader;
use flatout_diagnose::framework::{self, Used};
use flatout_vocabulary::Framework;
use flatout_vocabulary::settings::{self, Source};

/// Where a call is written.
enum At {
    Loader,
    Fact(&'static str),
    Nowhere,
}

/// The location of the call that the change belongs to, and what to write there; `None` where no source line does it.
pub fn of(change: &Change, analysis: &Analysis) -> Option<Message> {
    let value = change.setting.split('=').nth(1).unwrap_or("on");
    let used = Used::of(analysis);
    if let Some(used) = &used
        && let Some(arguments) = argument(change.key(), value, used.framework)
    {
        let place = prefix(used.construction.as_ref());
        let Message { en, zh } = framework::written(used.framework, &arguments);
        return Some(Message {
            en: format!("  {place}{en}"),
            zh: format!("  {place}{zh}"),
        });
    }
    let framework = used.map(|used| used.framework);
    let (at, code) = match change.key() {
        "loader.num_workers" => (
            At::Loader,
            format!("DataLoader(…, num_workers={value}, persistent_workers=True)"),
        ),
        "loader.pin_memory" => (At::Loader, "DataLoader(…, pin_memory=True)".to_owned()),
        "loader.batch_size" => (At::Loader, format!("DataLoader(…, batch_size={value})")),
        "loader.persistent_workers" => (At::Loader, "DataLoader(…, persistent_workers=True)".to_owned()),
        "loader.prefetch_factor" => (At::Loader, format!("DataLoader(…, prefetch_factor={value})")),
        "loader.batched" => (At::Loader, batched(analysis)),
        "copy.non_blocking" => (At::Nowhere, "batch.to(device, non_blocking=True)".to_owned()),
        "optimizer.fused" => (
            At::Fact("optimizer.fused"),
            format!("{}(…, fused=True)", optimizer(analysis)),
        ),
        "zero_grad.set_to_none" => (
            At::Fact("zero_grad.set_to_none"),
            "optimizer.zero_grad()".to_owned(),
        ),
        "cudnn.benchmark" => (At::Nowhere, "torch.backends.cudnn.benchmark = True".to_owned()),
        "gc.freeze" => (
            At::Nowhere,
            "gc.collect(); gc.freeze()  # before the training loop".to_owned(),
        ),
        "amp" => (
            At::Nowhere,
            "with torch.autocast(device.type, dtype=torch.bfloat16):  # around the forward pass and the loss"
                .to_owned(),
        ),
        "tf32" => (
            At::Nowhere,
            "torch.backends.cuda.matmul.allow_tf32 = True".to_owned(),
        ),
        "compile" => (At::Nowhere, "model.compile()".to_owned()),
        key => return by_hand(key, value),
    };
    let place = prefix(
        match at {
            At::Loader => loader_place(analysis, framework),
            At::Fact(key) => analysis.facts.place(key),
            At::Nowhere => None,
        }
        .as_ref(),
    );
    if code.is_empty() {
        return Some(message!(
            en: "  {place}give the dataset a `__getitems__` that indexes whole batches, and a collate_fn \
            that accepts them",
            zh: "  {place}为数据集实现按整个 batch 取值的 `__getitems__`，以及接收它的 collate_fn"
        ));
    }
    Some(message!(en: "  {place}{code}", zh: "  {place}{code}"))
}

/// The framework's own argument. Its words for copies are of another kind than a setting's.
fn argument(key: &str, value: &str, framework: Framework) -> Option<String> {
    match (key, framework) {
        ("copy.non_blocking", Framework::Transformers) => {
            Some("accelerator_config={\"non_blocking\": True}".to_owned())
        }
        ("copy.non_blocking", Framework::Accelerate) => {
            Some("dataloader_config=DataLoaderConfiguration(non_blocking=True)".to_owned())
        }
        ("loader.num_workers", _) => {
            let of = |key: &str, value: &str| settings::find(key)?.in_framework(framework, value);
            let workers = of("loader.num_workers", value)?;
            let stay =
                of("loader.persistent_workers", "on").map_or(String::new(), |stay| format!(", {stay}"));
            Some(workers + &stay)
        }
        _ => settings::find(key)?.in_framework(framework, value),
    }
}

/// What takes more than an argument.
fn by_hand(key: &str, value: &str) -> Option<Message> {
    let setting = settings::find(key)?;
    let Source::ByHand(words) = setting.source else {
        return None;
    };
    let Message { en, zh } = words(value);
    Some(Message {
        en: format!("  {en}"),
        zh: format!("  {zh}"),
    })
}

fn prefix(place: Option<&Place>) -> String {
    place.map_or_else(String::new, |place| format!("{place}: "))
}

/// Where the loader that feeds the training was made.
fn loader_place(analysis: &Analysis, framework: Option<Framework>) -> Option<Place> {
    let loader = analysis.train_loader()?;
    if framework == Some(Framework::Transformers) {
        // Its trainer makes the loader.
        return None;
    }
    if framework == Some(Framework::Accelerate) {
        // `prepare` makes a loader of its own out of the user's, which was made before it.
        let made_before = |one: &&Loader| one.id < loader.id && alike(analysis, one, loader);
        if let Some(own) = analysis.loaders.iter().find(made_before) {
            return own.place.clone();
        }
    }
    loader.place.clone()
}

/// Whether two loaders read the same data in the same way, as far as is known.
fn alike(analysis: &Analysis, one: &Loader, other: &Loader) -> bool {
    let shuffles = |loader: &Loader| {
        let fact = analysis
            .facts
            .scoped("loader.shuffle", &format!("loader.{}", loader.id));
        fact.map(|fact| fact.value.clone())
    };
    one.place.is_some()
        && one.dataset == other.dataset
        && one.batch_size == other.batch_size
        && (one.length.is_none() || other.length.is_none() || one.length == other.length)
        && shuffles(one) == shuffles(other)
}

/// PyTorch's own way to whole batches, for data sets that take a list of indices; empty for others.
fn batched(analysis: &Analysis) -> String {
    let loader = analysis.train_loader();
    let size = loader
        .and_then(|loader| loader.batch_size)
        .map_or_else(|| "batch_size".to_owned(), |size| size.to_string());
    if loader.and_then(|loader| loader.dataset.as_deref()) == Some("TensorDataset") {
        format!(
            "DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), {size}, drop_last=False))"
        )
    } else {
        String::new()
    }
}

fn optimizer(analysis: &Analysis) -> String {
    analysis
        .facts
        .text("optimizer.class")
        .unwrap_or_else(|| "Adam".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::State;
    use flatout_record::{Event, EventKind, Fact, RunData};
    use serde_json::{Value, json};

    fn loader(id: u64, line: u32, settings: Value) -> Vec<Fact> {
        let fact = |(key, value): (&String, &Value)| Fact {
            t: 0.1,
            key: format!("loader.{key}"),
            value: value.clone(),
            scope: Some(format!("loader.{id}")),
            place: Some(Place::new("train.py", line)),
        };
        settings.as_object().into_iter().flatten().map(fact).collect()
    }

    fn fed_by(id: u64, facts: Vec<Vec<Fact>>) -> RunData {
        RunData {
            facts: facts.concat(),
            events: vec![Event {
                t: 1.0,
                kind: EventKind::LoaderUse {
                    loader: id,
                    batches: 100,
                    wait_ms: 400.0,
                    eval: false,
                },
            }],
            ..RunData::default()
        }
    }

    fn line(setting: &str, data: &RunData) -> String {
        let change = Change {
            state: State::Kept,
            setting: setting.to_owned(),
            step: 0,
            reason: None,
            gain: None,
        };
        of(&change, &Analysis::new(data)).unwrap().en
    }

    #[test]
    fn the_line_is_that_of_the_loader_that_feeds_the_training() {
        let rows = |size: u64| json!({"dataset": "TensorDataset", "batch_size": size});
        let data = fed_by(
            1,
            vec![
                loader(0, 10, rows(512)),
                loader(1, 20, rows(64)),
                loader(2, 30, rows(512)),
            ],
        );
        assert!(
            line("loader.num_workers=4", &data).starts_with("  train.py:20: DataLoader(…, num_workers=4,")
        );
        assert!(line("padding.trim=on", &data).starts_with("  trim each batch"));
        let whole = line("loader.batched=on", &data);
        assert!(
            whole.starts_with("  train.py:20: ") && whole.contains("RandomSampler(dataset), 64,"),
            "{whole}"
        );
    }

    #[test]
    fn accelerate_makes_its_loader_out_of_the_users() {
        let rows = |shuffle: bool| json!({"dataset": "Rows", "batch_size": 8, "shuffle": shuffle});
        let data = fed_by(
            2,
            vec![
                loader(0, 10, rows(false)),
                loader(1, 20, rows(true)),
                loader(2, 40, rows(true)),
            ],
        );
        let analysis = Analysis::new(&data);
        let place = |framework| loader_place(&analysis, framework).map(|place| place.line);
        assert_eq!(place(Some(Framework::Accelerate)), Some(20));
        assert_eq!(place(None), Some(40));
        assert_eq!(place(Some(Framework::Transformers)), None);
    }

    #[test]
    fn frameworks_have_words_of_their_own() {
        let of = |key, value, framework| argument(key, value, framework).unwrap_or_default();
        assert_eq!(
            of("loader.num_workers", "4", Framework::Transformers),
            "dataloader_num_workers=4, dataloader_persistent_workers=True"
        );
        assert_eq!(
            of("copy.non_blocking", "on", Framework::Transformers),
            "accelerator_config={\"non_blocking\": True}"
        );
        assert_eq!(
            of("amp", "bf16", Framework::Lightning),
            "precision=\"bf16-mixed\""
        );
        assert_eq!(
            of("cudnn.benchmark", "on", Framework::Lightning),
            "benchmark=True"
        );
        assert_eq!(of("loader.num_workers", "4", Framework::Lightning), "");
    }
}
