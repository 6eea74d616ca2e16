//! Copies the pages of one language into a folder that mdBook builds. Pages keep their path below `docs/`; pages of the table of contents
//! that are elsewhere in the repository go to `project/`. Links to files that are no pages lead to the repository's own site.

use super::{files_below, links, markdown};
use crate::Result;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the repository's files can be read.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main");

/// Files of `docs/` that are neither pages nor part of one.
const LEFT_OUT: &[&str] = &["make.sh", "terminal.py"];

pub fn book(root: &Path, language: &str, out: &Path) -> Result {
    let _ = fs::remove_dir_all(out);
    let site = Site::new(root);
    let chinese = language == "zh-CN";
    let folder = Path::new(if chinese { "docs/zh-CN" } else { "docs" });
    for path in site.files(root, folder, chinese) {
        // The theme belongs to both books.
        let inside = path
            .strip_prefix(folder)
            .or(path.strip_prefix("docs"))
            .unwrap_or(&path);
        let target = out.join(if path.starts_with("docs") {
            renamed(inside)
        } else {
            Path::new("project").join(&path)
        });
        let parent = target.parent().unwrap_or(out);
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        let failed = |error| format!("{}: {error}", path.display());
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(root.join(&path)).map_err(failed)?;
            fs::write(&target, site.relinked(&path, &text)).map_err(failed)?;
        } else if path.ends_with("theme/language.js") {
            let text = fs::read_to_string(root.join(&path)).map_err(failed)?;
            fs::write(&target, text.replace("[/* pages */]", &site.in_both_languages())).map_err(failed)?;
        } else {
            fs::copy(root.join(&path), &target).map_err(failed)?;
        }
    }
    Ok(())
}

struct Site {
    /// Pages of both tables of contents, by their path from the root.
    pages: BTreeSet<PathBuf>,
}

impl Site {
    fn new(root: &Path) -> Self {
        let mut pages = BTreeSet::new();
        for summary in ["docs/SUMMARY.md", "docs/zh-CN/SUMMARY.md"] {
            let text = fs::read_to_string(root.join(summary)).unwrap_or_default();
            let targets = markdown::links(&text);
            pages.extend(
                targets
                    .iter()
                    .filter_map(|link| links::resolve(Path::new(summary), &link.target)),
            );
        }
        Self { pages }
    }

    /// The files of a book: those of its folder, and pages of its table of contents from elsewhere.
    fn files(&self, root: &Path, folder: &Path, chinese: bool) -> Vec<PathBuf> {
        let theme = if chinese {
            files_below(&root.join("docs/theme"))
        } else {
            Vec::new()
        };
        let own = files_below(&root.join(folder))
            .into_iter()
            .chain(theme)
            .filter_map(|path| Some(path.strip_prefix(root).ok()?.to_path_buf()))
            .filter(|path| chinese || !path.starts_with("docs/zh-CN"))
            .filter(|path| !LEFT_OUT.iter().any(|name| path.ends_with(name)));
        let elsewhere = self
            .pages
            .iter()
            .filter(|path| !chinese && !path.starts_with("docs"))
            .cloned();
        own.chain(elsewhere).collect()
    }

    /// Where a file of the repository is on the site, if it is there.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        if let Ok(inside) = path.strip_prefix("docs") {
            return (!is_page || self.pages.contains(path)).then(|| renamed(inside));
        }
        self.pages.contains(path).then(|| Path::new("project").join(path))
    }

    /// The page with links that work on the site.
    fn relinked(&self, path: &Path, text: &str) -> String {
        let mut text = text.to_owned();
        for link in markdown::links(&text).iter().rev() {
            if links::is_elsewhere(&link.target) || link.target.starts_with('#') {
                continue;
            }
            let (file, anchor) = match link.target.split_once('#') {
                Some((file, anchor)) => (file, format!("#{anchor}")),
                None => (link.target.as_str(), String::new()),
            };
            let Some(wanted) = links::resolve(path, file) else {
                continue;
            };
            let summary = path.ends_with("SUMMARY.md");
            let here = if summary {
                path.strip_prefix("docs").ok().map(Path::to_path_buf)
            } else {
                self.place(path)
            };
            let new = match (self.place(&wanted), here) {
                (Some(there), Some(here)) => {
                    let relative = relative(&here, &there);
                    // mdBook knows the pages of one book only.
                    let other_book = here.starts_with("zh-CN") != there.starts_with("zh-CN");
                    match relative.strip_suffix(".md") {
                        Some(stem) if other_book => format!("{stem}.html"),
                        _ => relative,
                    }
                }
                _ => format!("{REPOSITORY}/{}", wanted.display()),
            };
            text.replace_range(link.start..link.start + link.target.len(), &(new + &anchor));
        }
        text
    }

    /// The pages that exist in English and Chinese, as a list in JavaScript.
    fn in_both_languages(&self) -> String {
        let pages: Vec<String> = self
            .pages
            .iter()
            .filter_map(|path| path.strip_prefix("docs/zh-CN").ok())
            .filter(|path| self.pages.contains(&Path::new("docs").join(path)))
            .map(|path| renamed(path).with_extension("html").display().to_string())
            .collect();
        serde_json::to_string(&pages).unwrap_or_else(|_| "[]".into())
    }
}

/// mdBook's name of a page: `README.md` is the index of its folder.
fn renamed(path: &Path) -> PathBuf {
    if path.ends_with("README.md") {
        path.with_file_name("index.md")
    } else {
        path.to_path_buf()
    }
}

/// The relative path from one file to another.
fn relative(from: &Path, to: &Path) -> String {
    let from: Vec<_> = from.parent().unwrap_or(Path::new("")).components().collect();
    let to: Vec<_> = to.components().collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - common);
    let down = to[common..]
        .iter()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_links_that_leave_the_book() {
        let pages = [
            "docs/guide/run.md",
            "docs/README.md",
            "docs/zh-CN/guide/run.md",
            "benches/results/a.md",
        ];
        let site = Site {
            pages: pages.iter().map(PathBuf::from).collect(),
        };
        let text = "[a](../../benches/results/a.md) [i](../README.md#x) [z](../zh-CN/guide/run.md) [e](../../examples/e.py) [p](../pictures/p.png) [h](#h)";
        assert_eq!(
            site.relinked(Path::new("docs/guide/run.md"), text),
            format!(
                "[a](../project/benches/results/a.md) [i](../index.md#x) [z](../zh-CN/guide/run.html) \
                 [e]({REPOSITORY}/examples/e.py) [p](../pictures/p.png) [h](#h)"
            )
        );
        assert_eq!(
            site.relinked(Path::new("docs/zh-CN/guide/run.md"), "[e](../../guide/run.md)"),
            "[e](../../guide/run.html)"
        );
        assert_eq!(site.in_both_languages(), "[\"guide/run.html\"]");
    }
}
