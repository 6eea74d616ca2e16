//! Finds CUDA's libraries where people have them: on the system's path, or in the `nvidia/*/lib` folders that pip fills.
//! cudarc opens libraries by name and knows no pip folders, so what is found there is opened by path first: the loader then
//! knows it by its own name.

use super::error::CudaError;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// A library and where it was found; no path: the system's loader knows it.
#[derive(Clone, Debug)]
pub struct Found {
    pub name: &'static str,
    pub path: Option<PathBuf>,
}

/// Everything the engine uses, opened.
pub fn open() -> Result<Vec<Found>, CudaError> {
    // SAFETY: asking opens the library, which runs its initialisers; the driver's are made for it.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        let reason = "libcuda.so.1 was not found".to_owned();
        return Err(CudaError::Driver { reason });
    }
    let folders = pip_folders();
    // NVRTC opens its builtins by name when it compiles first: they must be known by then.
    preload(&folders, "nvrtc-builtins");
    // SAFETY: as above, for the libraries of the toolkit.
    let compiler: fn() -> bool = || unsafe { cudarc::nvrtc::sys::is_culib_present() };
    // SAFETY: as above.
    let products: fn() -> bool = || unsafe { cudarc::cublaslt::sys::is_culib_present() };
    let find = |name: &'static str, present: fn() -> bool| {
        let path = preload(&folders, name);
        if path.is_none() && !present() {
            return Err(missing(name, &folders));
        }
        Ok(Found { name, path })
    };
    Ok(vec![find("nvrtc", compiler)?, find("cublasLt", products)?])
}

/// Only the compiler, which needs no card; says whether there is one.
pub fn open_compiler() -> bool {
    let folders = pip_folders();
    preload(&folders, "nvrtc-builtins");
    // SAFETY: opening runs the library's initialisers, which are made for it.
    preload(&folders, "nvrtc").is_some() || unsafe { cudarc::nvrtc::sys::is_culib_present() }
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
    if let Some((handle, path)) = open_from(&folders, name) {
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

/// Opens `lib<name>.so.*` by path from one of the folders, for good.
fn preload(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    open_from(folders, name).map(|(_, path)| path)
}

fn open_from(folders: &[PathBuf], name: &str) -> Option<(*mut libc::c_void, PathBuf)> {
    let prefix = format!("lib{name}.so");
    let path = folders.iter().flat_map(|folder| entries(folder)).find(|path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(&prefix)
    })?;
    let text = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: a library of NVIDIA's own, opened as the system's loader would; it stays open until the end.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    (!handle.is_null()).then_some((handle, path))
}

/// The library folders of pip's NVIDIA packages, for every Python that is in sight.
fn pip_folders() -> Vec<PathBuf> {
    let mut bases: Vec<PathBuf> = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        bases.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        let python = folder.join("python3");
        // A virtual environment's python is a link: its own folder counts, not the target's.
        if python.exists() {
            bases.extend(folder.parent().map(Path::to_owned));
        }
    }
    bases.extend(["/usr/local", "/usr"].map(PathBuf::from));
    let mut found = Vec::new();
    for base in bases {
        for python in entries(&base.join("lib")).filter(|path| named(path, "python3")) {
            for packages in ["site-packages", "dist-packages"] {
                for library in entries(&python.join(packages).join("nvidia")) {
                    let folder = library.join("lib");
                    if folder.is_dir() && !found.contains(&folder) {
                        found.push(folder);
                    }
                }
            }
        }
    }
    found
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter()
}

fn named(path: &Path, prefix: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}
