//! `cargo xtask wheel`: a wheel that runs on machines without Rust, tried in an empty environment without cargo.
//!
//! The wheel contains one program; the probe's Python files and the CUPTI tracer are inside it. It is linked by zig against an old
//! glibc, so it runs on distributions back to CentOS 7, and it has no extension module: one wheel serves every Python from 3.9 on.

use crate::{Result, must, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What builds the wheel, from PyPI.
const TOOLS: [&str; 2] = ["maturin>=1.9,<2", "ziglang>=0.13"];
/// The glibc of manylinux2014. PyTorch's own wheels need 2.28.
const GLIBC: (u32, u32) = (2, 17);
/// Symbols of a newer glibc would only be found missing on the user's machine.
const READELF: &str = "readelf";

#[derive(Clone, Copy, PartialEq)]
enum Machine {
    X86,
    Arm,
}

impl Machine {
    fn triple(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-unknown-linux-gnu",
            Self::Arm => "aarch64-unknown-linux-gnu",
        }
    }

    /// As a wheel's name has it.
    fn tag(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    fn here() -> Self {
        if cfg!(target_arch = "aarch64") {
            Self::Arm
        } else {
            Self::X86
        }
    }
}

struct Options {
    machine: Machine,
    /// Only try the wheel that was built before.
    built: bool,
    /// Leave the demo out: it takes a minute.
    without_demo: bool,
}

pub fn run(arguments: &[String]) -> Result {
    let options = parse(arguments)?;
    let folder = root().join("target/wheels");
    if !options.built {
        build(options.machine, &folder)?;
    }
    let wheel = newest(&folder, options.machine)?;
    check_name(&wheel, options.machine)?;
    let unpacked = root().join("target/wheel-check");
    let program = check_contents(&wheel, &unpacked)?;
    let archive = archive(&program, &wheel, options.machine)?;
    if options.machine == Machine::here() {
        install(&wheel, options.without_demo)?;
    } else {
        eprintln!("built for {}, not tried on this machine", options.machine.tag());
    }
    println!("{}\n{}", wheel.display(), archive.display());
    Ok(())
}

/// The program alone, for machines without Python: `flatout-0.1.0-x86_64-linux.tar.gz`, and its checksum next to it.
fn archive(program: &Path, wheel: &Path, machine: Machine) -> Result<PathBuf> {
    let wheel_name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let version = wheel_name
        .split('-')
        .nth(1)
        .ok_or("the wheel has no version in its name")?;
    let name = format!("flatout-{version}-{}-linux", machine.tag());
    let target = root().join("target/dist");
    let folder = target.join(&name);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::copy(program, folder.join("flatout")).map_err(failed)?;
    fs::set_permissions(folder.join("flatout"), fs::Permissions::from_mode(0o755)).map_err(failed)?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
        fs::copy(root().join(file), folder.join(file)).map_err(failed)?;
    }
    let packed = format!("{name}.tar.gz");
    // Owners and times of this machine are nobody's business, and the same files make the same archive.
    let tar = [
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
        "-czf",
    ];
    must(
        Command::new("tar")
            .current_dir(&target)
            .args(tar)
            .args([&packed, &name]),
    )?;
    let sum = Command::new("sha256sum")
        .current_dir(&target)
        .arg(&packed)
        .output();
    let sum = sum.map_err(|error| format!("sha256sum: {error}"))?;
    fs::write(target.join(format!("{packed}.sha256")), sum.stdout).map_err(failed)?;
    must(Command::new("sha256sum").current_dir(&target).args([
        "--check",
        "--quiet",
        &format!("{packed}.sha256"),
    ]))?;
    Ok(target.join(packed))
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        machine: Machine::here(),
        built: false,
        without_demo: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--machine" => {
                options.machine = match words.next().map(String::as_str) {
                    Some("x86_64") => Machine::X86,
                    Some("aarch64") => Machine::Arm,
                    other => return Err(format!("--machine takes x86_64 or aarch64, not {other:?}")),
                };
            }
            "--built" => options.built = true,
            "--without-demo" => options.without_demo = true,
            other => {
                return Err(format!(
                    "unknown option `{other}`; there are --machine x86_64|aarch64, --built, --without-demo"
                ));
            }
        }
    }
    Ok(options)
}

fn build(machine: Machine, folder: &Path) -> Result {
    check_target(machine)?;
    let tools = root().join("target/wheel-tools");
    let python = tools.join("bin/python");
    if !python.exists() {
        must(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
    }
    must(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(TOOLS),
    )?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).map_err(|error| error.to_string())?;
    let compatibility = format!("manylinux_{}_{}", GLIBC.0, GLIBC.1);
    must(
        Command::new(tools.join("bin/maturin"))
            .current_dir(root())
            .env("PATH", path)
            .args(["build", "--release", "--zig", "--compatibility", &compatibility])
            .args(["--target", machine.triple(), "--out"])
            .arg(folder),
    )
}

/// Rust's own library for the target; without it the build fails after minutes.
fn check_target(machine: Machine) -> Result {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", machine.triple()])
        .output()
        .map_err(|error| format!("rustc: {error}"))?;
    let library = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if library.is_dir() {
        return Ok(());
    }
    let triple = machine.triple();
    Err(format!(
        "Rust's library for {triple} is not installed: rustup target add {triple}"
    ))
}

