//! The Python probe: carried inside the binary, laid out in a private folder, brought into every Python process of the tree
//! through the environment. The folder goes when the run ends.

use crate::RunError;
use crate::program::{Environment, sweep};
use flatout_core::leftover;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

// `FILES`: the probe's files, where each lies below the folder, and its text. The build script lists them.
include!(concat!(env!("OUT_DIR"), "/probe_files.rs"));

/// The CUPTI tracer, a shared library that the probe opens once the program uses CUDA.
pub const TRACER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libflatout_tracer.so"));

/// How the names of such folders begin; who made them follows.
const PREFIX: &str = "flatout-";

/// The private folder of one run: `python/` with the probe, `rings/` where its processes report.
pub struct Runtime {
    folder: tempfile::TempDir,
}

impl Runtime {
    /// In shared memory where there is room for it: rings on a disk would be written back to it all the time.
    pub fn create() -> Result<Self, RunError> {
        let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
        let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
        for place in places {
            match Self::create_in(&place) {
                Ok(runtime) => return Ok(runtime),
                Err(error) => last = error,
            }
        }
        Err(RunError::Runtime(last))
    }

    fn create_in(place: &Path) -> std::io::Result<Self> {
        sweep(place, PREFIX);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", leftover::owner()))
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(place)?;
        let private = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        private(&folder.path().join("rings"))?;
        private(&folder.path().join("scratch"))?;
        for (name, text) in FILES {
            let path = folder.path().join("python").join(name);
            if let Some(parent) = path.parent() {
                private(parent)?;
            }
            fs::write(path, text)?;
        }
        // Whether the program uses CUDA is not known yet, so the library is always there.
        let library = folder.path().join("python/_flatout_probe/libflatout_tracer.so");
        fs::write(&library, TRACER)?;
        fs::set_permissions(&library, fs::Permissions::from_mode(0o700))?;
        Ok(Self { folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn rings(&self) -> PathBuf {
        self.folder.path().join("rings")
    }

    /// A folder for whatever goes with the run.
    pub fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    /// What a Python process must find in its environment.
    pub fn environment(&self, apply: &[String], steps: Option<u64>, trace: Option<&Path>) -> Environment {
        let python = self.folder.path().join("python");
        let mut path = OsString::from(&python);
        if let Some(own) = std::env::var_os("PYTHONPATH").filter(|own| !own.is_empty()) {
            path.push(":");
            path.push(own);
        }
        let mut environment = vec![
            ("PYTHONPATH".into(), path),
            ("FLATOUT_RING".into(), self.rings().into()),
        ];
        if !apply.is_empty() {
            environment.push(("FLATOUT_APPLY".into(), apply.join(",").into()));
        }
        if let Some(steps) = steps {
            environment.push(("FLATOUT_STEPS".into(), steps.to_string().into()));
        }
        if let Some(trace) = trace {
            environment.push(("FLATOUT_PROFILE".into(), trace.into()));
            if std::env::var_os("KINETO_LOG_LEVEL").is_none() {
                // Its words on stderr would look like the program's own.
                environment.push(("KINETO_LOG_LEVEL".into(), "99".into()));
            }
        }
        environment
    }
}

/// Whether the command is a Python that does not import `site`, and with it not the probe: `python -S`, also as `-IS`.
pub fn without_site(command: &[OsString]) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    let name = Path::new(program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    if !name.starts_with("python") && !name.starts_with("pypy") {
        return false;
    }
    let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
    while let Some(argument) = arguments.next() {
        let Some(letters) = argument
            .strip_prefix('-')
            .filter(|letters| !letters.starts_with('-'))
        else {
            return false;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'S' => return true,
                'c' | 'm' => return false,
                'W' | 'X' => {
                    if at + 1 == letters.len() {
                        arguments.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_python_without_site() {
        let without = |line: &str| without_site(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(
            without("python -S x.py")
                && without("/usr/bin/python3.12 -X dev -IS -c 1")
                && without("python -bSu")
        );
        assert!(
            !without("python x.py -S")
                && !without("python -c S")
                && !without("sh -S")
                && !without("python -WS x.py")
        );
        assert!(!without("python -m S -S") && !without("python --help -S"));
    }

    #[test]
    fn every_file_of_the_probe_is_carried() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
        let mut folders = vec![source.join("_flatout_probe"), source.join("_flatout_apply")];
        let mut count = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "py") {
                    let name = path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
                    let carried = FILES
                        .iter()
                        .any(|(known, _)| *known == name || name == format!("_flatout_probe/{known}"));
                    assert!(carried, "{name} is not in the list of probe.rs");
                    count += 1;
                }
            }
        }
        assert_eq!(count, FILES.len());
    }

    #[test]
    fn the_tracer_is_a_small_shared_library() {
        assert_eq!(TRACER[..4], *b"\x7fELF");
        assert!(TRACER.len() < 400_000, "{} bytes", TRACER.len());
        for name in ["version", "start", "stop", "after_fork", "status", "error"] {
            let symbol = format!("flatout_tracer_{name}\0");
            let found = TRACER.windows(symbol.len()).any(|part| part == symbol.as_bytes());
            assert!(found, "{symbol} is not exported");
        }
    }

    #[test]
    fn the_folder_is_private_and_goes() {
        let runtime = Runtime::create().unwrap();
        let folder = runtime.folder.path().to_owned();
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        assert!(folder.join("python/_flatout_probe/hook.py").exists() && runtime.rings().is_dir());
        let tracer = folder.join("python/_flatout_probe/libflatout_tracer.so");
        assert_eq!(fs::read(tracer).unwrap(), TRACER);
        drop(runtime);
        assert!(!folder.exists());
    }

    #[test]
    fn folders_of_dead_runs_are_swept() {
        let place = tempfile::tempdir().unwrap();
        let world = leftover::owner().rsplit_once('-').unwrap().0.to_owned();
        let dead = place.path().join(format!("{PREFIX}{world}-{}-abcdef", u32::MAX));
        let others = ["flatout-abcdef", "flatout-00000000-4294967295-abcdef"];
        fs::create_dir_all(dead.join("rings")).unwrap();
        for other in others {
            fs::create_dir(place.path().join(other)).unwrap();
        }
        let runtime = Runtime::create_in(place.path()).unwrap();
        assert!(!dead.exists() && others.iter().all(|other| place.path().join(other).exists()));
        let second = Runtime::create_in(place.path()).unwrap();
        assert!(runtime.rings().is_dir() && second.rings().is_dir());
    }
}
