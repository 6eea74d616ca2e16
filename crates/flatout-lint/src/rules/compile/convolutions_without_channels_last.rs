//! # convolutions-without-channels-last
//!
//! ## What it detects
//! A model with 2-D convolutions trains on CUDA in mixed precision, and the program never uses the channels-last layout.
//!
//! ## Why it is slow
//! Tensor cores need the channels in the last dimension. In the default layout, cuDNN transposes tensors before and after many
//! convolutions.
//!
//! ## Example
//! ```python
//! model = resnet50().cuda()
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     out = model(images)
//! ```
//!
//! ## Use instead
//! ```python
//! model = resnet50().cuda().to(memory_format=torch.channels_last)
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     out = model(images.to(memory_format=torch.channels_last))
//! ```
//!
//! ## Evidence
//! The program builds `Conv2d` layers, uses autocast or a 16-bit dtype, and no file mentions `channels_last`. This is informational:
//! a recorded run decides.
//!
//! ## Fix
//! Call `model = model.to(memory_format=torch.channels_last)` once, and convert each batch of images the same way.
//!
//! ## When it is wrong
//! Only the first layer has one or three channels, the images are very small, or the model trains in fp32.
//!
//! ## References
//! PyTorch tutorial, "Channels Last Memory Format in PyTorch".
//! <https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html>
//!
//! ---
//! ## 检测什么
//! 在 CUDA 上以混合精度训练含二维卷积的模型，而程序从不使用 channels-last 布局。
//! ## 为什么慢
//! Tensor Core 需要通道在最内层。默认布局下，cuDNN 在许多卷积前后都要转置。
//! ## 证据
//! 程序构建了 `Conv2d` 层，使用 autocast 或 16 位类型，且没有文件提到 `channels_last`。只作提示：由运行决定。
//! ## 怎么改
//! 一次性 `model = model.to(memory_format=torch.channels_last)`，每个图像 batch 也一样。
//! ## 何时不成立
//! 只有第一层是一个或三个通道、图像很小，或使用 fp32。
//! ## 参考
//! PyTorch 教程“Channels Last Memory Format in PyTorch”。
//! <https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html>

use crate::rules::prelude::*;

pub const ID: &str = "convolutions-without-channels-last";
pub const SEVERITY: Severity = Severity::Information;
pub const CHECK: Check = Check::Module(check);

fn check(project: &Project, module: ModuleId, report: &mut Report<'_>) {
    let Some(code) = cuda_step_loop(project, module) else {
        return;
    };
    let lower = ["autocast", "bfloat16", "float16", "GradScaler"];
    if project.program_mentions(module, &["channels_last"]) || !project.program_mentions(module, &lower) {
        return;
    }
    if !project
        .program_calls(module)
        .any(|call| call.calls("torch.nn.Conv2d"))
    {
        return;
    }
    report
        .in_source(
            &code.in_module().source,
            head(code),
            message!(
                en: "2-D convolutions in mixed precision without the channels-last layout",
                zh: "混合精度的二维卷积没有使用 channels_last 布局"
            ),
        )
        .confidence(Confidence::Medium)
        .advice(message!(
            en: "call `model.to(memory_format=torch.channels_last)` and convert the images the same way",
            zh: "`model.to(memory_format=torch.channels_last)`，图像张量也一样"
        ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRES: &str = "import torch\nmodel = torch.nn.Conv2d(3, 8, 3).cuda()\nfor x in loader:\n    with torch.autocast('cuda', dtype=torch.bfloat16):\n        loss = model(x)\n    loss.backward()\n";

    #[test]
    fn fires() {
        assert_eq!(findings_of(ID, &[("train.py", FIRES)]).len(), 1);
    }

    #[test]
    fn quiet() {
        let set = FIRES.replace(".cuda()", ".cuda().to(memory_format=torch.channels_last)");
        assert!(findings_of(ID, &[("train.py", &set)]).is_empty());
    }

    #[test]
    fn look_alike() {
        assert!(findings_of(ID, &[("train.py", &FIRES.replace("Conv2d", "Conv1d"))]).is_empty());
    }
}
