//! The ranks' collectives side by side: how long each rank waited for the last one to arrive, and how long it transferred.
//!
//! The n-th collective of one rank is the n-th of every other. With arrivals `a` and ends `e` of one collective, rank `i` waits
//! `min(max(a) - a[i], e[i] - a[i])` and transfers for the rest, so the two add up to the collective's time. All stamps come from
//! one machine's monotonic clock. The last rank was late by `max(a)` minus the median of the others' arrivals.

use crate::ring::{CollectiveMessage, Stamp};
use flatout_core::Place;
use flatout_record::EventKind;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Collectives that no rank leaves before the last one has arrived.
const MEETINGS: [&str; 6] = [
    "ddp-gradients",
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "barrier",
];
/// Arrivals are known to about this; on a busy machine DistributedDataParallel's are not known better.
const SLACK_NS: u64 = 500_000;
/// Collectives of a rank that wait for the others' stamps. Beyond this the oldest are given up.
const MOST_PENDING: usize = 4096;

#[derive(Default)]
pub struct Collectives {
    /// By process.
    members: BTreeMap<u32, Member>,
}

/// One rank of this machine.
#[derive(Default)]
struct Member {
    world: u32,
    /// Ranks on this machine, where the launcher tells.
    local: Option<u32>,
    sites: HashMap<u64, Site>,
    /// Number of the next collective to read.
    next: u64,
    /// Collectives that the other ranks have no stamp of: this rank's numbers are ahead by so many.
    ahead: u64,
    pending: VecDeque<Stamp>,
    sums: BTreeMap<u64, Sum>,
}

/// A line that calls a collective.
#[derive(Clone, Debug)]
pub struct Site {
    pub op: String,
    pub place: Option<Place>,
    is_async: bool,
    device: bool,
}

/// What a line's collectives took since they were last told.
#[derive(Default)]
struct Sum {
    count: u64,
    aligned: u64,
    all_ns: u64,
    wait_ns: u64,
    transfer_ns: u64,
    last: u64,
    late_ns: u64,
    ranks: u32,
}

impl Site {
    /// Whether no rank leaves it before the last one has arrived.
    fn is_meeting(&self) -> bool {
        !self.is_async && !self.device && MEETINGS.contains(&self.op.as_str())
    }
}

impl Member {
    /// The number that the next pending collective has on every rank.
    fn front(&self) -> Option<u64> {
        let stamp = self.pending.front()?;
        Some(stamp.number.saturating_sub(self.ahead))
    }
}

impl Collectives {
    /// A process joined the default process group.
    pub fn join(&mut self, pid: u32, world: u32, local: Option<u32>) {
        let member = Member {
            world,
            local,
            next: 1,
            ..Member::default()
        };
        self.members.entry(pid).or_insert(member);
    }

    pub fn learn(&mut self, pid: u32, told: CollectiveMessage) {
        if let Some(member) = self.members.get_mut(&pid) {
            let site = Site {
                op: told.op,
                place: told.place,
                is_async: told.is_async,
                device: told.device,
            };
            member.sites.insert(told.site, site);
        }
    }

    pub fn leave(&mut self, pid: u32) {
        self.members.remove(&pid);
    }

    /// The line behind a number that a process gave.
    pub fn site(&self, pid: u32, site: u64) -> Option<&Site> {
        self.members.get(&pid)?.sites.get(&site)
    }

    /// The first collective of a process that was not read yet.
    pub fn next_of(&self, pid: u32) -> Option<u64> {
        self.members.get(&pid).map(|member| member.next)
    }

    /// What a process stamped since.
    pub fn add(&mut self, pid: u32, stamps: Vec<Stamp>) {
        let Some(member) = self.members.get_mut(&pid) else {
            return;
        };
        for stamp in stamps {
            member.next = stamp.number.saturating_add(1);
            let sum = member.sums.entry(stamp.site).or_default();
            sum.count += 1;
            sum.all_ns = sum.all_ns.saturating_add(stamp.left_ns - stamp.arrived_ns);
            member.pending.push_back(stamp);
            if member.pending.len() > MOST_PENDING {
                member.pending.pop_front();
            }
        }
    }

