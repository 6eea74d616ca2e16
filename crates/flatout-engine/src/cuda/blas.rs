//! Matrix products by cuBLASLt, row-major, with bias and ReLU behind the product. Each shape's algorithm is chosen once, by
//! timing what the library proposes, and kept on disk for this card and version: another algorithm would give other bits.
//! Nothing is chosen inside a step.

mod choice;

use super::driver::{Block, Stream};
use super::error::CudaError;
use super::recording_lock::exclusive;
use cudarc::cublaslt::sys::{self, cublasLtMatmulDescAttributes_t as Attribute, cublasStatus_t};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::ptr;

/// What a matrix holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    F32,
    Bf16,
    F16,
}

impl Number {
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }

    fn library(self) -> sys::cudaDataType {
        match self {
            Self::F32 => sys::cudaDataType::CUDA_R_32F,
            Self::Bf16 => sys::cudaDataType::CUDA_R_16BF,
            Self::F16 => sys::cudaDataType::CUDA_R_16F,
        }
    }
}

/// A row-major matrix on the card, or its transpose.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    pub address: u64,
    /// Of the matrix as it lies in memory.
    pub rows: usize,
    pub columns: usize,
    /// Values from row to row.
    pub stride: usize,
    pub number: Number,
    pub transposed: bool,
}

impl Matrix {
    pub fn new(address: u64, rows: usize, columns: usize, number: Number) -> Self {
        Self {
            address,
            rows,
            columns,
            stride: columns,
            number,
            transposed: false,
        }
    }

    #[must_use]
    pub fn transposed(mut self) -> Self {
        self.transposed = !self.transposed;
        self
    }

    /// Some columns of a wider matrix.
    #[must_use]
    pub fn strided(mut self, stride: usize) -> Self {
        self.stride = stride;
        self
    }
}

/// What follows the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    Nothing,
    /// A value a column of the result, of the result's type.
    Bias {
        address: u64,
        relu: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    sizes: [usize; 3],
    strides: [usize; 3],
    numbers: [Number; 3],
    transposed: [bool; 2],
    accumulate: bool,
    /// With a bias, and with a ReLU?
    bias: Option<bool>,
    /// Bytes that all addresses are multiples of, 16 at most: what an algorithm may count on.
    alignment: u32,
}

/// One product to be made.
struct Call<'a> {
    stream: &'a Stream,
    addresses: [u64; 3],
    accumulate: bool,
    finish: Finish,
}

struct Prepared {
    description: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

pub struct Blas {
    handle: sys::cublasLtHandle_t,
    card: String,
    /// One a queue: products of both may run at once.
    workspaces: RefCell<HashMap<usize, Block>>,
    /// f32 products may round their factors to TF32.
    tf32: bool,
    /// Time the proposals instead of taking the first: not while recording a graph.
    tuning: Cell<bool>,
    prepared: RefCell<HashMap<Key, Prepared>>,
}

// SAFETY: used by one session at a time.
unsafe impl Send for Blas {}

const WORKSPACE_BYTES: usize = 64 << 20;

fn check(call: &'static str, status: cublasStatus_t) -> Result<(), CudaError> {
    if status == cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        return Ok(());
    }
    if status == cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED {
        return Err(CudaError::OutOfMemory {
            wanted_bytes: 0,
            free_bytes: 0,
        });
    }
    Err(CudaError::Call {
        call,
        reason: format!("{status:?}"),
    })
}

impl Blas {
    pub fn new(card: &str, tf32: bool) -> Result<Self, CudaError> {
        let mut handle = ptr::null_mut();
        // SAFETY: fills the handle.
        check("cublasLtCreate", unsafe { sys::cublasLtCreate(&mut handle) })?;
        Ok(Self {
            handle,
            card: card.to_owned(),
            workspaces: RefCell::default(),
            tf32,
            tuning: Cell::new(false),
            prepared: RefCell::default(),
        })
    }

