//! JPEG at a half, a quarter or an eighth of its size, without ever making the full picture: of each block of 8×8 only the low
//! frequencies that the smaller block needs are decoded and transformed, the others are stepped over. A grey picture out of
//! a colour one steps over the colours too.
//!
//! It handles what cameras and libraries write (one sequential scan, 8 bits, grey or YCbCr). Everything else, and every picture that
//! is to be larger than half its size, is left to the full decoder: `decode` then answers `None`.

mod header;
mod huffman;
mod scan;
mod transform;

use super::{Decoded, ImageShape};
use header::Header;
use huffman::Table;
use scan::Plane;

pub type Reason = String;

/// From here on tables that step over several codes at once pay for their making.
const LARGE_SCAN_BYTES: usize = 1 << 14;

/// Memory that is used again for the next picture.
#[derive(Default)]
pub struct ScaledDecoder {
    header: Header,
    planes: [Plane; 3],
    /// The entropy-coded bytes of one restart interval, without stuffing.
    segment: Vec<u8>,
}

impl ScaledDecoder {
    /// Decodes into `pixels` at the smallest size that is not below `shape`; `None` when this decoder is not for this picture.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        shape: ImageShape,
        pixels: &mut Vec<u8>,
    ) -> Result<Option<Decoded>, Reason> {
        let Some(scan) = self.header.parse(bytes)? else {
            // The full decoder (zune-jpeg 0.5) mixes up the lower rows' colours here.
            if self.header.separate && shape.channels > 1 {
                return Err("its colours lie in scans of their own, which are not read; save it as an ordinary JPEG, or read it grey".into());
            }
            return Ok(None);
        };
        if scan.len() > LARGE_SCAN_BYTES {
            self.header.ac_tables.iter_mut().for_each(Table::prepare_runs);
        }
        let header = &self.header;
        let scaled = |length: usize, side: usize| (length * side).div_ceil(8);
        let fits = |side: &usize| {
            scaled(header.width, *side) >= shape.width && scaled(header.height, *side) >= shape.height
        };
        let Some(side) = [1, 2, 4].into_iter().find(fits) else {
            return Ok(None);
        };
        if scaled(header.width, side) * scaled(header.height, side) > super::MAXIMUM_PIXELS {
            return Err("too many pixels".into());
        }
        let channels = if header.components.len() == 1 {
            1
        } else {
            shape.channels
        };
        for (plane, component) in self.planes.iter_mut().zip(&header.components[..channels]) {
            plane.prepare(header, component, side);
        }
        scan::decode(header, scan, &mut self.planes[..channels], &mut self.segment)?;
        let decoded = Decoded {
            width: scaled(header.width, side),
            height: scaled(header.height, side),
            channels,
        };
        self.assemble(decoded, pixels);
        Ok(Some(decoded))
    }

    /// Cuts the planes, which are whole blocks, to the picture's size, and makes RGB of three.
    fn assemble(&self, decoded: Decoded, pixels: &mut Vec<u8>) {
        let Decoded {
            width,
            height,
            channels,
        } = decoded;
        pixels.clear();
        pixels.reserve(width * height * channels);
        let [luma, blue, red] = &self.planes;
        for row in 0..height {
            let line = &luma.pixels[row * luma.width..][..width];
            if channels == 1 {
                pixels.extend_from_slice(line);
                continue;
            }
            let chroma = |plane: &Plane, column: usize| i32::from(plane.at(row, column, luma)) - 128;
            for (column, &value) in line.iter().enumerate() {
                pixels.extend_from_slice(&to_rgb(value, chroma(blue, column), chroma(red, column)));
            }
        }
    }
}

/// BT.601 with full range, as JFIF has it, in 16 bits behind the point.
fn to_rgb(luma: u8, blue: i32, red: i32) -> [u8; 3] {
    let luma = (i32::from(luma) << 16) + (1 << 15);
    let byte = |value: i32| (value >> 16).clamp(0, 255) as u8;
    [
        byte(luma + 91_881 * red),
        byte(luma - 22_554 * blue - 46_802 * red),
        byte(luma + 116_130 * blue),
    ]
}
