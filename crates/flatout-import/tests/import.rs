//! Logs of other tools as they really look.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_import::{Format, ImportError, ImportOptions, Importer, Report, log_csv};
use flatout_record::{GpuSample, HostSample, Sample};
use proptest::prelude::*;
use std::io::Cursor;
use std::path::Path;

fn open(text: &[u8], options: &ImportOptions) -> Result<Importer, ImportError> {
    Importer::from_reader(
        Box::new(Cursor::new(text.to_vec())),
        Path::new("gpu.log"),
        options,
    )
}

fn read(text: &str) -> (Format, Vec<Sample>, Report) {
    read_with(text.as_bytes(), &ImportOptions::default())
}

fn read_with(text: &[u8], options: &ImportOptions) -> (Format, Vec<Sample>, Report) {
    let importer = open(text, options).unwrap();
    let format = importer.format();
    let mut samples = Vec::new();
    let report = importer.each(|sample| samples.push(sample.clone()));
    (format, samples, report)
}

const QUERY: &str = "\
timestamp, index, name, uuid, utilization.gpu [%], utilization.memory [%], memory.total [MiB], memory.used [MiB], power.draw [W], power.limit [W], temperature.gpu, clocks.current.sm [MHz], clocks_throttle_reasons.active, fan.speed [%]
2024/05/21 10:11:12.123, 0, NVIDIA A10, GPU-aaaa, 3 %, 1 %, 23028 MiB, 717 MiB, 59.91 W, 150.00 W, 44, 1695 MHz, 0x0000000000000000, [N/A]
2024/05/21 10:11:12.125, 1, NVIDIA A10, GPU-bbbb, 100 %, 60 %, 23028 MiB, 20000 MiB, 149.50 W, 150.00 W, 71, 1410 MHz, 0x0000000000000044, [N/A]
2024/05/21 10:11:13.124, 0, NVIDIA A10, GPU-aaaa, 37100 %, 1 %, 23028 MiB, 717 MiB, [N/A], 150.00 W, 44, 1695 MHz, 0x0000000000000001, [N/A]
2024/05/21 10:11:13.126, 1, NVIDIA A10, GPU-bbbb, [Unknown Error], 60 %, 23028 MiB, 20000 MiB, 149.50 W, 150.00 W, 71, 1410 MHz, 0x0000000000000004, [N/A]
";

#[test]
fn nvidia_smi_with_units() {
    let (format, samples, report) = read(QUERY);
    assert_eq!((format, samples.len(), report.rows), (Format::NvidiaSmi, 2, 4));
    assert_eq!((samples[0].t, samples[1].t), (0.0, 1.001));
    let busy = &samples[0].gpus[&1];
    assert_eq!((busy.util, busy.mem_util), (Some(1.0), Some(0.6)));
    assert_eq!(busy.mem_used_bytes, Some(20_000 << 20));
    assert_eq!((busy.power_w, busy.power_limit_w), (Some(149.5), Some(150.0)));
    assert_eq!((busy.temp_c, busy.sm_clock_mhz), (Some(71.0), Some(1410.0)));
    assert_eq!(busy.throttle.as_ref().unwrap(), &["power-cap", "thermal-hw"]);
    assert_eq!(samples[0].gpus[&0].util, Some(0.03));
    // Clamped and counted; unknown, and not 0.
    assert_eq!((samples[1].gpus[&0].util, report.clamped), (Some(1.0), 1));
    assert_eq!(
        (samples[1].gpus[&0].power_w, samples[1].gpus[&1].util),
        (None, None)
    );
    assert_eq!(report.ignored_columns, ["fan.speed [%]"]);
    assert_eq!(report.gpus[&1].name.as_deref(), Some("NVIDIA A10"));
    assert_eq!(report.gpus[&1].mem_total_bytes, Some(23_028 << 20));
    assert_eq!(report.gpus[&0].uuid.as_deref(), Some("GPU-aaaa"));
    assert_eq!(report.started_unix_ms, Some(1_716_286_272_123));
    assert_eq!(report.bad_rows, 0);
}

