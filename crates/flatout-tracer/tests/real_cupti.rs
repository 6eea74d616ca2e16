//! NVIDIA's own libcupti, on a machine that may have no driver: the tracer answers with a reason and the process lives.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_tracer::abi;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

#[test]
fn answers_with_a_reason_without_a_driver() {
    if std::env::var_os("FLATOUT_CUPTI").is_none() {
        let Some(library) = flatout_testing::cupti() else {
            return;
        };
        let status = Command::new(std::env::current_exe().unwrap())
            .env("FLATOUT_CUPTI", library)
            .env_remove("CUDA_INJECTION64_PATH")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for window in 0..3 {
        let file = folder.path().join(format!("window-{window}"));
        let path = CString::new(file.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        let reason = unsafe { abi::flatout_tracer_start(path.as_ptr(), 0, 0) };
        if reason == 0 {
            assert_eq!(abi::flatout_tracer_stop(1), 0);
            assert!(flatout_tracer::read(&file).unwrap().header.closed());
        } else {
            let mut text = [0_u8; 200];
            // SAFETY: the buffer has this length.
            let length = unsafe { abi::flatout_tracer_error(text.as_mut_ptr().cast(), text.len()) };
            let text = String::from_utf8_lossy(&text[..length.min(199)]);
            println!("reason {reason}: {text}");
            assert!(reason == 6 && text.contains("CUPTI_ERROR"), "{reason}: {text}");
            assert!(!file.exists());
            assert_eq!(abi::flatout_tracer_stop(0), -7);
        }
    }
}
