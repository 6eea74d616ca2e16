//! The inverse cosine transform of the `side × side` low frequencies of a block of 8×8: the block at that size.

use std::sync::LazyLock;

/// For each zigzag position of a block: row and column.
const ZIGZAG: [(u8, u8); 64] = zigzag();

const fn zigzag() -> [(u8, u8); 64] {
    let mut places = [(0, 0); 64];
    let (mut row, mut column, mut index) = (0i32, 0i32, 0);
    while index < 64 {
        places[index] = (row as u8, column as u8);
        let up = (row + column) % 2 == 0;
        (row, column) = match (up, row, column) {
            (true, _, 7) => (row + 1, 7),
            (true, 0, _) => (0, column + 1),
            (true, ..) => (row - 1, column + 1),
            (false, 7, _) => (7, column + 1),
            (false, _, 0) => (row + 1, 0),
            (false, ..) => (row + 1, column - 1),
        };
        index += 1;
    }
    places
}

/// A transform to `side × side`.
pub struct Transform {
    pub side: usize,
    /// Zigzag positions behind this one are of no use.
    pub last: usize,
    /// Where a zigzag position lies in `[side, side]`; 64 for those of no use.
    pub places: [u8; 64],
    /// `[side of the picture, frequency]`, rows of 8.
    basis: [[f32; 8]; 8],
}

static TRANSFORMS: LazyLock<[Transform; 4]> = LazyLock::new(|| [1, 2, 4, 8].map(Transform::new));

impl Transform {
    pub fn of_side(side: usize) -> &'static Self {
        &TRANSFORMS[side.trailing_zeros() as usize & 3]
    }

    fn new(side: usize) -> Self {
        let mut places = [64; 64];
        let mut last = 0;
        for (index, &(row, column)) in ZIGZAG.iter().enumerate() {
            let (row, column) = (usize::from(row), usize::from(column));
            if row < side && column < side {
                places[index] = (row * side + column) as u8;
                last = index;
            }
        }
        let mut basis = [[0.0; 8]; 8];
        for (place, line) in basis.iter_mut().enumerate().take(side) {
            for (frequency, value) in line.iter_mut().enumerate().take(side) {
                let angle =
                    (2 * place + 1) as f64 * frequency as f64 * std::f64::consts::PI / (2 * side) as f64;
                let norm = if frequency == 0 { 1.0f64 } else { 2.0 };
                *value = ((norm / 8.0).sqrt() * angle.cos()) as f32;
            }
        }
        Self {
            side,
            last,
            places,
            basis,
        }
    }

    /// Writes the block whose coefficients lie in `[side, side]` to `into`, lines `stride` apart.
    #[inline(always)]
    pub fn write(&self, coefficients: &[f32; 65], into: &mut [u8], stride: usize) {
        match self.side {
            1 => into[0] = to_byte(coefficients[0] * self.basis[0][0] * self.basis[0][0]),
            2 => self.write_side::<2>(coefficients, into, stride),
            4 => self.write_side::<4>(coefficients, into, stride),
            _ => self.write_side::<8>(coefficients, into, stride),
        }
    }

    #[inline(always)]
    fn write_side<const SIDE: usize>(&self, coefficients: &[f32; 65], into: &mut [u8], stride: usize) {
        let mut lines = [[0f32; SIDE]; SIDE];
        for (row, line) in lines.iter_mut().enumerate() {
            for (weight, frequencies) in self.basis[row]
                .iter()
                .zip(coefficients.chunks_exact(SIDE))
                .take(SIDE)
            {
                for (value, coefficient) in line.iter_mut().zip(frequencies) {
                    *value += weight * coefficient;
                }
            }
        }
        for (row, line) in lines.iter().enumerate() {
            let mut values = [0f32; SIDE];
            for (column, value) in values.iter_mut().enumerate() {
                for (weight, part) in self.basis[column].iter().zip(line) {
                    *value += weight * part;
                }
            }
            for (pixel, value) in into[row * stride..][..SIDE].iter_mut().zip(values) {
                *pixel = to_byte(value);
            }
        }
    }
}

#[inline(always)]
fn to_byte(value: f32) -> u8 {
    // `as` saturates.
    (value + 128.5) as u8
}