#[test]
fn nvidia_smi_without_units_index_or_header() {
    let rows = "2024/05/21 10:11:12.123, 97, 512\n2024/05/21 10:11:12.130, 3, 100\n2024/05/21 10:11:13.123, 98, 513\n2024/05/21 10:11:13.130, 4, 101\n";
    let Err(ImportError::NoHeader { fields: 3, .. }) = open(rows.as_bytes(), &ImportOptions::default())
    else {
        panic!("rows without a header were read");
    };
    let options = ImportOptions {
        columns: Some("timestamp,utilization.gpu,memory.used".into()),
        ..ImportOptions::default()
    };
    let (_, samples, report) = read_with(rows.as_bytes(), &options);
    assert_eq!((samples.len(), report.rows), (2, 4));
    assert_eq!(samples[1].gpus[&0].util, Some(0.98));
    assert_eq!(samples[1].gpus[&1].mem_used_bytes, Some(101 << 20));
    // By bus where there is no index.
    let (_, samples, _) =
        read("pci.bus_id, utilization.gpu\n0000:18, 5\n0000:2A, 6\n0000:18, 7\n0000:2A, 8\n");
    assert_eq!(samples.len(), 2);
    assert_eq!(
        (samples[1].gpus[&0].util, samples[1].gpus[&1].util),
        (Some(0.07), Some(0.08))
    );
    assert_eq!(samples[1].t, 1.0);
}

#[test]
fn several_runs_in_one_log_and_a_clock_that_was_set_back() {
    let text = "timestamp, index, utilization.gpu [%]\n2024/05/21 10:00:00.000, 0, 1 %\n2024/05/21 10:00:02.000, 0, 2 %\n\
                timestamp, index, temperature.gpu\n2024/05/21 09:00:00.000, 0, 50\n2024/05/21 09:00:02.000, 0, 51\n";
    let (_, samples, report) = read(text);
    let times: Vec<f64> = samples.iter().map(|sample| sample.t).collect();
    assert_eq!(times, [0.0, 2.0, 4.0, 6.0]);
    assert_eq!(report.backward_steps, 1);
    assert_eq!(
        (samples[3].gpus[&0].util, samples[3].gpus[&0].temp_c),
        (None, Some(51.0))
    );
}

#[test]
fn dmon_with_and_without_time() {
    let text = "\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx      W      C      C      %      %      %      %    MHz    MHz
    0     72     34      -     12      5      0      0   3201    345
    1    650     66     70     99     60      0      0   3201   1980
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx      W      C      C      %      %      %      %    MHz    MHz
    0     73     35      -     13      5      0      0   3201    345
    1    651     66     70      -     60      0      0   3201   1980
";
    let (format, samples, report) = read(text);
    assert_eq!((format, samples.len(), report.bad_rows), (Format::Dmon, 2, 0));
    assert_eq!((samples[0].t, samples[1].t), (0.0, 1.0));
    let gpu = &samples[0].gpus[&1];
    assert_eq!(
        (gpu.util, gpu.mem_util, gpu.power_w),
        (Some(0.99), Some(0.6), Some(650.0))
    );
    assert_eq!(
        (gpu.sm_clock_mhz, gpu.mem_clock_mhz),
        (Some(1980.0), Some(3201.0))
    );
    assert_eq!(samples[1].gpus[&1].util, None);
    assert_eq!(report.ignored_columns, ["mtemp", "enc", "dec"]);

    let timed = "#Date       Time        gpu     sm     fb  rxpci\n#YYYYMMDD   HH:MM:SS    Idx      %     MB   MB/s\n \
                 20240521   23:59:59      0     50    100     10\n 20240522   00:00:01      0     51    101     11\n";
    let (_, samples, _) = read(timed);
    assert_eq!((samples[0].t, samples[1].t), (0.0, 2.0));
    assert_eq!(samples[1].gpus[&0].mem_used_bytes, Some(101 << 20));
    assert_eq!(samples[1].gpus[&0].pcie_rx_bytes_s, Some(11.0 * 1024.0 * 1024.0));
}

const GPUSTAT: &str = r#"{
    "hostname": "box",
    "driver_version": "580.95.05",
    "query_time": "2024-05-21T10:11:12.500000",
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-aaaa",
            "name": "NVIDIA A10",
            "temperature.gpu": 44,
            "fan.speed": null,
            "utilization.gpu": 3,
            "power.draw": 60,
            "enforced.power.limit": 150,
            "memory.used": 717,
            "memory.total": 23028,
            "processes": [{"username": "u}{", "command": "python \" {", "gpu_memory_usage": 700, "pid": 42}]
        }
    ]
}
"#;

