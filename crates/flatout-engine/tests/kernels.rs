//! Every kernel compiles for the cards it may meet, with the NVRTC that PyTorch brings: a typing error never reaches a GPU.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_engine::cuda;
use std::path::PathBuf;

/// The environment that `cargo xtask test` keeps; its python's folder tells where pip put the libraries.
fn environment() -> Option<PathBuf> {
    let given = std::env::var_os("FLATOUT_TEST_PYTHON").map(PathBuf::from);
    let home =
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/flatout/venv/bin/python"));
    let python = given.or(home).filter(|python| python.exists())?;
    Some(python.parent()?.parent()?.to_owned())
}

#[test]
fn every_kernel_compiles_for_ampere_and_hopper() {
    if let Some(folder) = environment() {
        // SAFETY: no other thread of this test reads the environment.
        unsafe { std::env::set_var("VIRTUAL_ENV", folder) };
    }
    if !cuda::open_compiler() {
        eprintln!("skipped: no NVRTC here (pip's nvidia packages bring it)");
        return;
    }
    let kernels = cuda::kernels();
    assert!(kernels.len() >= 10, "only {} compilations", kernels.len());
    for kernel in kernels {
        let image = cuda::compiler::compile(
            &kernel.name,
            &kernel.text,
            kernel.architecture,
            &kernel.defines,
            true,
        );
        let image =
            image.unwrap_or_else(|error| panic!("{} for sm_{}: {error}", kernel.name, kernel.architecture));
        assert!(image.len() > 1000, "{}: {} bytes", kernel.name, image.len());
    }
}
