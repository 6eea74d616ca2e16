//! Checks the links of every Markdown file of the documentation, and that every page can be found.

use super::{files_below, markdown, normal};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with pages, and single pages.
const FOLDERS: &[&str] = &["docs", "benches/results"];

/// A README and the table of contents of the site in its language.
const ENTRIES: &[(&str, &str)] = &[
    ("README.md", "docs/SUMMARY.md"),
    ("README.zh-CN.md", "docs/zh-CN/SUMMARY.md"),
];

/// The headings that links can lead to, by page.
type Anchors = BTreeMap<PathBuf, BTreeSet<String>>;

/// The number of files, or what is wrong with them.
pub fn check(root: &Path) -> Result<usize, Vec<String>> {
    let pages = pages(root);
    // Once per page: hundreds of links lead to the page of the rules.
    let anchors: Anchors = pages
        .iter()
        .map(|(path, text)| (path.clone(), markdown::anchors(text).into_iter().collect()))
        .collect();
    let mut problems = Vec::new();
    for (path, text) in &pages {
        for link in markdown::links(text) {
            if let Err(reason) = resolves(root, &anchors, path, &link.target) {
                problems.push(format!(
                    "{}:{}: {}: {reason}",
                    path.display(),
                    link.line,
                    link.target
                ));
            }
        }
    }
    problems.extend(lost(&pages));
    if problems.is_empty() {
        Ok(pages.len())
    } else {
        Err(problems)
    }
}

/// Every Markdown file by its path from the root.
fn pages(root: &Path) -> BTreeMap<PathBuf, String> {
    let top = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let below = FOLDERS.iter().flat_map(|folder| files_below(&root.join(folder)));
    top.chain(below)
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            Some((path.strip_prefix(root).ok()?.to_path_buf(), text))
        })
        .collect()
}

/// Whether a link leads to a file, and its anchor to a heading. Links to other hosts are not followed.
fn resolves(root: &Path, anchors: &Anchors, from: &Path, target: &str) -> Result<(), String> {
    if is_elsewhere(target) {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        from.to_path_buf()
    } else {
        resolve(from, file).ok_or("leaves the repository")?
    };
    if !root.join(&path).exists() {
        return Err("no such file".into());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let known = anchors
        .get(&path)
        .ok_or("an anchor in a file that is not a page")?;
    if known.contains(anchor) {
        Ok(())
    } else {
        Err("no such heading".into())
    }
}

pub fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The path from the root that a relative link of a page means.
pub fn resolve(from: &Path, target: &str) -> Option<PathBuf> {
    normal(&from.parent()?.join(target))
}

/// Pages of the site that its table of contents leaves out, and pages more than two clicks away from the README.
fn lost(pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut problems = Vec::new();
    for (readme, summary) in ENTRIES {
        let (readme, summary) = (PathBuf::from(readme), PathBuf::from(summary));
        let folder = summary.parent().unwrap_or(Path::new(""));
        let listed = linked(pages, &summary);
        let chinese = folder.ends_with("zh-CN");
        let belongs = |page: &&PathBuf| {
            let page = page.as_path();
            let in_site = ["guide", "concepts", "reference"]
                .iter()
                .any(|part| page.starts_with(folder.join(part)));
            in_site && (chinese || !page.starts_with("docs/zh-CN"))
        };
        for page in pages.keys().filter(belongs) {
            if !listed.contains(page) {
                problems.push(format!("{}: not listed in {}", page.display(), summary.display()));
            }
        }
        let first = linked(pages, &readme);
        let second: BTreeSet<PathBuf> = first.iter().flat_map(|page| linked(pages, page)).collect();
        for page in &listed {
            if !first.contains(page) && !second.contains(page) {
                let readme = readme.display();
                problems.push(format!(
                    "{}: more than two clicks away from {readme}",
                    page.display()
                ));
            }
        }
    }
    problems
}

/// The pages that a page links to.
fn linked(pages: &BTreeMap<PathBuf, String>, page: &Path) -> BTreeSet<PathBuf> {
    let links = pages
        .get(page)
        .map(|text| markdown::links(text))
        .unwrap_or_default();
    links
        .iter()
        .filter(|link| !is_elsewhere(&link.target))
        .filter_map(|link| resolve(page, link.target.split('#').next()?))
        .filter(|path| pages.contains_key(path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_of_the_documentation_is_broken() {
        if let Err(problems) = check(&crate::root()) {
            panic!("{}", problems.join("\n"));
        }
    }

    #[test]
    fn reports_broken_links_and_lost_pages() {
        let root = std::env::temp_dir().join(format!("flatout-links-{}", std::process::id()));
        fs::create_dir_all(root.join("docs/guide")).expect("a temporary folder");
        let write = |name: &str, text: &str| fs::write(root.join(name), text).expect("a file");
        write(
            "README.md",
            "[contents](docs/SUMMARY.md) [gone](docs/gone.md) [out](../../x.md)",
        );
        write("docs/SUMMARY.md", "- [A](guide/a.md)");
        write(
            "docs/guide/a.md",
            "# A\n[up](../../README.md) [no](#b) [yes](#a) [web](https://example.org)",
        );
        write("docs/guide/b.md", "# B");
        let problems = check(&root);
        fs::remove_dir_all(&root).expect("the temporary folder");
        assert_eq!(
            problems.expect_err("broken links"),
            [
                "README.md:1: docs/gone.md: no such file",
                "README.md:1: ../../x.md: leaves the repository",
                "docs/guide/a.md:2: #b: no such heading",
                "docs/guide/b.md: not listed in docs/SUMMARY.md",
            ]
        );
    }
}
