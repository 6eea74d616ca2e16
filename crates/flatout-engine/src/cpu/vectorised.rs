//! Compiles a loop three times, for AVX-512, for AVX2 with FMA and for any machine, and picks at run time.

/// `vectorised! { fn name<T>(a: &[T], b: &mut [T]) { … } }`: a function over [`Real`](super::real::Real) whose body may use
/// the constant `FUSED` (fused multiply-add is there) and is vectorised by the compiler for each kind of machine.
macro_rules! vectorised {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident<$real:ident>($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        $visibility fn $name<$real: crate::cpu::real::Real>($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, unused_variables)]
            fn body<$real: crate::cpu::real::Real, const FUSED: bool>($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn wide<$real: crate::cpu::real::Real>($($argument: $type),*) $(-> $result)? {
                    body::<$real, true>($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn medium<$real: crate::cpu::real::Real>($($argument: $type),*) $(-> $result)? {
                    body::<$real, true>($($argument),*)
                }
                match crate::cpu::vectorised::level() {
                    // SAFETY: `level` found these instructions on this machine.
                    crate::cpu::vectorised::Level::Avx512 => return unsafe { wide::<$real>($($argument),*) },
                    // SAFETY: as above.
                    crate::cpu::vectorised::Level::Avx2 => return unsafe { medium::<$real>($($argument),*) },
                    crate::cpu::vectorised::Level::Any => {}
                }
            }
            #[allow(unreachable_code)]
            body::<$real, false>($($argument),*)
        }
    };
}
pub(crate) use vectorised;

/// The vector instructions there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Avx512,
    Avx2,
    Any,
}

impl Level {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "AVX-512",
            Self::Avx2 => "AVX2",
            // Every 64-bit Arm has it, so the compiler uses it without being asked.
            Self::Any if cfg!(target_arch = "aarch64") => "NEON",
            Self::Any => "no AVX2",
        }
    }
}

/// What this machine has. The standard library keeps the answer after the first call.
#[inline]
#[cfg(target_arch = "x86_64")]
pub fn level() -> Level {
    let wide = std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512bw");
    let medium = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
    match (wide && medium, medium) {
        (true, _) => Level::Avx512,
        (_, true) => Level::Avx2,
        _ => Level::Any,
    }
}

/// Elsewhere there is nothing to choose from.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub fn level() -> Level {
    Level::Any
}
