use super::*;
use crate::testing::Build;

/// Ranks whose own work takes these shares of a step; the others wait meanwhile.
fn ranks(own: &[f64]) -> Option<Ranks> {
    let longest = own.iter().copied().fold(0.0, f64::max);
    let mut sorted = own.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[(own.len() - 2) / 2];
    let mut last_seen = false;
    let mut build = |share: f64| {
        let last = share == longest && !last_seen;
        last_seen |= last;
        let late = if last { (longest - median) * 1000.0 } else { 0.0 };
        Build::steady(20).collective((longest - share) * 1000.0, (1.0 - longest) * 1000.0, late)
    };
    let mut first = build(own[0]);
    for (rank, share) in own.iter().enumerate().skip(1) {
        first = first.rank(rank as u32, build(*share).done());
    }
    let data = first.done();
    Ranks::of(&Analysis::new(&data))
}

fn slow(own: &[f64]) -> Option<u32> {
    ranks(own).unwrap().slow.map(|slow| slow.rank)
}

#[test]
fn names_the_rank_with_more_own_work() {
    assert_eq!(slow(&[0.2, 0.8]), Some(1));
    assert_eq!(slow(&[0.3, 0.31, 0.9, 0.29]), Some(2));
    assert_eq!(slow(&[0.9, 0.3, 0.3, 0.3]), Some(0));
}

#[test]
fn names_one_of_two_slow_ranks() {
    assert_eq!(slow(&[0.3, 0.31, 0.9, 0.89]), Some(2));
}

#[test]
fn names_nobody_in_a_balanced_run() {
    assert_eq!(slow(&[0.9, 0.9]), None);
    assert_eq!(slow(&[0.5, 0.55, 0.53, 0.5]), None);
}

#[test]
fn waiting_and_transferring_add_up_to_the_collectives() {
    let found = ranks(&[0.2, 0.8]).unwrap();
    for row in &found.rows {
        let sum = row.own_ms.unwrap() + row.wait_ms.unwrap() + row.transfer_ms.unwrap();
        assert!((sum - row.step_ms).abs() < row.step_ms * 0.05, "{row:?}");
    }
}

#[test]
fn a_run_with_one_rank_has_no_comparison() {
    let data = Build::steady(20).collective(1.0, 1.0, 0.0).done();
    assert!(Ranks::of(&Analysis::new(&data)).is_none());
    let late = Build::steady(20).rank(1, RunData::default()).done();
    assert!(
        Ranks::of(&Analysis::new(&late)).is_none(),
        "a rank that never stepped"
    );
}

#[test]
fn names_a_comparison_that_is_partial() {
    let other = Build::steady(20).collective(1.0, 9.0, 0.0).done();
    let mut data = Build::steady(20).collective(1.0, 9.0, 0.0).rank(1, other).done();
    for event in &mut data.events {
        if let EventKind::Collective { world, .. } = &mut event.kind {
            *world = 8;
        }
    }
    let found = Ranks::of(&Analysis::new(&data)).unwrap();
    assert_eq!(found.world, 8);
    assert!(
        found.notes[0].en.starts_with("only 2 of 8 ranks"),
        "{:?}",
        found.notes
    );
}
