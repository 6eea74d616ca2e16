//! `flatout monitor`

use crate::context::Context;
use crate::watching::{self, Shape};
use clap::Args;
use flatout_core::interrupt::Interrupt;
use flatout_core::{Failure, Message, Result, message};
use flatout_diagnose::verdict::Aspect;
use flatout_record::RunInfo;
use flatout_record::{self as record, SCHEMA};
use flatout_telemetry::prometheus::{DEFAULT_ADDRESS, PrometheusServer};
use flatout_telemetry::sampler::{interval_from_seconds, job_from_environment};
use flatout_telemetry::sources::gpus::GpuState;
use flatout_telemetry::{GpuScope, Sampler, SamplerOptions};
use flatout_tui::lines::Silent;
use flatout_tui::watch::{CsvLog, Feed, Live, RecordSink, Served, Sink, View, watch};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  flatout monitor                                   the screen; q quits and prints the verdict
  flatout monitor --duration 300 --plain            plain lines for five minutes, then the verdict
  flatout monitor --pid 4711 --interval 0.1         until that process ends
  flatout monitor --json --duration 60 > gpu.jsonl  for programs
  flatout monitor --duration 600 --fail-on low-utilization,hot";

/// A driver without persistence mode takes a second or two to open.
const DRIVER_PATIENCE: Duration = Duration::from_secs(15);

#[derive(Args)]
pub struct Arguments {
    /// Seconds between samples, at least 0.05
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    interval: f64,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    duration: Option<f64>,
    /// Only these GPUs: indices or UUIDs [default: what the environment leaves visible]. AMD GPUs and Ascend NPUs are read too, which has not been run on hardware
    #[arg(long, value_name = "LIST")]
    gpu: Option<String>,
    /// Also watch this process and its children, and stop when it ends
    #[arg(long)]
    pid: Option<u32>,
    /// Also write the samples to this file, as CSV
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    #[command(flatten)]
    shape: Shape,
    /// Serve the newest sample to Prometheus; a port alone listens on loopback
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = DEFAULT_ADDRESS)]
    prometheus: Option<String>,
    /// Only serve Prometheus, without a screen or a record: for a daemon
    #[arg(long, conflicts_with = "shape")]
    serve_only: bool,
    /// Exit with 1 if the verdict has one of these faults
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = watching::fault_parser())]
    fail_on: Vec<Aspect>,
    /// Fail if there is no GPU
    #[arg(long)]
    require_gpu: bool,
    /// Name of the run
    #[arg(long, default_value = "monitor")]
    name: String,
    /// Folder of the run record [default: a new one in $FLATOUT_HOME/runs, else ./.flatout/runs]
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Write no run record
    #[arg(long, conflicts_with = "record")]
    no_record: bool,
}

pub fn about() -> Message {
    message!(en: "Watch GPUs, host and processes, and print a verdict at the end", zh: "监控 GPU、主机和进程，最后给出结论")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    let duration = arguments.duration.map(watching::duration).transpose()?;
    let scope = arguments.gpu.as_deref().map(GpuScope::parse).transpose()?;
    let explicit = scope.is_some();
    let options = SamplerOptions {
        interval: interval_from_seconds(arguments.interval)?,
        gpus: Some(scope.unwrap_or_else(GpuScope::from_environment)),
        host: true,
        pid: arguments.pid,
    };
    let sampler = Sampler::start(&options)?;
    if explicit || arguments.require_gpu {
        require_gpu(&sampler)?;
    }
    let job = job_from_environment().map(|job| job.id);
    let runs = record::runs_folder();
    let recorded = arguments.record.is_some() || !(arguments.no_record || arguments.serve_only);
    let name: PathBuf = match &arguments.record {
        Some(folder) => folder.clone(),
        None => record::folder_name(&arguments.name, job.as_deref()).into(),
    };
    let mut feed = Live::new(sampler, info(&arguments, &name));
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    // Without a server nothing is watched, and nothing recorded.
    if let Some(server) = serve(&arguments, context)? {
        sinks.push(Box::new(Served::new(server, feed.info())));
    }
    let mut folder = None;
    if recorded {
        let info = feed.info().clone();
        let sink = match &arguments.record {
            Some(folder) => RecordSink::create(folder, info, context.language)?,
            None => RecordSink::begin(&runs, job.as_deref(), info, context.language)?,
        };
        folder = Some(sink.folder().to_owned());
        sinks.push(Box::new(sink));
    }
    if let Some(path) = &arguments.log {
        sinks.push(Box::new(CsvLog::create(path, feed.info())?));
    }
    let mut view: Box<dyn View> = if arguments.serve_only {
        Box::new(Silent {
            interrupt: Interrupt::catch(),
            language: context.language,
        })
    } else {
        arguments.shape.view("monitor", context)?
    };
    let outcome = watch(&mut feed, view.as_mut(), &mut sinks, duration);
    drop(view);
    if !arguments.serve_only {
        arguments.shape.end(&outcome.verdict, context);
    }
    if let Some(folder) = folder.filter(|_| arguments.record.is_none()) {
        let folder = folder.display();
        eprintln!(
            "{}",
            context.say(&message!(en: "record: {folder}", zh: "记录：{folder}"))
        );
    }
    Ok(watching::exit_code(&outcome.verdict, &arguments.fail_on, context))
}

fn info(arguments: &Arguments, folder: &std::path::Path) -> RunInfo {
    RunInfo {
        schema: SCHEMA,
        id: folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        name: arguments.name.clone(),
        kind: "monitor".into(),
        command: flatout_core::secrets::own_command(),
        folder: std::env::current_dir().ok(),
        ..RunInfo::default()
    }
}

fn serve(arguments: &Arguments, context: &Context) -> Result<Option<PrometheusServer>> {
    let default = arguments.serve_only.then_some(DEFAULT_ADDRESS);
    let Some(address) = arguments.prometheus.as_deref().or(default) else {
        return Ok(None);
    };
    let server = PrometheusServer::start(address)?;
    let address = server.address();
    eprintln!(
        "{}",
        context
            .say(&message!(en: "serving http://{address}/metrics", zh: "正在提供 http://{address}/metrics"))
    );
    Ok(Some(server))
}

fn require_gpu(sampler: &Sampler) -> Result<()> {
    match sampler.gpus(DRIVER_PATIENCE) {
        GpuState::Unavailable(problem) => Err(problem.into()),
        GpuState::Ready(gpus) if gpus.is_empty() => Err(Failure::new(message!(
            en: "the environment hides all GPUs",
            zh: "环境变量隐藏了所有 GPU"
        ))
        .with_hint(message!(en: "check CUDA_VISIBLE_DEVICES, or select GPUs with --gpu 0", zh: "检查 CUDA_VISIBLE_DEVICES，或用 --gpu 0 指定"))),
        GpuState::Starting => Err(Failure::new(message!(en: "the GPU driver does not respond", zh: "GPU 驱动没有响应"))
            .with_hint(message!(en: "check whether nvidia-smi, amd-smi or npu-smi info works", zh: "检查 nvidia-smi、amd-smi 或 npu-smi info 能否正常运行"))),
        _ => Ok(()),
    }
}
