//! One CPU: its entries, its interruptions, its two series.

use super::super::mapping;
use super::super::series::SeriesRun;
use super::rows::{CpuRow, TopEntry};
use crate::series_store::KeptSeries;
use punctual_bundle::SeriesMeta;
use punctual_bundle::meta::{ENTRIES_WORKLOAD, MeasureMeta};
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{Entry, EntryKind, EntrySeries, OwnCount, OwnEntry};
use punctual_core::format;
use punctual_core::{
    Cell, Clock, Column, CpuSet, Fact, Figure, MonotonicNs, Nanos, Notes, Sample, Table, Validation,
};
use punctual_explain::entries::{EntryNames, EntryRow, EntryTable, Interruptions};
use punctual_plan::MeasurePlan;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of the table that the bundle holds.
const ROWS: usize = 500;
/// The maximum number of functions of a stack in a cell.
const FRAMES: usize = 8;

/// A measured CPU.
#[derive(Default)]
pub struct MeasuredCpu {
    number: usize,
    /// The name of its series and its measure.
    label: String,
    /// The index of the CPU's interruptions among the series of the phase; its entries follow.
    place: usize,
    pub table: EntryTable,
    interruptions: Interruptions,
    away: Nanos,
    notes: Notes,
    /// Entries at the last look.
    shown: u64,
}

/// Facts known at the end besides its own entries.
pub(crate) struct EndFacts<'a> {
    pub names: &'a EntryNames,
    pub own: &'a [OwnCount],
    /// The threads of punctual.
    pub observers: &'a BTreeSet<u32>,
    /// Names of system calls.
    pub calls: &'a BTreeMap<u32, String>,
    pub took: Nanos,
    pub steal: Option<f64>,
}

impl MeasuredCpu {
    pub fn new(number: usize, label: String, place: usize) -> MeasuredCpu {
        MeasuredCpu { number, label, place, ..MeasuredCpu::default() }
    }

    /// The series of the CPU, in their order.
    pub(crate) fn series_metas(&self, measure: &MeasurePlan) -> [SeriesMeta; 2] {
        EntrySeries::ALL.map(|series| {
            let about = measure.require.iter().filter(|of| of.is_about_cpu(self.number, series));
            SeriesMeta {
                name: format!("{}/{}", self.label, series.as_str()),
                measure: self.label.clone(),
                workload: ENTRIES_WORKLOAD.to_owned(),
                clock: Clock::Monotonic,
                cpus: CpuSet::from_cpu(self.number),
                scheduling: "none: no thread measures".to_owned(),
                real_time: true,
                period: None,
                tid: None,
                requirements: about.map(|of| of.requirement.to_string()).collect(),
                details: mapping::equivalence_detail(measure).into_iter().collect(),
            }
        })
    }

