//! Compiles kernels with NVRTC, once per card, version and text; the result is kept on disk.

use super::error::CudaError;
use cudarc::nvrtc::sys::{self, nvrtcResult};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::{fs, ptr};

/// Kernels as machine code for `sm_<architecture>`.
/// `fast` allows approximate functions: for activations of two bytes, whose rounding is coarser.
pub fn compile(
    name: &str,
    text: &str,
    architecture: u32,
    defines: &[String],
    fast: bool,
) -> Result<Vec<u8>, CudaError> {
    let mut options = vec![
        format!("--gpu-architecture=sm_{architecture}"),
        "--std=c++17".to_owned(),
    ];
    if fast {
        options.push("--use_fast_math".to_owned());
    }
    options.extend(defines.iter().map(|define| format!("-D{define}")));
    let kept = place(name, text, &options);
    if let Some(image) = kept.as_deref().and_then(read) {
        return Ok(image);
    }
    let image = run(name, text, &options)?;
    if let Some(path) = kept {
        keep(&path, &image);
    }
    Ok(image)
}

/// The version of the NVRTC in use.
pub fn version() -> (i32, i32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: fills two numbers.
    let _ = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    (major, minor)
}

fn run(name: &str, text: &str, options: &[String]) -> Result<Vec<u8>, CudaError> {
    let source = CString::new(text).unwrap_or_default();
    let file = CString::new(format!("{name}.cu")).unwrap_or_default();
    let options: Vec<CString> = options
        .iter()
        .filter_map(|option| CString::new(option.as_str()).ok())
        .collect();
    let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
    let failed = |log: String| CudaError::Kernel {
        name: name.to_owned(),
        log,
    };
    let mut program = ptr::null_mut();
    // SAFETY: all strings live until the program is destroyed; buffers have the sizes NVRTC asked for.
    unsafe {
        let made = sys::nvrtcCreateProgram(
            &mut program,
            source.as_ptr(),
            file.as_ptr(),
            0,
            ptr::null(),
            ptr::null(),
        );
        if made != nvrtcResult::NVRTC_SUCCESS {
            return Err(failed(format!("{made:?}")));
        }
        let compiled = sys::nvrtcCompileProgram(program, pointers.len() as i32, pointers.as_ptr());
        let result = if compiled == nvrtcResult::NVRTC_SUCCESS {
            let mut size = 0;
            sys::nvrtcGetCUBINSize(program, &mut size);
            let mut image = vec![0u8; size];
            sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast());
            Ok(image)
        } else {
            let mut size = 0;
            sys::nvrtcGetProgramLogSize(program, &mut size);
            let mut log = vec![0u8; size];
            sys::nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
            Err(failed(
                String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned(),
            ))
        };
        sys::nvrtcDestroyProgram(&mut program);
        result
    }
}

/// Where the result of exactly this compilation is kept.
fn place(name: &str, text: &str, options: &[String]) -> Option<PathBuf> {
    let (major, minor) = version();
    let whole = format!("{major}.{minor}\n{}\n{text}", options.join(" "));
    kept_at(name, &whole, "cubin")
}

fn kept_at(name: &str, whole: &str, extension: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    let file = format!("{name}-{:016x}.{extension}", fingerprint(whole.as_bytes()));
    Some(cache.join("flatout/kernels").join(file))
}

/// A choice that was made by measurement before, under exactly this name.
pub(crate) fn kept_choice(kind: &str, name: &str) -> Option<usize> {
    let bytes = read(&kept_at(kind, name, "choice")?)?;
    String::from_utf8(bytes).ok()?.parse().ok()
}

pub(crate) fn keep_choice(kind: &str, name: &str, choice: usize) {
    if let Some(path) = kept_at(kind, name, "choice") {
        keep(&path, choice.to_string().as_bytes());
    }
}

/// FNV-1a: the same in every build, which the standard library's hasher does not promise.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A kept result: its own fingerprint first, so that one cut short is compiled again.
fn read(path: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok()?;
    let (mark, image) = bytes.split_at_checked(8)?;
    (mark == fingerprint(image).to_le_bytes()).then(|| image.to_vec())
}

/// Written atomically; two processes that compile at once write the same.
fn keep(path: &Path, image: &[u8]) {
    let bytes = [fingerprint(image).to_le_bytes().as_slice(), image].concat();
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    if made.is_err() || flatout_core::files::write_atomically(path, &bytes).is_err() {
        log::debug!(
            "the kernel cache {} cannot be written; kernels are compiled at each start",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_kernel_that_is_cut_short_or_changed_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("flatout/kernels/plan-1.cubin");
        let image: Vec<u8> = (0..5000u32).map(|value| value as u8).collect();
        keep(&path, &image);
        assert_eq!(read(&path).unwrap(), image);
        let whole = fs::read(&path).unwrap();
        for length in [0, 5, 8, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(
                read(&path).filter(|kept| !kept.is_empty()),
                None,
                "{length} bytes left"
            );
        }
        let mut changed = whole;
        changed[100] ^= 1;
        fs::write(&path, changed).unwrap();
        assert_eq!(read(&path), None);
        keep(&path, &image);
        assert_eq!(read(&path).unwrap(), image, "compiled again, it is whole again");
    }

    #[test]
    fn version_and_options_change_the_cache_path() {
        let places = [
            "13.0\n-DA\ntext",
            "13.1\n-DA\ntext",
            "13.0\n-DB\ntext",
            "13.0\n-DA\ntext2",
        ];
        let mut files: Vec<_> = places
            .iter()
            .map(|whole| kept_at("plan", whole, "cubin"))
            .collect();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), places.len());
    }

    #[test]
    fn programs_that_compile_at_once_leave_a_whole_kernel() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("kernels/plan-2.cubin");
        let image: Vec<u8> = (0..200_000u32).map(|value| (value * 7) as u8).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20).for_each(|_| keep(&path, &image)));
            }
            for _ in 0..200 {
                if let Some(kept) = read(&path) {
                    assert_eq!(kept, image);
                }
            }
        });
        assert_eq!(read(&path).unwrap(), image);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_done_without() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("not-a-folder");
        fs::write(&file, "").unwrap();
        keep(&file.join("kernels/plan-3.cubin"), b"image");
        assert_eq!(read(&file.join("kernels/plan-3.cubin")), None);
    }
}
