//! Tables from files: roles, policies, shards, joins, bad input.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flatout_data::table::{BadRows, ColumnType};
use flatout_data::*;
use std::path::Path;

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

fn options(label: &str) -> TabularOptions {
    TabularOptions {
        label: label.into(),
        ..TabularOptions::default()
    }
}

fn policies(written: Written<'_>) -> Policies {
    Policies::of(&written).unwrap()
}

fn missing(missing: &str) -> Policies {
    policies(Written {
        missing,
        ..Written::default()
    })
}

#[test]
fn columns_find_their_roles() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "t.csv",
        "user_id,x,city,n,y\n7,0.5,a,1,10\n8,1.5,b,2,20\n7,2.5,a,3,30\n",
    );
    let table = load_tabular(&folder.path().join("t.csv"), &options("y")).unwrap();
    assert_eq!(table.feature_names, ["x", "n"]);
    assert_eq!(&table.features[..], [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    assert_eq!(&table.codes[..], [1, 1, 2, 2, 1, 1]);
    assert_eq!(table.categories[1].values.iter().collect::<Vec<_>>(), ["a", "b"]);
    let Labels::Real(labels) = &table.labels else {
        panic!()
    };
    assert_eq!(&labels[..], [10.0, 20.0, 30.0]);
    // Other choices.
    let chosen = TabularOptions {
        label_kind: LabelKind::Class,
        exclude: vec!["x".into()],
        policies: Policies {
            types: vec![
                ("user_id".into(), ColumnType::Real),
                ("n".into(), ColumnType::Category),
            ],
            ..Policies::default()
        },
        ..options("city")
    };
    let table = load_tabular(&folder.path().join("t.csv"), &chosen).unwrap();
    assert_eq!(table.feature_names, ["user_id", "y"]);
    assert_eq!(
        table
            .categories
            .iter()
            .map(|category| category.name.as_str())
            .collect::<Vec<_>>(),
        ["n"]
    );
    let Labels::Class { classes, names } = &table.labels else {
        panic!()
    };
    assert_eq!(
        (&classes[..], &names[..]),
        (&[0, 1, 0][..], &["a".to_string(), "b".to_string()][..])
    );
}

#[test]
fn shards_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    for part in 1..=12 {
        write(
            folder.path(),
            &format!("t_part{part}.csv"),
            &format!("x,c,y\n{part},k{},0\n", 20 - part),
        );
    }
    let table = load_tabular(&folder.path().join("t.csv"), &options("y")).unwrap();
    assert_eq!(
        &table.features[..],
        (1..=12).map(|part| part as f32).collect::<Vec<_>>()
    );
    assert_eq!(&table.codes[..], (1..=12).collect::<Vec<i32>>());
    let limited = TabularOptions {
        limit: Some(2),
        ..options("y")
    };
    assert_eq!(load_tabular(folder.path(), &limited).unwrap().rows, 2);
    write(folder.path(), "t_part5.csv", "x,y\n1,2\n");
    let error = load_tabular(folder.path(), &options("y"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("t_part5.csv") && error.contains("missing c"),
        "{error}"
    );
}

#[test]
fn missing_values_follow_the_policy_of_their_column() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "t.csv",
        "a,b,c,d,y\n1,2,3,4,0\n,,5,6,1\n7,8,,9,2\n",
    );
    let path = folder.path().join("t.csv");
    let error = load_tabular(&path, &options("y")).unwrap_err().to_string();
    assert!(
        error.contains("line 3") && error.contains("`a` is empty"),
        "{error}"
    );
    let chosen = TabularOptions {
        policies: missing("zero,b=forward,c=drop"),
        ..options("y")
    };
    let table = load_tabular(&path, &chosen).unwrap();
    assert_eq!((table.rows, table.rows_dropped), (2, 1));
    assert_eq!(&table.features[..], [1.0, 2.0, 3.0, 4.0, 0.0, 2.0, 5.0, 6.0]);
    let mean = TabularOptions {
        policies: missing("mean"),
        ..options("y")
    };
    let mut table = load_tabular(&path, &mean).unwrap();
    table.standardise(&[0, 1, 2]);
    assert_eq!(table.features[4], 0.0, "a missing value is the mean");
}

