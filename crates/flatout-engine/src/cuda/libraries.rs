//! Finds CUDA's libraries where people have them: on the system's path, or in the `nvidia/*/lib` folders that pip fills.
//! cudarc opens libraries by name and knows no pip folders, so what is found there is opened by path first: the loader then
//! knows it by its own name.

use super::error::CudaError;
use flatout_core::nvidia;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// A library and where it was found; no path: the system's loader knows it.
#[derive(Clone, Debug)]
pub struct Found {
    pub name: &'static str,
    pub path: Option<PathBuf>,
}

/// CUDA before this knows no cluster launches and no compiler that speaks C++17 the same way.
const OLDEST_CUDA: (u32, u32) = (12, 0);

/// Everything the engine uses, opened.
pub fn open() -> Result<Vec<Found>, CudaError> {
    // SAFETY: asking opens the library, which runs its initialisers; the driver's are made for it.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let driver = super::driver::version()?;
    supports(driver, OLDEST_CUDA, "flatout")?;
    let folders = pip_folders();
    // NVRTC opens its builtins by name when it compiles first: they must be known by then.
    preload(&folders, "nvrtc-builtins", Some(driver.0));
    // SAFETY: as above, for the libraries of the toolkit.
    let compiler: fn() -> bool = || unsafe { cudarc::nvrtc::sys::is_culib_present() };
    // SAFETY: as above.
    let products: fn() -> bool = || unsafe { cudarc::cublaslt::sys::is_culib_present() };
    let find = |name: &'static str, present: fn() -> bool| {
        let path = preload(&folders, name, Some(driver.0));
        if path.is_none() && !present() {
            return Err(missing(name, &folders));
        }
        Ok(Found { name, path })
    };
    let found = vec![find("nvrtc", compiler)?, find("cublasLt", products)?];
    // What a newer compiler makes, an older driver cannot load; within a major version it can.
    let compiler = super::compiler::version();
    supports(driver, (u32::try_from(compiler.0).unwrap_or(0), 0), "NVRTC")?;
    Ok(found)
}

/// Whether a driver is new enough for something that needs a version of CUDA.
fn supports(driver: (u32, u32), needed: (u32, u32), by: &'static str) -> Result<(), CudaError> {
    match driver < needed {
        true => Err(CudaError::OldDriver { driver, needed, by }),
        false => Ok(()),
    }
}

/// Only the compiler, which needs no card; says whether there is one.
pub fn open_compiler() -> bool {
    let folders = pip_folders();
    preload(&folders, "nvrtc-builtins", None);
    // SAFETY: opening runs the library's initialisers, which are made for it.
    preload(&folders, "nvrtc", None).is_some() || unsafe { cudarc::nvrtc::sys::is_culib_present() }
}

/// A library that is open until the end.
pub(crate) struct Library {
    handle: *mut libc::c_void,
}

impl Library {
    /// A function's address; `name` ends with a zero.
    pub fn symbol(&self, name: &str) -> Option<*mut libc::c_void> {
        // SAFETY: the handle is open, the name is a string of C.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr().cast()) };
        (name.ends_with('\0') && !symbol.is_null()).then_some(symbol)
    }
}

/// A library that only some plans need: pip's first, then the system's under one of these names.
pub(crate) fn open_by_name(name: &'static str, files: &[&str]) -> Result<(Library, Found), CudaError> {
    let folders = pip_folders();
    if let Some((handle, path)) = open_from(&folders, name, None) {
        let path = Some(path);
        return Ok((Library { handle }, Found { name, path }));
    }
    let library = files.iter().find_map(|file| of_system(file));
    let library = library.ok_or_else(|| missing(name, &folders))?;
    Ok((library, Found { name, path: None }))
}

/// A library that the system's loader knows.
pub(crate) fn of_system(file: &str) -> Option<Library> {
    let text = CString::new(file).unwrap_or_default();
    // SAFETY: as the system's loader would.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    (!handle.is_null()).then_some(Library { handle })
}

fn missing(name: &'static str, folders: &[PathBuf]) -> CudaError {
    let mut looked_in = vec!["the system's library path".to_owned()];
    looked_in.extend(folders.iter().map(|folder| folder.display().to_string()));
    CudaError::Library { name, looked_in }
}

/// Opens `lib<name>.so.*` by path from one of the folders, for good: the newest that the driver supports.
fn preload(folders: &[PathBuf], name: &str, driver_major: Option<u32>) -> Option<PathBuf> {
    open_from(folders, name, driver_major).map(|(_, path)| path)
}

fn open_from(
    folders: &[PathBuf],
    name: &str,
    driver_major: Option<u32>,
) -> Option<(*mut libc::c_void, PathBuf)> {
    let files = nvidia::library_files(&format!("lib{name}"), folders);
    let path = nvidia::best(&files, driver_major)?.path.clone();
    let text = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: a library of NVIDIA's own, opened as the system's loader would; it stays open until the end.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    (!handle.is_null()).then_some((handle, path))
}

/// The library folders of pip's NVIDIA packages, for every Python that is in sight.
fn pip_folders() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        let python = folder.join("python3");
        // A virtual environment's python is a link: its own folder counts, not the target's.
        if python.exists() {
            prefixes.extend(folder.parent().map(Path::to_owned));
        }
    }
    prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
    let mut found: Vec<PathBuf> = Vec::new();
    for site in prefixes.iter().flat_map(|prefix| nvidia::site_packages(prefix)) {
        for folder in nvidia::pip_folders(&site) {
            if !found.contains(&folder) {
                found.push(folder);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_measured_by_what_is_asked_of_it() {
        assert!(supports((12, 4), OLDEST_CUDA, "flatout").is_ok());
        assert!(supports((13, 0), (13, 0), "NVRTC").is_ok());
        let old = supports((11, 8), OLDEST_CUDA, "flatout").unwrap_err().to_string();
        assert!(old.contains("11.8") && old.contains("12.0"), "{old}");
        let newer = supports((12, 4), (13, 0), "NVRTC").unwrap_err();
        assert!(newer.to_string().contains("NVRTC"), "{newer}");
    }

    #[test]
    fn names_a_missing_library_and_the_searched_folders() {
        let folders = [PathBuf::from("/somewhere/nvidia/cublas/lib")];
        let error = missing("cublasLt", &folders).to_string();
        assert!(
            error.contains("cublasLt") && error.contains("/somewhere/nvidia/cublas/lib"),
            "{error}"
        );
    }

    #[test]
    fn does_not_open_files_that_are_not_libraries() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("libnvrtc.so.12"), "not a library").unwrap();
        let folders = [root.path().to_owned()];
        assert_eq!(preload(&folders, "nvrtc", Some(12)), None);
        assert_eq!(preload(&folders, "nvrtc", Some(11)), None);
    }
}
