//! The Prometheus page as a client sees it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_record::{GpuInfo, GpuProcess, GpuSample, HostSample, JobInfo, ProcessSample, RunInfo, Sample};
use flatout_telemetry::prometheus::{PrometheusError, PrometheusServer, Snapshot, page};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

fn snapshot() -> Snapshot {
    let gpu = GpuSample {
        util: Some(0.97),
        energy_j: Some(12_345.5),
        power_w: Some(650.0),
        sm_clock_mhz: Some(1980.0),
        throttle: Some(vec!["power-cap".into()]),
        processes: Some(vec![GpuProcess {
            pid: 42,
            mem_bytes: Some(1 << 30),
            ..GpuProcess::default()
        }]),
        ..GpuSample::default()
    };
    let info = RunInfo {
        gpus: [(
            0,
            GpuInfo {
                name: Some("A \"quoted\\\n\" 名字".into()),
                uuid: Some("GPU-1".into()),
                mem_total_bytes: Some(1 << 37),
                ..GpuInfo::default()
            },
        )]
        .into(),
        job: Some(JobInfo {
            system: "slurm".into(),
            id: "4711".into(),
            fields: [("partition".to_owned(), "gpu".to_owned())].into(),
        }),
        ..RunInfo::default()
    };
    let sample = Sample {
        t: 3.0,
        gpus: [(0, gpu)].into(),
        host: HostSample {
            cpu_util: Some(0.5),
            psi_io: Some(0.01),
            ..HostSample::default()
        },
        processes: [(
            42,
            ProcessSample {
                cpus: Some(1.5),
                ..ProcessSample::default()
            },
        )]
        .into(),
    };
    Snapshot {
        info,
        sample,
        ticks: 4,
        missed: 0,
    }
}

fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_page_contains_only_known_values() {
    let text = page(&snapshot());
    for line in [
        "flatout_gpu_utilization_ratio{gpu=\"0\",uuid=\"GPU-1\"} 0.97",
        "flatout_gpu_energy_joules_total{gpu=\"0\",uuid=\"GPU-1\"} 12345.5",
        "flatout_gpu_sm_clock_hertz{gpu=\"0\",uuid=\"GPU-1\"} 1980000000",
        "flatout_gpu_throttle_active{gpu=\"0\",uuid=\"GPU-1\",reason=\"power-cap\"} 1",
        "flatout_gpu_throttle_active{gpu=\"0\",uuid=\"GPU-1\",reason=\"thermal-hw\"} 0",
        "flatout_gpu_process_memory_bytes{gpu=\"0\",uuid=\"GPU-1\",pid=\"42\"} 1073741824",
        "flatout_host_cpu_utilization_ratio 0.5",
        "flatout_watched_cpu_cores 1.5",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(text.contains("flatout_job_info{system=\"slurm\",job=\"4711\""));
    assert!(!text.contains("temperature"));
}

#[test]
fn promtool_finds_nothing_wrong() {
    let Some(promtool) = flatout_testing::promtool() else {
        return;
    };
    let mut checker = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checker
        .stdin
        .take()
        .unwrap()
        .write_all(page(&snapshot()).as_bytes())
        .unwrap();
    let output = checker.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn clients_are_served_and_strange_ones_survived() {
    let server = PrometheusServer::start("0").unwrap();
    assert!(server.address().ip().is_loopback());
    server.publish(snapshot());
    let get = |path: &str| {
        ask(
            server.address(),
            format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
        )
    };
    let answer = get("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("version=0.0.4"));
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, page(&snapshot()));
    assert!(get("/metrics?x=1").contains("flatout_gpu_utilization_ratio"));
    assert!(get("/").contains("href"));
    assert!(get("/nothing").starts_with("HTTP/1.1 404"));
    assert!(ask(server.address(), b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    let head = ask(server.address(), b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"));
    // Silent clients hold up nobody.
    let silent: Vec<_> = (0..8)
        .map(|_| TcpStream::connect(server.address()).unwrap())
        .collect();
    assert!(get("/metrics").starts_with("HTTP/1.1 200"));
    drop(silent);
    let mut flood = TcpStream::connect(server.address()).unwrap();
    let _ = flood.write_all(&vec![b'x'; 100_000]);
    assert!(get("/metrics").starts_with("HTTP/1.1 200"));
}

#[test]
fn addresses_that_are_wrong_or_taken() {
    for wrong in ["", "nowhere", "127.0.0.1", "127.0.0.1:99999", "a b:1"] {
        let error = PrometheusServer::start(wrong).err().unwrap();
        assert!(matches!(error, PrometheusError::Address { .. }), "{wrong}");
    }
    let first = PrometheusServer::start("127.0.0.1:0").unwrap();
    let taken = first.address().to_string();
    let error = PrometheusServer::start(&taken).err().unwrap();
    assert!(error.to_string().contains("already in use"));
    drop(first);
    // The port is free again soon after.
    let free = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        PrometheusServer::start(&taken).is_ok()
    });
    assert!(free);
}
