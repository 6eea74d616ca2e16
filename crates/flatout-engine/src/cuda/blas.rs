//! Matrix products by cuBLASLt, row-major, with bias and ReLU behind the product. Each shape's algorithm is chosen once, by
//! timing what the library proposes, and kept on disk for this card and version: another algorithm would give other bits.
//! Nothing is chosen inside a step.

use super::compiler;
use super::driver::{Block, Event, Stream};
use super::error::CudaError;
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
/// Products in a recording that is timed.
const TIMED: usize = 12;
/// Algorithms that are timed for each shape.
const PROPOSALS: usize = 8;

fn check(call: &'static str, status: cublasStatus_t) -> Result<(), CudaError> {
    if status == cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        return Ok(());
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

    fn prepare(&self, key: &Key, call: &Call) -> Result<Prepared, CudaError> {
        let compute = match (key.numbers[0], self.tf32) {
            (Number::F32, true) => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let mut description = ptr::null_mut();
        // SAFETY: fills the description.
        let made = unsafe {
            sys::cublasLtMatmulDescCreate(&mut description, compute, sys::cudaDataType::CUDA_R_32F)
        };
        check("cublasLtMatmulDescCreate", made)?;
        let operation = |transposed: bool| i32::from(transposed);
        set(
            description,
            Attribute::CUBLASLT_MATMUL_DESC_TRANSA,
            &operation(key.transposed[0]),
        )?;
        set(
            description,
            Attribute::CUBLASLT_MATMUL_DESC_TRANSB,
            &operation(key.transposed[1]),
        )?;
        if let Finish::Bias { address, relu } = call.finish {
            let epilogue = if relu {
                sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_BIAS
            } else {
                sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS
            };
            set(description, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
            set(
                description,
                Attribute::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                &key.numbers[2].library(),
            )?;
            set(
                description,
                Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                &address,
            )?;
        }
        let [m, n, k] = key.sizes;
        let shape = |rows: usize, columns: usize, transposed: bool| {
            if transposed {
                (columns, rows)
            } else {
                (rows, columns)
            }
        };
        let shapes = [
            shape(m, k, key.transposed[0]),
            shape(k, n, key.transposed[1]),
            (m, n),
        ];
        let mut layouts = [ptr::null_mut(); 3];
        for (index, layout) in layouts.iter_mut().enumerate() {
            let (rows, columns) = shapes[index];
            let number = key.numbers[index].library();
            // SAFETY: fills the layout.
            let made = unsafe {
                sys::cublasLtMatrixLayoutCreate(
                    layout,
                    number,
                    rows as u64,
                    columns as u64,
                    key.strides[index] as i64,
                )
            };
            check("cublasLtMatrixLayoutCreate", made)?;
        }
        let proposals = self.proposals(description, &layouts, key.alignment)?;
        let candidate = |position: usize| {
            Some(Prepared {
                description,
                layouts,
                algorithm: *proposals.get(position)?,
            })
        };
        // SAFETY: takes nothing, returns a number.
        let version = unsafe { sys::cublasLtGetVersion() };
        let name = format!(
            "{} cublasLt {version} {key:?} tf32 {} of {}",
            self.card,
            self.tf32,
            proposals.len()
        );
        let kept = compiler::kept_choice("product", &name).and_then(candidate);
        if let Some(kept) = kept.filter(|kept| self.run(kept, call).is_ok()) {
            return Ok(kept);
        }
        let mut best: Option<(f64, usize, Prepared)> = None;
        for position in 0..proposals.len() {
            let Some(candidate) = candidate(position) else {
                break;
            };
            if !self.tuning.get() {
                return Ok(candidate);
            }
            if let Ok(time) = self.time(&candidate, call)
                && best.as_ref().is_none_or(|(fastest, ..)| time < *fastest)
            {
                best = Some((time, position, candidate));
            }
        }
        if let Some((_, position, _)) = &best {
            compiler::keep_choice("product", &name, *position);
        }
        let none = || CudaError::Call {
            call: "cublasLtMatmulAlgoGetHeuristic",
            reason: format!("no algorithm for {m}×{n}×{k}"),
        };
        best.map(|(.., prepared)| prepared).ok_or_else(none)
    }

    fn proposals(
        &self,
        description: sys::cublasLtMatmulDesc_t,
        layouts: &[sys::cublasLtMatrixLayout_t; 3],
        alignment: u32,
    ) -> Result<Vec<sys::cublasLtMatmulAlgo_t>, CudaError> {
        // SAFETY: plain structures that the library fills; the preference is destroyed before returning.
        unsafe {
            let mut preference = ptr::null_mut();
            check(
                "cublasLtMatmulPreferenceCreate",
                sys::cublasLtMatmulPreferenceCreate(&mut preference),
            )?;
            let bytes = WORKSPACE_BYTES;
            let attribute =
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
            sys::cublasLtMatmulPreferenceSetAttribute(
                preference,
                attribute,
                ptr::from_ref(&bytes).cast(),
                size_of::<usize>(),
            );
            use sys::cublasLtMatmulPreferenceAttributes_t as Preference;
            let operands = [
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
            ];
            for operand in operands {
                let value = ptr::from_ref(&alignment).cast();
                sys::cublasLtMatmulPreferenceSetAttribute(preference, operand, value, size_of::<u32>());
            }
            let mut results: [sys::cublasLtMatmulHeuristicResult_t; PROPOSALS] = std::mem::zeroed();
            let mut count = 0;
            let [a, b, d] = *layouts;
            let asked = sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                description,
                a,
                b,
                d,
                d,
                preference,
                PROPOSALS as i32,
                results.as_mut_ptr(),
                &mut count,
            );
            sys::cublasLtMatmulPreferenceDestroy(preference);
            check("cublasLtMatmulAlgoGetHeuristic", asked)?;
            let good = results
                .iter()
                .take(count as usize)
                .filter(|result| result.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS);
            Ok(good.map(|result| result.algo).collect())
        }
    }

    /// The best of three runs of a recording: started one by one, small products would all seem to take as long as a start.
    fn time(&self, product: &Prepared, call: &Call) -> Result<f64, CudaError> {
        let (start, end) = (Event::new()?, Event::new()?);
        self.run(product, call)?;
        let graph = call
            .stream
            .capture(|| (0..TIMED).try_for_each(|_| self.run(product, call)))?;
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            start.record(call.stream)?;
            graph.launch(call.stream)?;
            end.record(call.stream)?;
            end.wait()?;
            best = best.min(end.since(&start)?);
        }
        Ok(best)
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
        // SAFETY: as above.
        unsafe { sys::cublasLtDestroy(self.handle) };
    }
}
