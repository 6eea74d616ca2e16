//! PNG and JPEG to grey or RGB bytes of a wanted size.

mod jpeg;
pub mod resize;

use crate::{DataError, Result};
use jpeg::ScaledDecoder;
use resize::{Resizer, to_grey};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Endings of pictures that can be read.
pub const IMAGE_ENDINGS: [&str; 3] = ["png", "jpg", "jpeg"];
/// A picture with more pixels is taken for a broken header.
const MAXIMUM_PIXELS: usize = 1 << 28;

/// The shape every picture of a data set gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ImageShape {
    pub height: usize,
    pub width: usize,
    /// 1 (grey) or 3 (RGB).
    pub channels: usize,
}

impl ImageShape {
    pub fn size_bytes(self) -> usize {
        self.height * self.width * self.channels
    }
}

/// What the head of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageHeader {
    pub width: usize,
    pub height: usize,
    /// More than shades of grey.
    pub color: bool,
}

/// Decodes pictures, using its memory again.
#[derive(Default)]
pub struct ImageDecoder {
    pixels: Vec<u8>,
    converted: Vec<u8>,
    resizer: Resizer,
    scaled: ScaledDecoder,
}

/// Size and channels of decoded pixels.
#[derive(Debug, Clone, Copy)]
struct Decoded {
    width: usize,
    height: usize,
    channels: usize,
}

impl ImageDecoder {
    /// Decodes the bytes of one file and writes `[height, width, channels]` to `into`.
    pub fn decode(&mut self, bytes: &[u8], shape: ImageShape, path: &Path, into: &mut [u8]) -> Result<()> {
        let decoded = catch_unwind(AssertUnwindSafe(|| self.decode_pixels(bytes, shape)));
        let decoded = match decoded {
            Ok(Ok(decoded)) => decoded,
            Ok(Err(reason)) => return Err(corrupt(path, reason)),
            Err(_) => return Err(corrupt(path, "damaged data".into())),
        };
        let pixels = convert(&self.pixels, decoded, shape.channels, &mut self.converted);
        self.resizer
            .resize(pixels, [decoded.height, decoded.width], shape, into);
        Ok(())
    }

    /// From the header alone.
    pub fn header(bytes: &[u8], path: &Path) -> Result<ImageHeader> {
        let size = catch_unwind(AssertUnwindSafe(|| match bytes {
            [0xFF, 0xD8, ..] => {
                let mut decoder = JpegDecoder::new(ZCursor::new(bytes));
                decoder.decode_headers().map_err(|error| error.to_string())?;
                decoder
                    .info()
                    .map(|info| ImageHeader {
                        width: usize::from(info.width),
                        height: usize::from(info.height),
                        color: info.components > 1,
                    })
                    .ok_or_else(String::new)
            }
            _ => {
                let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
                let info = decoder.read_header_info().map_err(|error| error.to_string())?;
                let grey = [png::ColorType::Grayscale, png::ColorType::GrayscaleAlpha];
                Ok(ImageHeader {
                    width: info.width as usize,
                    height: info.height as usize,
                    color: !grey.contains(&info.color_type),
                })
            }
        }));
        match size {
            Ok(Ok(size)) => Ok(size),
            Ok(Err(reason)) => Err(corrupt(path, reason)),
            Err(_) => Err(corrupt(path, "damaged data".into())),
        }
    }

    fn decode_pixels(&mut self, bytes: &[u8], shape: ImageShape) -> std::result::Result<Decoded, String> {
        match bytes {
            [0xFF, 0xD8, ..] => match self.scaled.decode(bytes, shape, &mut self.pixels)? {
                Some(decoded) => Ok(decoded),
                None => self.decode_jpeg(bytes, shape.channels),
            },
            [0x89, b'P', b'N', b'G', ..] => self.decode_png(bytes),
            _ => Err("neither PNG nor JPEG".into()),
        }
    }

    fn decode_jpeg(&mut self, bytes: &[u8], channels: usize) -> std::result::Result<Decoded, String> {
        let colour = if channels == 1 {
            ColorSpace::Luma
        } else {
            ColorSpace::RGB
        };
        let options = DecoderOptions::default()
            .jpeg_set_out_colorspace(colour)
            .set_strict_mode(true);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().map_err(|error| error.to_string())?;
        let info = decoder.info().ok_or("no header")?;
        let size = decoder.output_buffer_size().ok_or("no size")?;
        if size > 4 * MAXIMUM_PIXELS {
            return Err("too many pixels".into());
        }
        self.pixels.resize(size, 0);
        decoder
            .decode_into(&mut self.pixels)
            .map_err(|error| error.to_string())?;
        let (width, height) = (usize::from(info.width), usize::from(info.height));
        Ok(Decoded {
            width,
            height,
            channels: size / (width * height).max(1),
        })
    }

    fn decode_png(&mut self, bytes: &[u8]) -> std::result::Result<Decoded, String> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
        let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
        let size = reader.output_buffer_size().ok_or("no size")?;
        if size > 4 * MAXIMUM_PIXELS {
            return Err("too many pixels".into());
        }
        self.pixels.resize(size, 0);
        let info = reader
            .next_frame(&mut self.pixels)
            .map_err(|error| error.to_string())?;
        Ok(Decoded {
            width: info.width as usize,
            height: info.height as usize,
            channels: info.color_type.samples(),
        })
    }
}

/// To the wanted channels: alpha is dropped, RGB becomes grey by the weights of BT.601, grey is repeated.
fn convert<'a>(pixels: &'a [u8], from: Decoded, channels: usize, room: &'a mut Vec<u8>) -> &'a [u8] {
    if from.channels == channels {
        return pixels;
    }
    room.clear();
    for pixel in pixels.chunks_exact(from.channels.max(1)) {
        match (pixel, channels) {
            ([red, green, blue, ..], 1) => room.push(to_grey(*red, *green, *blue)),
            ([red, green, blue, ..], _) => room.extend_from_slice(&[*red, *green, *blue]),
            ([grey, ..], 1) => room.push(*grey),
            ([grey, ..], _) => room.extend_from_slice(&[*grey; 3]),
            ([], _) => {}
        }
    }
    room
}

fn corrupt(path: &Path, reason: String) -> DataError {
    DataError::Corrupt {
        path: path.to_owned(),
        format: "image",
        reason,
    }
}

/// Writes a PNG, the same bytes for the same pixels.
pub fn write_png(path: &Path, pixels: &[u8], shape: ImageShape) -> Result<()> {
    let write = || -> std::result::Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, shape.width as u32, shape.height as u32);
        encoder.set_color(if shape.channels == 1 {
            png::ColorType::Grayscale
        } else {
            png::ColorType::Rgb
        });
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()?;
        Ok(bytes)
    };
    let bytes = write().map_err(|error| DataError::writing(path, std::io::Error::other(error)))?;
    std::fs::write(path, bytes).map_err(|error| DataError::writing(path, error))
}
