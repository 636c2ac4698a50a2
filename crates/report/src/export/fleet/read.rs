//! Reads the tables back: the runs of a selection, as bundles with the data that the tables hold.

use super::super::ExportError;
use super::rows::RUNS;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use punctual_bundle::meta::{PhaseMeta, SeriesMeta};
use punctual_bundle::state::SeriesState;
use punctual_bundle::summary::{Summary, VerdictWord};
use punctual_bundle::{
    Bundle, BundleError, BundleWriter, Completeness, Outcome, RanOn, RunEnding, Verdict, amend,
};
use punctual_core::series::record_hdr;
use punctual_core::{
    Clock, ClockNs, CpuSet, Fact, Finding, LinearHistogram, Losses, Nanos, Sample, SeriesData,
    SeriesShape, Severity,
};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The `origin` of a bundle that was read from tables.
pub(crate) const ORIGIN: &str = "import: parquet-tables";
/// Bins of the histogram in a bundle read from tables; the maximum determines its resolution.
const BINS: i64 = 1 << 16;

/// A selection of runs: each named column has this value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunSelection(Vec<(String, String)>);

impl FromStr for RunSelection {
    type Err = String;
    fn from_str(text: &str) -> Result<RunSelection, String> {
        let one = |part: &str| {
            let (column, value) = part.split_once('=').filter(|(column, _)| !column.is_empty())?;
            Some((column.trim().to_owned(), value.trim().to_owned()))
        };
        let conditions: Option<Vec<_>> = text.split(',').map(one).collect();
        conditions
            .map(RunSelection)
            .ok_or_else(|| format!("`{text}`: write COLUMN=VALUE, as in kernel=6.1-rt,day=…"))
    }
}

impl RunSelection {
    /// All runs of a lab.
    pub fn of_lab(name: &str) -> RunSelection {
        RunSelection(vec![("lab".to_owned(), name.to_owned())])
    }
}

/// The fields of a row by column name, with those of its partition.
#[derive(Clone, Debug)]
struct FleetRow(BTreeMap<String, Field>);

impl FleetRow {
    fn get_text(&self, column: &str) -> Option<&str> {
        match self.0.get(column)? {
            Field::Str(text) => Some(text),
            _ => None,
        }
    }
    fn get_number(&self, column: &str) -> Option<i64> {
        match self.0.get(column)? {
            Field::Long(number) | Field::TimestampMicros(number) => Some(*number),
            _ => None,
        }
    }
    fn get_count(&self, column: &str) -> u64 {
        self.get_number(column).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }
    fn get_fraction(&self, column: &str) -> Option<f64> {
        match self.0.get(column)? {
            Field::Double(number) => Some(*number),
            _ => None,
        }
    }
    /// Whether a column has this value of a selection.
    fn has_value(&self, column: &str, value: &str) -> bool {
        match self.0.get(column) {
            Some(Field::Str(text)) => text == value,
            Some(Field::Long(number)) => value.parse() == Ok(*number),
            _ => false,
        }
    }
}

/// A run, as the tables have it.
#[derive(Debug)]
pub struct TableRun {
    row: FleetRow,
    series: Vec<StoredSeries>,
}

#[derive(Debug)]
struct StoredSeries {
    row: FleetRow,
    histogram: Vec<FleetRow>,
    worst: Vec<FleetRow>,
}

/// The runs of a selection, by start time.
pub fn select_runs(root: &Path, selection: &RunSelection) -> Result<Vec<TableRun>, ExportError> {
    let mut runs = Vec::new();
    let partitions = list_partitions(root)?;
    for partition in &partitions {
        let is_selected =
            |row: &FleetRow| selection.0.iter().all(|(name, value)| row.has_value(name, value));
        let rows = read_rows(root, RUNS, partition)?;
        if let Some(row) = rows.first() {
            known_columns(row, selection)?;
        }
        let mut of_partition: Vec<TableRun> = rows
            .into_iter()
            .filter(is_selected)
            .map(|row| TableRun { row, series: Vec::new() })
            .collect();
        if !of_partition.is_empty() {
            read_series(root, partition, &mut of_partition)?;
            runs.extend(of_partition);
        }
    }
    if partitions.is_empty() {
        return Err(impossible_export(format!("{} holds no tables of runs", root.display())));
    }
    runs.sort_by_key(|run| run.row.get_number("created"));
    Ok(runs)
}

