//! The markers before the scan: sizes, tables, components.

use super::Reason;
use super::huffman::Table;

#[derive(Debug, Clone, Copy, Default)]
pub struct Component {
    identity: u8,
    pub horizontal: usize,
    pub vertical: usize,
    pub quantisation: usize,
    pub dc_table: usize,
    pub ac_table: usize,
}

#[derive(Default)]
pub struct Header {
    pub width: usize,
    pub height: usize,
    pub components: Vec<Component>,
    /// In zigzag order, as they come.
    pub quantisation: [Option<[f32; 64]>; 4],
    pub dc_tables: [Table; 4],
    pub ac_tables: [Table; 4],
    /// Blocks groups (MCUs) between restart markers; 0: none.
    pub restart_interval: usize,
    /// Adobe's word on colours: 0 says RGB or CMYK.
    adobe_transform: Option<u8>,
    /// A scan for each component.
    pub separate: bool,
}

/// The bytes of one marker segment, read from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Reason> {
        let (front, rest) = self.0.split_at_checked(count).ok_or("its header is cut short")?;
        self.0 = rest;
        Ok(front)
    }

    fn byte(&mut self) -> Result<u8, Reason> {
        Ok(self.take(1)?[0])
    }

    fn word(&mut self) -> Result<usize, Reason> {
        let bytes = self.take(2)?;
        Ok((usize::from(bytes[0]) << 8) | usize::from(bytes[1]))
    }
}

impl Header {
    /// Reads up to the scan and returns its bytes; `None` for a kind of JPEG that is the full decoder's.
    pub fn parse<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Reason> {
        self.components.clear();
        self.quantisation = [None; 4];
        self.restart_interval = 0;
        self.adobe_transform = None;
        self.separate = false;
        let mut rest = Fields(bytes.get(2..).unwrap_or_default());
        loop {
            let mut marker = rest.byte()?;
            if marker != 0xFF {
                return Err("its header is damaged".into());
            }
            while marker == 0xFF {
                marker = rest.byte()?;
            }
            let length = rest.word()?.checked_sub(2).ok_or("its header is damaged")?;
            let mut fields = Fields(rest.take(length)?);
            match marker {
                0xC0 | 0xC1 if self.frame(&mut fields)? => {}
                0xC4 => self.huffman_tables(&mut fields)?,
                // Other than 8 bits of grey or YCbCr; progressive, lossless, hierarchical, arithmetic.
                0xC0..=0xCF => return Ok(None),
                0xDB => self.quantisation_tables(&mut fields)?,
                0xDD => self.restart_interval = fields.word()?,
                0xEE if fields.0.starts_with(b"Adobe") => self.adobe_transform = fields.0.get(11).copied(),
                0xDA => return Ok(self.scan(&mut fields)?.then_some(rest.0)),
                0xD8 | 0xD9 => return Err("it has no picture".into()),
                _ => {}
            }
        }
    }

    fn frame(&mut self, fields: &mut Fields<'_>) -> Result<bool, Reason> {
        let precision = fields.byte()?;
        self.height = fields.word()?;
        self.width = fields.word()?;
        let count = fields.byte()?;
        if precision != 8 || self.height == 0 || self.width == 0 || !matches!(count, 1 | 3) {
            return Ok(false);
        }
        self.components.clear();
        for _ in 0..count {
            let (identity, sampling, quantisation) = (fields.byte()?, fields.byte()?, fields.byte()?);
            let (horizontal, vertical) = (usize::from(sampling >> 4), usize::from(sampling & 15));
            if !(1..=4).contains(&horizontal) || !(1..=4).contains(&vertical) || quantisation > 3 {
                return Err("its components are damaged".into());
            }
            self.components.push(Component {
                identity,
                // Blocks of a picture with one component come one by one whatever it says.
                horizontal: if count == 1 { 1 } else { horizontal },
                vertical: if count == 1 { 1 } else { vertical },
                quantisation: usize::from(quantisation),
                ..Component::default()
            });
        }
        // Brightness must be the finest, or its plane would not have the picture's size.
        let first = self.components[0];
        Ok(self
            .components
            .iter()
            .all(|other| other.horizontal <= first.horizontal && other.vertical <= first.vertical))
    }

    fn quantisation_tables(&mut self, fields: &mut Fields<'_>) -> Result<(), Reason> {
        while !fields.0.is_empty() {
            let kind = fields.byte()?;
            let mut table = [0.0; 64];
            for value in &mut table {
                *value = if kind >> 4 == 0 {
                    f32::from(fields.byte()?)
                } else {
                    fields.word()? as f32
                };
            }
            *self
                .quantisation
                .get_mut(usize::from(kind & 15))
                .ok_or("its quantisation tables are damaged")? = Some(table);
        }
        Ok(())
    }

    fn huffman_tables(&mut self, fields: &mut Fields<'_>) -> Result<(), Reason> {
        while !fields.0.is_empty() {
            let kind = fields.byte()?;
            let counts = fields.take(16)?;
            let symbols = fields.take(counts.iter().map(|&count| usize::from(count)).sum())?;
            let tables = if kind >> 4 == 0 {
                &mut self.dc_tables
            } else {
                &mut self.ac_tables
            };
            tables
                .get_mut(usize::from(kind & 15))
                .ok_or("its Huffman tables are damaged")?
                .define(counts, symbols)?;
        }
        Ok(())
    }

    /// Whether the scan is one that holds all components.
    fn scan(&mut self, fields: &mut Fields<'_>) -> Result<bool, Reason> {
        let count = usize::from(fields.byte()?);
        if self.components.is_empty() || count != self.components.len() {
            self.separate = count < self.components.len();
            return Ok(false);
        }
        for component in &mut self.components {
            let (identity, tables) = (fields.byte()?, fields.byte()?);
            if identity != component.identity {
                return Ok(false);
            }
            (component.dc_table, component.ac_table) = (usize::from(tables >> 4), usize::from(tables & 15));
            let known = |tables: &[Table; 4], index: usize| tables.get(index).is_some_and(Table::is_defined);
            if !known(&self.dc_tables, component.dc_table)
                || !known(&self.ac_tables, component.ac_table)
                || self.quantisation[component.quantisation].is_none()
            {
                return Err("a table is missing".into());
            }
        }
        let rgb = self.adobe_transform == Some(0)
            || self
                .components
                .iter()
                .map(|component| component.identity)
                .eq(*b"RGB");
        Ok(self.components.len() == 1 || !rgb)
    }
}
