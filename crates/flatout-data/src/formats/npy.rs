//! NumPy's `.npy`: one array of numbers in C order, little-endian.

use crate::{DataError, Result};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Each has a name and a place in memory before the first row is read.
pub const MOST_COLUMNS: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct NpyArray {
    pub shape: Vec<usize>,
    pub values: NpyValues,
}

#[derive(Debug, Clone, PartialEq)]
pub enum NpyValues {
    Byte(Vec<u8>),
    Real(Vec<f32>),
    Integer(Vec<i64>),
}

impl NpyArray {
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| DataError::reading(path, source))?;
        Self::parse(&bytes).map_err(|reason| DataError::Corrupt {
            path: path.to_owned(),
            format: "NumPy",
            reason,
        })
    }

    pub fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        let header = Header::parse(bytes)?;
        let count = header.count()?;
        Ok(Self {
            values: parse_values(&header.kind, &bytes[header.start..], count)?,
            shape: header.shape,
        })
    }

    /// The values as `f32`.
    pub fn into_f32(self) -> Vec<f32> {
        match self.values {
            NpyValues::Byte(values) => values.into_iter().map(f32::from).collect(),
            NpyValues::Real(values) => values,
            NpyValues::Integer(values) => values.into_iter().map(|value| value as f32).collect(),
        }
    }
}

/// What stands before the numbers.
struct Header {
    kind: String,
    shape: Vec<usize>,
    /// Where the numbers begin.
    start: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("not an .npy file")?;
        let (length, start) = match rest {
            [1, _, low, high, ..] => (usize::from(u16::from_le_bytes([*low, *high])), 4),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 6),
            _ => return Err("an unknown version".into()),
        };
        let text = rest.get(start..start + length).ok_or("its header is cut short")?;
        let text = std::str::from_utf8(text).map_err(|_| "its header is not text")?;
        if field(text, "fortran_order")?.starts_with("True") {
            return Err("arrays in Fortran order are not supported; save np.ascontiguousarray(a)".into());
        }
        let kind = field(text, "descr")?.trim_start_matches(['\'', '"']);
        let kind = &kind[..kind.find(['\'', '"']).unwrap_or(kind.len())];
        Ok(Self {
            kind: kind.to_owned(),
            shape: parse_shape(field(text, "shape")?)?,
            start: 6 + start + length,
        })
    }

    fn count(&self) -> std::result::Result<usize, String> {
        let product = self
            .shape
            .iter()
            .try_fold(1usize, |count, &side| count.checked_mul(side));
        product.ok_or_else(|| "its shape is too large".into())
    }
}

/// A type of numbers, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NpyKind {
    Unsigned(usize),
    Signed(usize),
    Real(usize),
}

impl NpyKind {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "|u1" | "<u1" | "|b1" => Self::Unsigned(1),
            "<u2" => Self::Unsigned(2),
            "<u4" => Self::Unsigned(4),
            "|i1" | "<i1" => Self::Signed(1),
            "<i2" => Self::Signed(2),
            "<i4" => Self::Signed(4),
            "<i8" => Self::Signed(8),
            "<f4" => Self::Real(4),
            "<f8" => Self::Real(8),
            _ => return None,
        })
    }

    pub fn size(self) -> usize {
        match self {
            Self::Unsigned(size) | Self::Signed(size) | Self::Real(size) => size,
        }
    }

    pub fn is_real(self) -> bool {
        matches!(self, Self::Real(_))
    }

    /// A number out of `size()` bytes.
    pub fn real(self, bytes: &[u8]) -> f64 {
        match *bytes {
            [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => f64::NAN,
        }
    }

    /// A whole number out of `size()` bytes.
    pub fn whole(self, bytes: &[u8]) -> i64 {
        let mut wide = [0; 8];
        wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        let value = i64::from_le_bytes(wide);
        let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
        match self {
            Self::Signed(_) => value << unused >> unused,
            _ => value,
        }
    }
}

/// An array on disk of which parts can be read.
#[derive(Debug)]
pub struct NpyFile {
    file: File,
    pub kind: NpyKind,
    pub shape: Vec<usize>,
    start: u64,
}

impl NpyFile {
    pub fn open(path: &Path) -> Result<Self> {
        let reading = |error| DataError::reading(path, error);
        let file = File::open(path).map_err(reading)?;
        let mut front = Vec::new();
        (&file)
            .take(HEADER_BYTES)
            .read_to_end(&mut front)
            .map_err(reading)?;
        let corrupt = |reason: String| DataError::Corrupt {
            path: path.to_owned(),
            format: "NumPy",
            reason,
        };
        let header = Header::parse(&front).map_err(corrupt)?;
        let kind = NpyKind::parse(&header.kind)
            .ok_or_else(|| corrupt(format!("values of type `{}` are not supported", header.kind)))?;
        let needed = header.count().map_err(corrupt)?.checked_mul(kind.size());
        let there = file
            .metadata()
            .map_err(reading)?
            .len()
            .saturating_sub(header.start as u64);
        if needed.is_none_or(|needed| needed as u64 > there) {
            let needed = needed.unwrap_or(usize::MAX);
            return Err(corrupt(format!(
                "it has {there} bytes of data, its shape needs {needed}"
            )));
        }
        Ok(Self {
            file,
            kind,
            shape: header.shape,
            start: header.start as u64,
        })
    }

