//! Values to suggest, computed from what the program may use and what it needs. Never the machine's core count.

use crate::analysis::Analysis;
use crate::analysis::loaders::Loader;
use flatout_telemetry::Phase;

/// Workers that would keep up with the steps, at most what the usable CPUs carry beside the training process.
/// `None` when the usable CPUs are unknown or leave no room for a worker.
pub fn workers(analysis: &Analysis, loader: &Loader) -> Option<u64> {
    let usable = analysis.usable_cpus()? as u64;
    let room = usable.saturating_sub(1);
    if room == 0 {
        return None;
    }
    let window = analysis.window.as_ref()?;
    let rest_ms = (window.step_ms() - window.ms_per_step(Phase::Data)).max(1e-3);
    let prepare_ms = loader
        .prepare_ms()
        .unwrap_or_else(|| window.ms_per_step(Phase::Data));
    // One more than the average needs, because batches do not all cost the same.
    let needed = (prepare_ms / rest_ms).ceil() as u64 + 1;
    Some(needed.clamp(1, room))
}

/// The least time the window could take if input and steps overlapped perfectly: neither below the steps' own time nor
/// below the CPU time the program used spread over the usable CPUs.
pub fn overlapped_s(analysis: &Analysis) -> Option<f64> {
    let window = analysis.window.as_ref()?;
    let without_data = window.wall_s() - window.seconds(Phase::Data);
    let cpu_bound = match (analysis.host.tree_cpus, analysis.usable_cpus()) {
        (Some(used), Some(usable)) => used * window.wall_s() / usable as f64,
        _ => 0.0,
    };
    Some(without_data.max(cpu_bound).min(window.wall_s()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Build;
    use serde_json::json;

    fn suggested(cpus: usize, data_share: f64) -> Option<u64> {
        let data = Build::steady(20)
            .phase(Phase::Data, data_share)
            .phase(Phase::Compute, 1.0 - data_share)
            .cpus(cpus)
            .loader(0, json!({"num_workers": 0}))
            .done();
        let analysis = Analysis::new(&data);
        workers(&analysis, analysis.train_loader()?)
    }

    #[test]
    fn enough_but_never_more_than_the_cpus() {
        assert_eq!(suggested(16, 0.75), Some(4));
        assert_eq!(suggested(4, 0.99), Some(3));
        assert_eq!(suggested(1, 0.9), None);
    }
}
