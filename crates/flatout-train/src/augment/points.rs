//! Which columns of a label are positions in the image, by their names: `gap_x` and `gap_y` are one, `x` and `y`, `x1` and `y1`.

use crate::target::{Target, Task};

/// A position: its columns, of which one may be missing.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    name: String,
    x: Option<usize>,
    y: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    points: Vec<Point>,
    /// Pixels of the image per unit of the label, across and down.
    unit: (f32, f32),
    /// Where a coordinate is that has no column.
    center: (f32, f32),
}

/// The name of the position that a column belongs to, and whether it is the one across.
fn part_of(column: &str) -> Option<(String, bool)> {
    let lower = column.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(['_', '-', '.', ' ']).collect();
    let axis = |word: &&str| match word.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "x" | "cx" => Some(true),
        "y" | "cy" => Some(false),
        _ => None,
    };
    let place = words.iter().rposition(|word| axis(word).is_some())?;
    let across = axis(&words[place])?;
    let mut name = words.clone();
    let number = words[place].trim_start_matches(|c: char| !c.is_ascii_digit());
    name[place] = number;
    Some((name.join("_"), across))
}

impl Points {
    /// The positions among the numbers of a target; the column that is none where there is one. `unit`: pixels of the image per unit of
    /// the label; `size`: its width and height.
    pub fn of(target: &Target, unit: (f32, f32), size: (usize, usize)) -> Result<Self, String> {
        let mut found = Self {
            points: Vec::new(),
            unit,
            center: ((size.0 as f32 - 1.0) / 2.0, (size.1 as f32 - 1.0) / 2.0),
        };
        for (column, name) in target.names.iter().enumerate() {
            let task = match target.task {
                Task::Several => target.heads.get(column).map(|head| head.task),
                task => Some(task),
            };
            if task != Some(Task::Regression) {
                continue;
            }
            let (point, across) = part_of(name).ok_or_else(|| name.clone())?;
            let known = found.points.iter().position(|known| known.name == point);
            let index = known.unwrap_or_else(|| {
                found.points.push(Point {
                    name: point,
                    x: None,
                    y: None,
                });
                found.points.len() - 1
            });
            let slot = match across {
                true => &mut found.points[index].x,
                false => &mut found.points[index].y,
            };
            if slot.replace(column).is_some() {
                return Err(name.clone());
            }
        }
        Ok(found)
    }

    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// A position without one of its coordinates cannot be turned.
    pub fn half(&self, target: &Target) -> Option<String> {
        let half = |point: &&Point| point.x.is_none() || point.y.is_none();
        let column = self
            .points
            .iter()
            .find(half)
            .and_then(|point| point.x.or(point.y));
        column.and_then(|column| target.names.get(column)).cloned()
    }

    /// Moves the positions in the labels of one image; those that are unknown stay unknown.
    pub fn moved(&self, labels: &mut [f32], mut change: impl FnMut((f32, f32)) -> (f32, f32)) {
        // A pixel's center in the file is `(x + ½) · unit − ½` in the image.
        let pixel = |value: f32, unit: f32| (value + 0.5) * unit - 0.5;
        let label = |value: f32, unit: f32| (value + 0.5) / unit - 0.5;
        for point in &self.points {
            let get = |column: Option<usize>| column.and_then(|column| labels.get(column).copied());
            let (x, y) = (get(point.x), get(point.y));
            if x.or(y).is_none() || [x, y].into_iter().flatten().any(|value| !value.is_finite()) {
                continue;
            }
            let from = (
                x.map_or(self.center.0, |x| pixel(x, self.unit.0)),
                y.map_or(self.center.1, |y| pixel(y, self.unit.1)),
            );
            let to = change(from);
            for (column, value) in [
                (point.x, label(to.0, self.unit.0)),
                (point.y, label(to.1, self.unit.1)),
            ] {
                if let Some(slot) = column.and_then(|column| labels.get_mut(column)) {
                    *slot = value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_move_in_the_units_of_the_label() {
        // Images at half the size of their files.
        let points = Points {
            points: vec![
                Point {
                    name: "gap".to_owned(),
                    x: Some(0),
                    y: Some(2),
                },
                Point {
                    name: "bar".to_owned(),
                    x: None,
                    y: Some(1),
                },
            ],
            unit: (0.5, 0.5),
            center: (15.5, 7.5),
        };
        let mut labels = [20.0, 10.0, 12.0];
        points.moved(&mut labels, |point| point);
        assert_eq!(labels, [20.0, 10.0, 12.0]);
        let mut seen = Vec::new();
        points.moved(&mut labels, |point| {
            seen.push(point);
            (point.0 + 3.0, point.1 - 1.0)
        });
        assert_eq!(seen, [(9.75, 5.75), (15.5, 4.75)]);
        assert_eq!(labels, [26.0, 8.0, 10.0]);
        let mut unknown = [f32::NAN, 1.0, 2.0];
        points.moved(&mut unknown, |point| (point.0 + 1.0, point.1));
        assert!(unknown[0].is_nan() && unknown[2] == 2.0);
    }

    #[test]
    fn columns_of_one_position_are_found_by_name() {
        let part = |name: &str| part_of(name).map(|(point, across)| format!("{point}:{across}"));
        assert_eq!(part("gap_x").as_deref(), Some("gap_:true"));
        assert_eq!(part("gap_y").as_deref(), Some("gap_:false"));
        assert_eq!(part("x_gap").as_deref(), Some("_gap:true"));
        assert_eq!(part("Slider.CX").as_deref(), Some("slider_:true"));
        assert_eq!(part("y1").as_deref(), Some("1:false"));
        assert_eq!(part("angle"), None);
        assert_eq!(part("max"), None);
    }
}
