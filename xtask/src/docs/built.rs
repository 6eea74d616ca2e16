//! Checks the site that was built: every relative link of every page leads to a file, every anchor to an element.

use super::{files_below, normal};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages of mdBook's own: all pages as one, and the page for a wrong address.
const OWN: &[&str] = &["print.html", "404.html", "toc.html"];

/// The number of pages, or what is wrong with them.
pub fn check(site: &Path) -> Result<usize, Vec<String>> {
    let pages: BTreeMap<PathBuf, String> = files_below(site)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "html"))
        .filter(|path| !OWN.iter().any(|name| path.ends_with(name)))
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            Some((path.strip_prefix(site).ok()?.to_path_buf(), text))
        })
        .collect();
    let mut problems = Vec::new();
    for (path, text) in &pages {
        for target in targets(text) {
            if !leads_somewhere(site, &pages, path, &target) {
                problems.push(format!("{}: {target}", path.display()));
            }
        }
    }
    if pages.is_empty() {
        problems.push("no pages were built".into());
    }
    if problems.is_empty() {
        Ok(pages.len())
    } else {
        Err(problems)
    }
}

fn targets(text: &str) -> Vec<String> {
    let main = text.split("<main>").nth(1).unwrap_or(text);
    let main = main.split("</main>").next().unwrap_or(main);
    ["href=\"", "src=\""]
        .iter()
        .flat_map(|attribute| main.split(attribute).skip(1))
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

fn leads_somewhere(site: &Path, pages: &BTreeMap<PathBuf, String>, from: &Path, target: &str) -> bool {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match (file.is_empty(), from.parent()) {
        (true, _) => Some(from.to_path_buf()),
        (false, Some(folder)) => normal(&folder.join(file)),
        (false, None) => None,
    };
    let Some(path) = path else {
        return false;
    };
    if anchor.is_empty() {
        return site.join(path).is_file();
    }
    let anchor = decoded(anchor);
    pages
        .get(&path)
        .is_some_and(|text| text.contains(&format!("id=\"{anchor}\"")))
}

/// Undoes percent encoding.
fn decoded(anchor: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = anchor.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