    /// Bytes with three or four axes are pictures, not a table.
    pub fn holds_pictures(&self) -> bool {
        self.kind == NpyKind::Unsigned(1) && (3..=4).contains(&self.shape.len())
    }

    /// The bytes of rows of `width` numbers.
    pub fn read_values(&self, path: &Path, rows: std::ops::Range<usize>, width: usize) -> Result<Vec<u8>> {
        let row_bytes = width * self.kind.size();
        let mut bytes = vec![0; rows.len() * row_bytes];
        self.file
            .read_exact_at(&mut bytes, self.start + (rows.start * row_bytes) as u64)
            .map_err(|error| DataError::reading(path, error))?;
        Ok(bytes)
    }
}

/// A longer header is not read.
const HEADER_BYTES: u64 = 1 << 16;

/// The text behind `'name':`.
fn field<'a>(header: &'a str, name: &str) -> std::result::Result<&'a str, String> {
    let place = header
        .find(&format!("'{name}'"))
        .ok_or_else(|| format!("its header has no `{name}`"))?;
    let rest = &header[place + name.len() + 2..];
    Ok(rest.trim_start().trim_start_matches(':').trim_start())
}

fn parse_shape(text: &str) -> std::result::Result<Vec<usize>, String> {
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.split(')').next())
        .ok_or("its shape is not a tuple")?;
    let sides = inner.split(',').map(str::trim).filter(|side| !side.is_empty());
    sides
        .map(|side| side.parse().map_err(|_| format!("its shape has `{side}`")))
        .collect()
}

fn parse_values(kind: &str, data: &[u8], count: usize) -> std::result::Result<NpyValues, String> {
    let whole = |size: usize| -> std::result::Result<&[u8], String> {
        let needed = count.checked_mul(size).ok_or("its shape is too large")?;
        data.get(..needed)
            .ok_or_else(|| format!("it has {} bytes of data, its shape needs {needed}", data.len()))
    };
    macro_rules! numbers {
        ($type:ty, $to:ty) => {
            whole(size_of::<$type>())?
                .chunks_exact(size_of::<$type>())
                .map(|bytes| {
                    bytes
                        .try_into()
                        .map_or(0 as $to, |bytes| <$type>::from_le_bytes(bytes) as $to)
                })
                .collect()
        };
    }
    Ok(match kind {
        "|u1" | "<u1" => NpyValues::Byte(whole(1)?.to_vec()),
        "|b1" => NpyValues::Byte(whole(1)?.to_vec()),
        "|i1" | "<i1" => NpyValues::Integer(numbers!(i8, i64)),
        "<f4" => NpyValues::Real(numbers!(f32, f32)),
        "<f8" => NpyValues::Real(numbers!(f64, f32)),
        "<i2" => NpyValues::Integer(numbers!(i16, i64)),
        "<u2" => NpyValues::Integer(numbers!(u16, i64)),
        "<i4" => NpyValues::Integer(numbers!(i32, i64)),
        "<u4" => NpyValues::Integer(numbers!(u32, i64)),
        "<i8" => NpyValues::Integer(numbers!(i64, i64)),
        other => return Err(format!("values of type `{other}` are not supported")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn reads_what_numpy_writes() {
        let array = NpyArray::parse(&file("<f4", "(1, 2)", &[0, 0, 128, 63, 0, 0, 0, 64])).unwrap();
        assert_eq!(
            (array.shape, array.values),
            (vec![1, 2], NpyValues::Real(vec![1.0, 2.0]))
        );
        let array = NpyArray::parse(&file("<i8", "(1,)", &[255; 8])).unwrap();
        assert_eq!(array.values, NpyValues::Integer(vec![-1]));
        assert!(
            NpyArray::parse(&file("<f4", "(3, 2)", &[0; 8]))
                .unwrap_err()
                .contains("needs 24")
        );
        assert!(
            NpyArray::parse(&file("|O", "(1,)", &[0; 8]))
                .unwrap_err()
                .contains("|O")
        );
        assert!(NpyArray::parse(&file("<f8", "(99999999999, 99999999999)", &[])).is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes: Vec<u8>, shape in "[(0-9, )]{0,12}") {
            let _ = NpyArray::parse(&bytes);
            let _ = NpyArray::parse(&file("<f4", &shape, &bytes));
        }
    }
}
