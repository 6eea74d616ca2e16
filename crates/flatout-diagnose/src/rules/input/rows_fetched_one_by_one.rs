//! # rows-fetched-one-by-one
//!
//! ## What it detects
//! A DataLoader without workers takes each batch out of in-memory tensors or arrays row by row, and stacks the rows again.
//!
//! ## Why it is slow
//! `TensorDataset` and datasets that return `self.x[i]` are called once per sample, and the default collate function stacks the
//! results. These are several Python calls per row for data that a single indexing operation could fetch.
//!
//! ## Example
//! ```python
//! loader = DataLoader(TensorDataset(X, Y), batch_size=512, shuffle=True)
//! for x, y in loader:
//!     train_step(x, y)
//! ```
//!
//! ## Use instead
//! ```python
//! for rows in torch.randperm(len(X)).split(512):
//!     train_step(X[rows], Y[rows])
//! ```
//!
//! ## Evidence
//! Time waiting for batches, and the share of it in the DataLoader's own code and in lines that only index.
//!
//! ## Fix
//! Index whole batches: `for rows in torch.randperm(n).split(batch_size): x, y = X[rows], Y[rows]`, or give the dataset a
//! `__getitems__` method that takes the list of indices. `--apply loader.batched=on` does this without editing the program, and
//! checks that the batches are equal.
//!
//! ## When it is wrong
//! The rows are large (images): copying them is the work, and the number of calls matters little.
//!
//! ## References
//! PyTorch issues 4959, 10260 and 106704 report up to 100 times slower than indexing.
//! <https://github.com/pytorch/pytorch/issues/106704>
//!
//! ---
//! ## 检测什么
//! 没有 worker 的 DataLoader 从内存中的张量或数组逐行取样本，再把它们重新拼成 batch。
//! ## 为什么慢
//! `TensorDataset` 以及只返回 `self.x[i]` 的数据集对每个样本都要调用一次，默认的 collate 再逐个拼接。每一行都要经过好几次 Python 调用，而一次索引就能取出整个 batch。
//! ## 证据
//! 等待 batch 的时间；其中花在 DataLoader 自身代码和纯索引语句上的比例。
//! ## 怎么改
//! 按整个 batch 索引：`for rows in torch.randperm(n).split(batch_size): x, y = X[rows], Y[rows]`，或给数据集加上接收索引列表的
//! `__getitems__`。`--apply loader.batched=on` 不改代码即可生效，并会核对 batch 是否相同。
//! ## 何时不成立
//! 每行数据很大（图像）：此时拷贝本身才是工作量，调用次数影响不大。
//! ## 参考
//! PyTorch issue 4959、10260、106704（比直接索引慢可达 100 倍）。
//! <https://github.com/pytorch/pytorch/issues/106704>

use crate::account::Span;
use crate::account::activity::Activity;
use crate::account::source;
use crate::analysis::Analysis;
use crate::candidate::{Candidate, Reach, Stretch, WARNING_SHARE, severity_of};
use flatout_core::{Evidence, Severity, message, units};
use flatout_record::Phase;

pub const ID: &str = "rows-fetched-one-by-one";
pub const WORST: Severity = Severity::Critical;

/// From this part of the time on, fetching and stacking rows is what a batch costs.
const ROWS: f64 = 0.7;
/// What goes with whole batches: 20 columns of a TensorDataset came 50 times as fast, small batches 10 times.
const CERTAIN: f64 = 0.8;
const MOST: f64 = 0.97;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    let window = analysis.window.as_ref()?;
    let account = analysis.account.as_ref()?;
    let loader = analysis.train_loader()?;
    let share = window.share(Phase::Data);
    if loader.num_workers != Some(0)
        || loader.batch_size.is_none_or(|batch| batch < 2)
        || share < WARNING_SHARE
    {
        return None;
    }
    let preparing: Vec<&Span> = account
        .spans
        .iter()
        .filter(|span| span.activity == Activity::PreparingBatch)
        .collect();
    let seconds = |spans: &mut dyn Iterator<Item = &&Span>| spans.map(|span| span.seconds).sum::<f64>();
    let all = seconds(&mut preparing.iter());
    let rows = seconds(&mut preparing.iter().filter(|span| is_per_row(analysis, span)));
    if all <= 0.0 || rows < all * ROWS {
        return None;
    }
    let shown = units::percent(share);
    let batch = loader.batch_size.unwrap_or_default();
    let data_s = window.seconds(Phase::Data);
    let title = match &loader.dataset {
        Some(name) => message!(
            en: "{name} is read row by row, {batch} rows per batch: {shown} of the time",
            zh: "{name} 逐行读取，每个 batch {batch} 行：占 {shown} 的时间"
        ),
        None => message!(
            en: "The dataset is read row by row, {batch} rows per batch: {shown} of the time",
            zh: "数据集逐行读取，每个 batch {batch} 行：占 {shown} 的时间"
        ),
    };
    Some(
        Candidate::new(ID, severity_of(share), title)
            .detail(message!(
                en: "The DataLoader calls the dataset once per row and stacks the rows again. One indexing \
                operation returns the same batch.",
                zh: "DataLoader 对每一行调用一次数据集，再重新拼接；对整个 batch 索引一次即可得到相同的结果。"
            ))
            .evidence(analysis.phase_evidence(Phase::Data, WARNING_SHARE))
            .evidence(
                analysis.in_window(
                    Evidence::new(
                        message!(en: "share spent fetching and stacking rows", zh: "其中逐行取样与拼接"),
                        rows / all * 100.0,
                        "%",
                    )
                    .against(ROWS * 100.0),
                ),
            )
            .place(loader.place.as_ref())
            .claims(Stretch::Data, Reach::Measured, data_s * CERTAIN, data_s * MOST)
            .explains(data_s)
            .setting(
                "loader.batched",
                None,
                "on",
                message!(
                    en: "fetch whole batches with one indexing operation; flatout checks that the results \
                    are equal",
                    zh: "一次索引取出整个 batch；flatout 会核对结果是否相同"
                ),
            )
            .code(
                loader.place.as_ref(),
                message!(
                    en: "Index whole batches: for rows in torch.randperm(n).split(batch_size): x, y = \
                    X[rows], Y[rows]; or give the dataset a __getitems__ method",
                    zh: "按整个 batch 索引：for rows in torch.randperm(n).split(batch_size): x, y = X[rows], Y[rows]；或给数据集加上 __getitems__"
                ),
            ),
    )
}