/// Adds the series of runs, with histograms and worst samples.
fn read_series(
    root: &Path,
    partition: &[String; 2],
    runs: &mut [TableRun],
) -> Result<(), ExportError> {
    let mut place: BTreeMap<[String; 3], (usize, usize)> = BTreeMap::new();
    let key = |row: &FleetRow| {
        ["run", "phase", "series"].map(|name| row.get_text(name).unwrap_or_default().to_owned())
    };
    for row in read_rows(root, "series", partition)? {
        let run_index = runs.iter().position(|run| run.row.get_text("run") == row.get_text("run"));
        let Some(number) = run_index else { continue };
        place.insert(key(&row), (number, runs[number].series.len()));
        let (histogram, worst) = (Vec::new(), Vec::new());
        runs[number].series.push(StoredSeries { row, histogram, worst });
    }
    for table in ["histograms", "worst"] {
        for row in read_rows(root, table, partition)? {
            let Some((run, series)) = place.get(&key(&row)) else { continue };
            let series = &mut runs[*run].series[*series];
            match table {
                "worst" => series.worst.push(row),
                _ => series.histogram.push(row),
            }
        }
    }
    Ok(())
}

/// Rejects unknown columns: a misspelled column would silently select nothing.
fn known_columns(row: &FleetRow, selection: &RunSelection) -> Result<(), ExportError> {
    let unknown = selection.0.iter().find(|(column, _)| !row.0.contains_key(column));
    let Some((column, _)) = unknown else { return Ok(()) };
    let names: Vec<&str> = row.0.keys().map(String::as_str).collect();
    Err(impossible_export(format!(
        "runs have no column `{column}`; they have {}",
        names.join(", ")
    )))
}

fn impossible_export(why: String) -> ExportError {
    ExportError::Impossible { format: "parquet-tables", why }
}

/// Day and machine of each partition.
fn list_partitions(root: &Path) -> Result<Vec<[String; 2]>, ExportError> {
    let named = |directory: &Path, key: &str| -> Vec<(String, PathBuf)> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let value_and_path = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix(key)?.to_owned(), entry.path()))
        };
        let mut named_directories: Vec<_> = entries.filter_map(value_and_path).collect();
        named_directories.sort();
        named_directories
    };
    let mut day_machine_pairs = Vec::new();
    for (day, path) in named(&root.join(RUNS), "day=") {
        let machines = named(&path, "machine=").into_iter();
        day_machine_pairs.extend(machines.map(|(machine, _)| [day.clone(), machine]));
    }
    Ok(day_machine_pairs)
}

fn read_rows(
    root: &Path,
    table: &str,
    [day, machine]: &[String; 2],
) -> Result<Vec<FleetRow>, ExportError> {
    let directory = root.join(table).join(format!("day={day}")).join(format!("machine={machine}"));
    let mut partition_rows = Vec::new();
    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory).into_iter().flatten().flatten().map(|of| of.path()).collect();
    files.sort();
    for path in files {
        let is_hidden =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden || path.extension().is_none_or(|end| end != "parquet") {
            continue;
        }
        let damaged = |why: String| impossible_export(format!("{}: {why}", path.display()));
        let reader = SerializedFileReader::new(File::open(&path)?);
        let reader = reader.map_err(|why| damaged(why.to_string()))?;
        for row in reader.get_row_iter(None).map_err(|why| damaged(why.to_string()))? {
            let row = row.map_err(|why| damaged(why.to_string()))?;
            let fields = row.get_column_iter().map(|(name, field)| (name.clone(), field.clone()));
            let mut fields: BTreeMap<String, Field> = fields.collect();
            fields.insert("day".to_owned(), Field::Str(day.clone()));
            fields.insert("machine".to_owned(), Field::Str(machine.clone()));
            partition_rows.push(FleetRow(fields));
        }
    }
    Ok(partition_rows)
}

impl TableRun {
    pub fn id(&self) -> &str {
        self.row.get_text("run").unwrap_or_default()
    }
    /// The cell of its lab.
    pub fn lab_cell(&self) -> Option<&str> {
        self.row.get_text("cell")
    }
    /// Its seed, if there were several.
    pub fn seed(&self) -> Option<u64> {
        self.row.get_number("seed").and_then(|seed| u64::try_from(seed).ok())
    }
    /// Its verdict; the tables have no reasons.
    pub fn verdict(&self) -> Option<VerdictWord> {
        let word = self.row.get_text("verdict")?;
        serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
    }

