//! `flatout export CHECKPOINT --out FILE`: ONNX, or a module for PyTorch

use crate::context::Context;
use clap::Args;
use flatout_core::{Message, Result, message, units};
use flatout_train::export::{self, Port};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout export out/stocks --out stocks.onnx
  flatout export out/clicks/last.safetensors --out clicks.onnx
  flatout export out/clicks --out clicks_model.py          and clicks_model.safetensors";

#[derive(Args)]
pub struct Arguments {
    /// A checkpoint, or an output folder (its best checkpoint)
    checkpoint: PathBuf,
    /// File to write: an ONNX model, or a Python module for PyTorch if it ends in .py
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub fn about() -> Message {
    message!(en: "Write a trained model for ONNX or PyTorch, with its preprocessing", zh: "把训练好的模型连同预处理导出为 ONNX 或 PyTorch 模块")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    if arguments.out.extension().is_some_and(|ending| ending == "py") {
        let weights = export::pytorch(&arguments.checkpoint, &arguments.out)?;
        let (module, weights) = (arguments.out.display(), weights.display());
        let text = message!(en: "wrote {module} and {weights}; needs torch and safetensors", zh: "已写入 {module} 与 {weights}；需要 torch 与 safetensors");
        eprintln!("{}", text.get(context.language));
        return Ok(ExitCode::SUCCESS);
    }
    let exported = export::onnx(&arguments.checkpoint, &arguments.out)?;
    let (path, size) = (arguments.out.display(), units::bytes(exported.bytes as f64));
    let text = message!(en: "wrote {path} ({size})", zh: "已写入 {path}（{size}）");
    eprintln!("{}", text.get(context.language));
    let (takes, gives) = (
        message!(en: "input", zh: "输入"),
        message!(en: "output", zh: "输出"),
    );
    let ports = exported.inputs.iter().map(|port| (&takes, port));
    for (what, Port { name, kind, shape }) in ports.chain(exported.outputs.iter().map(|port| (&gives, port)))
    {
        eprintln!("  {:<7} {name}: {kind} {shape}", what.get(context.language));
    }
    Ok(ExitCode::SUCCESS)
}
