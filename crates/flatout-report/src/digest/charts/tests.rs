use super::*;
use crate::testing;

#[test]
fn charts_without_values_are_left_out() {
    assert!(Builder::new(&RunInfo::default()).done().is_empty());
    let data = testing::training(40, 0.25);
    let mut builder = Builder::new(&data.info);
    data.samples.iter().for_each(|sample| builder.sample(sample));
    data.steps.iter().for_each(|tick| builder.step(tick));
    let charts = builder.done();
    let keys: Vec<&str> = charts.iter().map(|chart| chart.key).collect();
    assert_eq!(keys, ["busy", "rate", "wait", "loss", "power", "cpu"]);
    let power = charts.iter().find(|chart| chart.key == "power").unwrap();
    assert!(power.curves[1].limit);
}

#[test]
fn what_is_of_no_batch_is_not_counted() {
    let mut tick = testing::training(1, 0.25).steps.remove(0);
    (tick.dt, tick.steps) = (1.0, 1);
    tick.phases.clear();
    assert_eq!(batches_ms(&tick), 1000.0);
    for (phase, ms) in [(Phase::Compute, 40.0), (Phase::Sync, 10.0), (Phase::Eval, 600.0)] {
        tick.phases.entry(phase).or_default().ms = ms;
    }
    assert_eq!(batches_ms(&tick), 50.0);
}