    /// Compares the collectives that every rank has stamped.
    pub fn align(&mut self) {
        let expected = |member: &Member| member.local.unwrap_or(member.world).min(member.world) as usize;
        let all = self.members.len();
        // The others' stamps are still to come.
        if all < 2 || self.members.values().any(|member| expected(member) > all) {
            return;
        }
        loop {
            let numbers = self.members.values().map(Member::front);
            let Some(numbers) = numbers.collect::<Option<Vec<u64>>>() else {
                return;
            };
            let number = numbers.iter().copied().max().unwrap_or(0);
            if numbers.iter().all(|other| *other == number) {
                if !self.drop_unmatched() {
                    self.compare();
                }
                continue;
            }
            // A rank's stamp was overwritten before it was read: the others have nothing to compare theirs with.
            for member in self.members.values_mut() {
                while member.front().is_some_and(|front| front < number) {
                    member.pending.pop_front();
                }
            }
        }
    }

    /// Takes out a stamp that cannot be of the same collective as the others': its rank left before another one arrived. The others did
    /// not stamp it, so from now on this rank's numbers are ahead of theirs.
    fn drop_unmatched(&mut self) -> bool {
        let fronts = || {
            let members = self.members.values();
            members.filter_map(|member| {
                let stamp = member.pending.front()?;
                Some((stamp, member.sites.get(&stamp.site)))
            })
        };
        let op = |site: Option<&Site>| site.map(|site| site.op.clone());
        let ops: Vec<Option<String>> = fronts().map(|(_, site)| op(site)).collect();
        let meets = fronts().all(|(_, site)| site.is_some_and(Site::is_meeting));
        let latest = fronts().map(|(stamp, _)| stamp.arrived_ns).max().unwrap_or(0);
        let earliest = fronts().map(|(stamp, _)| stamp.left_ns).min().unwrap_or(0);
        let impossible = meets && earliest.saturating_add(SLACK_NS) < latest;
        let known: Vec<&String> = ops.iter().flatten().collect();
        if !impossible && known.windows(2).all(|pair| pair[0] == pair[1]) {
            return false;
        }
        let first = self
            .members
            .values_mut()
            .min_by_key(|member| member.pending.front().map_or(u64::MAX, |stamp| stamp.left_ns));
        if let Some(member) = first {
            member.pending.pop_front();
            member.ahead += 1;
        }
        true
    }

    /// Compares the first pending collective of all members, and takes it out.
    fn compare(&mut self) {
        let ranks = self.members.len() as u32;
        let mut arrivals: Vec<u64> = Vec::with_capacity(self.members.len());
        arrivals.extend(
            self.members
                .values()
                .filter_map(|member| member.pending.front())
                .map(|stamp| stamp.arrived_ns),
        );
        let Some(latest) = arrivals.iter().copied().max() else {
            return;
        };
        arrivals.sort_unstable();
        arrivals.pop();
        // Of an even number the earlier one of the two in the middle.
        let median = arrivals[(arrivals.len() - 1) / 2];
        let mut found_last = false;
        for member in self.members.values_mut() {
            let Some(stamp) = member.pending.pop_front() else {
                continue;
            };
            let sum = member.sums.entry(stamp.site).or_default();
            let took = stamp.left_ns - stamp.arrived_ns;
            let waited = (latest - stamp.arrived_ns).min(took);
            sum.aligned += 1;
            sum.ranks = ranks;
            sum.wait_ns = sum.wait_ns.saturating_add(waited);
            sum.transfer_ns = sum.transfer_ns.saturating_add(took - waited);
            if stamp.arrived_ns == latest && !found_last {
                found_last = true;
                sum.last += 1;
                sum.late_ns = sum.late_ns.saturating_add(latest - median);
            }
        }
    }

