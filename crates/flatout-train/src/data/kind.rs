//! Which kind of data lies at a path, told by names and headers: nothing is read for it.

use super::overlap;
use crate::TrainError;
use flatout_data::formats::image::IMAGE_ENDINGS;
use flatout_data::formats::npy::NpyFile;
use flatout_data::load::images::own_parts;
use flatout_data::{JoinRecipe, glob};
use std::fs;
use std::path::Path;

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder of Parquet or CSV files, one per entity; a table with a column of entities; an `.npy` with three axes.
    Panel,
    Rows,
    /// A folder of pictures: with a table of labels, or with one sub-folder a class; or an `.npy` of pixels.
    Pictures,
}

impl Kind {
    /// `model_type`: a model of sequences asks for sequences, where files may be either.
    pub fn of(path: &Path, model_type: &str) -> Result<Self, TrainError> {
        let recurrent = crate::models::SEQUENCES.contains(&model_type);
        let ends = |path: &Path, endings: &[&str]| {
            let ending = path.extension().map(|end| end.to_ascii_lowercase());
            ending.is_some_and(|end| endings.iter().any(|known| end == *known))
        };
        if ends(path, &IMAGE_ENDINGS) {
            return Ok(Self::Pictures);
        }
        if ends(path, &["npy"]) && path.is_file() {
            let array = NpyFile::open(path)?;
            return Ok(match array.shape.len() {
                _ if array.holds_pictures() => Self::Pictures,
                3 => Self::Panel,
                _ => Self::Rows,
            });
        }
        if glob::is_pattern(path) {
            let files = flatout_data::shards::find_tables(path)?;
            let entities = files.len() > 1 && files.iter().all(|file| ends(file, &["parquet"]));
            let entities = entities || (files.len() > 1 && (recurrent || overlap::in_time(&files)));
            return Ok(if entities { Self::Panel } else { Self::Rows });
        }
        if !path.is_dir() || JoinRecipe::find(path)?.is_some() {
            return Ok(Self::Rows);
        }
        let inside = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let picture = |folder: &Path| inside(folder).any(|entry| ends(&entry.path(), &IMAGE_ENDINGS));
        let mut folders = inside(path).filter(|entry| entry.path().is_dir());
        if picture(path) || folders.any(|folder| picture(&folder.path())) || own_parts(path).is_some() {
            return Ok(Self::Pictures);
        }
        let tables = inside(path).filter(|entry| ends(&entry.path(), &["parquet"]));
        if tables.take(2).count() == 2 {
            return Ok(Self::Panel);
        }
        let files = flatout_data::shards::find_tables(path).unwrap_or_default();
        let sequences = files.len() > 1 && !flatout_data::shards::are_parts(&files);
        Ok(match sequences && (recurrent || overlap::in_time(&files)) {
            true => Self::Panel,
            false => Self::Rows,
        })
    }
}
