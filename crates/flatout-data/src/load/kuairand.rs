//! KuaiRand-Pure and KuaiRand-27K (<https://kuairand.com>): short-video logs with user and video tables, as their archives lay
//! them out. The feedback columns other than the label happened after the impression and are left out.

use super::join::{JoinRecipe, SideTable};
use super::missing::Missing;
use crate::table::ColumnType;

pub fn recipes() -> Vec<JoinRecipe> {
    ["Pure", "27K"].map(recipe).to_vec()
}

fn recipe(edition: &str) -> JoinRecipe {
    let ending = edition.to_ascii_lowercase();
    let words = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let side = |name: &str, key: &str, categories: &str, exclude: &str| SideTable {
        file: format!("{name}_{ending}.csv"),
        key: key.into(),
        features: None,
        categories: Some(words(categories)),
        exclude: words(exclude),
    };
    let one_hot: String = (0..18).map(|index| format!(" onehot_feat{index}")).collect();
    JoinRecipe {
        name: format!("KuaiRand-{edition}"),
        log: vec![
            format!("log_standard_*_{ending}.csv"),
            format!("log_random_*_{ending}.csv"),
        ],
        label: "is_click".into(),
        time: Some("time_ms".into()),
        features: Some(words("duration_ms is_rand hourmin")),
        categories: Some(words("user_id video_id tab")),
        exclude: Vec::new(),
        tables: vec![
            side(
                "user_features",
                "user_id",
                &format!(
                    "user_active_degree follow_user_num_range fans_user_num_range friend_user_num_range \
                     register_days_range{one_hot}"
                ),
                "",
            ),
            side(
                "video_features_basic",
                "video_id",
                "author_id video_type upload_type visible_status music_id music_type tag",
                "upload_dt",
            ),
            side("video_features_statistic", "video_id", "", ""),
        ],
        missing: Missing::Mean,
        // `0905` in copies that were not written by pandas.
        types: [("hourmin".to_owned(), ColumnType::Integer)].into(),
        ..JoinRecipe::default()
    }
}
