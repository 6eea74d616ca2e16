//! # prefetch-left-at-default
//!
//! ## What it detects
//! A training `DataLoader` has workers but no `prefetch_factor`, and its dataset reads a file for every item.
//!
//! ## Why it is slow
//! By default, each worker prefetches two batches. Reading a file can take 1 ms or 100 ms, depending on the disk and its cache. Two
//! batches are used up quickly, and the GPU waits for the slow one.
//!
//! ## Example
//! ```python
//! loader = DataLoader(ImageFiles(paths), num_workers=8)
//! ```
//!
//! ## Use instead
//! ```python
//! loader = DataLoader(ImageFiles(paths), num_workers=8, prefetch_factor=4)
//! ```
//!
//! ## Evidence
//! `num_workers` is known to be above 0, `prefetch_factor` is not given, and `__getitem__` opens a file or an image. This is
//! informational: a recorded run shows whether batches arrive in bursts.
//!
//! ## Fix
//! Set `prefetch_factor=4`.
//!
//! ## Fix safety
//! `--fix --unsafe` adds `prefetch_factor=4`. It is unsafe because it needs the memory of two more batches per worker.
//!
//! ## When it is wrong
//! The workers are too slow overall: a longer queue only delays the waiting. Memory or `/dev/shm` is short.
//!
//! ## References
//! PyTorch documentation of `torch.utils.data.DataLoader`, parameter `prefetch_factor`.
//! <https://docs.pytorch.org/docs/stable/data.html>
//!
//! ---
//! ## 检测什么
//! 训练用的 `DataLoader` 有 worker 而没有 `prefetch_factor`，其数据集为每个样本读取一个文件。
//! ## 为什么慢
//! 默认每个 worker 只提前准备两个 batch。文件读取有时一毫秒、有时一百毫秒（与别人共用的磁盘、冷缓存）；两个 batch 很快用完，GPU 就要等慢的那个。
//! ## 证据
//! 已知 `num_workers` 大于 0，没有给出 `prefetch_factor`，且 `__getitem__` 打开文件或图像。只作提示：运行记录才能说明 batch 是否成批到达。
//! ## 怎么改
//! 设置 `prefetch_factor=4`。
//! ## 修改是否安全
//! `--fix --unsafe` 会加上 `prefetch_factor=4`。之所以不安全，是因为每个 worker 要多占两个 batch 的内存。
//! ## 何时不成立
//! worker 整体太慢：更长的队列只是推迟等待。内存或 `/dev/shm` 紧张。
//! ## 参考
//! PyTorch 文档 `torch.utils.data.DataLoader` 的参数 `prefetch_factor`。
//! <https://docs.pytorch.org/docs/stable/data.html>

use crate::rules::prelude::*;

pub const ID: &str = "prefetch-left-at-default";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

/// What reads a file, by the name it is called by.
const READERS: [&str; 12] = [
    "open",
    "PIL.Image.open",
    "cv2.imread",
    "torchvision.io.read_image",
    "torchvision.io.decode_image",
    "imageio.imread",
    "skimage.io.imread",
    "numpy.load",
    "torch.load",
    "torchaudio.load",
    "librosa.load",
    "pandas.read_parquet",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in loader_calls(project, module) {
        if call.splats() || call.keyword("prefetch_factor").is_some() || !has_workers(call) {
            continue;
        }
        // Evaluation waits too, but not at every step.
        let trains = call.argument("shuffle", 2).and_then(Code::as_boolean) == Some(true);
        if !trains || gives_one_batch(call) || !project.uses_cuda(module) {
            continue;
        }
        let Some(reader) = item_reader(project, module) else {
            continue;
        };
        let found = report.at(
            call.callee().unwrap_or(call),
            message!(
                en: "each worker prefetches only 2 batches, although every sample is read from a file",
                zh: "每个样本都要读文件，而每个 worker 只预取 2 个 batch"
            ),
        );
        found.see(reader.place());
        if let Some(edit) = call.set_keyword("prefetch_factor", "4") {
            found.unsafe_fix(
                vec![edit],
                message!(en: "add `prefetch_factor=4`", zh: "加上 `prefetch_factor=4`"),
            );
        }
    }
}

/// The read of a file in a `__getitem__` of the program.
fn item_reader(project: &Project, module: ModuleId) -> Option<Code<'_>> {
    let modules = project.program(module).iter();
    let mut methods = modules.flat_map(|module| dataset_getitems(project, *module));
    methods.find_map(|method| method.calls_inside().find(|call| call.calls_one_of(&READERS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom PIL import Image\nfrom torch.utils.data import DataLoader, Dataset\nclass Images(Dataset):\n    def __getitem__(self, index):\n        return Image.open(self.paths[index])\nloader = DataLoader(Images(), batch_size=32, shuffle=True, num_workers=8)\nmodel.cuda()\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("train.py", FIRES)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 7);
    }

    #[test]
    fn quiet() {
        let set = FIRES.replace("num_workers=8", "num_workers=8, prefetch_factor=4");
        assert!(findings_of(ID, &[("train.py", &set)]).is_empty());
        let none = FIRES.replace("num_workers=8", "num_workers=0");
        assert!(findings_of(ID, &[("train.py", &none)]).is_empty());
    }

    #[test]
    fn look_alike() {
        // Items in memory all take the same time.
        let memory = FIRES.replace("Image.open(self.paths[index])", "self.images[index]");
        assert!(findings_of(ID, &[("train.py", &memory)]).is_empty());
        // Of a loader that shows one batch now and then nothing is ever taken ahead.
        let shown = format!("{FIRES}def show():\n    return next(iter(loader))\n");
        assert!(findings_of(ID, &[("train.py", &shown)]).is_empty());
    }
}
