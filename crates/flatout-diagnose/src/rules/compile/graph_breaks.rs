//! # graph-breaks
//!
//! ## What it detects
//! The compiled model is split into many graphs.
//!
//! ## Why it is slow
//! At each graph break, execution returns to Python and continues in another graph. Operations are not fused across the break, and
//! each graph is launched separately.
//!
//! ## Example
//! ```python
//! def forward(self, x):
//!     x = self.encoder(x)
//!     if x.max().item() > 100:
//!         print("large activation")
//!     return self.head(x)
//! ```
//!
//! ## Use instead
//! ```python
//! def forward(self, x):
//!     return self.head(self.encoder(x))
//! ```
//!
//! ## Evidence
//! The number of graph breaks that the compiler counted, their location, and the last reason.
//!
//! ## Fix
//! Move the code that breaks the graph (printing, `.item()`, data-dependent branches, NumPy) out of the model's forward method.
//!
//! ## When it is wrong
//! Graph breaks at the edges of the model cost little.
//!
//! ## References
//! PyTorch's guide on graph breaks. `fullgraph=True` turns them into errors.
//! <https://docs.pytorch.org/docs/stable/torch.compiler_faq.html>
//!
//! ---
//! ## 检测什么
//! 编译后的模型被拆成许多个图。
//! ## 为什么慢
//! 每次中断，编译器都交回 Python 再重新开始：跨越中断不能融合，每个图单独下发。
//! ## 证据
//! 编译器统计的中断次数、位置和最后的原因。
//! ## 怎么改
//! 把造成中断的东西（打印、`.item()`、依赖数据的分支、NumPy）移出模型的 forward。
//! ## 何时不成立
//! 模型边缘的中断代价很小。
//! ## 参考
//! PyTorch 关于 graph break 的指南；`fullgraph=True` 会把它们变成错误。
//! <https://docs.pytorch.org/docs/stable/torch.compiler_faq.html>

use crate::analysis::{Analysis, compiles};
use crate::candidate::Candidate;
use flatout_core::{Evidence, Message, Severity, message};

pub const ID: &str = "graph-breaks";
pub const WORST: Severity = Severity::Warning;

/// One or two breaks (a print at the end, a logger) do little harm.
const BREAKS: u64 = 3;

pub fn check(analysis: &Analysis) -> Option<Candidate> {
    analysis.window.as_ref()?;
    let breaks = compiles::of(analysis.data, "graph-break");
    if breaks.count < BREAKS {
        return None;
    }
    let count = breaks.count;
    let called = analysis.facts.place("compile.called");
    let first = breaks.places.first().or(called.as_ref());
    let mut candidate = Candidate::new(
        ID,
        Severity::Warning,
        message!(
            en: "The compiled model is split by {count} graph breaks",
            zh: "编译后的模型被打断成多段：{count} 处 graph break"
        ),
    )
    .detail(breaks.message.map(Message::verbatim).unwrap_or_default())
    .evidence(
        analysis.in_run(
            Evidence::new(
                message!(en: "graph breaks", zh: "graph break 次数"),
                count as f64,
                "",
            )
            .against(BREAKS as f64),
        ),
    )
    .code(
        first,
        message!(
            en: "Move printing, .item(), NumPy calls and data-dependent branches out of forward; \
            fullgraph=True shows each graph break",
            zh: "把打印、.item()、NumPy 和依赖数值的分支移出 forward；fullgraph=True 可逐一显示"
        ),
    );
    for place in &breaks.places {
        candidate = candidate.place(Some(place));
    }
    Some(candidate.place(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, causes, check as run, check_empty};
    use flatout_record::EventKind;

    fn broken(count: u64) -> Build {
        let what = "graph-break".to_owned();
        Build::steady(20).event(
            1.0,
            EventKind::Compile {
                what,
                count,
                message: None,
                place: None,
                duration_ms: None,
            },
        )
    }

    #[test]
    fn fires() {
        assert!(run(check, broken(8)).is_some());
        assert_eq!(causes(broken(8)), [ID]);
    }

    #[test]
    fn quiet() {
        assert!(run(check, broken(1)).is_none());
    }

    #[test]
    fn no_data() {
        assert!(check_empty(check).is_none());
    }
}
