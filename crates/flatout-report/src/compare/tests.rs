use super::*;
use crate::page::Options;
use crate::testing;
use flatout_compare::Outcome;
use flatout_core::Language;
use flatout_record::RunData;
use serde_json::json;

/// The same work with another share of waiting, so many times as fast.
fn run(name: &str, data_share: f64, times: u64) -> Digest {
    let mut data = testing::training(40, data_share);
    data.info.name = name.into();
    for (index, tick) in data.steps.iter_mut().enumerate() {
        // A little noise, or the intervals are empty.
        let more = (index as u64 * 7) % 3;
        tick.steps = tick.steps * times + more;
        tick.samples = Some(tick.steps * 32);
    }
    data.facts[0].value = json!(32 * times);
    Digest::of(data)
}

#[test]
fn faster_is_better_and_its_cause_is_gone() {
    let runs = [run("naive", 0.6, 1), run("tuned", 0.0, 4)];
    let comparison = Comparison::of(&runs);
    let rate = comparison.figure("samples_per_s").unwrap();
    let change = rate.changes[1].unwrap();
    assert_eq!(change.outcome, Outcome::Better);
    assert!((change.factor.unwrap() - 3.7).abs() < 0.2, "{change:?}");
    let gone: Vec<&str> = comparison
        .findings
        .iter()
        .filter(|row| row.fate == Fate::Gone)
        .map(|row| row.rule.as_str())
        .collect();
    assert!(gone.contains(&"loader-starved"), "{gone:?}");
    assert_eq!(
        comparison.settings[0].values,
        [Some("32".to_owned()), Some("128".to_owned())]
    );
    let text = text::text(&comparison, Language::English, 80, false);
    assert!(text.contains("better") && text.contains("✓ gone"), "{text}");
    assert!(text.contains("% → –"), "{text}");
    assert!(
        text.lines().all(|line| crate::text::width::width(line) <= 80),
        "{text}"
    );
    let chinese = text::text(&comparison, Language::Chinese, 80, false);
    assert!(
        chinese.contains("变好") && chinese.lines().all(|line| crate::text::width::width(line) <= 80),
        "{chinese}"
    );
}

#[test]
fn a_run_without_data_cures_nothing() {
    let empty = || Digest::of(RunData::default());
    for runs in [[run("naive", 0.6, 1), empty()], [empty(), run("naive", 0.6, 1)]] {
        let comparison = Comparison::of(&runs);
        assert!(!comparison.findings.is_empty());
        assert!(
            comparison.findings.iter().all(|row| row.fate == Fate::Unknown),
            "{:?}",
            comparison.findings
        );
    }
}

#[test]
fn the_same_run_twice_differs_in_nothing() {
    let runs = [run("a", 0.6, 1), run("b", 0.6, 1)];
    let comparison = Comparison::of(&runs);
    for row in &comparison.figures {
        let change = row.changes[1].unwrap();
        assert!(
            matches!(change.outcome, Outcome::Noise | Outcome::Untold),
            "{row:?}"
        );
    }
    assert!(comparison.settings.is_empty());
    let limit = Limit::Slower(0.0);
    assert!(comparison.broken(limit).unwrap().is_empty());
}

#[test]
fn a_limit_is_broken_by_a_slower_run_only() {
    let limit = Limit::Slower(0.03);
    let slower = Comparison::of(&[run("a", 0.0, 4), run("b", 0.6, 1)]);
    assert_eq!(slower.broken(limit).unwrap()[0].0, "B");
    let faster = Comparison::of(&[run("a", 0.6, 1), run("b", 0.0, 4)]);
    assert!(faster.broken(limit).unwrap().is_empty());
    let quarter = Limit::Faster(0.25);
    assert!(faster.broken(quarter).unwrap().is_empty());
    assert_eq!(slower.broken(quarter).unwrap()[0].0, "B");
    let empty = Comparison::of(&[run("a", 0.6, 1), Digest::of(RunData::default())]);
    assert!(empty.broken(limit).is_err());
}