#[test]
fn bad_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |name: &str, text: &str, label: &str| {
        write(folder.path(), name, text);
        load_tabular(&folder.path().join(name), &options(label))
            .unwrap_err()
            .to_string()
    };
    assert!(fails("header.csv", "a,b\n", "b").contains("has no rows"));
    assert!(fails("empty.csv", "", "b").contains("has no rows"));
    assert!(fails("label.csv", "a,b\n1,2\n", "z").contains("no column `z`"));
    assert!(fails("twice.csv", "a,a\n1,2\n", "a").contains("two columns named `a`"));
    let mostly = (0..40).fold(
        String::from(
            "a,b
",
        ),
        |text, row| {
            text + &format!(
                "{row},{row}
"
            )
        },
    ) + "3,x
";
    assert!(fails("text.csv", &mostly, "b").ends_with("column `b` is `x`, which is not real"));
    assert!(fails("quote.csv", "a,b\n1,\"2\n", "b").contains("never closed"));
    assert!(fails("infinite.csv", "a,b\n1,2\ninf,3\n", "b").contains("inf"));
    write(folder.path(), "skip.csv", "a,b\n1,2\n3\n4,5\nx,6\n7,8\n");
    let skip = TabularOptions {
        policies: Policies {
            bad_rows: BadRows::Skip,
            types: vec![("a".into(), ColumnType::Real)],
            ..Policies::default()
        },
        ..options("b")
    };
    let table = load_tabular(&folder.path().join("skip.csv"), &skip).unwrap();
    assert_eq!((table.rows, table.skipped.count), (3, 2));
    assert_eq!(&table.features[..], [1.0, 4.0, 7.0]);
}

#[test]
fn skips_unlabeled_rows_only_with_bad_rows_skip() {
    use flatout_core::Explain;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let load = |text: &str, written: Written<'_>| {
        std::fs::write(&path, text).unwrap();
        let policies = policies(written);
        load_tabular(
            &path,
            &TabularOptions {
                policies,
                ..options("y")
            },
        )
    };
    let mean = Written {
        missing: "mean",
        ..Written::default()
    };
    let skip = Written {
        bad_rows: "skip",
        ..mean
    };
    for cell in ["", "NA", "inf"] {
        let one = format!("a,y\n1,2\n2,{cell}\n3,\n");
        let error = load(&one, mean).unwrap_err();
        assert!(
            error.to_string().contains("line 3") && error.to_string().contains("`y` is"),
            "{error}"
        );
        let hint = error.hint().unwrap().en;
        assert!(
            hint.contains("`--bad-rows skip`") && !hint.contains("--missing"),
            "{hint}"
        );
        assert_eq!(load(&one, skip).unwrap().rows, 1);
        let error = load(&format!("a,y\n1,{cell}\n2,\n"), skip)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no row of") && error.contains("has a label (column `y`)"),
            "{error}"
        );
    }
    let error = load("a,y\n1\n2\n", skip).unwrap_err().to_string();
    assert!(
        error.contains("every row of") && error.contains("line 2"),
        "{error}"
    );
    // A prediction does not look at them.
    std::fs::write(&path, "a,y\n1,\n2,x\n").unwrap();
    let unlabelled = TabularOptions {
        without_labels: true,
        ..options("y")
    };
    let table = load_tabular(&path, &unlabelled).unwrap();
    assert_eq!((table.rows, &table.feature_names[..]), (2, &["a".to_owned()][..]));
    let Labels::Real(labels) = &table.labels else {
        panic!()
    };
    assert!(labels.iter().all(|label| label.is_nan()));
}

#[test]
fn a_column_all_missing_becomes_the_mean_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "t.csv", "a,b,y\n,1,1\n,2,2\n");
    let path = folder.path().join("t.csv");
    assert!(load_tabular(&path, &options("y")).is_err());
    let mut table = load_tabular(
        &path,
        &TabularOptions {
            policies: missing("mean"),
            ..options("y")
        },
    )
    .unwrap();
    table.standardise(&[0, 1]);
    assert!(table.features.iter().all(|value| value.is_finite()));
}

