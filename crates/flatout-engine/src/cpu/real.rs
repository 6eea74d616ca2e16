//! The precision a CPU session computes in: f32 to train, f64 to check gradients. The operations are written once over this
//! trait; only the lowest kernels differ.

use super::aligned::ZeroBytes;
use super::gemm::kernel::MicroKernel;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

pub trait Real:
    ZeroBytes
    + Send
    + Sync
    + 'static
    + Debug
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    const ZERO: Self;
    const ONE: Self;
    fn of(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn from_f32(value: f32) -> Self;
    fn to_f32(self) -> f32;
    fn square_root(self) -> Self;
    fn absolute(self) -> Self;
    /// `self · factor + summand`, fused where `FUSED` says that the machine can.
    fn multiply_add<const FUSED: bool>(self, factor: Self, summand: Self) -> Self;
    fn exponential<const FUSED: bool>(self) -> Self;
    fn logarithm(self) -> Self;
    fn tanh<const FUSED: bool>(self) -> Self;
    /// erf x, within 6e-7 in f32 and to the last digits in f64.
    fn error_function<const FUSED: bool>(self) -> Self;

    #[inline(always)]
    fn sigmoid<const FUSED: bool>(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exponential::<FUSED>())
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    /// The fastest matrix kernel this machine has.
    fn micro_kernel() -> MicroKernel<Self>;
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn of(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn from_f32(value: f32) -> Self {
        value.into()
    }
    fn to_f32(self) -> f32 {
        self as f32
    }
    fn square_root(self) -> Self {
        self.sqrt()
    }
    fn absolute(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn multiply_add<const FUSED: bool>(self, factor: Self, summand: Self) -> Self {
        if FUSED {
            f64::mul_add(self, factor, summand)
        } else {
            self * factor + summand
        }
    }
    fn exponential<const FUSED: bool>(self) -> Self {
        self.exp()
    }
    fn logarithm(self) -> Self {
        self.ln()
    }
    fn tanh<const FUSED: bool>(self) -> Self {
        f64::tanh(self)
    }
    fn error_function<const FUSED: bool>(self) -> Self {
        super::functions::exact_error_function(self)
    }
    fn micro_kernel() -> MicroKernel<Self> {
        MicroKernel::portable()
    }
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn square_root(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn absolute(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn multiply_add<const FUSED: bool>(self, factor: Self, summand: Self) -> Self {
        if FUSED {
            f32::mul_add(self, factor, summand)
        } else {
            self * factor + summand
        }
    }
    #[inline(always)]
    fn exponential<const FUSED: bool>(self) -> Self {
        super::functions::exponential::<FUSED>(self)
    }
    #[inline(always)]
    fn logarithm(self) -> Self {
        self.ln()
    }
    #[inline(always)]
    fn tanh<const FUSED: bool>(self) -> Self {
        super::functions::tanh::<FUSED>(self)
    }
    #[inline(always)]
    fn error_function<const FUSED: bool>(self) -> Self {
        super::functions::error_function::<FUSED>(self)
    }
    fn micro_kernel() -> MicroKernel<Self> {
        super::gemm::best_for_f32()
    }
}
