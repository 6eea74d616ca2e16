//! # file-reopened-in-getitem
//!
//! ## What it detects
//! A dataset's `__getitem__` opens or loads the same file for every sample: `np.load(self.path)`, `pd.read_csv(self.csv)`,
//! `h5py.File(self.path)`.
//!
//! ## Why it is slow
//! The whole file is opened, and often parsed, once per sample: the same work is repeated thousands of times per epoch.
//!
//! ## Example
//! ```python
//! def __getitem__(self, index):
//!     return np.load(self.path)[index]
//! ```
//!
//! ## Use instead
//! ```python
//! def __init__(self, path):
//!     self.data = np.load(path)
//!
//! def __getitem__(self, index):
//!     return self.data[index]
//! ```
//!
//! ## Evidence
//! The argument of the call does not depend on the index: it uses none of the method's local variables.
//!
//! ## Fix
//! Load the file once in `__init__`. Open HDF5 files once per worker, on first access (`if self.file is None: self.file =
//! h5py.File(…)`).
//!
//! ## When it is wrong
//! The path looks constant but changes between calls. Opening one file per sample (`Image.open(self.paths[index])`) is not reported.
//!
//! ## References
//! h5py documentation on multiprocessing. PyTorch issue 11929 on HDF5 with workers.
//! <https://github.com/pytorch/pytorch/issues/11929>
//!
//! ---
//! ## 检测什么
//! 数据集的 `__getitem__` 为每个样本打开或加载同一个文件：`np.load(self.path)`、`pd.read_csv(self.csv)`、`h5py.File(self.path)`。
//! ## 为什么慢
//! 每个样本都要打开、往往还要解析整个文件：loader 每个 epoch 把同样的工作做几千遍。
//! ## 证据
//! 调用的参数与下标无关：其中没有任何东西来自该方法自己的变量。
//! ## 怎么改
//! 在 `__init__` 中加载一次；HDF5 文件在每个 worker 首次访问时打开一次（`if self.file is None: self.file = h5py.File(…)`）。
//! ## 何时不成立
//! 路径看似不变，却在两次调用之间被修改。为每个样本打开各自的文件（`Image.open(self.paths[index])`）不属于本规则。
//! ## 参考
//! h5py 文档“Multiprocessing”；PyTorch issue 11929：HDF5 与 worker。
//! <https://github.com/pytorch/pytorch/issues/11929>

use crate::rules::prelude::*;

pub const ID: &str = "file-reopened-in-getitem";
pub const SEVERITY: Severity = Severity::Critical;
pub const CHECK: Check = Check::Module(check);

const READERS: [&str; 12] = [
    "numpy.load",
    "numpy.loadtxt",
    "numpy.genfromtxt",
    "pandas.read_csv",
    "pandas.read_parquet",
    "pandas.read_pickle",
    "pandas.read_excel",
    "torch.load",
    "h5py.File",
    "open",
    "lmdb.open",
    "scipy.io.loadmat",
];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for method in dataset_getitems(project, module) {
        for call in method.calls_inside() {
            if !call.calls_one_of(&READERS) || is_first_time_only(call, method) {
                continue;
            }
            let Some(path) = call.positional(0) else { continue };
            if depends_on_sample(path, method) || call.keyword("mmap_mode").is_some() {
                continue;
            }
            let text = call.brief();
            report
                .at(
                    call,
                    message!(
                        en: "`{text}` reads the same file again for every sample",
                        zh: "`{text}` 为每个样本重新读取同一个文件"
                    ),
                )
                .advice(message!(en: "read it once in `__init__`", zh: "在 `__init__` 中只读取一次"));
        }
    }
}

/// Names that the method binds, its parameters too, or calls and subscripts whose result may change.
fn depends_on_sample(path: Code<'_>, method: Code<'_>) -> bool {
    path.subtree().any(|code| match code.kind() {
        Kind::Name => {
            !code.is_self()
                && code
                    .bindings(code.text())
                    .iter()
                    .any(|one| one.scope == method.id)
        }
        Kind::Subscript { .. } => true,
        Kind::Call { .. } => !code.call_name().is_some_and(|name| name.starts_with("os.path.")),
        _ => false,
    })
}

/// `if self.file is None:`
fn is_first_time_only(call: Code<'_>, method: Code<'_>) -> bool {
    call.ancestors()
        .take_while(|above| *above != method)
        .any(|above| matches!(above.kind(), Kind::If(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import numpy as np\nimport torch\nfrom torch.utils.data import Dataset\nclass Data(Dataset):\n    def __getitem__(self, index):\n        data = np.load(self.path)\n        return torch.from_numpy(data[index])\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("data.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[("data.py", &FIRES.replace("np.load(self.path)", "self.data"))]
            )
            .is_empty()
        );
        let lazy = FIRES.replace("        data = np.load(self.path)", "        if self.data is None:\n            self.data = np.load(self.path)\n        data = self.data");
        assert!(findings_of(ID, &[("data.py", &lazy)]).is_empty());
    }

    #[test]
    fn look_alike() {
        // A file of its own for each sample.
        for path in [
            "self.paths[index]",
            "os.path.join(self.root, str(index))",
            "f'{self.root}/{index}.npy'",
        ] {
            assert!(
                findings_of(
                    ID,
                    &[("data.py", &FIRES.replace("self.path)", &format!("{path})")))]
                )
                .is_empty(),
                "{path}"
            );
        }
        let mapped = FIRES.replace("np.load(self.path)", "np.load(self.path, mmap_mode='r')");
        assert!(findings_of(ID, &[("data.py", &mapped)]).is_empty());
    }
}