/// In the loader's own code, or at a line of the data set that only indexes.
fn is_per_row(analysis: &Analysis, span: &Span) -> bool {
    let in_loader = |file: &str| span.called().any(|frame| frame.in_file(file));
    if in_loader("torch/utils/data/dataset.py") || in_loader("torch/utils/data/_utils/collate.py") {
        return true;
    }
    let Some(line) = span.line().filter(|line| line.function.ends_with("__getitem__")) else {
        // The fetching loop itself.
        return in_loader("torch/utils/data/_utils/fetch.py");
    };
    source(analysis.data, &line.place()).is_some_and(|text| only_indexes(&text))
}

/// `return self.x[i], self.y[i]`, and nothing else.
fn only_indexes(text: &str) -> bool {
    let Some(values) = text.trim().strip_prefix("return ") else {
        return false;
    };
    let mut names = 0;
    let indexed = values.split(',').all(|value| {
        let value = value.trim().trim_matches(['(', ')', '{', '}']);
        // The key of a dictionary.
        let value = value.rsplit_once(':').map_or(value, |(_, value)| value.trim());
        let Some((name, index)) = value.split_once('[') else {
            return value.is_empty();
        };
        names += 1;
        let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        plain(name) && index.strip_suffix(']').is_some_and(plain)
    });
    indexed && names > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use serde_json::json;

    const DATA: &str = "/v/lib/python3.11/site-packages/torch/utils/data";

    fn tensors(share: f64, workers: u64) -> Build {
        let frames = ["_utils/fetch.py:52", "dataset.py:210", "_utils/collate.py:180"];
        let frames = frames.map(|end| format!("f ({DATA}/{end})"));
        let main = "main (t.py:64)";
        Build::steady(20)
            .phase(Phase::Data, share)
            .phase(Phase::Compute, 1.0 - share)
            .cpus(4)
            .loader(
                0,
                json!({"num_workers": workers, "batch_size": 2048, "dataset": "TensorDataset"}),
            )
            .stack_of(&[main, &frames[0], &frames[1]], 100, Some(Phase::Data), false)
            .stack_of(&[main, &frames[2]], 100, Some(Phase::Data), false)
    }

    #[test]
    fn fires() {
        let found = run(check, tensors(0.4, 0)).unwrap();
        assert_eq!(found.rule, ID);
        assert!(found.title.en.contains("TensorDataset") && found.title.en.contains("2048"));
        assert_eq!(causes(tensors(0.4, 0)), [ID]);
    }

    #[test]
    fn fires_where_the_data_set_only_indexes() {
        let item = |text: &str| {
            Build::steady(20)
                .phase(Phase::Data, 0.5)
                .phase(Phase::Compute, 0.5)
                .loader(0, json!({"num_workers": 0, "batch_size": 64}))
                .stack_of(
                    &["main (t.py:64)", "Rows.__getitem__ (t.py:9)"],
                    200,
                    Some(Phase::Data),
                    false,
                )
                .source_line(9, text)
        };
        assert!(run(check, item("return self.x[i], self.y[i]")).is_some());
        assert!(run(check, item("return {\"x\": self.x[i], \"y\": self.y[i]}")).is_some());
        assert!(run(check, item("return self.x[i].float() / 255, self.y[i]")).is_none());
        assert!(run(check, item("return torch.load(self.files[i])")).is_none());
        assert!(run(check, item("return 0")).is_none());
    }

    #[test]
    fn quiet() {
        assert!(run(check, tensors(0.05, 0)).is_none());
        assert!(run(check, tensors(0.4, 2)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