    pub fn tune(&self, on: bool) {
        self.tuning.set(on);
    }

    /// `result = left · right`, or `result += …`.
    pub fn multiply(
        &self,
        stream: &Stream,
        left: Matrix,
        right: Matrix,
        result: Matrix,
        accumulate: bool,
        finish: Finish,
    ) -> Result<(), CudaError> {
        // The library counts columns first: what it sees is resultᵀ = rightᵀ · leftᵀ.
        let (a, b, d) = (right, left, result);
        let inner = if left.transposed { left.rows } else { left.columns };
        let key = Key {
            sizes: [d.columns, d.rows, inner],
            strides: [a.stride, b.stride, d.stride],
            numbers: [a.number, b.number, d.number],
            transposed: [a.transposed, b.transposed],
            accumulate,
            bias: match finish {
                Finish::Nothing => None,
                Finish::Bias { relu, .. } => Some(relu),
            },
            alignment: 1 << (a.address | b.address | d.address | 16).trailing_zeros(),
        };
        let call = Call {
            stream,
            addresses: [a.address, b.address, d.address],
            accumulate,
            finish,
        };
        let mut prepared = self.prepared.borrow_mut();
        let product = match prepared.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(self.prepare(&key, &call)?),
        };
        self.run(product, &call)
    }

    fn run(&self, product: &Prepared, call: &Call) -> Result<(), CudaError> {
        if let Finish::Bias { address, .. } = call.finish {
            set(
                product.description,
                Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                &address,
            )?;
        }
        let (one, beta) = (1f32, f32::from(u8::from(call.accumulate)));
        let [a, b, d] = call.addresses.map(|address| address as *mut c_void);
        let [a_layout, b_layout, d_layout] = product.layouts;
        let workspace = self.workspace(call.stream)?;
        // SAFETY: the descriptions are alive, the addresses hold matrices of the described sizes.
        let status = unsafe {
            sys::cublasLtMatmul(
                self.handle,
                product.description,
                ptr::from_ref(&one).cast(),
                a,
                a_layout,
                b,
                b_layout,
                ptr::from_ref(&beta).cast(),
                d,
                d_layout,
                d,
                d_layout,
                &product.algorithm,
                workspace as *mut c_void,
                WORKSPACE_BYTES,
                call.stream.raw().cast(),
            )
        };
        check("cublasLtMatmul", status)
    }

    /// Allocated with a queue's first product, which is never a recorded one.
    fn workspace(&self, stream: &Stream) -> Result<u64, CudaError> {
        let mut workspaces = self.workspaces.borrow_mut();
        match workspaces.entry(stream.raw() as usize) {
            Entry::Occupied(entry) => Ok(entry.get().address()),
            Entry::Vacant(entry) => Ok(entry.insert(Block::new(WORKSPACE_BYTES)?).address()),
        }
    }
}

fn set<T>(description: sys::cublasLtMatmulDesc_t, attribute: Attribute, value: &T) -> Result<(), CudaError> {
    // SAFETY: the library copies the value, whose type is the attribute's.
    let status = unsafe {
        sys::cublasLtMatmulDescSetAttribute(
            description,
            attribute,
            ptr::from_ref(value).cast(),
            size_of::<T>(),
        )
    };
    check("cublasLtMatmulDescSetAttribute", status)
}

impl Drop for Blas {
    fn drop(&mut self) {
        for product in self.prepared.get_mut().values() {
            // SAFETY: made by this value, used by nobody else.
            unsafe {
                for layout in product.layouts {
                    sys::cublasLtMatrixLayoutDestroy(layout);
                }
                sys::cublasLtMatmulDescDestroy(product.description);
            }
        }
        // Closing the library waits for the whole card, which a recording does not survive.
        // SAFETY: as above.
        exclusive(|| unsafe { sys::cublasLtDestroy(self.handle) });
    }
}
