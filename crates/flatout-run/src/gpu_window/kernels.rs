//! What a kernel computes, from its name (mangled or not).

use crate::profile::kernels::{is_matrix, uses_tensor_cores};
use flatout_record::KernelKind;

/// Names of parts, the first that matches counts.
const NAMES: [(KernelKind, &[&str]); 7] = [
    (KernelKind::Communication, &["nccl"]),
    (KernelKind::Layout, &["nchwtonhwc", "nhwctonchw"]),
    (
        KernelKind::Recurrent,
        &["rnn_", "lstm_", "gru_", "_lstm", "_gru", "generic_elementwise_"],
    ),
    (
        KernelKind::FusedAttention,
        &[
            "flash_fwd",
            "flash_bwd",
            "fmha",
            "attention_kernel",
            "sdpa_",
            "_attn_",
        ],
    ),
    (
        KernelKind::Optimizer,
        &["multi_tensor_apply", "fusedadam", "fusedoptimizer", "fused_adam"],
    ),
    (KernelKind::Softmax, &["softmax"]),
    (
        KernelKind::Reduction,
        &[
            "reduce_kernel",
            "reduction",
            "_norm_",
            "layer_norm",
            "batch_norm",
            "batchnorm",
            "bn_fw",
            "bn_bw",
            "cunn_",
            "triton_red",
            "triton_per",
        ],
    ),
];
const ELEMENTWISE: [&str; 8] = [
    "elementwise",
    "index",
    "gather",
    "scatter",
    "copy",
    "fill",
    "cat",
    "triton_poi",
];

pub fn kind(name: &str) -> KernelKind {
    let lower = without_hashes(&name.to_ascii_lowercase());
    let has = |marks: &[&str]| marks.iter().any(|mark| lower.contains(mark));
    if let Some((kind, _)) = NAMES.iter().find(|(_, marks)| has(marks)) {
        return *kind;
    }
    if uses_tensor_cores(&lower) {
        return KernelKind::TensorCore;
    }
    if is_matrix(&lower) && !has(&["elementwise"]) {
        let double = has(&["dgemm", "f64", "double", "884gemm_f64"]);
        return if double {
            KernelKind::MatrixFp64
        } else {
            KernelKind::MatrixFp32
        };
    }
    if has(&ELEMENTWISE) {
        KernelKind::Elementwise
    } else {
        KernelKind::Other
    }
}

/// Anonymous namespaces carry a hash of their file, in which any number may occur: `_global__n__4b0cc884_26_file_cu_5d1cf09b`.
fn without_hashes(name: &str) -> String {
    let mut parts = name.split("_global__n__");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("__");
        let hash = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        kept.push_str(&part[hash..]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_real_kernels() {
        let cases = [
            (
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
                KernelKind::TensorCore,
            ),
            (
                "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT",
                KernelKind::TensorCore,
            ),
            ("ampere_sgemm_128x64_nn", KernelKind::MatrixFp32),
            (
                "cutlass_80_simt_sgemm_128x128_8x4_nn_align1",
                KernelKind::MatrixFp32,
            ),
            (
                "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4",
                KernelKind::MatrixFp32,
            ),
            ("ampere_dgemm_64x64_nn", KernelKind::MatrixFp64),
            (
                "_ZN5cudnn19engines_precompiled16nchwToNhwcKernelIfffLb0ELb1EL21cudnnKernelDataType_t0EE",
                KernelKind::Layout,
            ),
            (
                "_Z24RNN_blockPersist_fp_LSTMIfffLi160EEvPKT_PT0_",
                KernelKind::Recurrent,
            ),
            (
                "_Z19GRU_elementWise_bp2IfffLi3EL18cudnnRNNBiasMode_t2EEvii",
                KernelKind::Recurrent,
            ),
            (
                "_ZN5cudnn21bn_bw_1C11_kernel_newIff6float2Li128ELb1ELi1EEEvT0_S2_",
                KernelKind::Reduction,
            ),
            (
                "_ZN2at6native59_GLOBAL__N__4b0cc884_26_EmbeddingBackwardKernel_cu_5d1cf09b15sum_and_scatterIflEEv",
                KernelKind::Elementwise,
            ),
            (
                "_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd",
                KernelKind::FusedAttention,
            ),
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                KernelKind::Communication,
            ),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE",
                KernelKind::Elementwise,
            ),
            (
                "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpI",
                KernelKind::Reduction,
            ),
            (
                "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_",
                KernelKind::Optimizer,
            ),
            (
                "_ZN2at6native43_GLOBAL__N__softmax_warp_forwardIfffLi7ELb0ELb0EEEv",
                KernelKind::Softmax,
            ),
        ];
        for (name, wanted) in cases {
            assert_eq!(kind(name), wanted, "{name}");
        }
    }
}
