//! Finding the files to lint. Links to folders are not followed, so a loop of links ends; what Git ignores and folders that hold no
//! source of the project's own (virtual environments, caches, hidden ones) are left out unless they are named.

use crate::config::Format;
use crate::project::Unreadable;
use crate::settings::Settings;
use flatout_core::message;
use ignore::WalkBuilder;
use std::fs;
use std::path::{Path, PathBuf};

/// No configuration a person writes is larger; data files are.
const LARGEST_CONFIG_BYTES: u64 = 256 * 1024;
/// Larger Python files are data in disguise.
pub(crate) const LARGEST_PYTHON_BYTES: u64 = 32 << 20;

/// Folders of other people's code, or of none.
const SKIPPED_FOLDERS: [&str; 8] = [
    "__pycache__",
    "node_modules",
    "site-packages",
    "build",
    "dist",
    "wandb",
    "mlruns",
    "lightning_logs",
];
/// Configuration of other tools.
const OTHER_TOOLS: [&str; 12] = [
    "pyproject.toml",
    "flatout.toml",
    "package.json",
    "package-lock.json",
    "Cargo.toml",
    "mkdocs.yml",
    "environment.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
    "tsconfig.json",
    "ruff.toml",
    "environment.yaml",
];

#[derive(Debug, Default)]
pub(crate) struct Files {
    pub python: Vec<PathBuf>,
    pub config: Vec<(PathBuf, Format)>,
    pub unreadable: Vec<Unreadable>,
}

pub(crate) fn discover(paths: &[PathBuf], settings: &Settings) -> Files {
    let mut files = Files::default();
    for path in paths {
        if path.is_dir() {
            folder(path, settings, &mut files);
        } else {
            file(path, &mut files);
        }
    }
    files.python.sort();
    files.python.dedup();
    files.config.sort_by(|a, b| a.0.cmp(&b.0));
    files.config.dedup_by(|a, b| a.0 == b.0);
    files
}

fn folder(start: &Path, settings: &Settings, files: &mut Files) {
    let excluded = settings.clone();
    let walk = WalkBuilder::new(start)
        .hidden(false)
        .filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0
                || !(excluded.excludes(&plain(entry.path())) || is_folder && is_skipped(entry.path()))
        })
        .build();
    for entry in walk {
        match entry {
            Ok(entry) if entry.path().is_file() => file(&plain(entry.path()), files),
            Ok(_) => {}
            Err(error) => {
                let path = path_of(&error).unwrap_or(start).to_path_buf();
                let error = error
                    .io_error()
                    .map_or_else(|| error.to_string(), |error| error.kind().to_string());
                files.unreadable.push(Unreadable {
                    why: message!(en: "the folder cannot be read: {error}", zh: "无法读取该目录：{error}"),
                    path,
                });
            }
        }
    }
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

/// `./a/b.py` is shown as `a/b.py`.
fn plain(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_path_buf()
}

fn is_skipped(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || SKIPPED_FOLDERS.contains(&&*name) || path.join("pyvenv.cfg").exists()
}

fn file(path: &Path, files: &mut Files) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path
        .extension()
        .is_some_and(|extension| extension == "py" || extension == "ipynb")
    {
        files.python.push(path.to_path_buf());
    } else if let Some(format) = Format::of(path) {
        let small = fs::metadata(path).is_ok_and(|data| data.len() <= LARGEST_CONFIG_BYTES);
        if small && !OTHER_TOOLS.contains(&&*name) && !name.starts_with('.') {
            files.config.push((path.to_path_buf(), format));
        }
    }
}

/// Words of a file or folder name that make it a configuration.
const CONFIG_WORDS: [&str; 12] = [
    "config",
    "configs",
    "conf",
    "cfg",
    "cfgs",
    "configuration",
    "train",
    "training",
    "params",
    "hparams",
    "settings",
    "hyp",
];

/// Whether a file is configuration by its name or its folder's; others must be named in the code.
pub(crate) fn looks_like_config(path: &Path) -> bool {
    let has_word = |name: &str| {
        let mut words = name.split(['_', '-', '.', ' ']);
        words.any(|word| CONFIG_WORDS.contains(&word.to_ascii_lowercase().as_str()))
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    // Folders of JSON files are as a rule data, whatever their name.
    has_word(&stem) || (!is_json && has_word(&folder))
}

/// Whether a file is one of the project's tests, by its name below what the user named.
pub(crate) fn is_test(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots
        .iter()
        .find_map(|root| path.strip_prefix(root).ok())
        .unwrap_or(path);
    let folders = below.parent().into_iter().flat_map(Path::components);
    let in_folder = folders.into_iter().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        matches!(&*name, "test" | "tests" | "testing" | "test_utils")
    });
    let stem = below.file_stem().unwrap_or_default().to_string_lossy();
    // A file that the user names by itself is meant, whatever its name.
    let named = below.as_os_str().is_empty();
    !named && (in_folder || stem.starts_with("test_") || stem.ends_with("_test") || stem == "conftest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_of_links_ends_and_strangers_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["a/b", ".git", "venv/lib"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("venv/pyvenv.cfg"), "").unwrap();
        for path in [
            "a/x.py",
            "a/b/y.py",
            ".git/z.py",
            "venv/lib/w.py",
            "a/config.yaml",
            "a/pyproject.toml",
        ] {
            fs::write(root.join(path), "").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(root, root.join("a/loop")).unwrap();
        let files = discover(&[root.to_path_buf()], &Settings::default());
        assert_eq!(files.python, [root.join("a/b/y.py"), root.join("a/x.py")]);
        assert_eq!(files.config.len(), 1);
    }

    #[test]
    fn what_git_ignores_is_left_out_unless_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in [".git", "generated", "src/old"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join(".gitignore"), "generated/\n").unwrap();
        fs::write(root.join("src/.gitignore"), "old/*\n!old/kept.py\n").unwrap();
        for path in ["a.py", "generated/b.py", "src/old/c.py", "src/old/kept.py"] {
            fs::write(root.join(path), "").unwrap();
        }
        let python = |path: &Path| discover(&[path.to_path_buf()], &Settings::default()).python;
        assert_eq!(python(root), [root.join("a.py"), root.join("src/old/kept.py")]);
        let named = root.join("generated");
        assert_eq!(python(&named), [named.join("b.py")]);
        assert_eq!(python(&named.join("b.py")), [named.join("b.py")]);
        // Without a repository nobody ignores anything.
        fs::remove_dir(root.join(".git")).unwrap();
        assert_eq!(python(root).len(), 4);
    }
}
