//! Pictures: a folder with one sub-folder a class, or a folder with a table of labels, or an `.npy` of pixels.

use crate::block::zeroed;
use crate::dataset::{ImageTargets, Images};
use crate::formats::encoding::Encoding;
use crate::formats::image::{IMAGE_ENDINGS, ImageDecoder, ImageHeader, ImageShape};
use crate::formats::npy::{NpyArray, NpyValues};
use crate::paths::{list_folder, natural_order};
use crate::table::{Array, ColumnType, Layout};
use crate::table_source::{ReadOptions, TableSource};
use crate::{DataError, Result, parallel};
use flatout_core::message;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[derive(Debug, Clone, Default)]
pub struct ImageOptions {
    /// The size of the first picture when absent.
    pub height: Option<usize>,
    pub width: Option<usize>,
    /// 1 (grey) or 3 (RGB); those of the files when absent.
    pub channels: Option<usize>,
    /// The table of labels; `labels.csv` in the folder when absent.
    pub labels: Option<PathBuf>,
    /// Columns of that table to learn; all numeric ones when absent.
    pub targets: Option<Vec<String>>,
    /// The first so many pictures only (of each class).
    pub limit: Option<usize>,
    /// Pictures to validate and to test on, in folders of their own.
    pub validation: Option<PathBuf>,
    pub test: Option<PathBuf>,
    /// Files that cannot be read are left out and counted.
    pub skip_bad: bool,
    /// Of the table of labels.
    pub encoding: Encoding,
    pub threads: Option<usize>,
}

/// Files whose sizes are looked at before any is decoded.
const LOOKED_AT: usize = 256;

/// Files and what to learn from them, before any pixel is decoded.
pub struct ImageList {
    pub files: Vec<PathBuf>,
    pub targets: ImageTargets,
    /// The classes of each of several labels; none for numbers.
    pub label_classes: Vec<Vec<String>>,
    pub shape: ImageShape,
    /// Where validation or test pictures are in folders of their own: how many there are to train, validate and test on.
    pub parts: Option<[usize; 3]>,
    /// Where sizes differ: widths and heights, smallest and largest.
    pub sizes: Option<[usize; 4]>,
    /// Some are in color, others grey.
    pub mixed_colors: bool,
}

pub fn load_images(path: &Path, options: &ImageOptions) -> Result<Images> {
    if path.extension().is_some_and(|ending| ending == "npy") {
        return from_npy(path);
    }
    let list = list_images(path, options)?;
    let size = list.shape.size_bytes();
    let mut pixels = zeroed::<u8>(size * list.files.len());
    let threads = parallel::threads(options.threads);
    let ranges = parallel::ranges(list.files.len(), threads * 8);
    let mut rest = &mut pixels[..];
    let parts: Vec<Mutex<&mut [u8]>> = ranges
        .iter()
        .map(|range| {
            let (part, tail) = std::mem::take(&mut rest).split_at_mut(range.len() * size);
            rest = tail;
            Mutex::new(part)
        })
        .collect();
    let bad = Mutex::new(Vec::new());
    parallel::for_each(parts.len(), threads, |index| {
        let mut part = parts[index].lock().unwrap_or_else(|poison| poison.into_inner());
        let mut decoder = ImageDecoder::default();
        for (number, into) in ranges[index].clone().zip(part.chunks_exact_mut(size)) {
            let file = &list.files[number];
            let bytes = std::fs::read(file).map_err(|source| DataError::reading(file, source));
            match bytes.and_then(|bytes| decoder.decode(&bytes, list.shape, file, into)) {
                Err(_) if options.skip_bad => {
                    bad.lock()
                        .unwrap_or_else(|poison| poison.into_inner())
                        .push(number);
                }
                decoded => decoded?,
            }
        }
        Ok::<_, DataError>(())
    })?;
    drop(parts);
    let bad = bad.into_inner().unwrap_or_else(|poison| poison.into_inner());
    let (mut targets, count) = (list.targets, list.files.len() - bad.len());
    let mut parts_left = list.parts;
    if let Some([train, validation, test]) = &mut parts_left {
        let (second, third) = (*train, *train + *validation);
        for &number in &bad {
            *(if number < second {
                &mut *train
            } else if number < third {
                &mut *validation
            } else {
                &mut *test
            }) -= 1;
        }
    }
    if !bad.is_empty() {
        let kept: Vec<usize> = (0..list.files.len())
            .filter(|number| !bad.contains(number))
            .collect();
        for (to, &from) in kept.iter().enumerate() {
            pixels.copy_within(from * size..(from + 1) * size, to * size);
        }
        pixels.truncate(count * size);
        targets.keep(&kept);
    }
    if count == 0 {
        return Err(DataError::NoRows {
            path: path.to_owned(),
        });
    }
    Ok(Images {
        pixels: pixels.into(),
        count,
        height: list.shape.height,
        width: list.shape.width,
        channels: list.shape.channels,
        targets,
        label_classes: list.label_classes,
        parts: parts_left,
        sizes: list.sizes,
        mixed_colors: list.mixed_colors,
        skipped: bad.len(),
    })
}

