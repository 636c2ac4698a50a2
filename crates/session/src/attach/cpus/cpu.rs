//! One CPU: its entries, its interruptions, its two series.

use super::requirement::{EntryRequirement, Kind};
use crate::attach::watcher::{CpuRow, TopEntry};
use crate::kept::{KeptSeries, shape_within};
use punctual_analyze::SeriesView;
use punctual_analyze::entries::{EntryNames, EntryRow, EntryTable, Interruptions};
use punctual_bundle::meta::{ENTRIES_WORKLOAD, MeasureMeta};
use punctual_bundle::{BundleError, BundleWriter, SeriesMeta};
use punctual_core::cycle::TaskName;
use punctual_core::entry::{Entry, EntryKind, OwnCount, OwnEntry};
use punctual_core::{
    Cell, Clock, Column, CpuSet, Fact, Figure, MonotonicNs, Nanos, Notes, Table, Validation,
};
use punctual_report::format;
use std::collections::BTreeMap;

/// Interruptions are expected within this.
const SPAN: Nanos = Nanos::MILLI;
/// Samples that go into the log of a series.
const KEPT: u64 = 1 << 20;
/// Rows of the table that the bundle holds.
const ROWS: usize = 500;
/// Functions of a stack that stand in a cell.
const FRAMES: usize = 8;

/// A CPU that is measured.
pub struct Cpu {
    number: usize,
    pub table: EntryTable,
    interruptions: Interruptions,
    interruption: KeptSeries,
    entry: KeptSeries,
    away: Nanos,
    notes: Notes,
    /// Entries at the last look.
    shown: u64,
}

impl Cpu {
    /// Begins its series, the first of which has this number in the bundle.
    pub fn begin(
        number: usize,
        writer: &BundleWriter,
        first: usize,
        requirements: &[EntryRequirement],
    ) -> Result<Cpu, BundleError> {
        let begin = |kind: Kind, place| {
            let requirements = requirements.iter().filter_map(|of| of.on(number, kind)).collect();
            let meta = meta(number, kind, requirements);
            let writer = writer.series(0, place, &meta, KEPT)?;
            let mut series = KeptSeries::new(shape_within(SPAN, None), meta, writer);
            series.checkpoint();
            Ok::<_, BundleError>(series)
        };
        Ok(Cpu {
            number,
            table: EntryTable::default(),
            interruptions: Interruptions::default(),
            interruption: begin(Kind::Interruption, first)?,
            entry: begin(Kind::Entry, first + 1)?,
            away: Nanos::ZERO,
            shown: 0,
            notes: Notes::default(),
        })
    }

    pub fn push(&mut self, entry: &Entry) {
        self.table.push(entry);
        if !entry.further {
            let end = entry.begin + entry.own;
            let seq = self.entry.state.data.count();
            self.entry.push(seq, (entry.begin, end), self.number as u32, 0);
        }
        let ended = self.interruptions.push(entry);
        self.interrupted(ended);
    }

    fn interrupted(&mut self, interruption: Option<(MonotonicNs, MonotonicNs)>) {
        if let Some((begin, end)) = interruption {
            self.away += end - begin;
            let seq = self.interruption.state.data.count();
            self.interruption.push(seq, (begin, end), self.number as u32, 0);
        }
    }

    /// Its line in the live view, `elapsed` after the begin and `since` the look before.
    pub fn row(&mut self, top: Option<EntryRow>, elapsed: Nanos, since: Nanos) -> CpuRow {
        let entries = self.table.entries;
        let new = entries - std::mem::replace(&mut self.shown, entries);
        let share = |of: f64, span: Nanos| of / span.as_secs_f64().max(1e-9);
        CpuRow {
            cpu: self.number,
            entries,
            a_second: share(new as f64, since),
            longest: self.interruption.state.data.max,
            interrupted: share(self.away.as_secs_f64(), elapsed),
            top: top.map(|row| TopEntry { what: row.what, originator: row.originator }),
        }
    }

    pub fn checkpoint(&mut self) {
        self.interruption.checkpoint();
        self.entry.checkpoint();
    }

    /// Takes the last interruption in and saves everything for good. `lost` entries found no room.
    pub fn finish(&mut self, lost: u64) {
        let last = self.interruptions.finish();
        self.interrupted(last);
        for series in [&mut self.interruption, &mut self.entry] {
            series.state.data.losses.dropped = lost;
            series.finish();
        }
    }

    /// What is known of it at the end.
    pub fn describe(
        &mut self,
        names: &EntryNames,
        own: &[OwnCount],
        calls: &BTreeMap<u32, String>,
        took: Nanos,
        steal: Option<f64>,
        validations: Vec<Validation>,
    ) -> Vec<EntryRow> {
        let rows = self.table.rows(names);
        let own: Vec<&OwnCount> =
            own.iter().filter(|one| one.cpu as usize == self.number).collect();
        self.notes = Notes {
            validations,
            clock_cost: Fact::NotAsked,
            figures: self.figures(took, steal),
            tables: entries(&rows).into_iter().chain(own_entries(&own, calls)).collect(),
            ..Notes::default()
        };
        rows
    }

