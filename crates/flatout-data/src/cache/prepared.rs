//! How each data set goes into a cache file and comes back.

use super::file::{CacheFile, as_bytes};
use crate::block::Block;
use crate::dataset::{Category, Entity, ImageTargets, Images, Labels, Panel, Tabular};
use crate::table::Skipped;
use crate::text_list::TextList;
use serde_json::{Value, json};

/// A data set that can be stored.
pub trait Prepared: Sized {
    const KIND: &'static str;

    fn rows(&self) -> u64;
    /// Everything that is not a block.
    fn meta(&self) -> Value;
    fn blocks(&self) -> Vec<(String, &[u8])>;
    /// `None` when something does not fit: the file is then made again.
    fn restore(file: &CacheFile) -> Option<Self>;
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value
        .as_array()?
        .iter()
        .map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|value| usize::try_from(value).ok())
}

/// How many rows were left out; which ones was said when they were read.
fn skipped(value: &Value) -> Option<Skipped> {
    Some(Skipped {
        count: value.as_u64()?,
        examples: Vec::new(),
    })
}

/// The classes of each of several labels.
fn class_lists(value: &Value) -> Option<Vec<Vec<String>>> {
    value.as_array()?.iter().map(strings).collect()
}

fn category_names(categories: &[Category]) -> Vec<&String> {
    categories.iter().map(|category| &category.name).collect()
}

fn category_blocks(categories: &[Category]) -> Vec<(String, &[u8])> {
    let each = categories.iter().enumerate().flat_map(|(index, category)| {
        let (bytes, ends) = category.values.parts();
        [
            (format!("texts{index}"), bytes),
            (format!("ends{index}"), as_bytes(ends)),
        ]
    });
    each.collect()
}

fn restored_categories(file: &CacheFile) -> Option<Vec<Category>> {
    let names = strings(&file.header.meta["categories"])?;
    let each = names.into_iter().enumerate().map(|(index, name)| {
        let bytes: Block<u8> = file.block(&format!("texts{index}"))?;
        let ends: Block<u64> = file.block(&format!("ends{index}"))?;
        Some(Category {
            name,
            values: TextList::from_parts(bytes.into_vec(), ends.into_vec())?,
        })
    });
    each.collect()
}

impl Prepared for Panel {
    const KIND: &'static str = "panel";

    fn rows(&self) -> u64 {
        self.labels.len() as u64
    }

    fn meta(&self) -> Value {
        let entities: Vec<Value> = self
            .entities
            .iter()
            .map(|entity| json!([entity.name, entity.rows.start, entity.rows.end]))
            .collect();
        json!({
            "features": self.feature_names,
            "categories": category_names(&self.categories),
            "label": self.label_name,
            "more_labels": self.more_label_names,
            "entities": entities,
            "skipped": self.skipped.count,
            "dropped": self.rows_dropped,
            "timed": self.timestamps_us.is_some(),
        })
    }

    fn blocks(&self) -> Vec<(String, &[u8])> {
        let mut blocks = vec![
            ("features".into(), as_bytes(&self.features)),
            ("codes".into(), as_bytes(&self.codes)),
            ("labels".into(), as_bytes(&self.labels)),
            ("more_labels".into(), as_bytes(&self.more_labels)),
            ("entity_of_row".into(), as_bytes(&self.entity_of_row)),
        ];
        blocks.extend(
            self.timestamps_us
                .as_ref()
                .map(|times| ("times".into(), as_bytes(times))),
        );
        blocks.extend(category_blocks(&self.categories));
        blocks
    }

    fn restore(file: &CacheFile) -> Option<Self> {
        let meta = &file.header.meta;
        let entities = meta["entities"].as_array()?.iter().map(|entity| {
            Some(Entity {
                name: entity[0].as_str()?.to_owned(),
                rows: u32::try_from(entity[1].as_u64()?).ok()?..u32::try_from(entity[2].as_u64()?).ok()?,
            })
        });
        let panel = Self {
            features: file.block("features")?,
            feature_names: strings(&meta["features"])?,
            codes: file.block("codes")?,
            categories: restored_categories(file)?,
            labels: file.block("labels")?,
            label_name: meta["label"].as_str()?.to_owned(),
            more_labels: file.block("more_labels")?,
            more_label_names: strings(&meta["more_labels"])?,
            entity_of_row: file.block("entity_of_row")?,
            entities: entities.collect::<Option<_>>()?,
            timestamps_us: if meta["timed"].as_bool()? {
                Some(file.block("times")?)
            } else {
                None
            },
            rows_dropped: number(&meta["dropped"])?,
            skipped: skipped(&meta["skipped"])?,
        };
        let rows = panel.labels.len();
        let whole = panel.features.len() == rows * panel.feature_names.len()
            && panel.entity_of_row.len() == rows
            && panel.codes.len() == rows * panel.categories.len()
            && panel.more_labels.len() == rows * panel.more_label_names.len()
            && panel
                .timestamps_us
                .as_ref()
                .is_none_or(|times| times.len() == rows)
            && panel
                .entities
                .iter()
                .all(|entity| entity.rows.start <= entity.rows.end && entity.rows.end as usize <= rows);
        whole.then_some(panel)
    }
}

