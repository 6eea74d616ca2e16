//! `cargo xtask tag v0.2.0`: whether a release may have this tag. It names the workspace's version, and the changelog has a dated heading for it.

use crate::{Result, root};

const USAGE: &str = "usage: cargo xtask tag vX.Y.Z";

pub fn run(arguments: &[String]) -> Result {
    let [tag] = arguments else {
        return Err(USAGE.to_owned());
    };
    let read = |name: &str| {
        let path = root().join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    check(tag, &read("Cargo.toml")?, &read("CHANGELOG.md")?)
}

fn check(tag: &str, manifest: &str, changelog: &str) -> Result {
    let version = version_of(manifest).ok_or("Cargo.toml has no workspace.package.version")?;
    if tag.strip_prefix('v') != Some(version) {
        return Err(format!(
            "the tag is {tag}, and Cargo.toml has version {version}: set workspace.package.version, or tag v{version}"
        ));
    }
    let start = format!("## [{version}]");
    let heading = changelog.lines().find(|line| line.starts_with(&start));
    match heading.map(|line| line[start.len()..].trim_start_matches([' ', '-']).trim()) {
        None => Err(format!("CHANGELOG.md has no heading `{start} - DATE`")),
        Some(date) if is_date(date) => Ok(()),
        Some(date) => Err(format!(
            "the heading `{start}` of CHANGELOG.md ends with `{date}`: write the day of the release, as 2026-11-30"
        )),
    }
}

/// `version` in `[workspace.package]`.
fn version_of(manifest: &str) -> Option<&str> {
    let mut lines = manifest.lines().map(str::trim);
    lines.find(|line| *line == "[workspace.package]")?;
    let mut section = lines.take_while(|line| !line.starts_with('['));
    let value = section.find_map(|line| line.strip_prefix("version")?.trim_start().strip_prefix('='))?;
    value.trim().strip_prefix('"')?.strip_suffix('"')
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits =
        |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[workspace]\n[workspace.package]\nedition = \"2024\"\nversion = \"0.2.0\"\n[profile.dev]\nversion = \"9\"\n";

    #[test]
    fn a_tag_names_the_version_and_its_dated_heading() {
        let dated = "# Changelog\n\n## [0.2.0] - 2026-11-30\n\n## [0.1.0] - 2026-01-01\n";
        assert_eq!(check("v0.2.0", MANIFEST, dated), Ok(()));
        assert!(
            check("v0.1.0", MANIFEST, dated)
                .unwrap_err()
                .contains("version 0.2.0")
        );
        assert!(check("0.2.0", MANIFEST, dated).is_err());
        let unreleased = dated.replace("2026-11-30", "Unreleased");
        assert!(
            check("v0.2.0", MANIFEST, &unreleased)
                .unwrap_err()
                .contains("Unreleased")
        );
        let other = dated.replace("## [0.2.0]", "## [0.3.0]");
        assert!(
            check("v0.2.0", MANIFEST, &other)
                .unwrap_err()
                .contains("no heading")
        );
    }

    #[test]
    fn the_workspace_has_a_version() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(version_of(&manifest).is_some_and(|version| version.split('.').count() == 3));
    }
}
