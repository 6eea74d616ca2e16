//! KuaiRand-Pure as downloaded: the files and columns of the archive, trained with the built-in recipe.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/command.rs"]
mod command;

use command::flatout;
use std::fmt::Write as _;
use std::path::Path;

/// A number that looks random, the same in every run.
fn noise(seed: u64, salt: u64, below: u64) -> u64 {
    let value = ((seed << 20) ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((value ^ (value >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) % below.max(1)
}

/// The archive's layout: three logs, users with 18 one-hot columns, basic and statistic tables of videos.
fn archive(folder: &Path, rows: u64) {
    let data = folder.join("KuaiRand-Pure/data");
    std::fs::create_dir_all(&data).unwrap();
    let (users, videos) = (rows / 20, rows / 10);
    let header = "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,is_hate,long_view,play_time_ms,duration_ms,profile_stay_time,comment_stay_time,is_profile_enter,is_rand,tab\n";
    let logs = [
        "log_standard_4_08_to_4_21_pure.csv",
        "log_standard_4_22_to_5_08_pure.csv",
        "log_random_4_22_to_5_08_pure.csv",
    ];
    for (part, name) in (0..).zip(logs) {
        let mut text = header.to_owned();
        for row in part * rows / 3..(part + 1) * rows / 3 {
            let (user, video) = (row * 7919 % users, row * 104_729 % videos);
            // Clicks follow the tag of the video and the activity of the user.
            let click =
                u64::from(video % 7 < 3) ^ u64::from(user % 5 == 0) ^ u64::from(noise(row, 1, 10) == 0);
            let (time, duration) = (1_649_376_000_000 + row * 1000, 5000 + video * 13 % 60_000);
            let tail = format!("{duration},0,0,0,{},{}", u64::from(part == 2), row % 5);
            writeln!(
                text,
                "{user},{video},20220408,{:04},{time},{click},0,0,0,0,0,{click},{duration},{tail}",
                row % 2400
            )
            .unwrap();
        }
        std::fs::write(data.join(name), text).unwrap();
    }
    let ranges = "user_active_degree,is_lowactive_period,is_live_streamer,is_video_author,follow_user_num,follow_user_num_range,fans_user_num,fans_user_num_range,friend_user_num,friend_user_num_range,register_days,register_days_range";
    let hot: String = (0..18).map(|index| format!(",onehot_feat{index}")).collect();
    let mut text = format!("user_id,{ranges}{hot}\n");
    for user in 0..users {
        let active = if user % 5 == 0 {
            "full_active"
        } else {
            "high_active"
        };
        write!(
            text,
            "{user},{active},0,0,0,{},\"(0,10]\",{},\"[1,10)\",3,\"[1,5)\",{},366-730",
            user % 30,
            user % 90,
            user % 900
        )
        .unwrap();
        for index in 0..18 {
            // As in the archive, some are missing.
            let value = if user % 11 == 0 && index > 14 {
                String::new()
            } else {
                (user % (index + 2)).to_string()
            };
            write!(text, ",{value}").unwrap();
        }
        text.push('\n');
    }
    std::fs::write(data.join("user_features_pure.csv"), text).unwrap();
    let mut text = "video_id,author_id,video_type,upload_dt,upload_type,visible_status,video_duration,server_width,server_height,music_id,music_type,tag\n".to_owned();
    let mut statistic = "video_id,counts,show_cnt,show_user_num,play_cnt,play_user_num\n".to_owned();
    for video in 0..videos {
        writeln!(
            text,
            "{video},{},NORMAL,2022-03-01,LongImport,1,{},720,1280,{},9,\"{},{}\"",
            video % 50,
            5000 + video,
            video % 77,
            video % 7,
            video % 3
        )
        .unwrap();
        writeln!(
            statistic,
            "{video},{},{},{},{},{}",
            video % 9,
            video % 100,
            video % 90,
            video % 80,
            video % 70
        )
        .unwrap();
    }
    std::fs::write(data.join("video_features_basic_pure.csv"), text).unwrap();
    std::fs::write(data.join("video_features_statistic_pure.csv"), statistic).unwrap();
}

fn words(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn kuairand_trains_as_downloaded() {
    let place = tempfile::tempdir().unwrap();
    archive(place.path(), 6000);
    let train = [
        "train",
        "--data",
        "KuaiRand-Pure",
        "--device",
        "cpu",
        "--hidden-size",
        "32",
        "--batch-size",
        "256",
        "--epochs",
        "6",
        "--embedding-dim",
        "8",
        "--learning-rate",
        "0.01",
        "--threads",
        "1",
        "--json",
    ];
    let output = flatout(place.path(), &train);
    assert!(output.status.success(), "{}", words(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let end: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let auc = end["outcome"]["scores"]["auc"].as_f64().unwrap();
    // One click in ten is turned round: 0.9 is the most there is.
    assert!(auc > 0.8, "{text}");
    let predicted = flatout(
        place.path(),
        &["predict", "out", "KuaiRand-Pure", "--device", "cpu"],
    );
    assert!(predicted.status.success(), "{}", words(&predicted));
    assert_eq!(String::from_utf8_lossy(&predicted.stdout).lines().count(), 6001);
}

#[test]
fn large_categories_are_hashed_or_thinned_out() {
    let place = tempfile::tempdir().unwrap();
    archive(place.path(), 3000);
    let train = [
        "train",
        "--data",
        "KuaiRand-Pure",
        "--device",
        "cpu",
        "--hidden-size",
        "8",
        "--batch-size",
        "256",
        "--epochs",
        "1",
        "--threads",
        "1",
        "--hash-size",
        "video_id=64",
        "--min-count",
        "user_id=30,author_id=1000",
        "--column-embedding-dim",
        "video_id=24",
        "--column-embedding-dim",
        "tab=3",
        "--lang",
        "en",
    ];
    let output = flatout(place.path(), &train);
    let said = words(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("`video_id`: 300 values are hashed into 64 codes"),
        "{said}"
    );
    assert!(
        said.contains("`author_id`: 0 of 50 values get an embedding"),
        "{said}"
    );
    let bytes = std::fs::read(place.path().join("out/last.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let shape = |name: &str| tensors.tensor(name).unwrap().shape().to_vec();
    // user_id, video_id, tab stand first; the unknown value has the first row.
    assert_eq!(shape("embedding1.weight"), [65, 24]);
    assert_eq!(shape("embedding2.weight"), [6, 3]);
    let predict = |name: &str| {
        let output = flatout(place.path(), &["predict", "out", name, "--device", "cpu"]);
        assert!(output.status.success(), "{}", words(&output));
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            words(&output),
        )
    };
    let (first, said) = predict("KuaiRand-Pure");
    assert!(
        !said.contains("`video_id`"),
        "a hashed value is never unknown: {said}"
    );
    // Codes do not depend on the order in which values come.
    let log = place
        .path()
        .join("KuaiRand-Pure/data/log_random_4_22_to_5_08_pure.csv");
    let text = std::fs::read_to_string(&log).unwrap();
    let mut rows: Vec<&str> = text.lines().collect();
    rows[1..].reverse();
    std::fs::write(&log, rows.join("\n") + "\n").unwrap();
    let (second, _) = predict("KuaiRand-Pure");
    let values = |text: &str| {
        let column = |line: &str| line.rsplit(',').next().unwrap().to_owned();
        let mut all: Vec<String> = text.lines().skip(1).map(column).collect();
        all.sort();
        all
    };
    assert_eq!(values(&first), values(&second));
    let refused = flatout(
        place.path(),
        &["train", "--data", "KuaiRand-Pure", "--min-count", "nothing=3"],
    );
    assert!(
        words(&refused).contains("column `nothing` is not a category"),
        "{}",
        words(&refused)
    );
}
