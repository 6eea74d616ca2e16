//! Names of temporary files and folders that contain their owner, so that leftovers of a killed process can be found and removed.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

const MARK: &str = ".flatout-tmp-";

/// Which processes a number means: this boot of this machine, in this container. A folder on a network file system may hold the
/// files of a process that runs on another machine; those are left alone.
static WORLD: LazyLock<String> = LazyLock::new(|| {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbers = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (boot, numbers).hash(&mut hasher);
    format!("{:08x}", hasher.finish() as u32)
});

/// The name of a temporary file that becomes `name`.
pub fn name(name: &OsStr) -> OsString {
    name_of(name, std::process::id())
}

pub(crate) fn name_of(name: &OsStr, process: u32) -> OsString {
    let mut full = name.to_owned();
    full.push(format!("{MARK}{}-{process}", *WORLD));
    full
}

/// `4f2c01aa-1234`: this process.
pub fn owner() -> String {
    format!("{}-{}", *WORLD, std::process::id())
}

/// Whether such an owner was a process of this machine and is gone.
pub fn is_gone(owner: &str) -> bool {
    let Some((world, process)) = owner.split_once('-') else {
        return false;
    };
    let Ok(process) = process.parse::<u32>() else {
        return false;
    };
    world == *WORLD && !is_alive(process)
}

/// There, and not a zombie that nobody waits for.
fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    let state = stat
        .ok()
        .and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Whether this is the name of a temporary file or folder, whoever makes it.
pub fn is_temporary(name: &OsStr) -> bool {
    name.to_string_lossy().contains(MARK)
}

/// Whether this is the name of a temporary file whose writer is gone.
pub(crate) fn is_left(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.rsplit_once(MARK).is_some_and(|(_, owner)| is_gone(owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dead_of_this_machine_are_gone() {
        let process = std::process::id();
        assert!(!is_gone(&owner()));
        assert!(is_gone(&format!("{}-{}", *WORLD, u32::MAX)));
        assert!(!is_gone(&format!("00000000-{}", u32::MAX)));
        assert!(!is_gone("nonsense") && !is_gone("a-b-c"));
        assert!(!is_left(&name_of(OsStr::new("a"), process)));
        assert!(is_left(&name_of(OsStr::new("a"), u32::MAX)));
    }
}
