use super::*;
use flatout_record::{GpuInfo, GpuSample};

fn info() -> RunInfo {
    let gpu = GpuInfo {
        name: Some("NVIDIA H200".into()),
        mem_total_bytes: Some(100),
        temp_slowdown_c: Some(90.0),
        ..GpuInfo::default()
    };
    RunInfo {
        interval_s: Some(1.0),
        gpus: BTreeMap::from([(0, gpu)]),
        ..RunInfo::default()
    }
}

fn samples(count: u32, gpu: impl Fn(u32) -> GpuSample) -> Vec<Sample> {
    (0..count)
        .map(|index| Sample {
            t: f64::from(index + 1),
            gpus: BTreeMap::from([(0, gpu(index))]),
            ..Sample::default()
        })
        .collect()
}

fn busy(_: u32) -> GpuSample {
    GpuSample {
        util: Some(0.97),
        sm_activity: Some(0.9),
        mem_used_bytes: Some(60),
        power_w: Some(600.0),
        power_limit_w: Some(700.0),
        temp_c: Some(70.0),
        throttle: Some(vec!["power-cap".into()]),
        ..GpuSample::default()
    }
}

fn status(verdict: &Verdict, aspect: Aspect) -> Status {
    verdict.gpus[&0]
        .marks
        .iter()
        .find(|mark| mark.aspect == aspect)
        .unwrap()
        .status
}

#[test]
fn a_busy_gpu_is_good_in_every_aspect() {
    let verdict = Verdict::of(&info(), &samples(60, busy));
    assert!(verdict.faults().is_empty(), "{:?}", verdict.faults());
    let gpu = &verdict.gpus[&0];
    assert_eq!((verdict.ticks, verdict.duration_s), (60, 60.0));
    assert_eq!(
        gpu.energy,
        Some(Energy {
            joules: 36_000.0,
            counted: false
        })
    );
    assert_eq!(gpu.throttle_s["power-cap"], 60.0);
    assert_eq!(
        gpu.notes.iter().map(|note| note.id.as_str()).collect::<Vec<_>>(),
        ["power-cap"]
    );
    assert_eq!(
        gpu.marks.iter().map(|mark| mark.aspect).collect::<Vec<_>>(),
        Aspect::ALL
    );
}

#[test]
fn faults_are_found() {
    let verdict = Verdict::of(
        &info(),
        &samples(60, |index| GpuSample {
            util: Some(if index % 2 == 0 { 0.8 } else { 0.1 }),
            mem_used_bytes: Some(98),
            power_w: Some(200.0),
            power_limit_w: Some(700.0),
            energy_j: Some(f64::from(index) * 200.0),
            temp_c: Some(91.0),
            throttle: Some(vec!["thermal-hw".into()]),
            ..GpuSample::default()
        }),
    );
    for aspect in Aspect::ALL {
        assert_eq!(status(&verdict, aspect), Status::Bad, "{aspect:?}");
    }
    assert_eq!(
        verdict.gpus[&0].energy,
        Some(Energy {
            joules: 59.0 * 200.0,
            counted: true
        })
    );
    assert_eq!(
        verdict.gpus[&0].utilisation.as_ref().unwrap().dips.period_s,
        Some(2.0)
    );
}

#[test]
fn what_was_not_read_stays_unknown() {
    let verdict = Verdict::of(&info(), &samples(60, |_| GpuSample::default()));
    assert!(
        Aspect::ALL
            .iter()
            .all(|aspect| status(&verdict, *aspect) == Status::Unknown)
    );
    assert!(verdict.gpus[&0].energy.is_none() && verdict.gpus[&0].utilisation.is_none());
    assert!(Verdict::of(&info(), &[]).gpus.is_empty());
}

#[test]
fn too_few_ticks_are_not_judged() {
    let verdict = Verdict::of(&info(), &samples(3, busy));
    assert_eq!(status(&verdict, Aspect::Utilisation), Status::Unknown);
    assert_eq!(verdict.gpus[&0].marks[0].value, Some(0.97));
}

#[test]
fn notes_utilization_that_hides_idle_sms() {
    let verdict = Verdict::of(
        &info(),
        &samples(60, |index| GpuSample {
            sm_activity: Some(0.2),
            ..busy(index)
        }),
    );
    assert!(
        verdict.gpus[&0]
            .notes
            .iter()
            .any(|note| note.id == "idle-sms-behind-utilisation")
    );
}

#[test]
fn buffered_readings_replace_single_readings() {
    let verdict = Verdict::of(
        &info(),
        &samples(60, |index| GpuSample {
            util_fine: Some(vec![0.0, 1.0]),
            ..busy(index)
        }),
    );
    assert!((verdict.gpus[&0].utilisation.as_ref().unwrap().spread.mean - 0.5).abs() < 1e-9);
}

#[test]
fn a_gpu_that_is_lost_does_not_count_as_idle() {
    let mut all = samples(60, busy);
    all[30..].iter_mut().for_each(|sample| sample.gpus.clear());
    let verdict = Verdict::of(&info(), &all);
    assert_eq!(verdict.ticks, 60);
    assert!((verdict.gpus[&0].utilisation.as_ref().unwrap().spread.mean - 0.97).abs() < 1e-9);
}

#[test]
fn infers_the_interval_if_the_record_lacks_it() {
    let info = RunInfo {
        interval_s: None,
        ..info()
    };
    let mut all = samples(10, busy);
    all.iter_mut().for_each(|sample| sample.t *= 2.0);
    assert_eq!(Verdict::of(&info, &all).duration_s, 20.0);
    assert_eq!(Verdict::of(&info, &all[..1]).ticks, 1);
}

#[test]
fn the_verdict_survives_json() {
    let verdict = Verdict::of(&info(), &samples(60, busy));
    let text = serde_json::to_string(&verdict).unwrap();
    assert!(text.contains("\"schema\":1") && text.contains("\"p95\":"));
    assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
}