fn newest(folder: &Path, machine: Machine) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let wheels = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".whl") && name.contains(machine.tag())
    });
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
    wheels
        .max_by_key(changed)
        .ok_or_else(|| format!("no wheel for {} in {}", machine.tag(), folder.display()))
}

/// One wheel for every Python 3, and for every Linux since that glibc.
fn check_name(wheel: &Path, machine: Machine) -> Result {
    let name = wheel
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let platform = format!("manylinux_{}_{}_{}", GLIBC.0, GLIBC.1, machine.tag());
    if name.contains("-py3-none-") && name.contains(&platform) {
        return Ok(());
    }
    Err(format!("{name} is not py3-none-{platform}"))
}

/// The program is there, and neither it nor the tracer inside it needs a newer glibc than the name promises.
fn check_contents(wheel: &Path, folder: &Path) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    must(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .args([wheel, folder]),
    )?;
    let program = find(folder, "flatout").ok_or("the wheel has no program")?;
    find(folder, "__init__.py").ok_or("the wheel has no Python package")?;
    let bytes = fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    for (part, at) in embedded(&bytes) {
        let name = format!("part at {at}");
        let file = folder.join(format!("part-{at}"));
        fs::write(&file, part).map_err(|error| format!("{}: {error}", file.display()))?;
        if let Some((version, symbol)) = newest_glibc(&file)?
            && version > GLIBC
        {
            return Err(format!(
                "{name} of the program needs glibc {}.{} ({symbol})",
                version.0, version.1
            ));
        }
    }
    let size = bytes.len() as f64 / 1e6;
    eprintln!(
        "the program has {size:.1} MB and needs no glibc after {}.{}",
        GLIBC.0, GLIBC.1
    );
    Ok(program)
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let here = entries
        .iter()
        .find(|path| path.is_file() && path.file_name().is_some_and(|own| own == name));
    here.cloned().or_else(|| {
        entries
            .iter()
            .filter(|path| path.is_dir())
            .find_map(|path| find(path, name))
    })
}

/// The program, and every ELF file inside it from where it begins: the tracer is one.
fn embedded(bytes: &[u8]) -> Vec<(&[u8], usize)> {
    const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01";
    let starts = bytes
        .windows(MAGIC.len())
        .enumerate()
        .filter(|(_, window)| *window == MAGIC);
    // A string constant may hold the magic bytes too; a header says that it is a program (2 or 3) of version 1.
    let is_header = |at: &usize| matches!(bytes.get(at + 16..at + 18), Some([2 | 3, 0]));
    starts
        .map(|(at, _)| at)
        .filter(is_header)
        .map(|at| (&bytes[at..], at))
        .collect()
}

/// The newest `GLIBC_x.y` that a file asks for.
fn newest_glibc(file: &Path) -> Result<Option<((u32, u32), String)>> {
    let output = Command::new(READELF)
        .args(["--version-info", "--wide"])
        .arg(file)
        .output()
        .map_err(|error| format!("{READELF}: {error}; install binutils"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let name: String = rest
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == '.')
            .collect();
        let mut parts = name.split('.').map(|part| part.parse().ok());
        Some(((parts.next()??, parts.next()??), format!("GLIBC_{name}")))
    });
    Ok(versions.max())
}

/// In an empty environment, with no cargo to be found: install, look, run the demo.
fn install(wheel: &Path, without_demo: bool) -> Result {
    let folder = root().join("target/wheel-venv");
    let _ = fs::remove_dir_all(&folder);
    let begun = Instant::now();
    let python = folder.join("bin/python");
    let bin = folder.join("bin");
    let bare = |program: &Path| {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("HOME", &folder)
            .env("LANG", "C.UTF-8")
            .current_dir(&folder);
        command
    };
    must(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    if bare(&PathBuf::from("/bin/sh"))
        .args(["-c", "command -v cargo rustc"])
        .status()
        .is_ok_and(|found| found.success())
    {
        return Err("cargo or rustc is in /usr/bin: this would prove nothing".into());
    }
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ];
    must(bare(&python).args(pip).arg(wheel))?;
    must(bare(&bin.join("flatout")).arg("--version"))?;
    must(bare(&python).args(["-c", "import flatout; flatout.step()"]))?;
    // The probe comes out of the program, into another Python.
    must(bare(&bin.join("flatout")).args([
        "run",
        "--",
        "python",
        "-c",
        "import flatout; [flatout.step(samples=4) for _ in range(100)]",
    ]))?;
    if !without_demo {
        must(
            bare(&bin.join("flatout"))
                .args(["demo", "--out"])
                .arg(folder.join("demo")),
        )?;
    }
    eprintln!("installed and run in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_judged_by_their_names() {
        let name = |name: &str| check_name(Path::new(name), Machine::X86);
        assert!(name("flatout-0.1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl").is_ok());
        assert!(name("flatout-0.1.0-py3-none-manylinux_2_36_x86_64.whl").is_err());
        assert!(name("flatout-0.1.0-cp311-cp311-manylinux_2_17_x86_64.whl").is_err());
        assert!(name("flatout-0.1.0-py3-none-linux_x86_64.whl").is_err());
    }

    #[test]
    fn programs_inside_a_program_are_found() {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0rest".to_vec();
        bytes.extend(b"text \x7fELF\x02\x01\x01 more text that is no header");
        let second = bytes.len();
        bytes.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0");
        let found: Vec<usize> = embedded(&bytes).into_iter().map(|(_, at)| at).collect();
        assert_eq!(found, [0, second]);
    }
}