/// Finds the files and their targets; decodes nothing but the first header.
pub fn list_images(path: &Path, options: &ImageOptions) -> Result<ImageList> {
    let (train, validation, test) = folders_of_parts(path, options);
    let (mut files, mut targets, mut label_classes) = list_one(&train, options)?;
    let mut parts = [files.len(), 0, 0];
    for (place, folder) in [(1, &validation), (2, &test)] {
        if let Some(folder) = folder {
            let more = list_one(folder, options)?;
            parts[place] = more.0.len();
            append(folder, (&mut files, &mut targets, &mut label_classes), more)?;
        }
    }
    let parts = (validation.is_some() || test.is_some()).then_some(parts);
    if files.is_empty() {
        let list = IMAGE_ENDINGS.join(", ");
        return Err(DataError::NoFiles {
            path: path.to_owned(),
            wanted: message!(en: "images ({list})", zh: "图像（{list}）"),
        });
    }
    let (shape, sizes, colors) = match (options.height, options.width, options.channels) {
        (Some(height), Some(width), Some(_)) => ((height, width), None, (false, false)),
        (height, width, _) => {
            let found = look_at(&files, options)?;
            let (own_width, own_height) = found.usual;
            let given = height.is_some() && width.is_some();
            (
                (height.unwrap_or(own_height), width.unwrap_or(own_width)),
                found.range.filter(|_| !given),
                found.colors,
            )
        }
    };
    let (some_color, some_grey) = colors;
    let channels = options.channels.unwrap_or(if some_color { 3 } else { 1 });
    if shape.0 == 0 || shape.1 == 0 || ![1, 3].contains(&channels) {
        return Err(DataError::Setting(message!(
            en: "images need a height and width of at least 1, and 1 or 3 channels",
            zh: "图像的高和宽至少为 1，通道数须为 1 或 3"
        )));
    }
    Ok(ImageList {
        files,
        targets,
        label_classes,
        parts,
        shape: ImageShape {
            height: shape.0,
            width: shape.1,
            channels,
        },
        sizes,
        mixed_colors: options.channels.is_none() && some_color && some_grey,
    })
}

/// The pictures of one folder and what to learn from them.
fn list_one(path: &Path, options: &ImageOptions) -> Result<Listed> {
    let table = options
        .labels
        .clone()
        .or_else(|| Some(path.join("labels.csv")).filter(|table| table.is_file()));
    match table {
        Some(table) => by_table(path, &table, options),
        None => {
            let (files, targets) = by_folder(path, options)?;
            Ok((files, targets, Vec::new()))
        }
    }
}

/// Names of folders with the pictures to train, validate and test on.
const PARTS: [&[&str]; 3] = [
    &["train", "training"],
    &["val", "valid", "validation"],
    &["test", "testing"],
];

/// The folders of the parts: those that are named, or `train/`, `val/` and `test/` where a folder has nothing else.
fn folders_of_parts(path: &Path, options: &ImageOptions) -> (PathBuf, Option<PathBuf>, Option<PathBuf>) {
    let own = own_parts(path).unwrap_or_default();
    let [train, validation, test] = own;
    (
        train.unwrap_or_else(|| path.to_owned()),
        options.validation.clone().or(validation),
        options.test.clone().or(test),
    )
}

