use super::*;
use flatout_core::Language;
use flatout_slurm::history_of;
use std::path::Path;

const HEAD: &str = "JobIDRaw|JobID|User|Account|Partition|State|Start|ElapsedRaw|AllocTRES|AdminComment\n";
/// Two GPUs: 98.6% and 0%.
const JOBSTATS: &str = "JS1:H4sIAAAAAAAAA6tWystPSS1WsqpWyjMEkckFpUCehY5SekFpfGlJZk5mVWJJZn4eSM5AycrSQs9MRwmo0qC2thasCKjaqBYANl1sGkcAAAA=";

fn of(rows: &str, records: &[Record]) -> Fleet {
    let mut jobs = Jobs::new(Filter::default());
    let text = format!("{HEAD}{rows}");
    let unreadable = history_of(&mut text.as_bytes(), &mut |row| jobs.add(row)).unwrap();
    jobs.add_unreadable(unreadable.unwrap().lines);
    fleet(jobs, records, Some("7d".to_owned()), None)
}

fn close(hours: Hours, expected: [f64; 4]) {
    let found = [hours.allocated, hours.used, hours.wasted, hours.unknown];
    let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3);
    assert!(near, "{found:?} {expected:?}");
}

/// A record of a job with a steady utilization.
fn record(folder: &Path, job: &str, started_s: u64, seconds: u32, gpus: &[f64]) -> Record {
    std::fs::create_dir_all(folder).unwrap();
    let info = serde_json::json!({
        "schema": 1, "id": "r", "name": "train", "kind": "monitor", "started_unix_ms": started_s * 1000,
        "interval_s": 60.0, "job": {"system": "slurm", "id": job},
    });
    std::fs::write(folder.join("run.json"), info.to_string()).unwrap();
    let mut text = String::new();
    for tick in 0..=seconds / 60 {
        let values: serde_json::Map<String, serde_json::Value> = gpus
            .iter()
            .enumerate()
            .map(|(index, share)| (index.to_string(), serde_json::json!({"util": share})))
            .collect();
        let sample = serde_json::json!({"t": tick * 60, "gpus": values});
        text += &format!("{sample}\n");
    }
    std::fs::write(folder.join("samples.jsonl"), text).unwrap();
    Record::open(folder).unwrap()
}

#[test]
fn hours_are_used_wasted_or_unknown() {
    let fleet = of(
        &format!(
            "7|7|ann|lab|gpu|COMPLETED|1000|36000|gres/gpu:a100=2,gres/gpu=2|{JOBSTATS}\n\
             8|8|bob|lab|gpu|FAILED|1000|3600|gres/gpu=4|\n\
             9|9|bob|lab|cpu|COMPLETED|1000|3600|cpu=4|\n"
        ),
        &[],
    );
    close(fleet.hours, [24.0, 9.86, 10.14, 4.0]);
    assert_eq!((fleet.jobs, fleet.without_gpus, fleet.with_jobstats), (2, 1, 1));
    let names: Vec<&str> = fleet.users.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["ann", "bob"]);
    assert_eq!(fleet.users[1].hours.utilization(), None);
    let causes: Vec<&str> = fleet.causes.iter().map(|row| row.cause.as_str()).collect();
    assert_eq!(causes, ["some-gpus-never-used"]);
    assert_eq!((fleet.talks.len(), fleet.talks[0].unused_gpus), (1, 1));
    let text = text::fleet(&fleet, false, Language::English, 80, false);
    assert!(
        text.contains("24 GPU-hours in 2 jobs of 2 users")
            && text.contains("fewer GPUs than the job asked for"),
        "{text}"
    );
    // What is unknown is never a number.
    let bob = text.lines().find(|line| line.starts_with("bob")).unwrap();
    assert_eq!(
        bob.split_whitespace().collect::<Vec<_>>(),
        ["bob", "1", "4", "?", "?", "4", "?"]
    );
}

#[test]
fn every_run_of_a_job_counts_once() {
    let fleet = of(
        "7|7|ann|lab|gpu|PREEMPTED|1000|3600|gres/gpu=1|\n\
         7|7|ann|lab|gpu|COMPLETED|9000|3600|gres/gpu=1|\n\
         7|7|ann|lab|gpu|COMPLETED|9000|3600|gres/gpu=1|\n\
         7.batch|7.batch|||gpu|COMPLETED|9000|3600|gres/gpu=1|\n\
         7.0|7.0|||gpu|COMPLETED|9000|3600|gres/gpu=1|\n\
         12|11_1|ann|lab|gpu|RUNNING|9000|60|gres/gpu=1|\n\
         12|11_1|ann|lab|gpu|COMPLETED|9000|3600|gres/gpu=1|\n\
         11|11_[2-9%4]|ann|lab|gpu|PENDING|||gres/gpu=1|\n\
         20|20|ann|lab|gpu|CANCELLED by 0||0||\n\
         torn|li",
        &[],
    );
    close(fleet.hours, [3.0, 0.0, 0.0, 3.0]);
    assert_eq!(
        (fleet.jobs, fleet.requeued, fleet.waiting, fleet.running),
        (3, 1, 1, 0)
    );
    let notes = text::remarks(&fleet);
    assert!(
        notes.iter().any(|note| note.en.contains("2 lines repeat"))
            && notes
                .iter()
                .any(|note| note.en.contains("1 line could not be read")),
        "{notes:?}"
    );
}

