use super::*;
use proptest::prelude::*;

/// A panel whose labels are the row numbers, entity `e` having `lengths[e]` rows that begin on day `offsets[e]`.
fn panel(lengths: &[u32], offsets: &[i64], dated: bool) -> Panel {
    let rows: u32 = lengths.iter().sum();
    let mut start = 0;
    let mut times = Vec::new();
    let entities = lengths
        .iter()
        .zip(offsets.iter().cycle())
        .map(|(&length, &offset)| {
            times.extend((0..i64::from(length)).map(|day| day + offset));
            start += length;
            Entity {
                name: start.to_string(),
                rows: start - length..start,
            }
        })
        .collect();
    let mut panel = Panel {
        features: (0..rows).map(|row| row as f32).collect::<Vec<_>>().into(),
        feature_names: vec!["x".into()],
        labels: (0..rows).map(|row| row as f32).collect::<Vec<_>>().into(),
        entities,
        timestamps_us: dated.then(|| times.into()),
        ..Panel::default()
    };
    panel.finish_rows(&[Missing::Error]);
    panel
}

proptest! {
    #[test]
    fn windows_do_not_leak_across_the_split(
        lengths in prop::collection::vec(0u32..60, 1..6),
        offsets in prop::collection::vec(0i64..20, 1..6),
        dated: bool,
        train in 0.1f64..0.9,
        sequence_length in 1usize..12,
        horizon in 0usize..4,
    ) {
        let panel = panel(&lengths, &offsets, dated);
        let rule = SplitRule::Ratio { train, validation: (1.0 - train) / 2.0, shuffle_seed: None };
        let split = panel.split(&rule).unwrap();
        let parts = [&split.train, &split.validation, &split.test];
        // Every row is in exactly one part.
        let mut rows: Vec<u32> = parts.iter().flat_map(|part| part.iter().cloned().flatten()).collect();
        rows.sort_unstable();
        prop_assert_eq!(rows, (0..panel.rows() as u32).collect::<Vec<_>>());
        for part in parts {
            let Ok(windows) = panel.windows(part, sequence_length, horizon) else { continue };
            let mut expected = Vec::new();
            for range in part {
                for start in range.clone() {
                    if start as usize + sequence_length + horizon <= range.end as usize {
                        expected.push(start);
                    }
                }
            }
            prop_assert_eq!(&windows.starts[..], &expected[..], "every window once");
        }
        if dated {
            // Nothing in training is later than anything in validation, across all entities.
            let times = panel.timestamps_us.as_ref().unwrap();
            let latest = split.train.iter().cloned().flatten().map(|row| times[row as usize]).max();
            let earliest = split.validation.iter().cloned().flatten().map(|row| times[row as usize]).min();
            if let (Some(latest), Some(earliest)) = (latest, earliest) {
                prop_assert!(latest < earliest);
            }
        }
    }
}

#[test]
fn windows_without_label_are_counted() {
    let mut panel = panel(&[5], &[0], true);
    panel.labels.to_mut()[4] = f32::NAN;
    let windows = panel.windows(std::slice::from_ref(&(0..5)), 2, 1).unwrap();
    assert_eq!((&windows.starts[..], windows.without_label), (&[0u32, 1][..], 1));
    assert!(matches!(
        panel.windows(std::slice::from_ref(&(0..5)), 9, 1),
        Err(DataError::NoWindows { longest: 5, .. })
    ));
    assert!(panel.windows(&[], 9, 1).unwrap().starts.is_empty());
}

#[test]
fn dropped_rows_close_up_within_their_entity() {
    let mut panel = panel(&[3, 3], &[0], true);
    panel.features.to_mut()[1] = f32::NAN;
    panel.features.to_mut()[5] = f32::NAN;
    panel.finish_rows(&[Missing::Drop]);
    assert_eq!(&panel.labels[..], [0.0, 2.0, 3.0, 4.0]);
    assert_eq!(&panel.entity_of_row[..], [0, 0, 1, 1]);
    assert_eq!(panel.timestamps_us.as_ref().unwrap()[..], [0, 2, 0, 1]);
    assert_eq!(panel.rows_dropped, 2);
}

#[test]
fn a_split_by_date_needs_dates() {
    let rule = SplitRule::Time {
        validation_from_us: 3,
        test_from_us: None,
    };
    assert!(panel(&[9], &[0], false).split(&rule).is_err());
    let split = panel(&[9], &[0], true).split(&rule).unwrap();
    assert_eq!(split.train, std::slice::from_ref(&(0..3)));
    assert_eq!(split.validation, std::slice::from_ref(&(3..9)));
    assert!(split.test.is_empty());
}