/// `train/` with `val/` or `test/` beside it, and no other folder: parts, and not classes, which have no folders in them.
pub fn own_parts(path: &Path) -> Option<[Option<PathBuf>; 3]> {
    let mut found = [None, None, None];
    for entry in std::fs::read_dir(path).ok()?.flatten() {
        let folder = entry.path();
        if folder.is_dir() {
            let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
            let place = PARTS.iter().position(|names| names.contains(&name.as_str()))?;
            let has_classes = std::fs::read_dir(&folder)
                .ok()?
                .flatten()
                .any(|entry| entry.path().is_dir());
            let is_part = has_classes || folder.join("labels.csv").is_file();
            if !is_part || !holds_pictures(&folder) || found[place].is_some() {
                return None;
            }
            found[place] = Some(folder);
        }
    }
    let [train, validation, test] = &found;
    (train.is_some() && (validation.is_some() || test.is_some())).then_some(found)
}

/// Adds the pictures of another folder, whose classes must be known here.
fn append(
    folder: &Path,
    (files, targets, label_classes): (&mut Vec<PathBuf>, &mut ImageTargets, &mut Vec<Vec<String>>),
    (more_files, more_targets, more_classes): Listed,
) -> Result<()> {
    let other = |what: String| {
        let folder = folder.display();
        DataError::Setting(message!(
            en: "`{folder}` does not match the images to train on, which have no {what}",
            zh: "`{folder}` 与训练图像不符：训练图像中没有 {what}"
        ))
    };
    let places = |classes: &[String], known: &[String]| -> Result<Vec<i32>> {
        let place = |name: &String| known.iter().position(|known| known == name);
        let each = classes.iter().map(|name| {
            place(name)
                .map(|place| place as i32)
                .ok_or_else(|| other(name.clone()))
        });
        each.collect()
    };
    match (targets, more_targets) {
        (
            ImageTargets::Class { classes, names },
            ImageTargets::Class {
                classes: more,
                names: others,
            },
        ) => {
            let place = places(&others, names)?;
            let mut all = std::mem::take(classes).into_vec();
            all.extend(
                more.iter()
                    .map(|&class| place.get(class as usize).copied().unwrap_or(class)),
            );
            *classes = all.into();
        }
        (
            ImageTargets::Real { values, names },
            ImageTargets::Real {
                values: more,
                names: others,
            },
        ) => {
            if let Some(name) = names.iter().find(|name| !others.contains(name)) {
                return Err(other(name.clone()));
            }
            let width = names.len();
            let mut more = more.into_vec();
            for (column, (own, classes)) in label_classes.iter().zip(&more_classes).enumerate() {
                let place = places(classes, own)?;
                for value in more.iter_mut().skip(column).step_by(width.max(1)) {
                    *value = place
                        .get(*value as usize)
                        .copied()
                        .map_or(*value, |place| place as f32);
                }
            }
            let mut all = std::mem::take(values).into_vec();
            all.extend(more);
            *values = all.into();
        }
        (ImageTargets::Class { .. }, _) => return Err(other("labels.csv".to_owned())),
        (ImageTargets::Real { names, .. }, _) => return Err(other(names.join(", "))),
    }
    files.extend(more_files);
    Ok(())
}

struct FoundSizes {
    /// The one all have, or the median width and height.
    usual: (usize, usize),
    range: Option<[usize; 4]>,
    /// Whether there are images in color, and grey ones.
    colors: (bool, bool),
}

/// The sizes and colors of some of the files, evenly spread; only their headers are decoded.
fn look_at(files: &[PathBuf], options: &ImageOptions) -> Result<FoundSizes> {
    let step = files.len().div_ceil(LOOKED_AT).max(1);
    let some: Vec<&PathBuf> = files.iter().step_by(step).collect();
    let found = parallel::map(some.len(), parallel::threads(options.threads), |index| {
        let file = some[index];
        let bytes = std::fs::read(file).map_err(|source| DataError::reading(file, source));
        match bytes.and_then(|bytes| ImageDecoder::header(&bytes, file)) {
            Err(_) if options.skip_bad => Ok(None),
            size => size.map(Some),
        }
    })?;
    let found: Vec<ImageHeader> = found.into_iter().flatten().collect();
    let (mut widths, mut heights): (Vec<usize>, Vec<usize>) =
        found.iter().map(|header| (header.width, header.height)).unzip();
    widths.sort_unstable();
    heights.sort_unstable();
    let (Some((&narrow, &wide)), Some((&low, &high))) = (
        widths.first().zip(widths.last()),
        heights.first().zip(heights.last()),
    ) else {
        return Err(DataError::NoRows {
            path: files.first().cloned().unwrap_or_default(),
        });
    };
    Ok(FoundSizes {
        usual: (widths[widths.len() / 2], heights[heights.len() / 2]),
        range: (narrow != wide || low != high).then_some([narrow, low, wide, high]),
        colors: (
            found.iter().any(|header| header.color),
            found.iter().any(|header| !header.color),
        ),
    })
}

