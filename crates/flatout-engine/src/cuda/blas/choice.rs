//! Which algorithm a product takes: the one that was fastest here before, else the fastest of the proposals now.

use super::{Blas, Call, Finish, Key, Number, Prepared, WORKSPACE_BYTES, check, set};
use crate::cuda::compiler;
use crate::cuda::driver::Event;
use crate::cuda::error::CudaError;
use cudarc::cublaslt::sys::{self, cublasLtMatmulDescAttributes_t as Attribute, cublasStatus_t};
use std::ptr;

/// Products in a recording that is timed.
const TIMED: usize = 12;
/// Algorithms that are timed for each shape.
const PROPOSALS: usize = 8;

impl Blas {
    pub(super) fn prepare(&self, key: &Key, call: &Call) -> Result<Prepared, CudaError> {
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
        // Tried only in the rehearsal: a recording would hold the trial, too.
        let works = |kept: &Prepared| !self.tuning.get() || self.run(kept, call).is_ok();
        if let Some(kept) = kept.filter(works) {
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
