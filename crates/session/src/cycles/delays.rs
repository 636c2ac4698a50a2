//! The delays of a thread's longest cycles.

use punctual_core::cycle::{Cycle, task_label};
use punctual_core::format;
use punctual_core::{Cell, Column, Split, Table};
use punctual_explain::cycles::{CallNames, find_delay};
use std::cmp::Reverse;

/// A row for each of these cycles, with the parts longer than in a typical one; `None` without any.
pub fn delay_table<'c>(
    longest: impl Iterator<Item = &'c Cycle>,
    typical: &Split,
    calls: &CallNames,
) -> Option<Table> {
    let row = |cycle: &Cycle| {
        let delay = find_delay(cycle, typical)?;
        let own_call_text = delay.own_call.map(|call| match calls.get(&call) {
            Some(name) => format!("its own {name}()"),
            None => format!("its own system call {call}"),
        });
        let culprit_text = delay.by.map(|by| {
            let likely = if by.likely { "likely " } else { "" };
            format!("{likely}{}", task_label(by.name, by.tid))
        });
        Some(vec![
            Cell::from(cycle.response_time()),
            Cell::from(delay.part.words()),
            Cell::from(delay.time),
            culprit_text
                .or(own_call_text)
                .map_or(Cell::Nothing, |by| Cell::from(format::escape_unsafe(&by))),
        ])
    };
    // The longest are kept without the overrun of the cycle before; the rows show all of it.
    let mut longest: Vec<&Cycle> = longest.collect();
    longest.sort_by_key(|cycle| Reverse(cycle.response_time()));
    let rows: Vec<_> = longest.into_iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Table {
        name: "delays".to_owned(),
        title: "what delayed the longest cycles".to_owned(),
        columns: vec![
            Column::new("response", "ns"),
            Column::new("cause", ""),
            Column::new("longer than typical", "ns"),
            Column::new("by", ""),
        ],
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::cycle_at;
    use super::*;
    use punctual_core::cycle::{AwaitedWaker, CycleCulprit, TaskComm, WokenBy};
    use punctual_core::{CauseKind, MonotonicNs, Nanos};

    fn calls() -> CallNames {
        [(230, "clock_nanosleep".to_owned())].into()
    }

    #[test]
    fn the_delay_of_a_cycle_is_its_excess_over_the_typical_one() {
        let typical = cycle_at(0);
        assert_eq!(delay_table([&typical].into_iter(), &typical.total_split(), &calls()), None);
        let mut delayed = cycle_at(1_000_000);
        delayed.run.add(CauseKind::Waiting, Nanos(50_000));
        let by =
            |name: &[u8; 16], by, time| AwaitedWaker { by, tid: 9, name: TaskComm(*name), time };
        let peer = b"peer\0\0\0\0\0\0\0\0\0\0\0\0";
        let words = |one: &Cycle| {
            let table = delay_table([one].into_iter(), &typical.total_split(), &calls())
                .expect("it was delayed");
            let row = &table.rows[0];
            assert_eq!(row[1..3], [Cell::from("waiting"), Cell::from(Nanos(50_000))]);
            row[3].clone()
        };
        assert_eq!(words(&delayed), Cell::Nothing);
        delayed.awaited = Some(by(peer, WokenBy::Task, Nanos(40_000)));
        assert_eq!(words(&delayed), Cell::from("peer-9"));
        // The longest response first, including the overrun of the cycle before.
        let mut late = delayed;
        late.release = MonotonicNs(late.release.ns() - 900_000);
        late.wake.add(CauseKind::Overrun, Nanos(900_000));
        let both = delay_table([&delayed, &late].into_iter(), &typical.total_split(), &calls())
            .expect("delayed");
        assert_eq!(both.rows[0][0], Cell::from(late.response_time()));
        // Less than half of it, and one that was only interrupted.
        delayed.awaited = Some(by(peer, WokenBy::Task, Nanos(20_000)));
        assert_eq!(words(&delayed), Cell::Nothing);
        delayed.awaited = Some(by(peer, WokenBy::Irq, Nanos(50_000)));
        assert_eq!(words(&delayed), Cell::Nothing);
        // The thread's own sleep has the name of the call; that of a shorter call would be another.
        delayed.awaited = Some(by(peer, WokenBy::Sleep, Nanos(50_000)));
        assert_eq!(words(&delayed), Cell::Nothing);
        for (call, time, expected) in [
            (230, 50_200, Cell::from("its own clock_nanosleep()")),
            (7, 50_200, Cell::from("its own system call 7")),
            (230, 40_000, Cell::Nothing),
        ] {
            delayed.longest_call = Some((call, Nanos(time)));
            assert_eq!(words(&delayed), expected);
        }
    }

    #[test]
    fn a_timeout_is_attributed_to_the_call_of_the_same_length() {
        let typical = cycle_at(0);
        let calls = CallNames::from([(45, "recvfrom".to_owned())]);
        let by = |part, call| {
            let mut late = cycle_at(1_000_000);
            late.run.add(part, Nanos(4_000_000));
            late.longest_call = call;
            let table = delay_table([&late].into_iter(), &typical.total_split(), &calls);
            table.expect("it was delayed").rows[0][3].clone()
        };
        let whole = Some((45, Nanos(4_000_000)));
        assert_eq!(by(CauseKind::Timeout, whole), Cell::from("its own recvfrom()"));
        assert_eq!(by(CauseKind::Timeout, Some((45, Nanos(1_000)))), Cell::Nothing);
        assert_eq!(by(CauseKind::Timeout, None), Cell::Nothing);
        assert_eq!(by(CauseKind::Waiting, whole), Cell::Nothing);
    }

    #[test]
    fn a_culprit_of_unattributed_time_is_named_as_likely() {
        let typical = cycle_at(0);
        let by = |one: &Cycle| {
            let table = delay_table([one].into_iter(), &typical.total_split(), &calls())
                .expect("it was delayed");
            table.rows[0][3].clone()
        };
        let name = TaskComm(*b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0");
        let ran = |ns| Some(CycleCulprit { tid: 9, name, time: Nanos(ns), behind: Nanos(ns) });
        let mut hidden = cycle_at(1_000_000);
        hidden.run.add(CauseKind::Unknown, Nanos(90_000));
        assert_eq!(by(&hidden), Cell::Nothing);
        hidden.likely = ran(80_000);
        assert_eq!(by(&hidden), Cell::from("likely hog-9"));
        hidden.likely = ran(30_000);
        assert_eq!(by(&hidden), Cell::Nothing, "it does not explain the time");
        let mut shared = cycle_at(1_000_000);
        shared.run.add(CauseKind::Runqueue, Nanos(90_000));
        shared.culprit = ran(30_000);
        assert_eq!(by(&shared), Cell::from("hog-9"));
        shared.culprit = ran(3_000);
        assert_eq!(by(&shared), Cell::Nothing);
    }
}
