//! Synthetic data like that of real training jobs: learnable, reproducible to the byte, with a best score that is known
//! because the signal was planted. A `recipe.json` beside the data holds the recipe and that score.

pub mod captcha;
pub mod images;
pub mod interactions;
pub mod score;
pub mod stocks;

use crate::{DataError, Result};
use flatout_core::files::write_atomically;
use flatout_core::message;
use score::BestScore;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub const RECIPE_FILE: &str = "recipe.json";
const SCHEMA_VERSION: u32 = 1;

/// What to generate. Two equal recipes give equal bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Recipe {
    Stocks(stocks::Stocks),
    Interactions(interactions::Interactions),
    Images(images::ImageClasses),
    Captcha(captcha::Captcha),
}

/// What was generated; the content of `recipe.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    pub schema_version: u32,
    pub recipe: Recipe,
    pub files: usize,
    pub rows: u64,
    /// The column or target to learn.
    pub label: String,
    /// The best any model can reach on these data.
    pub best: BestScore,
}

impl Generated {
    fn new(recipe: Recipe, files: usize, rows: u64, label: &str, best: BestScore) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            recipe,
            files,
            rows,
            label: label.to_owned(),
            best,
        }
    }
}

impl Recipe {
    /// Writes the data into `folder`, which must be new, empty, or hold the same recipe.
    pub fn generate(&self, folder: &Path, threads: Option<usize>) -> Result<Generated> {
        // Refused values leave no folder behind.
        self.check()?;
        self.check_folder(folder)?;
        std::fs::create_dir_all(folder).map_err(|source| DataError::writing(folder, source))?;
        let threads = crate::parallel::threads(threads);
        let generated = match self {
            Self::Stocks(stocks) => stocks.generate(folder, threads)?,
            Self::Interactions(interactions) => interactions.generate(folder, threads)?,
            Self::Images(images) => images.generate(folder, threads)?,
            Self::Captcha(captcha) => captcha.generate(folder, threads)?,
        };
        // Last, so that a folder with a recipe is a complete one.
        let mut text = serde_json::to_string_pretty(&generated).unwrap_or_default();
        text.push('\n');
        write_atomically(&folder.join(RECIPE_FILE), text.as_bytes())?;
        Ok(generated)
    }

    /// Generates unless `folder` already holds this very recipe, complete.
    pub fn ensure(&self, folder: &Path, threads: Option<usize>) -> Result<Generated> {
        match read_recipe(folder)? {
            Some(generated) if generated.recipe == *self => Ok(generated),
            _ => self.generate(folder, threads),
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Stocks(stocks) => stocks.check(),
            Self::Interactions(interactions) => interactions.check(),
            Self::Images(images) => images.check(),
            Self::Captcha(captcha) => captcha.check(),
        }
    }

    fn check_folder(&self, folder: &Path) -> Result<()> {
        match read_recipe(folder)? {
            Some(generated) if generated.recipe == *self => return Ok(()),
            Some(_) => {}
            None => match std::fs::read_dir(folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(DataError::reading(folder, error)),
                Ok(mut entries) => {
                    if entries.next().is_none() {
                        return Ok(());
                    }
                }
            },
        }
        let path = folder.display();
        Err(DataError::Setting(message!(
            en: "`{path}` contains other files; generated data needs its own folder: choose a new one or \
            delete these",
            zh: "`{path}` 中已有其他文件；生成的数据需要单独的目录：请换一个新目录，或先删除这些文件"
        )))
    }
}

/// The recipe beside generated data, `None` where there is none.
pub fn read_recipe(folder: &Path) -> Result<Option<Generated>> {
    let path = folder.join(RECIPE_FILE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DataError::reading(path, error)),
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| DataError::Corrupt {
            path,
            format: "recipe",
            reason: error.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_values_write_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("some/where");
        let none = [
            Recipe::Stocks(stocks::Stocks {
                stocks: 0,
                ..Default::default()
            }),
            Recipe::Interactions(interactions::Interactions::of_size(0, 0)),
            Recipe::Images(images::ImageClasses {
                images: 0,
                ..Default::default()
            }),
            Recipe::Captcha(captcha::Captcha {
                images: 0,
                ..Default::default()
            }),
        ];
        for recipe in none {
            let error = recipe.generate(&out, Some(1)).unwrap_err().to_string();
            assert!(error.contains("needs at least"), "{error}");
            assert!(!folder.path().join("some").exists());
        }
    }
}