fn is_image(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    IMAGE_ENDINGS
        .iter()
        .any(|ending| name.ends_with(&format!(".{ending}")))
}

/// Whether there are pictures in a folder or in the folders in it.
pub(crate) fn holds_pictures(path: &Path) -> bool {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let inside = |folder: &Path| entries(folder).any(|entry| is_image(&entry.file_name().to_string_lossy()));
    inside(path) || entries(path).any(|entry| inside(&entry.path()))
}

fn by_folder(path: &Path, options: &ImageOptions) -> Result<(Vec<PathBuf>, ImageTargets)> {
    let entries = std::fs::read_dir(path).map_err(|source| DataError::reading(path, source))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| DataError::reading(path, source))?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_by(|left, right| natural_order(left, right));
    let (mut files, mut classes, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let mut found = list_folder(&path.join(&name), is_image)?;
        found.truncate(options.limit.unwrap_or(usize::MAX));
        if !found.is_empty() {
            classes.extend(std::iter::repeat_n(kept.len() as i32, found.len()));
            files.append(&mut found);
            kept.push(name);
        }
    }
    let targets = ImageTargets::Class {
        classes: classes.into(),
        names: kept,
    };
    Ok((files, targets))
}

/// Names of the column that holds the file.
const FILE_NAMES: [&str; 5] = ["file", "filename", "image", "path", "name"];

/// Files, targets, and the classes of each where there are several targets and some are text.
type Listed = (Vec<PathBuf>, ImageTargets, Vec<Vec<String>>);

fn by_table(path: &Path, table: &Path, options: &ImageOptions) -> Result<Listed> {
    let source = TableSource::open_as(table, None, options.threads, options.encoding)?;
    let file = source
        .names
        .iter()
        .position(|name| FILE_NAMES.contains(&name.to_ascii_lowercase().as_str()));
    let file = file.ok_or_else(|| DataError::NoSuchColumn {
        path: table.to_owned(),
        column: FILE_NAMES.join("|"),
        columns: source.names.clone(),
    })?;
    let columns: Vec<usize> = match &options.targets {
        Some(names) => names
            .iter()
            .map(|name| source.column(name))
            .collect::<Result<_>>()?,
        None => (0..source.names.len()).filter(|&column| column != file).collect(),
    };
    // Several that were asked for are all learned, text by its class numbers.
    let several = options.targets.is_some() && columns.len() > 1;
    let is_text = |column: usize| source.types[column] == ColumnType::Category;
    let numbers: Vec<usize> = columns
        .iter()
        .copied()
        .filter(|&column| several || !is_text(column))
        .collect();
    let class = columns
        .iter()
        .copied()
        .find(|column| !numbers.contains(column))
        .filter(|_| numbers.is_empty());
    let mut kinds = vec![None; source.names.len()];
    kinds[file] = Some(ColumnType::Category);
    numbers.iter().for_each(|&column| {
        kinds[column] = Some(match is_text(column) {
            true => ColumnType::Category,
            false => ColumnType::Real,
        });
    });
    class
        .iter()
        .for_each(|&column| kinds[column] = Some(ColumnType::Category));
    let mut layout = Layout::columns(&kinds);
    layout
        .slots
        .iter_mut()
        .flatten()
        .for_each(|slot| slot.required = true);
    let read = source.read(
        &layout,
        &ReadOptions {
            threads: options.threads,
            ..ReadOptions::default()
        },
    );
    let read = read.map_err(|error| match error {
        DataError::BadRow(row) => DataError::PictureRow(row),
        other => other,
    })?;
    let rows = read.arrays.rows.min(options.limit.unwrap_or(usize::MAX));
    let array = |column: usize| layout.slots[column].map(|slot| &read.arrays.arrays[slot.array]);
    let names = &read.arrays.dictionaries[file];
    let Some(Array::Code(codes)) = array(file) else {
        return Err(DataError::NoRows {
            path: table.to_owned(),
        });
    };
    let files: Vec<PathBuf> = codes[..rows]
        .iter()
        .map(|&code| path.join(&*names.get((code - 1) as usize)))
        .collect();
    let mut label_classes = Vec::new();
    let targets = match class {
        Some(column) => {
            let Some(Array::Code(codes)) = array(column) else {
                return Err(DataError::NoRows {
                    path: table.to_owned(),
                });
            };
            ImageTargets::Class {
                classes: codes[..rows]
                    .iter()
                    .map(|code| code - 1)
                    .collect::<Vec<_>>()
                    .into(),
                names: read.arrays.dictionaries[column]
                    .iter()
                    .map(|name| name.into_owned())
                    .collect(),
            }
        }
        None => {
            let mut values = vec![0f32; rows * numbers.len()];
            for (offset, &column) in numbers.iter().enumerate() {
                let mut put = |row: usize, value: f32| values[row * numbers.len() + offset] = value;
                match array(column) {
                    Some(Array::Real(column)) => (0..rows).for_each(|row| put(row, column[row])),
                    Some(Array::Code(codes)) => {
                        let (class_of, names) =
                            super::tabular::number_classes(&read.arrays.dictionaries[column]);
                        let class = |row: usize| class_of[(codes[row].max(1) - 1) as usize] as f32;
                        (0..rows).for_each(|row| put(row, class(row)));
                        label_classes.resize(numbers.len(), Vec::new());
                        label_classes[offset] = names;
                    }
                    _ => {}
                }
            }
            ImageTargets::Real {
                values: values.into(),
                names: numbers
                    .iter()
                    .map(|&column| source.names[column].clone())
                    .collect(),
            }
        }
    };
    Ok((files, targets, label_classes))
}

