//! What a line does, from what it calls, what it is blocked in and what its source says.

use super::Known;
use crate::account::activity::Activity;
use crate::account::center::{Center, is_over_modules};
use crate::account::frame::Frame;

/// What a line of the step does.
pub fn in_step(center: &Center) -> Known {
    let text = center.text().unwrap_or_default();
    let via = center.via.as_ref();
    let called = |names: &[&str]| {
        via.is_some_and(|frame| names.contains(&frame.qualified().as_str()))
            || names.iter().any(|name| mentions_call(text, name))
    };
    if called(&[
        "gc.collect",
        "collect",
        "torch.empty_cache",
        "torch.cuda.empty_cache",
        "empty_cache",
    ]) {
        return Known::MemoryReleased;
    }
    if called(&["copy.deepcopy", "deepcopy"]) || text.contains(".state_dict()") {
        return Known::ModelCopied;
    }
    if is_logging(center, text) {
        return Known::Logging;
    }
    if matches!(
        center.activity(),
        Activity::Sleeping | Activity::Waiting | Activity::FileAccess
    ) {
        return Known::BlockingCall;
    }
    const METRICS: [&str; 4] = ["sklearn", "scipy", "torchmetrics", "evaluate"];
    if METRICS.iter().any(|package| center.share_in(package) >= 0.5) {
        return Known::Metrics;
    }
    if center
        .inner_loop
        .as_ref()
        .is_some_and(|inner| !is_over_modules(&inner.text))
    {
        return Known::PythonLoopInStep;
    }
    Known::HostWork
}

/// What a line of the data set does.
pub fn in_batch(center: &Center) -> Known {
    let text = center.text().unwrap_or_default();
    if center.hot.function.contains("ampler") || is_sampler(center) {
        return Known::SlowSampler;
    }
    if mentions_call(text, "iter") && text.contains("next(") {
        return Known::IteratorPerBatch;
    }
    if center.share_in("pandas") >= 0.5 && !text.contains("read_") {
        return Known::DataframeRowPerSample;
    }
    if reads_files(center, text) {
        return Known::FileReadPerSample;
    }
    if matches!(center.activity(), Activity::Sleeping | Activity::Waiting) {
        return Known::BlockingCall;
    }
    if center.share_in("PIL") >= 0.5 || center.share_in("cv2") >= 0.5 {
        return Known::ImageDecodedLarge;
    }
    if center.inner_loop.is_some() {
        return Known::PythonLoopPerSample;
    }
    Known::HostWork
}

fn is_sampler(center: &Center) -> bool {
    let path = |frame: &Frame| frame.in_file("torch/utils/data/sampler.py");
    center.via.as_ref().is_some_and(path)
}

fn reads_files(center: &Center, text: &str) -> bool {
    const CALLS: [&str; 16] = [
        "torch.load",
        "np.load",
        "numpy.load",
        "np.loadtxt",
        "np.genfromtxt",
        "json.load",
        "pickle.load",
        "pd.read_csv",
        "pd.read_parquet",
        "pd.read_json",
        "csv.reader",
        "yaml.safe_load",
        "sqlite3.connect",
        "zipfile.ZipFile",
        "tarfile.open",
        "h5py.File",
    ];
    const PACKAGES: [&str; 9] = [
        "json", "pickle", "csv", "zipfile", "tarfile", "gzip", "bz2", "lzma", "h5py",
    ];
    CALLS.iter().any(|call| text.contains(call))
        || text.contains("open(") && !text.contains("Image.open")
        || PACKAGES.iter().any(|package| center.share_in(package) >= 0.5)
        || center.activity() == Activity::FileAccess
        || center.via.as_ref().is_some_and(|frame| {
            frame.in_file("torch/serialization.py") || frame.in_file("numpy/lib/_npyio_impl.py")
        })
}

fn is_logging(center: &Center, text: &str) -> bool {
    const PACKAGES: [&str; 5] = ["logging", "tensorboard", "wandb", "mlflow", "tqdm"];
    const CALLS: [&str; 9] = [
        "print(",
        ".flush()",
        "os.fsync",
        "json.dump",
        ".writerow",
        "add_scalar",
        "add_histogram",
        "logger.",
        "log.write",
    ];
    PACKAGES.iter().any(|package| center.share_in(package) >= 0.5)
        || CALLS.iter().any(|call| text.contains(call))
        || center
            .via
            .as_ref()
            .is_some_and(|frame| frame.file.contains("torch/utils/tensorboard/"))
}

/// Whether the text calls a function of this name.
fn mentions_call(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].trim_start().starts_with('(');
        after && before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
    })
}

/// Operators that models are made of: a line with one of them is expected to take time.
pub fn is_the_models(center: &Center) -> bool {
    const CORE: [&str; 20] = [
        " @ ",
        "matmul",
        "bmm",
        "einsum",
        "conv",
        "linear(",
        "attention",
        "lstm",
        "gru",
        "loss",
        "criterion",
        "backward",
        ".step(",
        "model(",
        "net(",
        "_norm(",
        "pool",
        "interpolate",
        "relu",
        "gelu",
    ];
    const AVOIDABLE: [&str; 16] = [
        "one_hot",
        "isfinite",
        "isnan",
        "isinf",
        "arange",
        "eye(",
        "inverse",
        "linalg",
        "nonzero",
        "torch.tensor(",
        "triu",
        "tril",
        "repeat",
        "sort(",
        "unique",
        "assert ",
    ];
    let Some(text) = center.text() else { return true };
    let has = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    !has(&AVOIDABLE) && has(&CORE)
}

/// Whether the line needs a value from the device to go on.
pub fn waits_for_the_device(center: &Center) -> bool {
    const MARKS: [&str; 14] = [
        ".any()",
        ".all()",
        "nonzero",
        ".item()",
        ".tolist()",
        "bool(",
        "if ",
        "while ",
        "unique",
        "masked_select",
        "mask]",
        ".cpu()",
        "assert ",
        "float(",
    ];
    let text = center.text().unwrap_or_default();
    MARKS.iter().any(|mark| text.contains(mark))
}