#[test]
fn gpustat_again_and_again_also_cut_off() {
    let later = GPUSTAT.replace("10:11:12", "10:11:14");
    let cut = &GPUSTAT[..GPUSTAT.len() / 2];
    let flat = GPUSTAT.replace("10:11:12", "10:11:15").replace('\n', "") + "\n";
    let (format, samples, report) = read(&format!("{GPUSTAT}{cut}\n{later}{flat}"));
    assert_eq!((format, samples.len(), report.bad_rows), (Format::Gpustat, 3, 1));
    assert_eq!(
        samples.iter().map(|sample| sample.t).collect::<Vec<_>>(),
        [0.0, 2.0, 3.0]
    );
    let gpu = &samples[0].gpus[&0];
    assert_eq!(
        (gpu.util, gpu.power_w, gpu.temp_c),
        (Some(0.03), Some(60.0), Some(44.0))
    );
    assert_eq!(gpu.mem_free_bytes, Some((23_028 - 717) << 20));
    assert_eq!(gpu.processes.as_ref().unwrap()[0].pid, 42);
    assert_eq!(report.gpus[&0].mem_total_bytes, Some(23_028 << 20));
    assert_eq!(report.versions["driver"], "580.95.05");
}

#[test]
fn blocks_read_by_several_threads_come_together_in_order() {
    // The header changes in the middle of a log of many blocks; a GPU's rows may stand in two of them.
    let mut text = String::from("timestamp, index, name, utilization.gpu [%]\n");
    let row = |second: u32, gpu: u32, rest: &str| {
        let (minute, hour) = (second / 60 % 60, second / 3600);
        format!(
            "2024/05/21 {hour:02}:{minute:02}:{:02}.000, {gpu}, NVIDIA A10, {rest}\n",
            second % 60
        )
    };
    for second in 0..40_000u32 {
        if second == 20_000 {
            text += "timestamp, index, name, temperature.gpu\n";
        }
        let value = second % 101;
        let rest = if second < 20_000 {
            format!("{value} %")
        } else {
            value.to_string()
        };
        text += &(row(second, 0, &rest) + &row(second, 1, &rest));
    }
    assert!(text.len() > 8 * (256 << 10), "many blocks");
    let (_, samples, report) = read(&text);
    assert_eq!((samples.len(), report.rows, report.bad_rows), (40_000, 80_000, 0));
    for (second, sample) in samples.iter().enumerate() {
        assert_eq!((sample.t, sample.gpus.len()), (second as f64, 2));
        let value = (second % 101) as f64;
        for gpu in sample.gpus.values() {
            let expected = if second < 20_000 {
                (Some(value / 100.0), None)
            } else {
                (None, Some(value))
            };
            assert_eq!((gpu.util, gpu.temp_c), expected, "second {second}");
        }
    }
    // Objects too; one of them is cut off, far from the beginning.
    let objects: Vec<String> = (0..4000)
        .map(|minute| {
            GPUSTAT.replace(
                "10:11:12",
                &format!("{:02}:{:02}:12", minute / 60 % 24, minute % 60),
            )
        })
        .collect();
    let mut text = objects[..1440].concat();
    text += &objects[1440][..200];
    text += "\n";
    text += &objects[..1440].concat().replace("05-21", "05-22");
    let (_, samples, report) = read(&text);
    assert_eq!((samples.len(), report.bad_rows), (2880, 1));
    assert!(samples.windows(2).all(|pair| pair[1].t - pair[0].t == 60.0));
    let line = objects[..1440].concat().lines().count() + objects[1440][..200].lines().count();
    assert_eq!(report.first_bad.unwrap().0, line as u64);
}

#[test]
fn reports_each_throttle_reason_once() {
    let text = "index, clocks_event_reasons.active, clocks_event_reasons.sw_power_cap\n0, 0x0000000000000004, Active\n0, [N/A], Not Active\n";
    let (_, samples, _) = read(text);
    assert_eq!(samples[0].gpus[&0].throttle.as_ref().unwrap(), &["power-cap"]);
    let text = "index, clocks_event_reasons.sw_power_cap, clocks_event_reasons.gpu_idle\n0, Active, Active\n0, Not Active, Not Active\n0, [N/A], [N/A]\n";
    let (_, samples, _) = read(text);
    let reasons: Vec<_> = samples
        .iter()
        .map(|sample| sample.gpus[&0].throttle.clone())
        .collect();
    assert_eq!(
        reasons,
        [Some(vec!["power-cap".into(), "idle".into()]), Some(vec![]), None]
    );
}