impl Prepared for Tabular {
    const KIND: &'static str = "tabular";

    fn rows(&self) -> u64 {
        self.rows as u64
    }

    fn meta(&self) -> Value {
        let classes = match &self.labels {
            Labels::Real(_) => Value::Null,
            Labels::Class { names, .. } => json!(names),
        };
        json!({
            "rows": self.rows,
            "features": self.feature_names,
            "categories": category_names(&self.categories),
            "label": self.label_name,
            "classes": classes,
            "label_classes": self.label_classes,
            "dropped": self.rows_dropped,
            "skipped": self.skipped.count,
            "timed": self.timestamps_us.is_some(),
        })
    }

    fn blocks(&self) -> Vec<(String, &[u8])> {
        let labels = match &self.labels {
            Labels::Real(values) => as_bytes(values),
            Labels::Class { classes, .. } => as_bytes(classes),
        };
        let mut blocks = vec![
            ("features".into(), as_bytes(&self.features)),
            ("codes".into(), as_bytes(&self.codes)),
            ("labels".into(), labels),
        ];
        blocks.extend(
            self.timestamps_us
                .as_ref()
                .map(|times| ("times".into(), as_bytes(times))),
        );
        blocks.extend(category_blocks(&self.categories));
        blocks
    }

    fn restore(file: &CacheFile) -> Option<Self> {
        let meta = &file.header.meta;
        let labels = match &meta["classes"] {
            Value::Null => Labels::Real(file.block("labels")?),
            names => Labels::Class {
                classes: file.block("labels")?,
                names: strings(names)?,
            },
        };
        let table = Self {
            rows: number(&meta["rows"])?,
            features: file.block("features")?,
            feature_names: strings(&meta["features"])?,
            codes: file.block("codes")?,
            categories: restored_categories(file)?,
            labels,
            label_name: meta["label"].as_str()?.to_owned(),
            label_classes: class_lists(&meta["label_classes"])?,
            timestamps_us: if meta["timed"].as_bool()? {
                Some(file.block("times")?)
            } else {
                None
            },
            skipped: skipped(&meta["skipped"])?,
            rows_dropped: number(&meta["dropped"])?,
        };
        let label_count = match &table.labels {
            Labels::Real(values) => values.len(),
            Labels::Class { classes, .. } => classes.len(),
        };
        let whole = table.features.len() == table.rows * table.feature_names.len()
            && table.codes.len() == table.rows * table.categories.len()
            && (label_count == table.rows || label_count == table.rows * table.label_name.split(',').count());
        whole.then_some(table)
    }
}

impl Prepared for Images {
    const KIND: &'static str = "images";

    fn rows(&self) -> u64 {
        self.count as u64
    }

    fn meta(&self) -> Value {
        let (kind, names) = match &self.targets {
            ImageTargets::Class { names, .. } => ("class", names),
            ImageTargets::Real { names, .. } => ("real", names),
        };
        json!({
            "shape": [self.count, self.height, self.width, self.channels],
            "targets": kind,
            "names": names,
            "label_classes": self.label_classes,
            "parts": self.parts,
            "sizes": self.sizes,
            "mixed_colors": self.mixed_colors,
            "skipped": self.skipped,
        })
    }

    fn blocks(&self) -> Vec<(String, &[u8])> {
        let targets = match &self.targets {
            ImageTargets::Class { classes, .. } => as_bytes(classes),
            ImageTargets::Real { values, .. } => as_bytes(values),
        };
        vec![
            ("pixels".into(), as_bytes(&self.pixels)),
            ("targets".into(), targets),
        ]
    }

    fn restore(file: &CacheFile) -> Option<Self> {
        let meta = &file.header.meta;
        let side = |index: usize| number(&meta["shape"][index]);
        let names = strings(&meta["names"])?;
        let targets = match meta["targets"].as_str()? {
            "class" => ImageTargets::Class {
                classes: file.block("targets")?,
                names,
            },
            _ => ImageTargets::Real {
                values: file.block("targets")?,
                names,
            },
        };
        let images = Self {
            pixels: file.block("pixels")?,
            count: side(0)?,
            height: side(1)?,
            width: side(2)?,
            channels: side(3)?,
            targets,
            label_classes: class_lists(&meta["label_classes"])?,
            parts: serde_json::from_value(meta["parts"].clone()).ok()?,
            sizes: serde_json::from_value(meta["sizes"].clone()).ok()?,
            mixed_colors: meta["mixed_colors"].as_bool()?,
            skipped: number(&meta["skipped"])?,
        };
        (images.pixels.len() == images.count * images.pixels_per_image()).then_some(images)
    }
}