    fn kept_series<'s>(
        &self,
        which: EntrySeries,
        series: &'s mut [SeriesRun],
    ) -> &'s mut KeptSeries {
        &mut series[self.place + which as usize].kept
    }

    /// The name of the series of its interruptions.
    pub(crate) fn interruptions_of(&self, series: &[SeriesRun]) -> String {
        series[self.place].kept.meta.name.clone()
    }

    /// Adds an entry; returns an interruption that ended with it.
    pub fn push(&mut self, entry: &Entry, series: &mut [SeriesRun]) -> Option<Sample> {
        self.table.push(entry);
        if !entry.further {
            let end = entry.begin + entry.own;
            let kept = self.kept_series(EntrySeries::Entry, series);
            kept.push(kept.state.data.sample_count(), (entry.begin, end), self.number as u32, 0);
        }
        let ended = self.interruptions.push(entry);
        self.add_interruption(ended, series)
    }

    fn add_interruption(
        &mut self,
        interruption: Option<(MonotonicNs, MonotonicNs)>,
        series: &mut [SeriesRun],
    ) -> Option<Sample> {
        let (begin, end) = interruption?;
        self.away += end - begin;
        let kept = self.kept_series(EntrySeries::Interruption, series);
        Some(kept.push(kept.state.data.sample_count(), (begin, end), self.number as u32, 0))
    }

    /// The CPU's line in the live view, `elapsed` after the begin and `since` the look before.
    pub(crate) fn update_row(
        &mut self,
        top: Option<EntryRow>,
        elapsed: Nanos,
        since: Nanos,
        series: &[SeriesRun],
    ) -> CpuRow {
        let entries = self.table.entries;
        let new = entries - std::mem::replace(&mut self.shown, entries);
        let share = |of: f64, span: Nanos| of / span.as_secs_f64().max(1e-9);
        CpuRow {
            cpu: self.number,
            entries,
            a_second: share(new as f64, since),
            longest: series[self.place].kept.state.data.max,
            interrupted: share(self.away.as_secs_f64(), elapsed),
            top: top.map(|row| TopEntry { what: row.what, originator: row.originator }),
        }
    }

    /// Adds the last interruption and saves everything durably. `lost` entries found no room.
    pub fn finish(&mut self, lost: u64, series: &mut [SeriesRun]) {
        let last = self.interruptions.finish();
        self.add_interruption(last, series);
        for which in EntrySeries::ALL {
            let kept = self.kept_series(which, series);
            kept.state.data.losses.dropped = lost;
            kept.finish();
        }
    }

    /// Describes the CPU at the end.
    pub(crate) fn describe_cpu(
        &mut self,
        known: &EndFacts<'_>,
        validations: Vec<Validation>,
        series: &[SeriesRun],
    ) -> Vec<EntryRow> {
        let rows = self.table.to_rows(known.names);
        let cpu_counts = known.own.iter().filter(|one| one.cpu as usize == self.number);
        let own_counts: Vec<&OwnCount> = cpu_counts.collect();
        let interruptions = series[self.place].kept.state.data.sample_count();
        self.notes = Notes {
            validations,
            clock_cost: Fact::NotAsked,
            figures: self.to_figures(known.took, known.steal, interruptions),
            tables: entry_table(&rows).into_iter().chain(own_entries(&own_counts, known)).collect(),
            ..Notes::default()
        };
        rows
    }

    fn to_figures(&self, took: Nanos, steal: Option<f64>, interruptions: u64) -> Vec<Figure> {
        let table = &self.table;
        let a_second = table.entries as f64 / took.as_secs_f64().max(1e-9);
        let share = self.away.ns() as f64 / took.ns().max(1) as f64;
        let mut figures = vec![
            Figure::new("entries", "entries into the kernel", table.entries as f64, "count"),
            Figure::new("entry-rate", "entries a second", a_second, "per-second")
                .with_count(table.entries),
            Figure::new("entries-idle", "of these to an idle CPU", table.idle as f64, "count"),
            Figure::new("entry-time", "time of all entries", table.total.ns() as f64, "ns"),
            Figure::new("longest-entry", "longest entry", table.longest.ns() as f64, "ns"),
            Figure::new(
                "away-time",
                "time that tasks were interrupted",
                self.away.ns() as f64,
                "ns",
            )
            .with_count(interruptions),
            Figure::new("away-share", "share of the time", share, "ratio"),
        ];
        figures.extend(
            steal.map(|steal| {
                Figure::new("steal", "steal time, which has no event", steal, "ratio")
            }),
        );
        figures
    }

    /// The CPU as a measure of the bundle.
    pub(crate) fn to_measure_meta(&self) -> MeasureMeta {
        let name = |of: EntrySeries| format!("{}/{}", self.label, of.as_str());
        MeasureMeta {
            name: self.label.clone(),
            workload: ENTRIES_WORKLOAD.to_owned(),
            parameters: BTreeMap::from([("cpu".to_owned(), self.number.to_string())]),
            series: EntrySeries::ALL.map(name).to_vec(),
            notes: self.notes.clone(),
        }
    }
}