    /// What a process's collectives took since it was last asked.
    pub fn events_of(&mut self, pid: u32) -> Vec<EventKind> {
        let Some(member) = self.members.get_mut(&pid) else {
            return Vec::new();
        };
        let sums = std::mem::take(&mut member.sums);
        let (sites, world) = (&member.sites, member.world);
        let event = |(number, sum): (u64, Sum)| {
            let site = sites.get(&number)?;
            let ms = |ns: u64| (ns / 1000) as f64 / 1e3;
            // The host only starts these.
            let blocks = !site.is_async && !site.device && sum.aligned > 0;
            Some(EventKind::Collective {
                op: site.op.clone(),
                place: site.place.clone(),
                count: sum.count,
                aligned: sum.aligned,
                ms: ms(sum.all_ns),
                wait_ms: blocks.then(|| ms(sum.wait_ns)),
                transfer_ms: blocks.then(|| ms(sum.transfer_ns)),
                last: sum.last,
                late_ms: ms(sum.late_ns),
                ranks: sum.ranks,
                world,
            })
        };
        sums.into_iter().filter_map(event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(number: u64, arrived_ms: u64, left_ms: u64) -> Stamp {
        Stamp {
            number,
            site: 1,
            arrived_ns: arrived_ms * 1_000_000,
            left_ns: left_ms * 1_000_000,
        }
    }

    fn group(ranks: u32) -> Collectives {
        let mut group = Collectives::default();
        for pid in 0..ranks {
            group.join(pid, ranks, None);
            let told = CollectiveMessage {
                site: 1,
                op: "all_reduce".into(),
                place: None,
                is_async: false,
                device: false,
            };
            group.learn(pid, told);
        }
        group
    }

    /// Aligned, all, waiting, transferring, times last, late.
    fn told(group: &mut Collectives, pid: u32) -> (u64, f64, f64, f64, u64, f64) {
        match group.events_of(pid).remove(0) {
            EventKind::Collective {
                aligned,
                ms,
                wait_ms,
                transfer_ms,
                last,
                late_ms,
                ..
            } => (aligned, ms, wait_ms.unwrap(), transfer_ms.unwrap(), last, late_ms),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn waits_until_the_last_rank_arrives_and_transfers_after_that() {
        let mut group = group(3);
        for (pid, arrived) in [(0, 10), (1, 12), (2, 50)] {
            group.add(pid, vec![stamp(1, arrived, 56)]);
        }
        group.align();
        assert_eq!(told(&mut group, 0), (1, 46.0, 40.0, 6.0, 0, 0.0));
        assert_eq!(told(&mut group, 1), (1, 44.0, 38.0, 6.0, 0, 0.0));
        assert_eq!(told(&mut group, 2), (1, 6.0, 0.0, 6.0, 1, 40.0));
        assert!(group.events_of(2).is_empty());
    }

    #[test]
    fn nobody_waits_longer_than_the_collective_took() {
        // The root of a broadcast does not wait for those that receive.
        let mut group = group(2);
        let sites = group
            .members
            .values_mut()
            .flat_map(|member| member.sites.values_mut());
        sites.for_each(|site| site.op = "broadcast".into());
        group.add(0, vec![stamp(1, 10, 11)]);
        group.add(1, vec![stamp(1, 40, 42)]);
        group.align();
        assert_eq!(told(&mut group, 0), (1, 1.0, 1.0, 0.0, 0, 0.0));
    }

    #[test]
    fn skips_what_one_rank_lost() {
        let mut group = group(2);
        group.add(0, vec![stamp(1, 1, 2), stamp(2, 3, 4), stamp(3, 5, 9)]);
        group.add(1, vec![stamp(3, 8, 9)]);
        group.align();
        assert_eq!(told(&mut group, 0), (1, 6.0, 3.0, 1.0, 0, 0.0));
        assert_eq!(told(&mut group, 1), (1, 1.0, 0.0, 1.0, 1, 3.0));
    }

    #[test]
    fn finds_back_after_a_collective_that_one_rank_did_not_stamp() {
        let mut group = group(2);
        let step = |number: u64, at: u64| stamp(number, at, at + 5);
        group.add(0, (0..6).map(|n| step(n + 1, 100 * n)).collect());
        // Rank 1 came 3 ms later each time, and has no stamp of the second.
        let late = |(number, n): (u64, u64)| stamp(number, 100 * n + 3, 100 * n + 5);
        let numbers = [(1, 0), (2, 2), (3, 3), (4, 4), (5, 5)];
        group.add(1, numbers.into_iter().map(late).collect());
        group.align();
        let (aligned, _, _, _, last, late_ms) = told(&mut group, 1);
        assert_eq!((aligned, last, late_ms), (5, 5, 15.0));
    }

    #[test]
    fn compares_nothing_before_every_rank_of_the_machine_is_there() {
        let mut group = group(2);
        group.members.values_mut().for_each(|member| member.world = 4);
        group.add(0, vec![stamp(1, 1, 9)]);
        group.add(1, vec![stamp(1, 5, 9)]);
        group.align();
        let event = group.events_of(0).remove(0);
        assert!(matches!(
            event,
            EventKind::Collective {
                aligned: 0,
                wait_ms: None,
                ..
            }
        ));
        // Four ranks on two machines.
        let member = |member: &mut Member| member.local = Some(2);
        group.members.values_mut().for_each(member);
        group.align();
        let event = group.events_of(0).remove(0);
        assert!(matches!(
            event,
            EventKind::Collective {
                aligned: 1,
                ranks: 2,
                world: 4,
                ..
            }
        ));
    }
}