#[test]
fn the_time_of_a_batch_is_not_judged_when_batches_differ() {
    let small = run("a", 0.6, 1);
    let mut data = testing::training(40, 0.0);
    for (index, tick) in data.steps.iter_mut().enumerate() {
        tick.steps = 2 + index as u64 % 2;
        tick.samples = Some(tick.steps * 512);
    }
    let comparison = Comparison::of(&[small, Digest::of(data)]);
    let outcome = |key: &str| comparison.figure(key).unwrap().changes[1].unwrap().outcome;
    assert_eq!(outcome("samples_per_s"), Outcome::Better);
    assert_eq!(outcome("step_ms"), Outcome::Changed);
    assert!(
        comparison
            .notes
            .iter()
            .any(|note| note.en.contains("batch sizes differ"))
    );
}

#[test]
fn the_loss_is_compared_after_the_same_samples() {
    let comparison = Comparison::of(&[run("a", 0.6, 1), run("b", 0.0, 4)]);
    let loss = comparison.loss.unwrap();
    let (slow, fast) = (loss.losses[0].unwrap(), loss.losses[1].unwrap());
    // The faster run has seen a quarter of its samples by then.
    assert!(slow < fast, "{slow} {fast}");
}

#[test]
fn every_form_holds_three_runs_and_an_empty_one() {
    let runs = [
        run("<script>x</script>", 0.6, 1),
        run("b|c", 0.3, 2),
        Digest::of(RunData::default()),
    ];
    let comparison = Comparison::of(&runs);
    let text = text::text(&comparison, Language::English, 80, false);
    assert!(text.contains("C: the record is empty"), "{text}");
    let page = html::html(
        &comparison,
        &runs,
        Options {
            language: Language::English,
            pdf_ready: false,
        },
    );
    assert!(!page.contains("<script>x") && page.contains("id=\"chart-rate\""));
    let reversed: Vec<Digest> = runs.into_iter().rev().collect();
    let page = html::html(
        &Comparison::of(&reversed),
        &reversed,
        Options {
            language: Language::English,
            pdf_ready: false,
        },
    );
    assert!(
        page.contains("\"color\":1") && !page.contains("\"color\":0"),
        "the first run has no curve, the second keeps the second color"
    );
    let markdown = markdown::markdown(&comparison, Language::English);
    assert!(
        markdown.contains("b\\|c") && !markdown.contains("<script>x"),
        "{markdown}"
    );
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["runs"][2]["letter"], "C");
}

#[test]
fn several_ranks_are_measured_against_one() {
    let row = |rank: u32| crate::ranks::RankRow {
        rank,
        run: String::new(),
        host: None,
        steps: 400,
        step_ms: None,
        own_ms: None,
        wait_ms: None,
        transfer_ms: None,
        data_ms: None,
        utilisation: None,
        straggler: false,
        started_unix_ms: 0,
    };
    let mut several = run("four ranks", 0.0, 1);
    several.ranks.rows = (0..4).map(row).collect();
    let runs = [run("one", 0.0, 2), several];
    let notes = Comparison::of(&runs).notes;
    let note = notes.iter().find(|note| note.en.contains("scaling efficiency"));
    let note = note.unwrap_or_else(|| panic!("{notes:?}"));
    // 11 instead of 21 steps per second and rank.
    assert!(
        note.en.contains("B has 4 ranks") && note.en.contains("2.1× as fast as A (scaling efficiency 52"),
        "{note:?}"
    );
    assert!(note.en.contains("scaling efficiency"));
    // A record of one rank knows how many there were.
    let of_world = |world: u64| {
        let mut digest = run("some ranks", 0.0, 1);
        let mut fact = digest.facts[0].clone();
        (fact.key, fact.value) = ("parallel.world_size".to_owned(), json!(world));
        digest.facts.push(fact);
        digest
    };
    let comparison = Comparison::of(&[of_world(2), of_world(8)]);
    let note = comparison
        .notes
        .iter()
        .find(|note| note.en.contains("B has 8 ranks, A has 2"));
    assert!(
        note.is_some_and(|note| note.en.contains("4× as fast")),
        "{note:?}"
    );
    let named = |row: &&SettingRow| row.setting == "parallel.world_size";
    assert!(comparison.settings.iter().any(|row| named(&row)));
    let limit = Limit::slower("slower=3%").unwrap();
    assert!(matches!(comparison.broken(limit), Err(LimitError::OtherRanks)));
    let alone = Comparison::of(&[run("one", 0.0, 2), run("other", 0.0, 1)]).notes;
    assert!(!alone.iter().any(|note| note.en.contains("scaling")));
}
