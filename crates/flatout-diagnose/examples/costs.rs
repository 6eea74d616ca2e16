use flatout_diagnose::{Analysis, known};
use flatout_telemetry::Record;
fn main() {
    for path in std::env::args().skip(1) {
        let data = Record::open(std::path::Path::new(&path)).unwrap().load();
        let analysis = Analysis::new(&data);
        let wall = analysis.window.as_ref().map_or(0.0, |w| w.wall_s());
        println!("{path} wall {wall:.1}");
        println!(
            "  workers {:?} usable {:?} desched {:?}",
            analysis.workers,
            analysis.usable_cpus(),
            analysis
                .account
                .as_ref()
                .map(|a| a.seconds(flatout_diagnose::account::activity::Activity::Descheduled))
        );
        for c in &analysis.lines.worker {
            println!("  worker {} {} {:.2}", c.hot.function, c.hot.line, c.seconds);
        }
        for cost in known::costs(&analysis) {
            if cost.seconds > wall * 0.04 {
                println!(
                    "  {:?} {:?} {:.2} goes {:.2} hot {}:{} site {} loop {:?} act {:?} text {:?}",
                    cost.part,
                    cost.known,
                    cost.seconds / wall,
                    cost.goes_s / wall,
                    cost.center.hot.function,
                    cost.center.hot.line,
                    cost.center.site.line,
                    cost.center.inner_loop,
                    cost.center.activities,
                    cost.center.text()
                );
            }
        }
    }
}