    /// Writes it as a bundle.
    pub fn write(
        &self,
        directory: &Path,
        summarize: fn(&Bundle) -> Summary,
    ) -> Result<Bundle, BundleError> {
        let row = &self.row;
        let created = row.get_number("created").unwrap_or(0);
        let created =
            jiff::Timestamp::from_microsecond(created).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let experiment = row.get_text("experiment").unwrap_or_default();
        let mut writer = BundleWriter::create_at(directory, experiment, ORIGIN, created)?;
        writer.set_machine(row.get_text("machine").unwrap_or_default().to_owned())?;
        if let Some(target) = target_of_row(row, created) {
            writer.set_target(target)?;
        }
        if let Some(kernel) = row.get_text("kernel") {
            let release = serde_json::json!({ "kernel": { "release": { "known": kernel } } });
            writer.write_document("environment", &release)?;
        }
        for (number, phase) in self.phase_names().into_iter().enumerate() {
            writer.write_phase(number, &PhaseMeta::new(phase, created))?;
            let of_phase = self.series.iter().filter(|of| of.row.get_text("phase") == Some(phase));
            for (place, series) in of_phase.enumerate() {
                let mut written = writer.begin_series(number, place, &series.to_meta(), 0)?;
                let state = SeriesState {
                    data: series.to_data(),
                    usage: Fact::Unavailable("the tables do not have it".to_owned()),
                    digest: None,
                    samples_kept: 0,
                    log_bytes: written.log_bytes(),
                };
                written.finish(&state)?;
            }
        }
        let message = "these figures are from tables: single samples, requirements, evidence and \
                       recordings are not in them";
        let finding = Finding::new("from-tables", Severity::Note, "run", message);
        let path = row.get_text("bundle").unwrap_or("?");
        writer.write_findings(&[finding.with_evidence(format!("the bundle was {path}"))])?;
        // The tables have no reasons.
        let (word, reasons, more_reasons) = (self.verdict(), Vec::new(), 0);
        let verdict = Some(Verdict { word, reasons, more_reasons });
        let exit_code = row.get_number("exit_code").and_then(|code| u8::try_from(code).ok());
        let mut bundle = Bundle::open(directory)?;
        bundle.manifest.verdict = verdict;
        let Some(outcome) = outcome_of_row(row) else {
            drop(writer);
            amend::renew_summary(directory, &summarize(&bundle))?;
            return Ok(bundle);
        };
        let ending = RunEnding { at: created, outcome, exit_code: exit_code.unwrap_or(0) };
        bundle.manifest.ending = Some(ending.clone());
        bundle.completeness = Completeness::Whole;
        writer.finish(&summarize(&bundle), ending)?;
        Bundle::open(directory)
    }

    fn phase_names(&self) -> Vec<&str> {
        let mut phase_names: Vec<&str> = Vec::new();
        for phase in self.series.iter().filter_map(|series| series.row.get_text("phase")) {
            if !phase_names.contains(&phase) {
                phase_names.push(phase);
            }
        }
        phase_names
    }
}

/// Unless its timebase is the system's own, the target's name shows it.
fn target_of_row(row: &FleetRow, started: jiff::Timestamp) -> Option<RanOn> {
    let word = match row.get_text("timebase")? {
        "own" => return None,
        "virtual" => "virtual time",
        "emulated" => "tcg",
        _ => "kvm",
    };
    let kernel = row.get_text("kernel").unwrap_or("a kernel");
    Some(RanOn::new("vm", format!("{kernel} in {word}"), started))
}

/// The outcome; `None` for an interrupted run.
fn outcome_of_row(row: &FleetRow) -> Option<Outcome> {
    Some(match row.get_text("outcome")? {
        "completed" => Outcome::Completed,
        "failed" => Outcome::Failed { why: "the tables do not say why".to_owned() },
        "cut-off" => Outcome::CutOff { why: "the tables do not say where".to_owned() },
        // The tables do not have the reason for the stop.
        _ => Outcome::Interrupted,
    })
}

fn period_of_row(row: &FleetRow) -> Option<Nanos> {
    row.get_number("period_ns").filter(|period| *period > 0).map(Nanos)
}

