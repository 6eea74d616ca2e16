//! What `flatout doctor` looks at, a line a check; tests read it.

fn main() {
    for check in flatout_telemetry::doctor::examine() {
        println!("{} {:?} {}", check.id, check.health, check.text.en);
    }
}
