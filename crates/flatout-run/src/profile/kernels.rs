//! What a kernel's or a copy's name tells.

/// Names by which NVIDIA's and the compilers' libraries mark kernels on tensor cores: the instruction's shape (`16816`), the
/// instruction (`hmma`, `wgmma`), or the family that has no other kind (`nvjet`, flash attention).
const TENSOR_CORE: [&str; 17] = [
    "tensorop",
    "16816",
    "1688gemm",
    "s1688",
    "h1688",
    "16832",
    "884",
    "hmma",
    "imma",
    "wgmma",
    "gmma",
    "xmma",
    "nvjet",
    "flash_fwd",
    "flash_bwd",
    "fmha",
    "tensor16x8",
];
const MATRIX: [&str; 13] = [
    "gemm",
    "gemv",
    "cutlass",
    "wgrad",
    "dgrad",
    "fprop",
    "conv",
    "winograd",
    "attention",
    "splitk",
    "implicit",
    "_mm_",
    "matmul",
];

pub fn uses_tensor_cores(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // A kernel of plain arithmetic says so itself: `ffma` is the FP32 instruction, also in cuBLAS's xmma family.
    let plain = ["simt", "ffma"].iter().any(|mark| name.contains(mark));
    !plain && TENSOR_CORE.iter().any(|mark| name.contains(mark))
}

pub fn is_matrix(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    MATRIX.iter().any(|mark| lower.contains(mark)) || uses_tensor_cores(name)
}

/// `Memcpy HtoD (Pageable -> Device)`: the direction, and the kind of the host's memory.
pub fn copy(name: &str) -> (String, String) {
    let rest = name.strip_prefix("Memcpy ").unwrap_or(name);
    let direction = rest.split_whitespace().next().unwrap_or("unknown").to_owned();
    let lower = rest.to_ascii_lowercase();
    let memory = match () {
        () if lower.contains("pageable") => "pageable",
        () if lower.contains("pinned") => "pinned",
        () if direction == "DtoD" || direction == "PtoP" => "device",
        () => "unknown",
    };
    (direction, memory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_real_kernels() {
        for name in [
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
            "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT",
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>",
        ] {
            assert!(uses_tensor_cores(name) && is_matrix(name), "{name}");
        }
        for name in [
            "ampere_sgemm_128x64_nn",
            "cutlass_80_simt_sgemm_128x128_8x4_nn_align1",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4",
        ] {
            assert!(is_matrix(name) && !uses_tensor_cores(name), "{name}");
        }
        assert!(!is_matrix(
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"
        ));
    }

    #[test]
    fn copies_have_their_memory_kind() {
        let pair = |name| {
            let (direction, memory) = copy(name);
            format!("{direction} {memory}")
        };
        assert_eq!(pair("Memcpy HtoD (Pageable -> Device)"), "HtoD pageable");
        assert_eq!(pair("Memcpy DtoH (Device -> Pinned)"), "DtoH pinned");
        assert_eq!(pair("Memcpy DtoD (Device -> Device)"), "DtoD device");
        assert_eq!(pair(""), "unknown unknown");
    }
}