impl StoredSeries {
    fn to_meta(&self) -> SeriesMeta {
        let text = |column: &str| self.row.get_text(column).unwrap_or_default().to_owned();
        let scheduling = text("scheduling");
        let real_time = ["SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"];
        SeriesMeta {
            name: text("series"),
            measure: text("measure"),
            workload: text("workload"),
            clock: Clock::Monotonic,
            cpus: text("cpus").parse().unwrap_or_else(|_| CpuSet::new()),
            real_time: real_time.iter().any(|policy| scheduling.starts_with(policy)),
            scheduling,
            period: period_of_row(&self.row),
            tid: None,
            requirements: Vec::new(),
            details: BTreeMap::from([("source".to_owned(), "parquet-tables".to_owned())]),
        }
    }

    /// The histogram in buckets of 0.1 %, with the exact figures.
    fn to_data(&self) -> SeriesData {
        let row = &self.row;
        let [min, max] = ["min_ns", "max_ns"].map(|column| row.get_number(column).map(Nanos));
        let longest = max.map_or(1, Nanos::ns).max(1);
        let shape = SeriesShape {
            range: Nanos(longest),
            resolution: Nanos((longest / BINS).max(1)),
            period: period_of_row(row),
        };
        let mut data = SeriesData::new(shape);
        let (mut recorded, mut counted) = (0, 0);
        for bucket in &self.histogram {
            let (value, count) =
                (bucket.get_number("high_ns").unwrap_or(0), bucket.get_count("count"));
            record_hdr(&mut data.whole, Nanos(value), count);
            count_exact(&mut data.exact, value, count);
            counted = u64::saturating_add(counted, count);
        }
        recorded += counted;
        (data.min, data.max) = if recorded > 0 { (min, max) } else { (None, None) };
        let mean = row.get_fraction("mean_ns").unwrap_or(0.0);
        data.sum = (mean * recorded as f64).round() as i128;
        let squares = |deviation: f64| (deviation.powi(2) + mean.powi(2)) * recorded as f64;
        data.sum_squares = row.get_fraction("stddev_ns").map(|of| squares(of).round() as u128);
        data.worst = self.worst.iter().map(sample_of_row).collect();
        data.worst.sort_by_key(|sample| std::cmp::Reverse(sample.latency()));
        let dropped = row.get_count("lost");
        let skipped = row.get_count("expected").saturating_sub(recorded.saturating_add(dropped));
        data.losses = Losses { recorded, skipped, dropped, ..Losses::default() };
        data
    }
}

fn count_exact(exact: &mut LinearHistogram, value: i64, count: u64) {
    let bin = usize::try_from(value / exact.resolution.ns()).unwrap_or(0);
    let last = exact.bins.len().saturating_sub(1);
    let bin = &mut exact.bins[bin.min(last)];
    *bin = bin.saturating_add(count);
}

fn sample_of_row(row: &FleetRow) -> Sample {
    let due = row.get_number("due_ns").unwrap_or(0);
    let latency = row.get_number("latency_ns").unwrap_or(0);
    Sample {
        seq: row.get_count("seq"),
        due: ClockNs(due),
        woke: ClockNs(due.saturating_add(latency)),
        cpu: u32::try_from(row.get_count("cpu")).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_row_without_outcome_is_a_truncated_run() {
        let row =
            |column: &str, field: Field| FleetRow(BTreeMap::from([(column.to_owned(), field)]));
        let ended = |word: &str| outcome_of_row(&row("outcome", Field::Str(word.to_owned())));
        assert_eq!(outcome_of_row(&row("outcome", Field::Null)), None);
        assert_eq!(ended("completed"), Some(Outcome::Completed));
        assert_eq!(ended("stopped-above"), Some(Outcome::Interrupted));
        assert!(matches!(ended("failed"), Some(Outcome::Failed { .. })));
        let of = |ns| period_of_row(&row("period_ns", Field::Long(ns)));
        assert_eq!([of(-5), of(0), of(1_000)], [None, None, Some(Nanos::MICRO)]);
    }

    #[test]
    fn counts_of_damaged_tables_do_not_overflow() {
        let mut exact = LinearHistogram::new(Nanos(10), Nanos(1));
        (0..2).for_each(|_| count_exact(&mut exact, 3, u64::MAX));
        assert_eq!(exact.bins[3], u64::MAX);
    }
}
