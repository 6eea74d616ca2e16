//! How much memory there is for a plan. The only place of this crate that reads the machine.

use crate::Settings;
use flatout_engine::{Plan, Role, Session};
use std::fs;
use std::path::Path;

/// This share of a memory stays free: for the other programs, for the evaluation, for what the driver takes later.
pub const FREE_RATIO: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Room {
    pub fn leaves_enough(self) -> bool {
        self.free_bytes as f64 >= FREE_RATIO * self.total_bytes as f64
    }
}

/// The machine's memory, or the cgroup's where that is less. `None` where neither can be read.
pub fn of_machine() -> Option<Room> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = parse_meminfo(&text)?;
    let read = |name: &str| -> Option<u64> {
        let path = Path::new("/sys/fs/cgroup").join(name);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    match (read("memory.max"), read("memory.current")) {
        (Some(limit), Some(used)) if limit < machine.total_bytes => Some(Room {
            free_bytes: machine.free_bytes.min(limit.saturating_sub(used)),
            total_bytes: limit,
        }),
        _ => Some(machine),
    }
}

fn parse_meminfo(text: &str) -> Option<Room> {
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        kib.checked_mul(1024)
    };
    Some(Room {
        free_bytes: field("MemAvailable:")?,
        total_bytes: field("MemTotal:")?,
    })
}

/// What there is beside an open session.
pub fn beside(session: &dyn Session, settings: &Settings) -> Option<Room> {
    let device = session.device_memory().map(|(free_bytes, total_bytes)| Room {
        free_bytes,
        total_bytes,
    });
    let room = device.or_else(of_machine);
    match settings.memory_limit {
        None => room,
        Some(limit) => {
            let left = Room {
                free_bytes: limit.saturating_sub(session.memory_bytes()),
                total_bytes: limit,
            };
            Some(room.map_or(left, |room| {
                if room.free_bytes < left.free_bytes {
                    room
                } else {
                    left
                }
            }))
        }
    }
}

/// The buffers of a plan in f32, tables not counted: what the machine must hold at least.
pub fn plan_bytes(plan: &Plan) -> u64 {
    let buffers = plan.buffers().iter().filter(|buffer| buffer.role != Role::Table);
    buffers.fold(0u64, |sum, buffer| {
        let values = buffer
            .shape
            .iter()
            .fold(4u64, |length, &size| length.saturating_mul(size as u64));
        sum.saturating_add(values)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_its_memory() {
        let text = "MemTotal:       24000 kB\nMemFree:  1 kB\nMemAvailable:   12000 kB\n";
        let room = parse_meminfo(text).unwrap();
        assert_eq!((room.free_bytes, room.total_bytes), (12000 * 1024, 24000 * 1024));
        assert!(room.leaves_enough());
        assert!(parse_meminfo("MemTotal: many kB").is_none());
        let here = of_machine().unwrap();
        assert!(here.free_bytes <= here.total_bytes && here.free_bytes > 0);
    }
}
