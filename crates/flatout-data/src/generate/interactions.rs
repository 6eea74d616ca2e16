//! Logs of a short-video service like KuaiRand's: impressions in three or more CSV parts, a user table and a video table, and the recipe
//! that joins them.
//!
//! A click's probability is a smooth step of a score: the user's activity, the video's quality, whether the user's interest is the
//! video's tag, and the tab it was shown in. All of these stand in the tables, so a model that joins them can reach the best score; the
//! feedback columns (`is_like`, `long_view`, `play_time_ms`) come after the click and must be left out.

use super::score::{BestScore, ClassificationSums};
use super::{Generated, Recipe};
use crate::load::join::{JoinRecipe, RECIPE_FILE, SideTable};
use crate::load::missing::Missing;
use crate::random::Stream;
use crate::time::{MICROSECONDS_PER_DAY, date_from_days};
use crate::{DataError, Result, parallel};
use flatout_core::files::write_atomically;
use flatout_core::message;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

pub const LABEL: &str = "is_click";
const INTERESTS: u64 = 8;
const TABS: u64 = 5;
/// 2022-04-08, in milliseconds.
const FIRST_MS: i64 = 1_649_376_000_000;
const VALIDATION_SHARE: f64 = 0.2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interactions {
    pub interactions: usize,
    pub users: usize,
    pub videos: usize,
    pub parts: usize,
    pub seed: u64,
}

impl Interactions {
    /// Users and videos in proportion to the log.
    pub fn of_size(interactions: usize, seed: u64) -> Self {
        Self {
            interactions,
            users: (interactions / 100).max(50),
            videos: (interactions / 50).max(100),
            parts: 3,
            seed,
        }
    }
}

impl Default for Interactions {
    fn default() -> Self {
        Self::of_size(100_000, 0)
    }
}

struct User {
    activity: f64,
    interest: u64,
}

struct Video {
    quality: f64,
    tag: u64,
    duration_ms: u64,
}

impl Interactions {
    /// Whether there is anything to make of it.
    pub(super) fn check(&self) -> Result<()> {
        if self.interactions < self.parts || self.parts < 3 || self.users == 0 || self.videos == 0 {
            return Err(DataError::Setting(message!(
                en: "needs at least 3 interactions, 3 parts, 1 user and 1 video",
                zh: "至少需要 3 条交互、3 个分片、1 个用户和 1 个视频"
            )));
        }
        Ok(())
    }

    pub(super) fn generate(&self, folder: &Path, threads: usize) -> Result<Generated> {
        let users: Vec<User> = (0..self.users).map(|user| self.user(user)).collect();
        let videos: Vec<Video> = (0..self.videos).map(|video| self.video(video)).collect();
        write(&folder.join("user_features.csv"), &user_table(&users))?;
        write(&folder.join("video_features.csv"), &video_table(&videos))?;
        let ranges = parallel::ranges(self.interactions, self.parts);
        let sums = parallel::map(ranges.len(), threads, |part| {
            let (text, sums) = self.log(ranges[part].clone(), &users, &videos);
            write(&folder.join(format!("log_standard_part{}.csv", part + 1)), &text)?;
            Ok::<_, DataError>(sums)
        })?;
        let (mut all, mut validation) = (ClassificationSums::default(), ClassificationSums::default());
        for (part_all, part_validation) in sums {
            all.add(part_all);
            validation.add(part_validation);
        }
        let text = serde_json::to_string_pretty(&recipe()).unwrap_or_default();
        write(&folder.join(RECIPE_FILE), &(text + "\n"))?;
        let best = BestScore::Classification {
            all: all.finish(),
            validation: validation.finish(),
        };
        let files = self.parts + 3;
        Ok(Generated::new(
            Recipe::Interactions(self.clone()),
            files,
            self.interactions as u64,
            LABEL,
            best,
        ))
    }

    fn user(&self, user: usize) -> User {
        let mut stream = Stream::new(self.seed, &[11, user as u64]);
        User {
            activity: thousandths(stream.normal()),
            interest: stream.below(INTERESTS),
        }
    }

    fn video(&self, video: usize) -> Video {
        let mut stream = Stream::new(self.seed, &[12, video as u64]);
        Video {
            quality: thousandths(stream.normal()),
            tag: stream.below(INTERESTS),
            duration_ms: 5_000 + stream.below(115_000),
        }
    }

