//! Sizes of a gather. Windows come out time-major, `[length, batch, …row]`: each time step of a recurrence is contiguous.

use crate::EngineError;
use crate::model::{Draft, Model, Tensor};
use crate::ops::Operation;
use crate::plan::DataType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `output[b] = table[index[b]]`.
    Rows,
    /// `output[t, b] = table[index[b] + t]`: the index names a window's first row.
    Windows { length: usize },
}

/// Random changes of pictures while they are trained on: a function of (seed, epoch, picture) alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Augment {
    /// Half of the pictures are turned round, left to right.
    pub flip: bool,
    /// Shift by up to this many pixels in each direction, edges repeated: a random crop of the padded picture.
    pub padding: usize,
}

/// Pictures of a table: rows of `height · width · channels` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Pictures {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub augment: Augment,
}

#[derive(Clone, Debug)]
pub struct Gather {
    pub kind: Kind,
    pub batch: usize,
    /// Values in a row.
    pub width: usize,
    /// What the table holds; bytes come out as real numbers.
    pub data_type: DataType,
    /// Values of bytes are `byte · scale + shift`.
    pub scale: f64,
    pub shift: f64,
    /// Where rows are pictures that change at random.
    pub pictures: Option<Pictures>,
    /// For the error that says which table is missing.
    pub table: String,
}

impl Operation for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }
}

impl Gather {
    /// Rows of the table that one index needs.
    pub fn length(&self) -> usize {
        match self.kind {
            Kind::Rows => 1,
            Kind::Windows { length } => length,
        }
    }
}

impl Model {
    /// `[batch, …row]`: the rows of a table that `index` names. A table of integers gives indices.
    pub fn gather_rows(&mut self, table: Tensor, index: Tensor) -> Result<Tensor, EngineError> {
        self.gather(table, index, Kind::Rows, (1.0, 0.0), None)
    }

    /// `[length, batch, …row]`: `length` rows of a table from `index` on.
    pub fn gather_windows(
        &mut self,
        table: Tensor,
        index: Tensor,
        length: usize,
    ) -> Result<Tensor, EngineError> {
        self.gather(table, index, Kind::Windows { length }, (1.0, 0.0), None)
    }

    /// `[batch, …row]` of a table of bytes, each value `byte · scale + shift`.
    pub fn gather_bytes(
        &mut self,
        table: Tensor,
        index: Tensor,
        scale: f64,
        shift: f64,
    ) -> Result<Tensor, EngineError> {
        self.require(table, DataType::U8)?;
        self.gather(table, index, Kind::Rows, (scale, shift), None)
    }

    /// The same of a table of pictures `[height, width, channels]`, flipped and shifted at random in training.
    pub fn gather_pictures(
        &mut self,
        table: Tensor,
        index: Tensor,
        (scale, shift): (f64, f64),
        augment: Augment,
    ) -> Result<Tensor, EngineError> {
        self.require(table, DataType::U8)?;
        let [height, width, channels] = self.dimensions(
            "gather",
            table,
            "a table of pictures of shape [height, width, channels]",
        )?;
        let pictures = Pictures {
            height,
            width,
            channels,
            augment,
        };
        let pictures = (augment != Augment::default()).then_some(pictures);
        self.gather(table, index, Kind::Rows, (scale, shift), pictures)
    }

    fn gather(
        &mut self,
        table: Tensor,
        index: Tensor,
        kind: Kind,
        (scale, shift): (f64, f64),
        pictures: Option<Pictures>,
    ) -> Result<Tensor, EngineError> {
        self.require(index, DataType::I32)?;
        let [batch] = self.dimensions("gather", index, "indices of shape [batch]")?;
        let data_type = self.data_type(table);
        let row = self.shape(table).to_vec();
        let op = Gather {
            kind,
            batch,
            width: row.iter().product(),
            data_type,
            scale,
            shift,
            pictures,
            table: self.buffers[table.index()].name.clone(),
        };
        let mut shape = match kind {
            Kind::Rows => vec![batch],
            Kind::Windows { length: 0 } => {
                return Err(EngineError::Setting {
                    operation: "gather",
                    setting: "length",
                    value: 0.0,
                    allowed: "1 or more",
                });
            }
            Kind::Windows { length } => vec![length, batch],
        };
        // A table of single integers gives the batch's indices themselves.
        if !(data_type == DataType::I32 && row == [1]) {
            shape.extend(row);
        }
        let output_type = if data_type == DataType::I32 {
            DataType::I32
        } else {
            DataType::Real
        };
        let output = self.activation(&shape, output_type);
        self.drafts.push(Draft {
            op: op.into(),
            inputs: vec![table, index],
            outputs: vec![output],
            parameters: Vec::new(),
            states: Vec::new(),
        });
        Ok(output)
    }
}
