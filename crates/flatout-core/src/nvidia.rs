//! Where NVIDIA's libraries are: pip's `nvidia/*/lib` folders, and files of a library by name and version. It opens nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFile {
    pub path: PathBuf,
    /// The first number behind `.so.`; `None` for a plain `.so`.
    pub major: Option<u32>,
}

/// The library folders of pip's NVIDIA packages below a `site-packages`, in the order of their names.
pub fn pip_folders(site_packages: &Path) -> Vec<PathBuf> {
    let folders = entries(&site_packages.join("nvidia"))
        .into_iter()
        .map(|package| package.join("lib"));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The `site-packages` and `dist-packages` of every Python below a prefix such as `/usr` or a virtual environment.
pub fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let pythons = entries(&prefix.join("lib")).into_iter().filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    });
    let sites = pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)));
    sites.filter(|site| site.is_dir()).collect()
}

/// Whether a file's name is that of a library: `libcublas.so` and `libcublas.so.13`, but not `libcublasLt.so.13` nor
/// `libcublas.so-old`. `stem` is `libcublas`.
pub fn is_library(path: &Path, stem: &str) -> bool {
    major_of(path, stem).is_some()
}

/// The files of a library in some folders, the folders' order kept.
pub fn library_files(stem: &str, folders: &[PathBuf]) -> Vec<LibraryFile> {
    let mut found = Vec::new();
    for path in folders.iter().flat_map(|folder| entries(folder)) {
        if let Some(major) = major_of(&path, stem) {
            found.push(LibraryFile { path, major });
        }
    }
    found
}

/// The file to open where a driver supports CUDA up to a version: the newest that it supports, else none. Files that do not tell
/// their version are the last resort. `None` for a library that has versions of its own.
pub fn best(files: &[LibraryFile], driver_major: Option<u32>) -> Option<&LibraryFile> {
    let supported = |file: &&LibraryFile| {
        driver_major.is_none_or(|driver| file.major.is_none_or(|major| major <= driver))
    };
    let newest = files
        .iter()
        .filter(supported)
        .map(|file| file.major.unwrap_or(0))
        .max()?;
    files
        .iter()
        .filter(supported)
        .find(|file| file.major.unwrap_or(0) == newest)
}

/// `Some(None)` for a library without a version.
fn major_of(path: &Path, stem: &str) -> Option<Option<u32>> {
    let rest = path
        .file_name()?
        .to_str()?
        .strip_prefix(stem)?
        .strip_prefix(".so")?;
    match rest.strip_prefix('.') {
        None if rest.is_empty() => Some(None),
        None => None,
        Some(version) => version.split('.').next()?.parse().ok().map(Some),
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A virtual environment with the packages of CUDA 12 and of CUDA 13, as pip leaves them.
    fn environment() -> (tempfile::TempDir, Vec<PathBuf>) {
        let root = tempfile::tempdir().unwrap();
        let site = root.path().join("lib/python3.11/site-packages");
        for file in [
            "nvidia/cublas/lib/libcublas.so.12",
            "nvidia/cublas/lib/libcublasLt.so.12",
            "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8",
            "nvidia/cu13/lib/libcublasLt.so.13",
            "nvidia/cu13/lib/libnvrtc.so.13",
            "nvidia/cu13/lib/libnvrtc.alt.so.13",
            "nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
            "nvidia/cudnn/lib/libcudnn.so.9",
            "nvidia/cudnn/lib/libcudnn_graph.so.9",
            "nvidia/cudnn/lib/libcudnn.so-old",
        ] {
            let path = site.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let sites = site_packages(root.path());
        assert_eq!(sites, std::slice::from_ref(&site));
        (root, pip_folders(&site))
    }

    fn name(files: &[LibraryFile], driver: Option<u32>) -> Option<String> {
        best(files, driver).map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned())
    }

    #[test]
    fn a_driver_gets_the_newest_library_that_it_supports() {
        let (_root, folders) = environment();
        assert_eq!(folders.len(), 4);
        let products = library_files("libcublasLt", &folders);
        assert_eq!(products.len(), 2);
        assert_eq!(name(&products, Some(13)).unwrap(), "libcublasLt.so.13");
        assert_eq!(name(&products, Some(12)).unwrap(), "libcublasLt.so.12");
        assert_eq!(name(&products, None).unwrap(), "libcublasLt.so.13");
        assert_eq!(name(&products, Some(11)), None);
        let builtins = library_files("libnvrtc-builtins", &folders);
        assert_eq!(name(&builtins, Some(12)).unwrap(), "libnvrtc-builtins.so.12.8");
        assert_eq!(
            name(&library_files("libnvrtc", &folders), Some(12)).unwrap(),
            "libnvrtc.so.12"
        );
    }

    #[test]
    fn names_that_only_begin_alike_are_others() {
        let (_root, folders) = environment();
        assert_eq!(library_files("libcublas", &folders).len(), 1);
        assert_eq!(
            name(&library_files("libcudnn", &folders), None).unwrap(),
            "libcudnn.so.9"
        );
        assert_eq!(library_files("libcudnn", &folders).len(), 1);
        assert!(library_files("libnccl", &folders).is_empty());
        assert!(is_library(Path::new("/a/libcuda.so"), "libcuda"));
        assert!(!is_library(Path::new("/a/libcudart.so.13"), "libcuda"));
        assert!(!is_library(Path::new("/a/libcuda.so.one"), "libcuda"));
    }
}
