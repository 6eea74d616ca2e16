use super::*;
use crate::text::width::width;
use flatout_record::{GpuInfo, GpuSample, HostSample, RunInfo, Sample};
use std::collections::BTreeMap;

const GIB: u64 = 1 << 30;

fn evaluating(gpus: u32) -> Verdict {
    let gpu = GpuInfo {
        name: Some("NVIDIA H200".into()),
        mem_total_bytes: Some(141 * GIB),
        ..GpuInfo::default()
    };
    let info = RunInfo {
        interval_s: Some(1.0),
        gpus: (0..gpus).map(|index| (index, gpu.clone())).collect(),
        ..RunInfo::default()
    };
    let samples: Vec<Sample> = (0..300u32)
        .map(|second| {
            let busy = second % 30 < 24;
            let sample = GpuSample {
                util: Some(if busy { 0.97 } else { 0.04 }),
                sm_activity: Some(if busy { 0.31 } else { 0.0 }),
                tensor_activity: Some(0.12),
                mem_used_bytes: Some(61 * GIB),
                power_w: Some(if busy { 480.0 } else { 120.0 }),
                power_limit_w: Some(700.0),
                temp_c: Some(71.0),
                throttle: Some(if second < 12 {
                    vec!["power-cap".into()]
                } else {
                    vec![]
                }),
                ..GpuSample::default()
            };
            let host = HostSample {
                cpu_util: Some(0.23),
                iowait: Some(0.003),
                ..HostSample::default()
            };
            Sample {
                t: f64::from(second + 1),
                gpus: (0..gpus).map(|index| (index, sample.clone())).collect(),
                host,
                ..Sample::default()
            }
        })
        .collect();
    Verdict::of(&info, &samples)
}

#[test]
fn one_gpu_in_english() {
    let expected = "\
Verdict after 5 min 00 s (300 samples)

GPU 0  NVIDIA H200
  utilization  mean 78.4% ± 37.3 points · p5 4% · p50 97% · p95 97% · range
               4%–97%
               share of time below 10%: 20%, below 50%: 20%, below 85%: 20%
  dips         9, one every 30 s, each about 6 s, down to 4%
  activity     SM 24.8% · tensor cores 12% · DRAM ?
  power        mean 408 W of 700 W (58.3%), peak 480 W
  memory       peak 61 GiB of 141 GiB (43.3%)
  temperature  mean 71 °C, hottest 71 °C
  throttling   power cap 12 s
  energy       122 kJ (34 Wh), integrated from power readings

  !  utilization           78.4%  ≥ 85%        low
  ✗  fluctuation     37.3 points  < 10 points  fluctuating
  !  power vs limit        58.3%  ≥ 80%        low
  ✓  temperature           71 °C  < 85 °C      good
  ✓  peak memory           43.3%  < 92%        good
  ✓  throttled                0%  < 1%         good
  Utilization hides idle SMs: while it read 85% or more, the SMs had work only
  31% of the time (below 50%, half the GPU is unused). Utilization only means
  that some kernel was running.
  The power limit held the clocks down for 4% of the time. This is normal at
  full load and does not count as throttling.

Host
  CPU mean 23%, p95 23% · I/O wait 0.3%
";
    assert_eq!(verdict(&evaluating(1), Language::English, 80, false), expected);
}

#[test]
fn one_gpu_in_chinese_lines_up() {
    let text = verdict(&evaluating(1), Language::Chinese, 80, false);
    let marks: Vec<&str> = text
        .lines()
        .filter(|line| ["  ✓", "  !", "  ✗"].iter().any(|sign| line.starts_with(sign)))
        .collect();
    assert_eq!(
        marks,
        [
            "  !  利用率              78.4%  ≥ 85%          偏低",
            "  ✗  波动        37.3 个百分点  < 10 个百分点  波动大",
            "  !  功耗占上限          58.3%  ≥ 80%          偏低",
            "  ✓  温度                71 °C  < 85 °C        良好",
            "  ✓  显存峰值            43.3%  < 92%          良好",
            "  ✓  降频时间               0%  < 1%           良好",
        ]
    );
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
}

#[test]
fn eight_gpus_are_a_table() {
    let text = verdict(&evaluating(8), Language::English, 80, false);
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    assert!(
        text.contains(" GPU         util     ±  p5  p95  dips  power  memory  °C\n"),
        "{text}"
    );
    assert!(
        text.contains("   7  H200  78.4%  37.3  4%  97%     9  58.3%   43.3%  71\n"),
        "{text}"
    );
    assert!(
        text.contains("  ✗  fluctuation     < 10 points  all GPUs\n"),
        "{text}"
    );
}

#[test]
fn unknown_values_stay_unknown() {
    let empty = Verdict::of(&RunInfo::default(), &[]);
    assert_eq!(
        verdict(&empty, Language::English, 80, false),
        "Verdict after 0 s (0 samples)\n  no GPU was seen\n"
    );
    let info = RunInfo {
        interval_s: Some(1.0),
        ..RunInfo::default()
    };
    let blank = Sample {
        t: 1.0,
        gpus: BTreeMap::from([(0, GpuSample::default())]),
        ..Sample::default()
    };
    let text = verdict(&Verdict::of(&info, [&blank]), Language::English, 80, false);
    assert!(text.contains("?  utilization     unknown  ≥ 85%"), "{text}");
}
