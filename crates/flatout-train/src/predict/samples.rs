//! Other data, prepared as the training data were: the same columns in the same order, the same scaling, the same codes.

use super::{Column, kind, pixels};
use crate::data::{Codes, Kind, Preparation, Shape, rows};
use crate::{Settings, TrainError};
use flatout_core::message;
use flatout_data::formats::image::ImageShape;
use flatout_data::{
    Category, JoinRecipe, LabelKind, PanelOptions, TabularOptions, load_panel, load_tabular, time,
};
use flatout_engine::Table;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub struct Samples {
    pub tables: Vec<(&'static str, Table)>,
    /// First rows of windows, rows, or numbers of pictures.
    pub starts: Vec<u32>,
    /// Of each sample, for sequences.
    pub entities: Vec<i32>,
    /// What tells a person which sample it is.
    pub columns: Vec<(String, Column)>,
}

pub fn load(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    let found = Kind::of(path)?;
    match (&preparation.shape, found) {
        // One file of a panel is a panel of one.
        (Shape::Sequence { .. }, Kind::Panel | Kind::Rows) => panel(path, preparation, settings),
        (Shape::Rows { .. }, Kind::Rows | Kind::Panel) => table(path, preparation, settings),
        (
            &Shape::Pictures {
                height,
                width,
                channels,
                ..
            },
            Kind::Pictures,
        ) => {
            let shape = ImageShape {
                height,
                width,
                channels,
            };
            pixels::load(path, shape, settings)
        }
        _ => {
            let wanted = kind(preparation);
            Err(TrainError::OtherData {
                path: path.to_owned(),
                reason: message!(en: "the checkpoint was trained on {wanted}, and these are something else", zh: "检查点是用另一类数据（{wanted}）训练的，与这些数据不符"),
            })
        }
    }
}

fn panel(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    let options = PanelOptions {
        label: preparation.label.clone(),
        label_optional: true,
        entity: settings.entity.clone(),
        features: Some(preparation.features.clone()),
        limit: settings.limit,
        ..PanelOptions::default()
    };
    let mut panel = load_panel(path, &options)?;
    preparation.standardiser().apply(panel.features.to_mut());
    let known: HashMap<&str, i32> = (0..)
        .zip(&preparation.entities)
        .map(|(index, name)| (name.as_str(), index))
        .collect();
    let length = settings.sequence_length as u32;
    let (mut starts, mut entities, mut names, mut ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entity in &panel.entities {
        let index = match known.get(entity.name.as_str()) {
            Some(&index) => index,
            None if settings.entity_embedding_dim == 0 => 0,
            None => {
                let name = &entity.name;
                return Err(TrainError::OtherData {
                    path: path.to_owned(),
                    reason: message!(en: "`{name}` was not among the entities trained on, and the model has an embedding for each of them", zh: "训练数据中没有实体 `{name}`，而模型为每个实体都有一个嵌入"),
                });
            }
        };
        let last = (entity.rows.end + 1)
            .saturating_sub(length)
            .max(entity.rows.start);
        for start in entity.rows.start..last {
            starts.push(start);
            entities.push(index);
            names.push(entity.name.clone());
            ends.push(start + length - 1);
        }
    }
    let mut columns = vec![("entity".to_owned(), Column::Text(names))];
    if let Some(times) = &panel.timestamps_us {
        let times = ends.iter().map(|&row| time::format_us(times[row as usize]));
        columns.push(("time".to_owned(), Column::Text(times.collect())));
    }
    Ok(Samples {
        tables: vec![("features", Table::F32(Arc::new(panel.features.into_vec())))],
        starts,
        entities,
        columns,
    })
}

fn table(path: &Path, preparation: &Preparation, settings: &Settings) -> Result<Samples, TrainError> {
    // The columns of joined tables are named by the recipe of the join.
    let joined = JoinRecipe::find(path)?.is_some();
    let own = |names: Vec<String>| (!joined).then_some(names);
    let codes = preparation.categories.iter();
    let options = TabularOptions {
        label: preparation.label.clone(),
        label_kind: LabelKind::Auto,
        label_optional: true,
        features: own(preparation.features.clone()),
        categories: own(codes.map(|category| category.name.clone()).collect()),
        limit: settings.limit,
        ..TabularOptions::default()
    };
    let mut table = load_tabular(path, &options)?;
    let names = |name: &String| table.categories.iter().any(|category| category.name == *name);
    let wanted = preparation.categories.iter().map(|category| &category.name);
    if table.feature_names != preparation.features || !wanted.clone().all(names) {
        let missing = preparation.features.iter().chain(wanted);
        let missing: Vec<&str> = missing
            .filter(|name| !table.feature_names.contains(name) && !names(name))
            .map(String::as_str)
            .collect();
        let missing = missing.join(", ");
        return Err(TrainError::OtherData {
            path: path.to_owned(),
            reason: message!(en: "its columns are not those of the training data; missing: {missing}", zh: "其中的列与训练数据不同；缺少：{missing}"),
        });
    }
    preparation.standardiser().apply(table.features.to_mut());
    let known: Vec<Category> = preparation.categories.iter().map(Codes::dictionary).collect();
    let codes = table.recode(&known).codes;
    let numbers = (1..=table.rows as i32).collect();
    Ok(Samples {
        starts: (0..table.rows as u32).collect(),
        tables: rows::tables(table.features.into_vec(), &codes, known.len()),
        entities: Vec::new(),
        columns: vec![("row".to_owned(), Column::Whole(numbers))],
    })
}
