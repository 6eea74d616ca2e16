//! How a picture is moved: the same numbers on every device; the kernel's twin is in gather.cu.

use super::shape::Pictures;
use crate::random::Stream;

/// Random numbers of pictures, apart from those of anything else.
pub const PURPOSE: u64 = 0x1a6e;

/// Where the pixels of one picture come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Move {
    flip: bool,
    right: isize,
    down: isize,
}

impl Pictures {
    pub fn random(seed: u64, epoch: u64) -> Stream {
        Stream::new(seed, PURPOSE, epoch)
    }

    pub fn draw(&self, random: Stream, picture: i32) -> Move {
        let (bits, padding) = (random.bits(picture as u64), self.augment.padding);
        // 31 bits each: the first says which way round, the others how far.
        let shift = |bits: u64| ((bits & 0x7fff_ffff) % (2 * padding as u64 + 1)) as isize - padding as isize;
        Move {
            flip: self.augment.flip && bits & 1 == 1,
            right: shift(bits >> 1),
            down: shift(bits >> 32),
        }
    }

    /// The place in the source of a pixel of the moved picture, by its row and column.
    pub fn source(&self, step: Move, row: usize, column: usize) -> usize {
        let (last_row, last_column) = (self.height as isize - 1, self.width as isize - 1);
        let row = (row as isize + step.down).clamp(0, last_row);
        let column = (column as isize + step.right).clamp(0, last_column);
        let column = if step.flip { last_column - column } else { column };
        (row as usize * self.width + column as usize) * self.channels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::gather::Augment;

    #[test]
    fn image_shifts_are_bounded_and_deterministic() {
        let augment = Augment {
            flip: true,
            padding: 3,
        };
        let pictures = Pictures {
            height: 5,
            width: 4,
            channels: 2,
            augment,
        };
        let random = Pictures::random(7, 1);
        let moves: Vec<Move> = (0..500).map(|picture| pictures.draw(random, picture)).collect();
        let flipped = moves.iter().filter(|step| step.flip).count();
        assert!((200..300).contains(&flipped), "{flipped} of 500");
        for far in -3..=3 {
            assert!(moves.iter().any(|step| step.right == far) && moves.iter().any(|step| step.down == far));
        }
        assert!(
            moves
                .iter()
                .all(|step| step.right.abs() <= 3 && step.down.abs() <= 3)
        );
        assert_eq!(moves[9], pictures.draw(Pictures::random(7, 1), 9));
        assert_ne!(
            moves,
            (0..500)
                .map(|picture| pictures.draw(Pictures::random(7, 2), picture))
                .collect::<Vec<_>>()
        );
        let step = Move {
            flip: true,
            right: 1,
            down: -2,
        };
        assert_eq!(
            pictures.source(step, 0, 0),
            2 * 2,
            "row 0, column 1 seen from the right"
        );
        assert_eq!(
            pictures.source(step, 4, 3),
            (2 * 4) * 2,
            "the right edge repeated, seen from the right"
        );
    }
}