    fn figures(&self, took: Nanos, steal: Option<f64>) -> Vec<Figure> {
        let (table, interruptions) = (&self.table, self.interruption.state.data.count());
        let a_second = table.entries as f64 / took.as_secs_f64().max(1e-9);
        let share = self.away.ns() as f64 / took.ns().max(1) as f64;
        let mut figures = vec![
            Figure::new("entries", "entries into the kernel", table.entries as f64, "count"),
            Figure::new("entry-rate", "entries a second", a_second, "per-second").of(table.entries),
            Figure::new("entries-idle", "of these to an idle CPU", table.idle as f64, "count"),
            Figure::new("entry-time", "time of all entries", table.total.ns() as f64, "ns"),
            Figure::new("longest-entry", "longest entry", table.longest.ns() as f64, "ns"),
            Figure::new(
                "away-time",
                "time that tasks were interrupted",
                self.away.ns() as f64,
                "ns",
            )
            .of(interruptions),
            Figure::new("away-share", "share of the time", share, "ratio"),
        ];
        figures.extend(
            steal.map(|steal| {
                Figure::new("steal", "steal time, which has no event", steal, "ratio")
            }),
        );
        figures
    }

    /// As a measure of the bundle.
    pub fn measure(&self) -> MeasureMeta {
        MeasureMeta {
            name: label(self.number),
            workload: ENTRIES_WORKLOAD.to_owned(),
            parameters: BTreeMap::from([("cpu".to_owned(), self.number.to_string())]),
            series: [&self.interruption, &self.entry].map(|of| of.meta.name.clone()).to_vec(),
            notes: self.notes.clone(),
        }
    }

    /// Its series as the analysis wants them.
    pub fn views(&self) -> impl Iterator<Item = SeriesView<'_>> {
        [&self.interruption, &self.entry].into_iter().map(KeptSeries::view)
    }

    /// The first thing that went wrong with its files.
    pub fn trouble(&self) -> Option<&BundleError> {
        self.interruption.trouble().or(self.entry.trouble())
    }
}

fn label(cpu: usize) -> String {
    format!("cpu{cpu}")
}

fn meta(cpu: usize, kind: Kind, requirements: Vec<String>) -> SeriesMeta {
    SeriesMeta {
        name: format!("{}/{}", label(cpu), kind.word()),
        measure: label(cpu),
        workload: ENTRIES_WORKLOAD.to_owned(),
        clock: Clock::Monotonic,
        cpus: CpuSet::single(cpu),
        scheduling: "none: no thread measures".to_owned(),
        real_time: true,
        period: None,
        tid: None,
        requirements,
        details: BTreeMap::new(),
    }
}

fn entries(rows: &[EntryRow]) -> Option<Table> {
    let row = |row: &EntryRow| {
        let number = |value: Option<u32>| value.map_or(Cell::Nothing, |n| Cell::from(u64::from(n)));
        let stack = row.stack.iter().take(FRAMES).cloned().collect::<Vec<_>>().join(" < ");
        vec![
            Cell::from(format::plain(&row.what)),
            Cell::from(format::plain(&row.originator)),
            Cell::from(row.entries),
            Cell::from(row.longest),
            Cell::from(row.total),
            Cell::from(row.kind.id()),
            row.through.as_ref().map_or(Cell::Nothing, |of| Cell::from(format::plain(of))),
            number(row.by_cpu),
            number(row.by_tid),
            Cell::from(row.further),
            Cell::from(format::plain(&stack)),
        ]
    };
    (!rows.is_empty()).then(|| Table {
        name: "entries".to_owned(),
        title: "entries into the kernel, and who caused them".to_owned(),
        columns: vec![
            Column::new("what", ""),
            Column::new("originator", ""),
            Column::new("entries", "count"),
            Column::new("longest", "ns"),
            Column::new("total", "ns"),
            Column::new("kind", ""),
            Column::new("through", ""),
            Column::new("by CPU", "number"),
            Column::new("by thread", "id"),
            Column::new("in other entries", "count"),
            Column::new("stack", ""),
        ],
        rows: rows.iter().take(ROWS).map(row).collect(),
    })
}

/// By task and call, those that came most often first.
fn own_entries(own: &[&OwnCount], calls: &BTreeMap<u32, String>) -> Option<Table> {
    let mut sums: BTreeMap<(TaskName, OwnEntry), (u64, u32)> = BTreeMap::new();
    for one in own {
        let sum = sums.entry((one.name, one.what)).or_default();
        *sum = (sum.0 + one.count, one.tid);
    }
    let mut all: Vec<_> = sums.into_iter().collect();
    all.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let row = |((name, what), (count, tid)): &((TaskName, OwnEntry), (u64, u32))| {
        let (kind, words) = match what {
            OwnEntry::UserFault => (EntryKind::PageFault, "page fault in user mode".to_owned()),
            OwnEntry::KernelFault => (EntryKind::PageFault, "page fault in the kernel".to_owned()),
            OwnEntry::SystemCall(number) => {
                let name = number.and_then(|number| calls.get(&number)).map(String::as_str);
                (EntryKind::SystemCall, format!("system call {}", name.unwrap_or("not known")))
            }
        };
        vec![
            Cell::from(words),
            Cell::from(format::plain(&name.to_string())),
            Cell::from(*count),
            Cell::from(kind.id()),
            Cell::from(u64::from(*tid)),
        ]
    };
    (!all.is_empty()).then(|| Table {
        name: "own-entries".to_owned(),
        title: "what the tasks on the CPU did themselves".to_owned(),
        columns: vec![
            Column::new("what", ""),
            Column::new("task", ""),
            Column::new("entries", "count"),
            Column::new("kind", ""),
            Column::new("thread", "id"),
        ],
        rows: all.iter().take(ROWS).map(row).collect(),
    })
}
