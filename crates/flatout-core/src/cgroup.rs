//! The control groups this process is in, and those above them: what any of them limits is limited.

use std::fs;
use std::path::{Path, PathBuf};

pub struct Group {
    pub folder: PathBuf,
    pub version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// The folders that configure a controller, v2 or v1, innermost first. `root` is `/` except in tests.
pub fn groups(root: &Path, controller: &str) -> Vec<Group> {
    let lines = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    lines
        .lines()
        .filter_map(|line| above(root, controller, line))
        .flatten()
        .collect()
}

fn above(root: &Path, controller: &str, line: &str) -> Option<Vec<Group>> {
    let mounts = root.join("sys/fs/cgroup");
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (mount, version) = if controllers.is_empty() {
        (mounts, Version::Two)
    } else if controllers.split(',').any(|name| name == controller) {
        let joined = mounts.join(controllers);
        let alone = || mounts.join(controller);
        (if joined.is_dir() { joined } else { alone() }, Version::One)
    } else {
        return None;
    };
    let groups = Path::new(path.trim_start_matches('/')).ancestors();
    let group = |relative: &Path| Group {
        folder: mount.join(relative),
        version,
    };
    Some(groups.map(group).collect())
}

/// A made-up machine: its files and their contents.
#[cfg(test)]
pub(crate) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}
