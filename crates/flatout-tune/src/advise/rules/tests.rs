//! The seeds' table and formulas, and where the machine overrules them.

use super::*;

fn value(machine: &Machine, question: &Question, key: &str) -> Option<String> {
    all(machine, question)
        .into_iter()
        .find(|advice| advice.key == key)
        .map(|advice| advice.value)
}

fn machine(gpu: &str, gpus: usize, cpus: usize) -> Machine {
    let mut machine = Machine::here().with_gpu(gpu, gpus).unwrap().with_cpus(cpus);
    machine.memory_bytes = Some(256 << 30);
    machine
}

#[test]
fn the_seeds_table_and_formula() {
    let question = Question::default();
    for (gpu, batch) in [("A100", "512"), ("RTX 3090", "256"), ("RTX 2080", "128")] {
        assert_eq!(
            value(&machine(gpu, 1, 20), &question, "loader.batch_size").as_deref(),
            Some(batch)
        );
    }
    // Their own case: 20 cores, batch 512.
    assert_eq!(
        value(&machine("A100", 1, 20), &question, "loader.num_workers").as_deref(),
        Some("8")
    );
    assert_eq!(
        value(&machine("RTX 3090", 4, 64), &question, "loader.num_workers").as_deref(),
        Some("32")
    );
}

#[test]
fn the_machine_wins_over_the_formula() {
    let question = Question::default();
    assert_eq!(
        value(&machine("A100", 1, 2), &question, "loader.num_workers").as_deref(),
        Some("1")
    );
    assert_eq!(
        value(&machine("A100", 1, 1), &question, "loader.num_workers").as_deref(),
        Some("0")
    );
    assert_eq!(
        value(&machine("A100", 4, 8), &question, "loader.num_workers").as_deref(),
        Some("4")
    );
}

#[test]
fn data_and_model_count() {
    let one = machine("A100", 1, 32);
    let sized = |samples| Question {
        samples: Some(samples),
        ..Question::default()
    };
    assert_eq!(
        value(&one, &sized(5_000_000), "loader.batch_size").as_deref(),
        Some("1024")
    );
    assert_eq!(
        value(&one, &sized(5_000_000), "loader.prefetch_factor").as_deref(),
        Some("4")
    );
    assert_eq!(
        value(&one, &sized(50_000), "loader.num_workers").as_deref(),
        Some("4")
    );
    assert_eq!(
        value(&one, &sized(1_000), "loader.batch_size").as_deref(),
        Some("32")
    );
    let recurrent = Question {
        model: Some(Model::Recurrent),
        ..Question::default()
    };
    assert_eq!(value(&one, &recurrent, "compile").as_deref(), Some("off"));
    assert_eq!(
        value(&machine("V100", 1, 8), &recurrent, "amp").as_deref(),
        Some("fp16")
    );
    assert_eq!(value(&machine("V100", 1, 8), &recurrent, "tf32"), None);
}
