//! # optimization-never-called
//!
//! ## What it detects
//! A function of the project enables an optimization (TF32, `cudnn.benchmark`, `torch.compile`, channels-last), but nothing in the
//! project calls it.
//!
//! ## Why it is slow
//! The optimization was written but never called: the program still runs in full fp32 or without cuDNN's search, although the code
//! suggests otherwise.
//!
//! ## Example
//! ```python
//! def enable_fast_math():
//!     torch.set_float32_matmul_precision("high")
//!
//! model = Model().cuda()
//! ```
//!
//! ## Use instead
//! ```python
//! def enable_fast_math():
//!     torch.set_float32_matmul_precision("high")
//!
//! enable_fast_math()
//! model = Model().cuda()
//! ```
//!
//! ## Evidence
//! The function's body sets one of these options, and its name occurs nowhere else in the linted files: not called, not passed on,
//! not as a string.
//!
//! ## Fix
//! Call it once at startup, before the model is built, or delete it.
//!
//! ## When it is wrong
//! A program outside the linted folder calls it: lint the folder that contains both. Libraries export such functions on purpose;
//! files that only define an interface are not reported if the project trains nothing.
//!
//! ## References
//! Seen in practice: an `apply_hardware_optimizations()` that was defined, documented and never called.
//! See also `config-key-never-read` and `compile-never-used`.
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
//!
//! ---
//! ## 检测什么
//! 项目中有一个打开加速的函数（TF32、`cudnn.benchmark`、`torch.compile`、channels-last），而项目中再没有任何地方提到它。
//! ## 为什么慢
//! 有人写了优化却忘了调用：程序继续以完整 fp32 运行，或没有 cuDNN 的搜索，而代码读起来并非如此。
//! ## 证据
//! 函数体设置了其中某个开关，而它的名字在被检查的文件中再没有出现，既没有被调用，也没有被传递或作为字符串。
//! ## 怎么改
//! 启动时、构建模型之前调用一次；或删除它。
//! ## 何时不成立
//! 调用它的程序不在被检查的目录中：请检查同时包含两者的目录。库会有意导出这样的函数；项目本身不训练时，只定义接口的文件不在此列。
//! ## 参考
//! 实际案例：一个 `apply_hardware_optimizations()`：有定义、有文档，却从未调用。
//! 另见 `config-key-never-read`、`compile-never-used`。
//! <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>

use crate::rules::prelude::*;

pub const ID: &str = "optimization-never-called";
pub const SEVERITY: Severity = Severity::Warning;
pub const CHECK: Check = Check::Project(check);

/// What a function sets when it makes things faster.
const SWITCHES: [&str; 6] = [
    "torch.backends.cuda.matmul.allow_tf32",
    "torch.backends.cudnn.allow_tf32",
    "torch.backends.cudnn.benchmark",
    "torch.backends.cuda.matmul.fp32_precision",
    "torch.backends.cuda.enable_flash_sdp",
    "torch.set_float32_matmul_precision",
];

fn check(project: &Project, report: &mut Report<'_>) {
    let trains = project
        .module_ids()
        .any(|module| project.flow().trains(project, module));
    if !trains {
        return;
    }
    for module in project.module_ids() {
        for id in project.module(module).parsed.tree.functions() {
            let function = project.code(module, *id);
            let Some(name) = function.definition_name() else {
                continue;
            };
            let Some(switch) = switches_on(function) else {
                continue;
            };
            if is_mentioned(project, name) || function.decorators().next().is_some() || name.starts_with("__")
            {
                continue;
            }
            let span = function
                .as_function()
                .map_or(function.span(), |function| function.name);
            report
                .in_source(
                    &function.in_module().source,
                    span,
                    message!(
                        en: "`{name}()` sets `{switch}` but is never called",
                        zh: "`{name}()` 会设置 `{switch}`，但没有任何地方调用它"
                    ),
                )
                .advice(message!(
                    en: "call `{name}()` once at startup, before the model is built",
                    zh: "在程序启动时、构建模型之前调用一次 `{name}()`"
                ));
        }
    }
}

/// The switch that the function turns on.
fn switches_on(function: Code<'_>) -> Option<&'static str> {
    function.runs().find_map(|code| match code.kind() {
        Kind::Assign { targets, value } => {
            let name = code.at(*targets.first()?).qualified()?;
            let is_off = code.at(*value).as_boolean() == Some(false);
            SWITCHES.into_iter().find(|switch| *switch == name && !is_off)
        }
        Kind::Call { .. } => SWITCHES.into_iter().find(|switch| code.calls(switch)),
        _ => None,
    })
}

/// Whether the name occurs anywhere but in its definition: called, passed, imported, exported or in a string.
fn is_mentioned(project: &Project, name: &str) -> bool {
    project.module_ids().any(|module| {
        // Most files do not even contain the letters.
        project.module(module).source.text.contains(name)
            && project
                .code(module, NodeId(0))
                .subtree()
                .any(|code| match code.kind() {
                    Kind::Name => code.text() == name,
                    Kind::Attribute { name: attribute, .. } => code.slice(*attribute) == name,
                    Kind::Text(text) => &**text == name,
                    // Imported and then not called is still not called, but a package's `__init__` exports.
                    Kind::ImportFrom { names, .. } => {
                        let is_package = code.in_module().source.path.ends_with("__init__.py");
                        is_package && names.iter().any(|(imported, _)| &**imported == name)
                    }
                    _ => false,
                })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: &str = "import torch\nfor epoch in range(3):\n    for x in loader:\n        loss = model(x)\n        loss.backward()\n";
    const SETUP: &str = "import torch\nclass Manager:\n    def apply_hardware_optimizations(self):\n        torch.backends.cudnn.benchmark = True\n        torch.backends.cuda.matmul.allow_tf32 = True\n";

    #[test]
    fn fires() {
        let found = findings_of(ID, &[("manager.py", SETUP), ("train.py", LOOP)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place().line, 3);
    }

    #[test]
    fn quiet() {
        let called = format!("{LOOP}manager.apply_hardware_optimizations()\n");
        assert!(findings_of(ID, &[("manager.py", SETUP), ("train.py", &called)]).is_empty());
    }

    #[test]
    fn look_alike() {
        // Switches them off, for reproducible results.
        let off = "import torch\ndef make_deterministic():\n    torch.backends.cudnn.benchmark = False\n";
        assert!(findings_of(ID, &[("seed.py", off), ("train.py", LOOP)]).is_empty());
        // A library: nothing here trains.
        assert!(findings_of(ID, &[("manager.py", SETUP)]).is_empty());
    }
}