#[test]
fn our_own_csv_comes_back() {
    let gpu = |util: f64| GpuSample {
        util: Some(util),
        sm_activity: Some(0.25),
        mem_used_bytes: Some(123_456_789),
        throttle: Some(vec!["power-cap".into(), "thermal-sw".into()]),
        ..GpuSample::default()
    };
    let free = GpuSample {
        throttle: Some(Vec::new()),
        ..GpuSample::default()
    };
    let sample = |t: f64| Sample {
        t,
        gpus: [
            (0, gpu(0.5)),
            (1, GpuSample::default()),
            (2, free.clone()),
            (3, gpu(1.0)),
        ]
        .into(),
        host: HostSample {
            cpu_util: Some(0.75),
            disk_busy: Some(0.1),
            ..HostSample::default()
        },
        ..Sample::default()
    };
    let written: Vec<Sample> = [0.0, 1.0, 2.5].map(sample).into();
    let mut text = log_csv::header();
    for sample in &written {
        text += &log_csv::rows(1_716_286_272_000, sample);
    }
    let (format, samples, report) = read(&text);
    assert_eq!((format, report.ignored_columns.len()), (Format::Flatout, 0));
    assert_eq!(samples, written);
    assert_eq!(report.started_unix_ms, Some(1_716_286_272_000));
    let alone = Sample {
        host: written[0].host.clone(),
        ..Sample::default()
    };
    let (_, samples, _) = read(&(log_csv::header() + &log_csv::rows(0, &alone)));
    assert_eq!(samples, [alone]);
}

#[test]
fn wrong_encodings_torn_lines_and_foreign_files() {
    let utf16: Vec<u8> = [0xFF, 0xFE]
        .into_iter()
        .chain(QUERY.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    assert_eq!(read_with(&utf16, &ImportOptions::default()).1, read(QUERY).1);
    // A name in GBK, Windows line ends, and a last line that was cut off.
    let mut gbk = b"timestamp, index, name, utilization.gpu [%]\r\n".to_vec();
    gbk.extend(b"2024/05/21 10:11:12.123, 0, \xcf\xd4\xbf\xa8, 45 %\r\n2024/05/21 10:11:13.1");
    let (_, samples, report) = read_with(&gbk, &ImportOptions::default());
    assert_eq!((samples.len(), samples[0].gpus[&0].util), (1, Some(0.45)));
    assert_eq!(report.bad_rows, 1);
    let (line, message) = report.first_bad.unwrap();
    assert_eq!(
        (line, message.en.as_str()),
        (3, "line 3 has 1 field, the header has 4")
    );
    for (text, shown) in [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("epoch,loss\n1,2\n", "starts with `epoch,loss`"),
        ("\u{1}\u{2}binary", "is not a log"),
    ] {
        let error = open(text.as_bytes(), &ImportOptions::default()).err().unwrap();
        assert!(error.to_string().contains(shown), "{error}");
    }
    let error = Importer::open(Path::new("/nonexistent/gpu.csv"), &ImportOptions::default())
        .err()
        .unwrap();
    assert!(matches!(error, ImportError::Unreadable { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_log_makes_it_panic(
        head in prop::sample::select(vec!["", QUERY, GPUSTAT, "# gpu pwr sm\n", "t,unix_ms,gpu,util,throttle\n", "\u{feff}index,utilization.gpu\n"]),
        tail in prop::collection::vec(any::<u8>(), 0..300),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut text = head.as_bytes().to_vec();
        let at = cut.index(text.len() + 1);
        text.splice(at..at, tail);
        if let Ok(importer) = open(&text, &ImportOptions::default()) {
            let mut last = 0.0;
            importer.each(|sample| {
                assert!(sample.t >= last && sample.t.is_finite());
                last = sample.t;
                assert!(sample.gpus.values().all(|gpu| gpu.util.is_none_or(f64::is_finite)));
            });
        }
    }

    #[test]
    fn rows_come_back_whatever_the_numbers(rows in prop::collection::vec((0u32..=100, 0u32..200_000, 0u32..1_000_000), 1..50)) {
        let mut text = String::from("index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n");
        for (util, memory, power) in &rows {
            text += &format!("0, {util} %, {memory} MiB, {}.{:02} W\n", power / 100, power % 100);
        }
        let (_, samples, report) = read(&text);
        prop_assert_eq!((samples.len(), report.bad_rows), (rows.len(), 0));
        for (sample, (util, memory, power)) in samples.iter().zip(&rows) {
            let gpu = &sample.gpus[&0];
            prop_assert_eq!(gpu.util, Some(f64::from(*util) / 100.0));
            prop_assert_eq!(gpu.mem_used_bytes, Some(u64::from(*memory) << 20));
            prop_assert_eq!(gpu.power_w, Some(f64::from(*power) / 100.0));
        }
    }
}
