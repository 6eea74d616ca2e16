//! The Python that would run, and its torch, found without running either: starting torch takes seconds.

use super::{Area, Check, Health};
use flatout_core::message;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    pub executable: PathBuf,
    /// `3.11`, from its folders.
    pub version: Option<String>,
    pub site_packages: Vec<PathBuf>,
}

/// The Python a shell would start here: the active environment's, else the first on the path.
pub fn find() -> Option<Python> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(variable)
        .map(|prefix| prefix.join("bin"));
    let path = variable("PATH").unwrap_or_default();
    let folders = active.chain(std::env::split_paths(&path));
    let executable = folders
        .flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)))
        .find(|path| path.is_file())?;
    let home = variable("HOME").unwrap_or_default();
    Some(describe(&unshim(&executable, &home), &home))
}

/// pyenv puts a script before Python; the file `version` says which one it starts.
fn unshim(executable: &Path, home: &Path) -> PathBuf {
    let Some(root) = executable.parent().and_then(|shims| {
        shims
            .ends_with("shims")
            .then(|| shims.parent().unwrap_or(home).to_owned())
    }) else {
        return executable.to_owned();
    };
    let chosen = std::env::var("PYENV_VERSION")
        .ok()
        .or_else(|| fs::read_to_string(root.join("version")).ok());
    let versions = root.join("versions");
    chosen
        .and_then(|text| Some(versions.join(text.lines().next()?.trim()).join("bin/python3")))
        .filter(|path| path.is_file())
        .unwrap_or_else(|| executable.to_owned())
}

fn describe(executable: &Path, home: &Path) -> Python {
    let prefix = executable
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/"))
        .to_owned();
    let real = fs::canonicalize(executable).unwrap_or_else(|_| executable.to_owned());
    // `/usr/bin/python3.11`, the file behind the links, or the only `lib/python3.X` of the environment.
    let version = real
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix("python").map(str::to_owned))
        .filter(|version| version.contains('.'))
        .or_else(|| only_version(&prefix.join("lib")));
    let mut site_packages = Vec::new();
    if let Some(version) = &version {
        let folder = format!("python{version}");
        let candidates = [
            prefix.join("lib").join(&folder).join("site-packages"),
            prefix.join("lib64").join(&folder).join("site-packages"),
            prefix.join("local/lib").join(&folder).join("dist-packages"),
            prefix.join("lib/python3/dist-packages"),
            home.join(".local/lib").join(&folder).join("site-packages"),
        ];
        site_packages.extend(candidates.into_iter().filter(|path| path.is_dir()));
    }
    Python {
        executable: executable.to_owned(),
        version,
        site_packages,
    }
}

fn only_version(lib: &Path) -> Option<String> {
    let mut versions: Vec<String> = fs::read_dir(lib)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("python")
                .map(str::to_owned)
        })
        .filter(|version| version.starts_with("3."))
        .collect();
    versions.sort();
    versions.pop()
}

/// The version of an installed package, from the name of its metadata folder.
pub fn package_version(python: &Python, package: &str) -> Option<(String, PathBuf)> {
    python.site_packages.iter().find_map(|site| {
        fs::read_dir(site).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name();
            let version = name
                .to_str()?
                .strip_suffix(".dist-info")?
                .strip_prefix(package)?
                .strip_prefix('-')?;
            Some((version.to_owned(), site.clone()))
        })
    })
}

/// `cuda: Optional[str] = '13.0'` in torch's own version file.
fn torch_cuda(site: &Path) -> Option<String> {
    let text = fs::read_to_string(site.join("torch/version.py")).ok()?;
    let line = text.lines().find(|line| line.starts_with("cuda"))?;
    let value = line.split('=').nth(1)?.trim().trim_matches(['\'', '"']);
    (value != "None").then(|| value.to_owned())
}

pub fn check(python: Option<&Python>, checks: &mut Vec<Check>) {
    let Some(python) = python else {
        checks.push(
            Check::new("python", Area::Python, Health::Missing, message!(en: "no Python on PATH", zh: "PATH 中没有 Python"))
                .cost(message!(en: "`flatout run` has no Python program to watch", zh: "`flatout run` 没有可观察的 Python 程序"))
                .remedy(message!(en: "activate your environment first", zh: "请先激活你的环境")),
        );
        return;
    };
    let version = python.version.clone().unwrap_or_else(|| "?".into());
    let shown = python.executable.display();
    checks.push(
        Check::new(
            "python",
            Area::Python,
            Health::Good,
            message!(en: "Python {version}: {shown}", zh: "Python {version}，位于 {shown}"),
        )
        .with("version", &python.version)
        .with("executable", &python.executable)
        .with("site_packages", &python.site_packages),
    );
    checks.push(torch(python));
}

fn torch(python: &Python) -> Check {
    let Some((version, site)) = package_version(python, "torch") else {
        return Check::new(
            "torch",
            Area::Python,
            Health::Missing,
            message!(en: "torch is not installed for this Python", zh: "该 Python 没有安装 torch"),
        )
        .cost(message!(en: "PyTorch programs cannot run with it", zh: "无法运行 PyTorch 程序"))
        .remedy(message!(en: "activate the environment that has torch, or: pip install torch", zh: "激活装有 torch 的环境，或 pip install torch"));
    };
    match torch_cuda(&site) {
        Some(cuda) => Check::new(
            "torch",
            Area::Python,
            Health::Good,
            message!(en: "torch {version} with CUDA {cuda}", zh: "torch {version}，支持 CUDA {cuda}"),
        )
        .with("cuda", cuda),
        None => Check::new(
            "torch",
            Area::Python,
            Health::Note,
            message!(en: "torch {version} without CUDA", zh: "torch {version}，不含 CUDA"),
        )
        .cost(message!(en: "PyTorch programs run only on the CPU", zh: "PyTorch 程序只能在 CPU 上运行")),
    }
    .with("version", version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_read_without_running_it() {
        let root = tempfile::tempdir().unwrap();
        let site = root.path().join("lib/python3.11/site-packages");
        fs::create_dir_all(site.join("torch")).unwrap();
        fs::create_dir_all(site.join("torch-2.11.0+cu130.dist-info")).unwrap();
        fs::create_dir_all(site.join("torchvision-0.20.0.dist-info")).unwrap();
        fs::write(
            site.join("torch/version.py"),
            "__version__ = '2.11.0'\ncuda: Optional[str] = '13.0'\n",
        )
        .unwrap();
        fs::create_dir_all(root.path().join("bin")).unwrap();
        let executable = root.path().join("bin/python3");
        fs::write(&executable, "").unwrap();
        let python = describe(&executable, root.path());
        assert_eq!(python.version.as_deref(), Some("3.11"));
        assert_eq!(python.site_packages, std::slice::from_ref(&site));
        let mut checks = Vec::new();
        check(Some(&python), &mut checks);
        assert_eq!(checks[1].text.en, "torch 2.11.0+cu130 with CUDA 13.0");
        fs::write(site.join("torch/version.py"), "cuda = None\n").unwrap();
        assert_eq!(torch(&python).health, Health::Note);
    }

    #[test]
    fn a_shim_leads_to_the_python_it_starts() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("versions/3.12.1/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("python3"), "").unwrap();
        fs::write(root.path().join("version"), "3.12.1\n").unwrap();
        let shim = root.path().join("shims/python3");
        if std::env::var_os("PYENV_VERSION").is_none() {
            assert_eq!(unshim(&shim, root.path()), bin.join("python3"));
        }
        assert_eq!(
            unshim(Path::new("/usr/bin/python3"), root.path()),
            Path::new("/usr/bin/python3")
        );
    }
}
