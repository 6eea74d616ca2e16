//! The entropy-coded part: block after block into planes, or stepped over.

use super::Reason;
use super::header::{Component, Header};
use super::huffman::{Bits, PADDING, Table};
use super::transform::Transform;

/// One component of the picture at its reduced size, in whole blocks.
#[derive(Default)]
pub struct Plane {
    pub pixels: Vec<u8>,
    pub width: usize,
    pub height: usize,
    side: usize,
}

impl Plane {
    /// Makes room. A component with fewer samples than the first is reduced less, up to not at all, so that it has as many both
    /// across and down; where that makes too many, they are averaged later.
    pub fn prepare(&mut self, header: &Header, component: &Component, side: usize) {
        let finest = header.components[0];
        let finer = (finest.horizontal / component.horizontal).max(finest.vertical / component.vertical);
        self.side = (1..=finer)
            .rev()
            .map(|finer| side * finer)
            .find(|side| [1, 2, 4, 8].contains(side))
            .unwrap_or(side);
        let [across, down] = groups(header);
        self.width = across * component.horizontal * self.side;
        self.height = down * component.vertical * self.side;
        self.pixels.resize(self.width * self.height, 0);
    }

    /// The mean of the samples that lie in one pixel of `finest`.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize, finest: &Self) -> u8 {
        let (across, down) = (
            column * self.width / finest.width,
            row * self.height / finest.height,
        );
        if self.width <= finest.width && self.height <= finest.height {
            return self.pixels[down * self.width + across];
        }
        let wide = (self.width / finest.width).max(1);
        let high = (self.height / finest.height).max(1);
        let lines = self.pixels[down * self.width..].chunks(self.width).take(high);
        let sum: usize = lines
            .flat_map(|line| &line[across..across + wide])
            .map(|&value| usize::from(value))
            .sum();
        ((sum + wide * high / 2) / (wide * high)) as u8
    }
}

/// Groups of blocks (MCUs) across and down.
fn groups(header: &Header) -> [usize; 2] {
    let finest = header.components[0];
    [
        header.width.div_ceil(8 * finest.horizontal),
        header.height.div_ceil(8 * finest.vertical),
    ]
}

/// Decodes the first `planes.len()` components and steps over the others.
pub fn decode(
    header: &Header,
    mut scan: &[u8],
    planes: &mut [Plane],
    segment: &mut Vec<u8>,
) -> Result<(), Reason> {
    let [across, down] = groups(header);
    let total = across * down;
    let interval = if header.restart_interval == 0 {
        total
    } else {
        header.restart_interval
    };
    let quantisation: [[f32; 64]; 3] = std::array::from_fn(|index| {
        let component = header.components.get(index);
        component
            .and_then(|component| header.quantisation[component.quantisation])
            .unwrap_or([0.0; 64])
    });
    for first in (0..total).step_by(interval) {
        if first > 0 {
            scan = after_restart(scan)?;
        }
        scan = unstuff(scan, segment);
        let mut bits = Bits::new(segment);
        let mut predictions = [0i32; 3];
        for group in first..(first + interval).min(total) {
            let (row, column) = (group / across, group % across);
            for (index, component) in header.components.iter().enumerate() {
                let tables = [
                    &header.dc_tables[component.dc_table],
                    &header.ac_tables[component.ac_table],
                ];
                for block in 0..component.horizontal * component.vertical {
                    let Some(plane) = planes.get_mut(index) else {
                        skip_block(&mut bits, tables)?;
                        continue;
                    };
                    let (right, below) = (block % component.horizontal, block / component.horizontal);
                    let place = (row * component.vertical + below) * plane.side * plane.width
                        + (column * component.horizontal + right) * plane.side;
                    let transform = Transform::of_side(plane.side);
                    let coefficients = read_block(
                        &mut bits,
                        tables,
                        transform,
                        &quantisation[index],
                        &mut predictions[index],
                    )?;
                    transform.write(&coefficients, &mut plane.pixels[place..], plane.width);
                }
            }
            if bits.overrun() {
                return Err("it is cut short".into());
            }
        }
    }
    Ok(())
}

fn damaged() -> Reason {
    "its picture data are damaged".into()
}

/// The low frequencies of a block, multiplied out; the last slot takes those that are not wanted.
#[inline(always)]
fn read_block(
    bits: &mut Bits<'_>,
    [dc, ac]: [&Table; 2],
    transform: &Transform,
    quantisation: &[f32; 64],
    prediction: &mut i32,
) -> Result<[f32; 65], Reason> {
    let mut coefficients = [0f32; 65];
    let (entry, difference) = bits.next(dc);
    if entry.advance() == 0 {
        return Err(damaged());
    }
    *prediction = prediction.wrapping_add(difference);
    coefficients[0] = *prediction as f32 * quantisation[0];
    let mut index = 1;
    while index <= transform.last {
        let (entry, value) = bits.next(ac);
        let at = index + entry.advance() - 1;
        if entry.advance() == 0 {
            return Err(damaged());
        }
        if at < 64 {
            coefficients[usize::from(transform.places[at])] = value as f32 * quantisation[at];
        }
        index = at + 1;
    }
    if bits.skip_block(ac, index) {
        Ok(coefficients)
    } else {
        Err(damaged())
    }
}

fn skip_block(bits: &mut Bits<'_>, [dc, ac]: [&Table; 2]) -> Result<(), Reason> {
    if bits.skip(dc).advance() == 0 || !bits.skip_block(ac, 1) {
        return Err(damaged());
    }
    Ok(())
}

/// Copies the bytes up to the next marker without their stuffing; returns what follows, beginning with the marker.
fn unstuff<'a>(mut scan: &'a [u8], segment: &mut Vec<u8>) -> &'a [u8] {
    segment.clear();
    loop {
        let run = memchr::memchr(0xFF, scan).unwrap_or(scan.len());
        segment.extend_from_slice(&scan[..run]);
        scan = &scan[run..];
        match scan {
            [0xFF, 0, rest @ ..] => {
                segment.push(0xFF);
                scan = rest;
            }
            [0xFF, 0xFF, ..] => scan = &scan[1..],
            _ => break,
        }
    }
    segment.extend_from_slice(&[0; PADDING]);
    scan
}

fn after_restart(scan: &[u8]) -> Result<&[u8], Reason> {
    match scan {
        [0xFF, 0xD0..=0xD7, rest @ ..] => Ok(rest),
        [] | [0xFF, 0xD9, ..] => Err("it is cut short".into()),
        _ => Err(damaged()),
    }
}