/// `images.npy` as `u8 [count, height, width]` or `[count, height, width, channels]`, with `labels.npy` beside it: whole numbers are
/// classes, real ones targets.
fn from_npy(path: &Path) -> Result<Images> {
    let bad = |path: &Path, reason: &str| DataError::Corrupt {
        path: path.to_owned(),
        format: "NumPy",
        reason: reason.into(),
    };
    let array = NpyArray::read(path)?;
    let (count, height, width, channels) = match array.shape[..] {
        [count, height, width] => (count, height, width, 1),
        [count, height, width, channels @ (1 | 3)] => (count, height, width, channels),
        _ => {
            return Err(bad(
                path,
                "pictures need the shape [count, height, width] or [count, height, width, 1 or 3]",
            ));
        }
    };
    let NpyValues::Byte(pixels) = array.values else {
        return Err(bad(path, "pictures need values of type u8"));
    };
    let labels_path = path.with_file_name("labels.npy");
    let labels = NpyArray::read(&labels_path)?;
    if labels.shape.first() != Some(&count) || count == 0 {
        return Err(bad(
            &labels_path,
            "it has another number of rows than the pictures",
        ));
    }
    let columns = labels.shape.iter().skip(1).product::<usize>();
    let targets = match labels.values {
        NpyValues::Real(values) => ImageTargets::Real {
            values: values.into(),
            names: (0..columns).map(|column| format!("target_{column}")).collect(),
        },
        NpyValues::Byte(_) | NpyValues::Integer(_) if columns != 1 => {
            return Err(bad(&labels_path, "classes need one column"));
        }
        _ => {
            let classes: Vec<i32> = labels.into_f32().into_iter().map(|class| class as i32).collect();
            let highest = classes.iter().copied().max().unwrap_or(0);
            if classes.iter().any(|&class| class < 0) || highest as usize > count {
                return Err(bad(&labels_path, "classes must count from 0"));
            }
            ImageTargets::Class {
                classes: classes.into(),
                names: (0..=highest).map(|class| class.to_string()).collect(),
            }
        }
    };
    Ok(Images {
        pixels: pixels.into(),
        count,
        height,
        width,
        channels,
        targets,
        label_classes: Vec::new(),
        parts: None,
        sizes: None,
        mixed_colors: false,
        skipped: 0,
    })
}
