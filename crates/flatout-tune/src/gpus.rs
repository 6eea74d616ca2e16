//! What the vendor says of a GPU, and the class of starting values it belongs to: `data/gpus.toml`.

use std::sync::OnceLock;
use toml_edit::{Document, Item, TableLike};

const TEXT: &str = include_str!("../data/gpus.toml");

/// Starting values for a class of GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    pub name: String,
    pub batch: u64,
    pub hidden: u64,
    pub workers: u64,
    /// The best known cards of the class.
    pub like: String,
}

/// One GPU's figures: TFLOP/s dense, GB/s. `None` where it has no such unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub parts: Vec<String>,
    pub class: Class,
    pub memory_gb: f64,
    pub bandwidth_gb_s: f64,
    pub f32: Option<f64>,
    pub tf32: Option<f64>,
    pub bf16: Option<f64>,
    pub f16: Option<f64>,
    pub power_w: f64,
}

impl Figures {
    pub fn name(&self) -> String {
        self.parts.join(" ")
    }

    /// Compute capability that such figures imply, for a card that is only named.
    pub fn capability(&self) -> (u32, u32) {
        match (self.bf16, self.f16) {
            (Some(_), _) => (8, 0),
            (None, Some(f16)) if f16 > 2.5 * self.f32.unwrap_or(0.0) => (7, 0),
            _ => (6, 0),
        }
    }
}

/// The figures of the GPU with this name; `None` for one that the file does not know.
pub fn find(name: &str) -> Option<&'static Figures> {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).collect();
    all().iter().find(|figures| {
        figures.parts.iter().all(|part| {
            let part = part.to_ascii_lowercase();
            // "A10" must not match "A100", nor "L4" an "L40S".
            if part.contains(' ') {
                name.contains(&part)
            } else {
                words.contains(&part.as_str())
            }
        })
    })
}

pub fn all() -> &'static [Figures] {
    static ALL: OnceLock<Vec<Figures>> = OnceLock::new();
    ALL.get_or_init(|| read(TEXT).unwrap_or_default())
}

fn read(text: &str) -> Option<Vec<Figures>> {
    let document = Document::parse(text).ok()?;
    let classes = document.get("classes")?.as_table_like()?;
    let list = document.get("gpu")?.as_array_of_tables()?;
    list.iter().map(|table| figures(table, classes)).collect()
}

fn figures(table: &dyn TableLike, classes: &dyn TableLike) -> Option<Figures> {
    let number = |name: &str| table.get(name).and_then(real);
    let rate = |name: &str| number(name).filter(|rate| *rate > 0.0);
    let name = table.get("class")?.as_str()?;
    let class = classes.get(name)?.as_table_like()?;
    let whole = |key: &str| {
        class
            .get(key)
            .and_then(Item::as_integer)
            .and_then(|n| u64::try_from(n).ok())
    };
    let parts = table
        .get("match")?
        .as_array()?
        .iter()
        .filter_map(|part| part.as_str().map(str::to_owned));
    Some(Figures {
        parts: parts.collect(),
        class: Class {
            name: name.to_owned(),
            batch: whole("batch")?,
            hidden: whole("hidden")?,
            workers: whole("workers")?,
            like: class.get("like")?.as_str()?.to_owned(),
        },
        memory_gb: number("memory_gb")?,
        bandwidth_gb_s: number("bandwidth_gb_s")?,
        f32: rate("f32"),
        tf32: rate("tf32"),
        bf16: rate("bf16"),
        f16: rate("f16"),
        power_w: number("power_w")?,
    })
}

fn real(item: &Item) -> Option<f64> {
    item.as_float()
        .or_else(|| item.as_integer().map(|whole| whole as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_read() {
        assert_eq!(all().len(), TEXT.matches("[[gpu]]").count());
        assert!(
            all()
                .iter()
                .all(|figures| figures.bandwidth_gb_s > 100.0 && figures.f32.is_some())
        );
    }

    #[test]
    fn names_as_drivers_write_them() {
        let class = |name: &str| find(name).map(|figures| (figures.name(), figures.class.name.clone()));
        let is = |name: &str, class: &str| Some((name.to_owned(), class.to_owned()));
        assert_eq!(class("NVIDIA H200"), is("H200", "largest"));
        assert_eq!(class("NVIDIA A100-SXM4-80GB"), is("A100 80GB", "large"));
        assert_eq!(class("NVIDIA A10"), is("A10", "middle"));
        assert_eq!(class("NVIDIA L4"), is("L4", "small"));
        assert_eq!(class("NVIDIA L40S"), is("L40S", "middle"));
        assert_eq!(class("NVIDIA GeForce RTX 3090"), is("RTX 3090", "middle"));
        assert_eq!(class("NVIDIA H100 PCIe"), is("H100 PCIe", "large"));
        assert_eq!(class("Tesla V100-SXM2-32GB"), is("V100", "middle"));
        assert_eq!(class("Voodoo 2"), None);
    }

    #[test]
    fn precision_follows_the_units() {
        assert_eq!(find("Tesla V100").map(Figures::capability), Some((7, 0)));
        assert_eq!(find("NVIDIA A100").map(Figures::capability), Some((8, 0)));
        assert_eq!(find("Tesla P100").map(Figures::capability), Some((6, 0)));
    }
}
