//! # rnn-compiled
//!
//! ## What it detects
//! `torch.compile` is applied to a PyTorch LSTM, GRU or RNN, or to a model that contains one.
//!
//! ## Why it is slow
//! The compiler skips these modules: cuDNN's kernel runs as before, the graph breaks around it, and startup takes longer for nothing.
//!
//! ## Example
//! ```python
//! model = torch.compile(torch.nn.LSTM(64, 256, num_layers=3).cuda())
//! ```
//!
//! ## Use instead
//! ```python
//! model = torch.nn.LSTM(64, 256, num_layers=3).cuda()
//! ```
//!
//! ## Evidence
//! The compiled object is built from `torch.nn.LSTM`, `GRU` or `RNN`, or from a class of the project whose `__init__` builds one.
//!
//! ## Fix
//! Do not compile it. A CUDA graph around the whole step, a larger batch or `flatout train` reduces the launch overhead instead.
//!
//! ## When it is wrong
//! The model contains much else that compiles well.
//!
//! ## References
//! `torch._dynamo.config.allow_rnn` is false by default. Measured with flatout on one H200: no speedup for a 3×256 LSTM.
//! <https://docs.pytorch.org/docs/stable/torch.compiler_faq.html>
//!
//! ---
//! ## 检测什么
//! 对 PyTorch 的 LSTM、GRU、RNN 或包含它们的模型使用 `torch.compile`。
//! ## 为什么慢
//! 编译器会跳过这些模块：cuDNN 自己的 kernel 照旧运行，图在其前后中断，启动白白变慢。
//! ## 证据
//! 被编译的对象由 `torch.nn.LSTM`、`GRU` 或 `RNN` 构建，或由 `__init__` 中构建它们的项目类构建。
//! ## 怎么改
//! 不要编译它；用覆盖整步的 CUDA graph、更大的 batch 或 `flatout train` 来消除下发开销。
//! ## 何时不成立
//! 模型的其他大部分能很好地编译。
//! ## 参考
//! `torch._dynamo.config.allow_rnn` 默认为 false。flatout 在一块 H200 上实测：3×256 的 LSTM 没有收益。
//! <https://docs.pytorch.org/docs/stable/torch.compiler_faq.html>

use crate::rules::prelude::*;

pub const ID: &str = "rnn-compiled";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

const RNNS: [&str; 3] = ["torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"];

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    for call in project.torch_calls(module) {
        if !call.calls("torch.compile") {
            continue;
        }
        let Some(rnn) = call.positional(0).and_then(builds_rnn) else {
            continue;
        };
        report
            .at(
                call,
                message!(en: "`torch.compile` does not compile `{rnn}`: no speedup here", zh: "`{rnn}` 不会被编译：`torch.compile` 在这里没有收益"),
            )
            .advice(message!(
                en: "remove it; a larger batch or a CUDA graph reduces the launch overhead",
                zh: "去掉它；增大 batch 或使用 CUDA graph 才能减少启动开销"
            ));
    }
}

/// The recurrent layer that the model is, or holds.
fn builds_rnn(model: Code<'_>) -> Option<&'static str> {
    // `model = torch.compile(model)` gives the name a second value; any of its values may be the RNN.
    let direct = model.own_bindings().iter().filter_map(|one| match one.bound {
        Bound::Value {
            value,
            position: None,
        } => Some(model.at(value)),
        _ => None,
    });
    for made in direct.chain([model]) {
        if let Some(rnn) = RNNS.into_iter().find(|rnn| made.calls(rnn)) {
            return Some(rnn);
        }
        let Some(class) = made.target().filter(|target| target.as_class().is_some()) else {
            continue;
        };
        let init = class.method("__init__")?;
        let rnn = init
            .calls_inside()
            .find_map(|call| RNNS.into_iter().find(|rnn| call.calls(rnn)));
        if rnn.is_some() {
            return rnn;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.rnn = nn.LSTM(8, 8)\nmodel = Net()\nmodel = torch.compile(model)\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("model.py", FIRES)]).len(), 1);
        let direct = "import torch\nnet = torch.compile(torch.nn.GRU(2, 3))\n";
        assert_eq!(findings_of(ID, &[("model.py", direct)]).len(), 1);
    }

    #[test]
    fn quiet() {
        assert!(
            findings_of(
                ID,
                &[("model.py", &FIRES.replace("nn.LSTM(8, 8)", "nn.Linear(8, 8)"))]
            )
            .is_empty()
        );
    }

    #[test]
    fn look_alike() {
        // Cells are ordinary modules, which compile.
        assert!(
            findings_of(
                ID,
                &[("model.py", &FIRES.replace("nn.LSTM(8, 8)", "nn.LSTMCell(8, 8)"))]
            )
            .is_empty()
        );
    }
}
