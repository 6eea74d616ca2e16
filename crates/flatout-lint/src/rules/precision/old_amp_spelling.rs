//! # old-amp-spelling
//!
//! ## What it detects
//! The program calls `torch.cuda.amp.autocast(…)` or `torch.cuda.amp.GradScaler(…)`, deprecated since PyTorch 2.4.
//!
//! ## Why it is slow
//! It is not slower today, but it warns at every start, defaults to fp16, and will be removed.
//!
//! ## Example
//! ```python
//! scaler = torch.cuda.amp.GradScaler()
//! ```
//!
//! ## Use instead
//! ```python
//! scaler = torch.amp.GradScaler("cuda")
//! ```
//!
//! ## Evidence
//! The name that is called, after resolving aliases.
//!
//! ## Fix
//! Use `torch.amp.autocast("cuda", …)` and `torch.amp.GradScaler("cuda", …)`.
//!
//! ## Fix safety
//! `--fix` replaces the old name where it is written out. It is safe: the meaning is the same.
//!
//! ## When it is wrong
//! The program must run on PyTorch before 2.3, which lacks `torch.amp.GradScaler`.
//!
//! ## References
//! PyTorch documentation, "Automatic Mixed Precision package", deprecation notes.
//! <https://docs.pytorch.org/docs/stable/amp.html>
//!
//! ---
//! ## 检测什么
//! `torch.cuda.amp.autocast(…)` 和 `torch.cuda.amp.GradScaler(…)`，PyTorch 2.4 起已弃用。
//! ## 为什么慢
//! 目前并不更慢；但每次启动都会警告，不指定时为 fp16，并且将来会被移除。
//! ## 证据
//! 被调用的名称（已解析别名）。
//! ## 怎么改
//! 改用 `torch.amp.autocast("cuda", …)` 和 `torch.amp.GradScaler("cuda", …)`。
//! ## 修改是否安全
//! `--fix` 会替换直接写出的旧名称。这是安全的：含义相同。
//! ## 何时不成立
//! 程序必须在没有 `torch.amp.GradScaler` 的 PyTorch 2.3 之前运行。
//! ## 参考
//! PyTorch 文档“Automatic Mixed Precision package”中的弃用说明。
//! <https://docs.pytorch.org/docs/stable/amp.html>

use crate::rules::prelude::*;

pub const ID: &str = "old-amp-spelling";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    // A file that knows the new spelling keeps the old one for old versions.
    if project.module(module).source.text.contains("torch.amp.") {
        return;
    }
    for call in project.torch_calls(module) {
        let new = match call.call_name() {
            Some("torch.cuda.amp.autocast") => "torch.amp.autocast",
            Some("torch.cuda.amp.GradScaler") => "torch.amp.GradScaler",
            _ => continue,
        };
        let Some(callee) = call.callee() else { continue };
        let old = callee.text();
        let found = report.at(
            callee,
            message!(en: "`{old}` is deprecated", zh: "`{old}` 已弃用"),
        );
        let say = message!(en: "use `{new}(\"cuda\", …)`", zh: "改写为 `{new}(\"cuda\", …)`");
        let Some(arguments) = call.arguments() else {
            continue;
        };
        // Positions differ between the two, so positional arguments are left to a person.
        if old.starts_with("torch.") && arguments.positional.is_empty() {
            let open = crate::python::Span {
                start: arguments.span.start + 1,
                end: arguments.span.start + 1,
            };
            let first = if arguments.keywords.is_empty() {
                "\"cuda\""
            } else {
                "\"cuda\", "
            };
            found.safe_fix(vec![callee.replace(new), call.edit(open, first)], say);
        } else {
            found.advice(say);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires() {
        let code = "import torch\nscaler = torch.cuda.amp.GradScaler()\nwith torch.cuda.amp.autocast(dtype=torch.bfloat16):\n    pass\n";
        assert_eq!(findings_of(ID, &[("train.py", code)]).len(), 2);
        let expected = "import torch\nscaler = torch.amp.GradScaler(\"cuda\")\nwith torch.amp.autocast(\"cuda\", dtype=torch.bfloat16):\n    pass\n";
        assert_eq!(edits_of(ID, code), expected);
        let imported = "from torch.cuda.amp import autocast\nwith autocast():\n    pass\n";
        assert_eq!(findings_of(ID, &[("train.py", imported)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let code = "import torch\nwith torch.amp.autocast('cuda'):\n    pass\nwith torch.autocast('cuda'):\n    pass\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
    }

    #[test]
    fn look_alike() {
        let fallback = "import torch\ntry:\n    s = torch.amp.GradScaler('cuda')\nexcept AttributeError:\n    s = torch.cuda.amp.GradScaler()\n";
        assert!(findings_of(ID, &[("train.py", fallback)]).is_empty());
        let code = "import torch\nfrom mine import autocast\nwith autocast():\n    pass\n";
        assert!(findings_of(ID, &[("train.py", code)]).is_empty());
    }
}