#[test]
fn kuairand_archives_are_recognised_and_joined() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let header = "user_id,video_id,date,hourmin,time_ms,is_click,is_like,duration_ms,is_rand,tab\n";
    let row = |user: u32, video: u32, click: u32| {
        format!(
            "{user},{video},20220422,1200,1650600000{user:03},{click},0,{},0,1\n",
            video * 1000
        )
    };
    write(
        &data,
        "log_standard_4_08_to_4_21_27k_part1.csv",
        &format!("{header}{}{}", row(1, 10, 1), row(2, 20, 0)),
    );
    write(
        &data,
        "log_standard_4_08_to_4_21_27k_part2.csv",
        &format!("{header}{}", row(2, 10, 1)),
    );
    write(
        &data,
        "log_random_4_22_to_5_08_27k.csv",
        &format!("{header}{}", row(3, 30, 0)),
    );
    let hot: String = (0..18).map(|index| format!(",onehot_feat{index}")).collect();
    let ranges = "user_active_degree,follow_user_num_range,fans_user_num_range,friend_user_num_range,register_days_range";
    let zeros = ",0".repeat(18);
    let user = |id: u32| format!("{id},full_active,a,b,c,d,{},{}{zeros}\n", id * 10, id * 100);
    write(
        &data,
        "user_features_27k.csv",
        &format!(
            "user_id,{ranges},fans_user_num,register_days{hot}\n{}{}",
            user(2),
            user(1)
        ),
    );
    let video_header = "video_id,author_id,video_type,upload_dt,upload_type,visible_status,video_duration,music_id,music_type,tag\n";
    write(
        &data,
        "video_features_basic_27k.csv",
        &format!(
            "{video_header}10,1,NORMAL,2022-01-01,x,y,1000,5,6,7\n20,1,AD,2022-01-01,x,y,2000,5,6,8\n30,1,AD,2022-01-01,x,y,,5,6,8\n"
        ),
    );
    write(
        &data,
        "video_features_statistic_27k_part1.csv",
        "video_id,show_cnt\n10,1.5\n20,2.5\n",
    );
    write(
        &data,
        "video_features_statistic_27k_part2.csv",
        "video_id,show_cnt\n30,3.5\n",
    );
    let table = load_tabular(folder.path(), &TabularOptions::default()).unwrap();
    assert_eq!(table.label_name, "is_click");
    assert_eq!(table.rows, 4);
    let column = |name: &str| {
        table
            .feature_names
            .iter()
            .position(|known| known == name)
            .unwrap()
    };
    let value = |row: usize, name: &str| table.features[row * table.feature_names.len() + column(name)];
    assert_eq!(
        (0..4).map(|row| value(row, "show_cnt")).collect::<Vec<_>>(),
        [1.5, 2.5, 1.5, 3.5]
    );
    assert_eq!(
        (0..3).map(|row| value(row, "fans_user_num")).collect::<Vec<_>>(),
        [10.0, 20.0, 20.0]
    );
    assert!(
        value(3, "fans_user_num").is_nan(),
        "user 3 has no row: missing, to become the mean"
    );
    assert!(value(3, "video_duration").is_nan());
    assert!(
        !table.feature_names.iter().any(|name| name == "is_like"),
        "what came after the label is left out"
    );
    assert_eq!(table.categories.len(), 3 + 23 + 7);
    // By name, from the folder of the tables itself.
    let recipe = JoinRecipe::named("kuairand-27k").unwrap();
    let long = TabularOptions {
        label: "is_like".into(),
        ..TabularOptions::default()
    };
    assert_eq!(recipe.load(&data, &long).unwrap().label_name, "is_like");
    // A part that is missing is said, not taken for another kind of folder.
    std::fs::remove_file(data.join("log_standard_4_08_to_4_21_27k_part1.csv")).unwrap();
    let error = JoinRecipe::find(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("log_standard_4_08_to_4_21_27k_part1.csv` is missing"),
        "{error}"
    );
}

#[test]
fn a_recipe_with_an_unknown_word_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "dataset.json",
        r#"{"name": "x", "log": ["a.csv"], "label": "y", "tabels": []}"#,
    );
    let error = load_tabular(folder.path(), &TabularOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("tabels"), "{error}");
}
