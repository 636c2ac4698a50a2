//! A typical cycle of a thread beside its longest one, broken down by cause.

use punctual_core::cycle::Cycle;
use punctual_core::{Cell, Column, MAIN_PARTS, Nanos, Split, Table};

/// The number of cycles whose median is the typical one.
const KEPT_CYCLES: usize = 64;

/// Some equally spaced cycles, and the longest.
#[derive(Default)]
pub struct TypicalCycles {
    some: Vec<Cycle>,
    longest: Option<Cycle>,
    seen: u64,
    /// The exponent of the spacing: multiples of two to the power of this are kept.
    stride: u32,
}

impl TypicalCycles {
    pub fn add(&mut self, cycle: &Cycle) {
        if self.longest.is_none_or(|longest| cycle.response_time() > longest.response_time()) {
            self.longest = Some(*cycle);
        }
        let is_one = self.seen.trailing_zeros() >= self.stride;
        self.seen += 1;
        if !is_one {
            return;
        }
        if self.some.len() == KEPT_CYCLES {
            let mut number = 0;
            self.some.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride += 1;
        }
        self.some.push(*cycle);
    }

    pub(crate) fn typical_cycle(&self) -> Option<Cycle> {
        let mut sorted_cycles = self.some.clone();
        sorted_cycles.sort_by_key(Cycle::response_time);
        sorted_cycles.get(sorted_cycles.len() / 2).copied()
    }

    /// The time of each cause in both.
    pub fn to_table(&self) -> Option<Table> {
        let (typical, longest) = (self.typical_cycle()?, self.longest?);
        let splits: [(&str, [Split; 2]); 2] =
            [("wake-up", [typical.wake, longest.wake]), ("after it", [typical.run, longest.run])];
        let mut rows = Vec::new();
        for (phase, both) in splits {
            for part in MAIN_PARTS {
                let times = both.map(|split| split.time_of(*part));
                if times.iter().any(|time| *time > Nanos::ZERO) {
                    let words = [phase, part.words()].map(Cell::from);
                    rows.push(words.into_iter().chain(times.map(Cell::from)).collect());
                }
            }
        }
        Some(Table {
            name: "typical-and-longest".to_owned(),
            title: "a typical cycle beside the longest one".to_owned(),
            columns: vec![
                Column::new("when", ""),
                Column::new("cause", ""),
                Column::new("typical", "ns"),
                Column::new("longest", "ns"),
            ],
            rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::cycle_at;
    use super::*;
    use punctual_core::CauseKind;

    #[test]
    fn the_typical_cycle_is_the_median_of_all_times() {
        let mut of = TypicalCycles::default();
        assert_eq!(of.to_table(), None);
        for k in 0..10_000 {
            let mut one = cycle_at(1_000_000 * k);
            // From 100 to 199 µs, and one of 900.
            let time = Nanos(if k == 4_321 { 900_000 } else { 100_000 + k % 100 * 1_000 });
            one.run = Split::default();
            one.run.add(CauseKind::OwnExecution, time);
            one.again = one.release + time;
            of.add(&one);
        }
        assert!(
            of.some.len() > KEPT_CYCLES / 2 && of.some.len() <= KEPT_CYCLES,
            "{}",
            of.some.len()
        );
        let typical = of.typical_cycle().unwrap().response_time();
        assert!((Nanos(130_000)..Nanos(170_000)).contains(&typical), "{typical}");
        let table = of.to_table().unwrap();
        let [row] = &table.rows[..] else { panic!("{table:?}") };
        assert_eq!(row[..2], [Cell::from("after it"), Cell::from(CauseKind::OwnExecution.words())]);
        assert_eq!(row[2..], [Cell::from(typical), Cell::from(Nanos(900_000))]);
    }
}
