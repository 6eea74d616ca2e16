//! `flatout export CHECKPOINT --out FILE.onnx`

use crate::context::Context;
use clap::Args;
use flatout_core::{Message, Result, message, units};
use flatout_train::export::{self, Port};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "Examples:
  flatout export out/stocks --out stocks.onnx
  flatout export out/clicks/last.safetensors --out clicks.onnx";

#[derive(Args)]
pub struct Arguments {
    /// A checkpoint, or an output folder (its best checkpoint)
    checkpoint: PathBuf,
    /// ONNX file to write, whole or not at all
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub fn about() -> Message {
    message!(en: "Write a trained model as ONNX, with its preprocessing", zh: "把训练好的模型连同预处理导出为 ONNX")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
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
