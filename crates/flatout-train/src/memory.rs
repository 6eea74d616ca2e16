//! How much memory there is for a plan.

use crate::Settings;
use flatout_core::memory::UsableMemory;
use flatout_engine::{Plan, Role, Session};

/// This share of a memory stays free: for the other programs, for the evaluation, for what the driver takes later.
pub const FREE_RATIO: f64 = 0.1;

pub fn leaves_enough(room: UsableMemory) -> bool {
    room.free_bytes as f64 >= FREE_RATIO * room.total_bytes as f64
}

/// What there is beside an open session.
pub fn beside(session: &dyn Session, settings: &Settings) -> Option<UsableMemory> {
    let device = session
        .device_memory()
        .map(|(free_bytes, total_bytes)| UsableMemory {
            free_bytes,
            total_bytes,
        });
    let room = device.or_else(UsableMemory::here);
    match settings.memory_limit {
        None => room,
        Some(limit) => {
            let left = UsableMemory {
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
    fn a_tenth_stays_free() {
        let room = |free_bytes| UsableMemory {
            free_bytes,
            total_bytes: 24_000,
        };
        assert!(leaves_enough(room(12_000)) && !leaves_enough(room(2_000)));
    }
}
