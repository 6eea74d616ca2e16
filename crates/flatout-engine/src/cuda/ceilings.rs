//! What a card can do at most, through the same doors as the training: cuBLASLt, the driver's copies, a kernel of its own.

use super::blas::{Blas, Finish, Matrix, Number};
use super::driver::{Block, Device, Event, Module, Pinned, Stream};
use super::error::CudaError;
use super::machine::Precision;
use super::{compiler, libraries};
use std::time::Instant;

pub struct Card {
    pub device: Device,
    stream: Stream,
}

impl Card {
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        libraries::open()?;
        let device = Device::open(ordinal)?;
        Ok(Self {
            device,
            stream: Stream::new(false)?,
        })
    }

    pub fn name(&self) -> &str {
        &self.device.name
    }

    /// Seconds that the card takes for `work`, called so often that it lasts; the best of three rounds.
    fn time(&self, repeat: usize, work: &dyn Fn() -> Result<(), CudaError>) -> Result<f64, CudaError> {
        let (start, end) = (Event::new()?, Event::new()?);
        work()?;
        self.stream.wait()?;
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            start.record(&self.stream)?;
            for _ in 0..repeat {
                work()?;
            }
            end.record(&self.stream)?;
            end.wait()?;
            best = best.min(end.since(&start)? / 1e3 / repeat as f64);
        }
        Ok(best)
    }
}

/// Side of the products' matrices: large enough that the card is full, small enough for any card.
const SIDE: usize = 8192;
const F32_SIDE: usize = 4096;

/// Operations a second in products of one precision; `None` where the card has no units for it.
pub fn product(card: &Card, precision: Precision) -> Result<Option<f64>, CudaError> {
    let (oldest, number, side) = match precision {
        Precision::F32 => ((5, 0), Number::F32, F32_SIDE),
        Precision::Tf32 => ((8, 0), Number::F32, SIDE),
        Precision::Bf16 => ((8, 0), Number::Bf16, SIDE),
        Precision::F16 => ((7, 0), Number::F16, SIDE),
    };
    if card.device.capability < oldest {
        return Ok(None);
    }
    let blas = Blas::new(&card.device.name, precision == Precision::Tf32)?;
    // Algorithms are timed once, as for a training.
    blas.tune(true);
    let blocks = [
        Block::new(side * side * number.bytes())?,
        Block::new(side * side * number.bytes())?,
        Block::new(side * side * number.bytes())?,
    ];
    for block in &blocks {
        fill(&card.stream, block, number)?;
    }
    let [a, b, c] = [0, 1, 2].map(|index: usize| Matrix::new(blocks[index].address(), side, side, number));
    // With the right side transposed, as the weights of a linear layer lie.
    let seconds = card.time(8, &|| {
        blas.multiply(&card.stream, a, b.transposed(), c, false, Finish::Nothing)
    })?;
    let peak = 2.0 * (side as f64).powi(3) / seconds;
    compiler::keep_choice("peak", &peak_name(card.name(), precision), (peak / 1e6) as usize);
    Ok(Some(peak))
}

/// Numbers as a training multiplies them: zeros need so little power that the card runs faster than it ever will.
fn fill(stream: &Stream, block: &Block, number: Number) -> Result<(), CudaError> {
    const WORDS: usize = 1 << 18;
    // Signs and fractions at random, sizes from a half to two.
    let (keep, set) = match number {
        Number::F32 => (0x80ff_ffff, 0x3f00_0000),
        Number::Bf16 => (0x80ff_80ff, 0x3f00_3f00),
        Number::F16 => (0x87ff_87ff, 0x3800_3800),
    };
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 32) as u32 & keep | set
    };
    let words: Vec<u32> = (0..WORDS).map(|_| word()).collect();
    for offset in (0..block.bytes()).step_by(4 * WORDS) {
        let part = (block.bytes() - offset).min(4 * WORDS) / 4;
        stream.write(block.address() + offset as u64, &words[..part])?;
    }
    Ok(())
}

fn peak_name(card: &str, precision: Precision) -> String {
    format!("{card} {}", precision.name())
}

/// What [`product`] measured last on a card of this name: operations a second.
pub fn kept_peak(card: &str, precision: Precision) -> Option<f64> {
    compiler::kept_choice("peak", &peak_name(card, precision)).map(|millions| millions as f64 * 1e6)
}

/// Bytes read and written a second by copies within the card.
pub fn memory(card: &Card) -> Result<f64, CudaError> {
    let (free, _) = card.device.memory()?;
    let bytes = ((free / 4) as usize).min(2 << 30);
    let (from, to) = (Block::new(bytes)?, Block::new(bytes)?);
    let seconds = card.time(10, &|| card.stream.copy(to.address(), from.address(), bytes))?;
    Ok(2.0 * bytes as f64 / seconds)
}

/// Bytes a second from the host to the card: out of ordinary memory, and out of pinned memory.
pub fn copies(card: &Card) -> Result<(f64, f64), CudaError> {
    const BYTES: usize = 256 << 20;
    let to = Block::new(BYTES)?;
    let ordinary = vec![1u8; BYTES];
    let pinned = Pinned::new(BYTES)?;
    let rate = |source: *const u8| -> Result<f64, CudaError> {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let began = Instant::now();
            // SAFETY: both sources live, with that many bytes, until the wait below has returned.
            unsafe { card.stream.upload(to.address(), source, BYTES)? };
            card.stream.wait()?;
            best = best.min(began.elapsed().as_secs_f64());
        }
        Ok(BYTES as f64 / best)
    };
    Ok((rate(ordinary.as_ptr())?, rate(pinned.as_ptr())?))
}

const EMPTY: &str = "extern \"C\" __global__ void empty() {}\n";

/// Seconds of the host's time that one launch of an empty kernel takes, many in a row.
pub fn launch(card: &Card) -> Result<f64, CudaError> {
    const LAUNCHES: usize = 2000;
    let (major, minor) = card.device.capability;
    let image = compiler::compile("empty", EMPTY, major * 10 + minor, &[], false)?;
    let module = Module::load(&image)?;
    let empty = module.function("empty")?;
    let mut best = f64::INFINITY;
    for _ in 0..4 {
        let began = Instant::now();
        for _ in 0..LAUNCHES {
            // SAFETY: the kernel takes no arguments and touches nothing.
            unsafe { empty.launch(&card.stream, (1, 1), 1, 0, &[])? };
        }
        best = best.min(began.elapsed().as_secs_f64() / LAUNCHES as f64);
        card.stream.wait()?;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs a GPU"]
    fn every_ceiling_is_above_nothing() {
        let card = Card::open(0).unwrap();
        assert!(product(&card, Precision::F32).unwrap().unwrap() > 1e11);
        assert!(memory(&card).unwrap() > 1e10);
        let (pageable, pinned) = copies(&card).unwrap();
        assert!(pinned > 0.5 * pageable);
        assert!(launch(&card).unwrap() < 1e-3);
    }
}