    fn log(
        &self,
        rows: std::ops::Range<usize>,
        users: &[User],
        videos: &[Video],
    ) -> (String, (ClassificationSums, ClassificationSums)) {
        let mut text = String::from(
            "user_id,video_id,date,hourmin,time_ms,is_click,is_like,long_view,play_time_ms,duration_ms,is_rand,tab\n",
        );
        let (mut all, mut validation) = (ClassificationSums::default(), ClassificationSums::default());
        let first_validated =
            self.interactions - (self.interactions as f64 * VALIDATION_SHARE).round() as usize;
        for row in rows {
            let mut stream = Stream::new(self.seed, &[13, row as u64]);
            let (user, video) = (
                stream.below(users.len() as u64),
                stream.below(videos.len() as u64),
            );
            let (tab, random) = (stream.below(TABS), stream.below(20) == 0);
            let (who, what) = (&users[user as usize], &videos[video as usize]);
            let probability = click_probability(who, what, tab);
            let click = stream.uniform() < probability;
            all.push(click, probability);
            if row >= first_validated {
                validation.push(click, probability);
            }
            let watched = if click {
                0.2 + 0.8 * stream.uniform()
            } else {
                0.05 * stream.uniform()
            };
            let (like, long) = (click && stream.below(10) == 0, watched > 0.6);
            let time_ms = FIRST_MS + row as i64 * 700;
            let (year, month, day) = date_from_days(time_ms / 1000 / (MICROSECONDS_PER_DAY / 1_000_000));
            let minute = time_ms / 60_000 % 1440;
            let play_ms = (what.duration_ms as f64 * watched) as u64;
            let _ = writeln!(
                text,
                "{user},{video},{year}{month:02}{day:02},{},{time_ms},{},{},{},{play_ms},{},{},{tab}",
                minute / 60 * 100 + minute % 60,
                u8::from(click),
                u8::from(like),
                u8::from(long),
                what.duration_ms,
                u8::from(random),
            );
        }
        (text, (all, validation))
    }
}

/// Three digits behind the point: what is written is what the score is computed from.
fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// A step from 0 to 1 that needs no exponential, whose last bits would differ between machines.
fn click_probability(user: &User, video: &Video, tab: u64) -> f64 {
    let matched = if user.interest == video.tag { 1.5 } else { -0.5 };
    let score = 1.2 * user.activity + 1.2 * video.quality + matched + 0.3 * tab as f64 - 0.6;
    0.5 + 0.5 * score / (1.0 + score * score).sqrt()
}

fn user_table(users: &[User]) -> String {
    let mut text = String::from("user_id,user_active_degree,activity,interest\n");
    for (id, user) in users.iter().enumerate() {
        let degree = match user.activity {
            activity if activity > 0.8 => "full_active",
            activity if activity > -0.5 => "middle_active",
            _ => "low_active",
        };
        let _ = writeln!(text, "{id},{degree},{:.3},i{}", user.activity, user.interest);
    }
    text
}

fn video_table(videos: &[Video]) -> String {
    let mut text = String::from("video_id,tag,quality,video_duration\n");
    for (id, video) in videos.iter().enumerate() {
        let _ = writeln!(
            text,
            "{id},t{},{:.3},{}",
            video.tag, video.quality, video.duration_ms
        );
    }
    text
}

fn recipe() -> JoinRecipe {
    let words = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let side = |file: &str, key: &str| SideTable {
        file: file.into(),
        key: key.into(),
        ..SideTable::default()
    };
    JoinRecipe {
        name: "interactions".into(),
        log: vec!["log_standard.csv".into()],
        label: LABEL.into(),
        time: Some("time_ms".into()),
        features: Some(words("hourmin duration_ms is_rand")),
        categories: Some(words("user_id video_id tab")),
        exclude: words("is_like long_view play_time_ms"),
        tables: vec![
            side("user_features.csv", "user_id"),
            side("video_features.csv", "video_id"),
        ],
        missing: Missing::Error,
        ..JoinRecipe::default()
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    Ok(write_atomically(path, text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Labels, SplitRule, TabularOptions, load_tabular};

    #[test]
    fn the_joined_tables_hold_all_that_the_best_score_needs() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = Recipe::Interactions(Interactions::of_size(20_000, 5));
        let generated = recipe.generate(folder.path(), Some(2)).unwrap();
        let table = load_tabular(folder.path(), &TabularOptions::default()).unwrap();
        assert_eq!(table.rows, 20_000);
        assert_eq!(
            table.feature_names,
            [
                "hourmin",
                "duration_ms",
                "is_rand",
                "activity",
                "quality",
                "video_duration"
            ]
        );
        let names: Vec<&str> = table
            .categories
            .iter()
            .map(|category| category.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "user_id",
                "video_id",
                "tab",
                "user_active_degree",
                "interest",
                "tag"
            ]
        );
        let split = table.split(&SplitRule::default()).unwrap();
        assert_eq!(split.validation.len(), 4000);
        let Labels::Real(labels) = &table.labels else {
            panic!()
        };
        let mut sums = ClassificationSums::default();
        for &row in split.validation.iter() {
            let row = row as usize;
            let codes = &table.codes[row * 6..row * 6 + 6];
            let text = |category: usize| {
                table.categories[category]
                    .values
                    .get(codes[category] as usize - 1)
            };
            let user = User {
                activity: f64::from(table.features[row * 6 + 3]),
                interest: text(4)[1..].parse().unwrap(),
            };
            let video = Video {
                quality: f64::from(table.features[row * 6 + 4]),
                tag: text(5)[1..].parse().unwrap(),
                duration_ms: 0,
            };
            assert_eq!(
                table.features[row * 6 + 1],
                table.features[row * 6 + 5],
                "the right video was joined"
            );
            sums.push(
                labels[row] > 0.5,
                click_probability(&user, &video, text(2).parse().unwrap()),
            );
        }
        let BestScore::Classification { validation, .. } = generated.best else {
            panic!()
        };
        let reached = sums.finish();
        assert!(
            (reached.auc - validation.auc).abs() < 1e-3,
            "{reached:?} {validation:?}"
        );
        assert_eq!(reached.samples, validation.samples);
        assert!(validation.auc > 0.8, "{validation:?}");
    }
}
