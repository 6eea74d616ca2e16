//! The ranks of one job side by side: who holds the others up.

use flatout_telemetry::record::{Phase, RunData};
use serde::Serialize;

/// A rank whose own work takes so much longer than the median's holds the others up.
pub const STRAGGLER: f64 = 1.10;

#[derive(Clone, Debug, Serialize)]
pub struct RankRow {
    pub rank: u32,
    pub run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<f64>,
    /// A step's time without waiting for the device: what this rank itself needs. In step with the others, a slow rank shows
    /// here, not in the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    pub straggler: bool,
}

pub fn row(rank: u32, data: &RunData) -> RankRow {
    let steps: u64 = data.steps.iter().map(|tick| tick.steps).sum();
    let sum = |phase| data.steps.iter().map(|tick| tick.phase_ms(phase)).sum::<f64>();
    let seconds: f64 = data
        .steps
        .iter()
        .filter(|tick| tick.steps > 0)
        .map(|tick| tick.dt)
        .sum();
    let a_step = |ms: f64| (steps > 0).then(|| ms / steps as f64);
    let utilisation: Vec<f64> = data
        .samples
        .iter()
        .flat_map(|sample| sample.gpus.values().filter_map(|gpu| gpu.util))
        .collect();
    RankRow {
        rank,
        run: data.info.id.clone(),
        host: data.info.host.as_ref().map(|host| host.name.clone()),
        steps,
        step_ms: a_step(seconds * 1e3),
        own_ms: a_step(sum(Phase::Data) + sum(Phase::Transfer) + sum(Phase::Compute) + sum(Phase::Other)),
        data_ms: a_step(sum(Phase::Data)),
        utilisation: (!utilisation.is_empty()).then(|| flatout_core::stats::mean(&utilisation)),
        straggler: false,
    }
}

/// Marks the ranks that hold the others up. One alone has nobody to hold up.
pub fn mark(rows: &mut [RankRow]) {
    let mut own: Vec<f64> = rows.iter().filter_map(|row| row.own_ms).collect();
    if own.len() < 2 {
        return;
    }
    own.sort_by(f64::total_cmp);
    // Of two, the faster is the measure.
    let measure = own[(own.len() - 1) / 2];
    for row in rows {
        row.straggler = row
            .own_ms
            .is_some_and(|own| measure > 0.0 && own > measure * STRAGGLER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_telemetry::{PhaseTime, StepTick};

    fn rank(data_ms: f64) -> RunData {
        let time = |ms| PhaseTime {
            ms,
            ..PhaseTime::default()
        };
        let tick = StepTick {
            t: 1.0,
            dt: 1.0,
            steps: 10,
            phases: [(Phase::Data, time(data_ms)), (Phase::Sync, time(900.0 - data_ms))].into(),
            ..StepTick::default()
        };
        RunData {
            steps: vec![tick],
            ..RunData::default()
        }
    }

    #[test]
    fn the_slow_rank_is_marked_though_all_take_the_same_step() {
        let mut rows: Vec<RankRow> = [100.0, 105.0, 400.0]
            .iter()
            .enumerate()
            .map(|(index, data)| row(index as u32, &rank(*data)))
            .collect();
        mark(&mut rows);
        assert_eq!(
            rows.iter().map(|row| row.straggler).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert_eq!(rows[2].step_ms, Some(100.0));
        let mut alone = vec![row(0, &RunData::default())];
        mark(&mut alone);
        assert!(!alone[0].straggler && alone[0].step_ms.is_none());
    }
}
