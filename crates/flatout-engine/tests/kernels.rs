//! Every kernel compiles for every GPU generation it may run on, with the NVRTC of the test environment: no GPU is needed.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_engine::cuda;

#[test]
fn every_kernel_compiles_for_ampere_and_hopper() {
    let Some(environment) = flatout_testing::nvrtc_environment() else {
        return;
    };
    // SAFETY: no other thread of this test reads the environment.
    unsafe { std::env::set_var("VIRTUAL_ENV", environment) };
    assert!(
        cuda::open_compiler(),
        "the NVRTC of the test environment cannot be opened"
    );
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