fn entry_table(rows: &[EntryRow]) -> Option<Table> {
    let row = |row: &EntryRow| {
        let number = |value: Option<u32>| value.map_or(Cell::Nothing, |n| Cell::from(u64::from(n)));
        let stack = row.stack.iter().take(FRAMES).cloned().collect::<Vec<_>>().join(" < ");
        vec![
            Cell::from(format::escape_unsafe(&row.what)),
            Cell::from(format::escape_unsafe(&row.originator)),
            Cell::from(row.entries),
            Cell::from(row.longest),
            Cell::from(row.total),
            Cell::from(row.kind.id()),
            row.through.as_ref().map_or(Cell::Nothing, |of| Cell::from(format::escape_unsafe(of))),
            number(row.by_cpu),
            number(row.by_tid),
            Cell::from(row.further),
            Cell::from(format::escape_unsafe(&stack)),
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

/// A table by task and call, the most frequent first; those of punctual itself last.
fn own_entries(own: &[&OwnCount], known: &EndFacts<'_>) -> Option<Table> {
    type CpuKey = (bool, TaskComm, OwnEntry);
    let mut sums: BTreeMap<CpuKey, (u64, u32)> = BTreeMap::new();
    for one in own {
        let observes = known.observers.contains(&one.tid);
        let sum = sums.entry((observes, one.name, one.what)).or_default();
        *sum = (sum.0 + one.count, one.tid);
    }
    let mut sorted_sums: Vec<_> = sums.into_iter().collect();
    sorted_sums.sort_by_key(|((observes, ..), (count, _))| (*observes, std::cmp::Reverse(*count)));
    let row = |((observes, name, what), (count, tid)): &(CpuKey, (u64, u32))| {
        let (kind, words) = match what {
            OwnEntry::UserFault => (EntryKind::PageFault, "page fault in user mode".to_owned()),
            OwnEntry::KernelFault => (EntryKind::PageFault, "page fault in the kernel".to_owned()),
            OwnEntry::SystemCall(number) => {
                let name = number.and_then(|number| known.calls.get(&number)).map(String::as_str);
                (EntryKind::SystemCall, format!("system call {}", name.unwrap_or("not known")))
            }
        };
        vec![
            Cell::from(words),
            Cell::from(match observes {
                true => format!("punctual itself ({})", format::escape_unsafe(&name.to_string())),
                false => format::escape_unsafe(&name.to_string()),
            }),
            Cell::from(*count),
            Cell::from(kind.id()),
            Cell::from(u64::from(*tid)),
        ]
    };
    (!sorted_sums.is_empty()).then(|| Table {
        name: "own-entries".to_owned(),
        title: "what the tasks on the CPU did themselves".to_owned(),
        columns: vec![
            Column::new("what", ""),
            Column::new("task", ""),
            Column::new("entries", "count"),
            Column::new("kind", ""),
            Column::new("thread", "id"),
        ],
        rows: sorted_sums.iter().take(ROWS).map(row).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::offline::tests::entry;
    use super::*;
    use crate::messages::Silent;
    use crate::request::{ExperimentRequest, online_cpus};
    use crate::saver::Saver;
    use crate::series_store::SeriesFiles;
    use punctual_bundle::{BundleWriter, PhaseMeta};
    use std::path::Path;

    /// Each of its two series gets its own samples and requirements.
    #[test]
    fn kernel_entries_and_requirements_are_assigned_to_their_series() {
        let number = online_cpus().expect("CPUs").first_cpu().expect("a CPU");
        let text = format!(
            "[[measure]]\nkind = \"entries\"\ncpus = \"{number}\"\nequivalence = \
             [\"median:10%\"]\nrequire = [\"max < 50us\", \"entries < 10\", \
             \"cpu{number}/entry p99 < 20us\"]\n"
        );
        let asked = ExperimentRequest::of_plain_text(Path::new("entries.toml"), text.into_bytes());
        let (_, plan) = asked.resolve(&Silent).expect("a plan");
        let measure = &plan.phases[0].measures[0];
        let label = measure.threads[0].name.clone();
        assert_eq!(label, format!("entries/cpu{number}"));
        let mut cpu = MeasuredCpu::new(number, label.clone(), 1);
        let metas = cpu.series_metas(measure);
        assert_eq!(metas[0].requirements, ["max < 50us"]);
        assert_eq!(metas[1].requirements, ["count < 10", "p99 < 20us"]);
        assert!(metas.iter().all(|meta| meta.measure == label && meta.details.len() == 1));

        let place = tempfile::tempdir().expect("a directory");
        let writer = BundleWriter::create(&place.path().join("bundle"), "x", "run");
        let writer = writer.expect("a bundle");
        let phase = PhaseMeta::new("main", jiff::Timestamp::UNIX_EPOCH);
        writer.write_phase(0, &phase).expect("written");
        let [interruption, own] = metas;
        let all = [SeriesMeta { name: "timer".to_owned(), ..own.clone() }, interruption, own];
        let mut series: Vec<SeriesRun> = (0..)
            .zip(all)
            .map(|(place, meta)| {
                let files = writer.begin_series(0, place, &meta, 10).expect("its files");
                let files = SeriesFiles::new(files, &Saver::on_caller());
                SeriesRun::new(mapping::series_shape(measure), meta, files)
            })
            .collect();
        assert_eq!(cpu.push(&entry(number as u16, 1, 3), &mut series), None);
        let ended = cpu.push(&entry(number as u16, 10, 15), &mut series).expect("the first ended");
        assert_eq!((ended.latency(), ended.seq), (Nanos::from_millis(2), 0));
        cpu.finish(7, &mut series);
        let [timer, interruption, own] = &series[..] else { panic!("three") };
        let data = |of: &SeriesRun| {
            let data = &of.kept.state.data;
            (data.sample_count(), data.max, data.losses.dropped)
        };
        assert_eq!(data(timer), (0, None, 0));
        assert_eq!(data(interruption), (2, Some(Nanos::from_millis(5)), 7));
        assert_eq!(data(own), (2, Some(Nanos::from_millis(5)), 7));
        assert_eq!(cpu.interruptions_of(&series), format!("{label}/interruption"));
        let names: Vec<_> = series[1..].iter().map(|of| of.kept.meta.name.clone()).collect();
        assert_eq!(cpu.to_measure_meta().series, names);
    }
}
