//! The CUDA libraries the trainer loads at run time: in the loader's cache, on `LD_LIBRARY_PATH`, in a toolkit, or in pip's
//! `nvidia/*/lib` folders.

use super::python::Python;
use super::{Area, Check, Health};
use flatout_core::{Message, message, nvidia};
use std::fs;
use std::path::{Path, PathBuf};

struct Library {
    /// The beginning of the file's name, up to `.so`.
    id: &'static str,
    cost: fn() -> Message,
    remedy: fn() -> Message,
}

fn by_pip(package: &str) -> Message {
    Message::verbatim(format!("pip install {package}"))
}

const LIBRARIES: &[Library] = &[
    Library {
        id: "libcuda",
        cost: || message!(en: "no program can use the GPU", zh: "无法在 GPU 上运行任何程序"),
        remedy: || message!(en: "it comes with the driver; in a container, use --gpus all", zh: "它随驱动安装；在容器中请加 --gpus all"),
    },
    Library {
        id: "libnvrtc",
        cost: || message!(en: "`flatout train` cannot compile its kernels and falls back to the CPU", zh: "`flatout train` 无法编译内核，只能用 CPU"),
        remedy: || by_pip("nvidia-cuda-nvrtc"),
    },
    Library {
        id: "libcublas",
        cost: || message!(en: "`flatout train` cannot multiply matrices on the GPU and falls back to the CPU", zh: "`flatout train` 无法在 GPU 上做矩阵乘，只能用 CPU"),
        remedy: || by_pip("nvidia-cublas"),
    },
    Library {
        id: "libcublasLt",
        cost: || message!(en: "no fused matrix multiplication on the GPU", zh: "GPU 上没有融合的矩阵乘"),
        remedy: || by_pip("nvidia-cublas"),
    },
    Library {
        id: "libcudnn",
        cost: || message!(en: "convolutions and recurrent layers cannot use cuDNN", zh: "卷积和循环层没有 cuDNN 可用"),
        remedy: || by_pip("nvidia-cudnn-cu13"),
    },
    Library {
        id: "libnccl",
        cost: || {
            message!(en: "PyTorch cannot train on several GPUs at once; `flatout train` uses one GPU \
        and does not need it", zh: "PyTorch 无法多 GPU 一起训练；`flatout train` 只用一块 GPU，不需要它")
        },
        remedy: || by_pip("nvidia-nccl-cu13"),
    },
];

pub fn check(python: Option<&Python>, checks: &mut Vec<Check>) {
    let cached = cached(Path::new("/etc/ld.so.cache"));
    let folders = folders(python);
    for library in LIBRARIES {
        let found = find(library.id, &cached, &folders);
        let id = format!("cuda.{}", library.id);
        let (name, check) = (library.id, |health, text| {
            Check::new(id, Area::Libraries, health, text)
        });
        checks.push(match found {
            Some(path) => {
                let shown = path.display();
                check(
                    Health::Good,
                    message!(en: "{name}: {shown}", zh: "{name}：{shown}"),
                )
                .with("path", &path)
            }
            None => check(
                Health::Missing,
                message!(en: "{name} was not found", zh: "未找到 {name}"),
            )
            .cost((library.cost)())
            .remedy((library.remedy)()),
        });
    }
}

/// The paths in the dynamic loader's cache, which is a table of strings: those that are absolute paths of libraries.
fn cached(cache: &Path) -> Vec<PathBuf> {
    let bytes = fs::read(cache).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .filter(|text| text.starts_with(b"/") && memchr::memmem::find(text, b".so").is_some())
        .filter_map(|text| std::str::from_utf8(text).ok())
        .map(PathBuf::from)
        .collect()
}

fn folders(python: Option<&Python>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("LD_LIBRARY_PATH")
        .map(|paths| std::env::split_paths(&paths).collect())
        .unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from);
    for toolkit in toolkits.chain([PathBuf::from("/usr/local/cuda")]) {
        folders.push(toolkit.join("lib64"));
    }
    let sites = python.into_iter().flat_map(|python| &python.site_packages);
    folders.extend(sites.flat_map(|site| nvidia::pip_folders(site)));
    folders
}

fn find(stem: &str, cached: &[PathBuf], folders: &[PathBuf]) -> Option<PathBuf> {
    let in_folders = nvidia::library_files(stem, folders).into_iter().next();
    let in_cache = || {
        let mut fitting = cached.iter().filter(|path| nvidia::is_library(path, stem));
        fitting.find(|path| path.exists()).cloned()
    };
    in_folders.map(|file| file.path).or_else(in_cache)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_its_stem_in_folders_and_in_the_cache() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("nvidia/cublas/lib");
        fs::create_dir_all(&lib).unwrap();
        for name in ["libcublasLt.so.13", "libcublas.so.13", "libcublas.so-old"] {
            fs::write(lib.join(name), "").unwrap();
        }
        let python = Python {
            executable: "python3".into(),
            version: None,
            site_packages: vec![root.path().to_owned()],
        };
        let folders = folders(Some(&python));
        let name = |stem| find(stem, &[], &folders).map(|path| path.file_name().unwrap().to_owned());
        assert_eq!(name("libcublas").unwrap(), "libcublas.so.13");
        assert_eq!(name("libcublasLt").unwrap(), "libcublasLt.so.13");
        assert_eq!(name("libcublasXt"), None);
        let cache = root.path().join("ld.so.cache");
        let entry = lib.join("libcublas.so.13");
        fs::write(
            &cache,
            [
                b"glibc-ld.so.cache1.1\0libcublas.so.13\0",
                entry.to_str().unwrap().as_bytes(),
                b"\0",
            ]
            .concat(),
        )
        .unwrap();
        assert_eq!(find("libcublas", &cached(&cache), &[]), Some(entry));
    }
}
