//! SplitMix64 (Steele, Lea, Flood 2014), for the random numbers of data and of models. Streams of it are where they are used: one
//! counts, one is indexed.

/// What the state grows by: 2⁶⁴ over the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer: a bijection of 64 bits whose output bits all depend on all input bits.
#[inline]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