#[test]
fn a_record_counts_for_the_time_that_it_saw() {
    let place = tempfile::tempdir().unwrap();
    let start = 1_794_700_000u64;
    let runs = place.path().join("ann/.flatout/runs");
    record(&runs.join("a"), "7", start + 60, 1800, &[0.25]);
    // The same number, years before.
    record(&runs.join("b"), "7", start - 90_000_000, 1800, &[1.0]);
    let records = find_records(&[place.path().to_owned()]);
    assert_eq!(records.len(), 2);
    let fleet = of(
        &format!("7|7|ann|lab|gpu|COMPLETED|{start}|36000|gres/gpu=2|\n"),
        &records,
    );
    assert_eq!(fleet.with_records, 1);
    // One of two GPUs for 31 minutes of 10 hours.
    let seen = 31.0 / 60.0;
    close(fleet.hours, [20.0, seen * 0.25, seen * 0.75, 20.0 - seen]);
    // A node's other GPUs are other jobs': nothing is known.
    let record = record(&runs.join("c"), "8", start, 1800, &[0.5, 0.5]);
    let fleet = of(
        &format!("8|8|ann|lab|gpu|COMPLETED|{start}|3600|gres/gpu=1|\n"),
        &[record],
    );
    close(fleet.hours, [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn pages_and_mails_contain_nothing_that_commands() {
    let hostile = "<script>alert(1)</script>\u{1b}[2J";
    let rows = format!("7|7|{hostile}|<b>lab|gpu|COMPLETED|1000|36000|gres/gpu=2|{JOBSTATS}\n");
    let fleet = of(&rows, &[]);
    for language in [Language::English, Language::Chinese] {
        let options = crate::page::Options {
            language,
            pdf_ready: false,
        };
        let page = page::html(&fleet, options);
        assert!(!page.contains("<script>alert") && !page.contains("<b>lab") && !page.contains('\u{1b}'));
        assert_eq!(page.matches("<script").count(), 2);
        let mail = mail::mails(&fleet, language);
        assert!(!mail.contains('\u{1b}') && mail.starts_with("To: "), "{mail}");
        assert!(!text::fleet(&fleet, true, language, 80, false).contains('\u{1b}'));
    }
    let mail = mail::mails(&fleet, Language::English);
    assert!(
        mail.contains("Subject: Your GPU jobs: 10.1 of 20 GPU-hours went unused")
            && mail.contains("flatout run --"),
        "{mail}"
    );
}

#[test]
fn nothing_at_all_is_an_answer() {
    let fleet = of("", &[]);
    let text = text::fleet(&fleet, false, Language::English, 80, false);
    assert!(text.starts_with("0 GPU-hours in 0 jobs"), "{text}");
    assert_eq!(mail::mails(&fleet, Language::English), "");
}

#[test]
fn a_filter_leaves_the_others_out() {
    let mut jobs = Jobs::new(Filter {
        user: Some("ann,eve".to_owned()),
        ..Filter::default()
    });
    let text =
        format!("{HEAD}1|1|ann|a|g|COMPLETED|1|60|gres/gpu=1|\n2|2|bob|a|g|COMPLETED|1|60|gres/gpu=1|\n");
    history_of(&mut text.as_bytes(), &mut |row| jobs.add(row)).unwrap();
    assert_eq!(jobs.len(), 1);
}

#[test]
fn a_gpu_is_the_same_by_its_uuid() {
    let place = tempfile::tempdir().unwrap();
    let start = 1_794_700_000u64;
    let seen = |name: &str, from: u64, index: u32, uuid: &str| {
        let folder = place.path().join(name);
        record(&folder, "7", from, 1800, &[]);
        let path = folder.join("run.json");
        let mut info: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        info["gpus"] = serde_json::json!({index.to_string(): {"uuid": uuid}});
        std::fs::write(path, info.to_string()).unwrap();
        let text: String = (0..=30)
            .map(|tick| {
                let gpus = serde_json::json!({index.to_string(): {"util": 0.5}});
                format!("{}\n", serde_json::json!({"t": tick * 60, "gpus": gpus}))
            })
            .collect();
        std::fs::write(folder.join("samples.jsonl"), text).unwrap();
        Record::open(&folder).unwrap()
    };
    let row = |gpus: u32| format!("7|7|ann|lab|gpu|COMPLETED|{start}|7200|gres/gpu={gpus}|\n");
    // Requeued: after the restart, the same GPU has another number.
    let records = [seen("a", start, 0, "GPU-1"), seen("b", start + 3600, 3, "GPU-1")];
    let fleet = of(&row(1), &records);
    assert!((fleet.hours.used - 31.0 / 60.0).abs() < 1e-3, "{:?}", fleet.hours);
    // Two tasks, and each sees its own GPU as the first one.
    let records = [seen("c", start, 0, "GPU-1"), seen("d", start, 0, "GPU-2")];
    let fleet = of(&row(2), &records);
    assert!((fleet.hours.used - 31.0 / 60.0).abs() < 1e-3, "{:?}", fleet.hours);
}
