//! The results of many bundles in Apache Parquet, as tables for queries: runs, series, histograms,
//! worst samples and causes. Partitioned by day and machine in directories that engines read as
//! columns (`runs/day=2026-11-23/machine=board1/….parquet`). docs/reference/fleet.md has the
//! columns.

mod read;
mod rows;
mod table;

pub use read::{RunSelection, TableRun, select_runs};

use super::ExportError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use punctual_bundle::explanation::ExplainDocument;
use punctual_bundle::{Bundle, Manifest, Member};
use punctual_core::encode_hex;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The partition of a bundle, read before the bundle itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FleetPartition {
    /// The day on which the run began, UTC: `2026-11-23`.
    pub day: String,
    /// The machine, in characters that every engine accepts in a path.
    pub machine: String,
}

/// A bundle with the further input of the tables.
pub struct FleetRun<'a> {
    pub bundle: &'a Bundle,
    /// Its worst samples with their causes, if events around them were kept.
    pub explained: Option<&'a ExplainDocument>,
    /// The lab of the run.
    pub lab: Option<LabRun<'a>>,
}

/// A run of a lab.
#[derive(Clone, Copy, Debug)]
pub struct LabRun<'a> {
    pub lab: &'a str,
    pub cell: &'a str,
    /// The seed, if there are several.
    pub seed: Option<u64>,
}

impl FleetPartition {
    /// The partition of a bundle; `machine` is used if the bundle names none.
    pub fn from_manifest(manifest: &Manifest, machine: &str) -> FleetPartition {
        let target = manifest.target.as_ref();
        let is_vm = target.is_some_and(|target| target.kind == "vm");
        let fact = target.and_then(|target| {
            target.facts.iter().find(|(name, _)| name == "host").map(|(_, host)| host.as_str())
        });
        let named = manifest.machine.as_deref().or(fact).filter(|name| !name.is_empty());
        // A guest's figures belong to its kernel, on any machine.
        let machine = if is_vm { "vm" } else { named.unwrap_or(machine) };
        let day = manifest.created.to_string();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        FleetPartition {
            day: day.split('T').next().unwrap_or_default().to_owned(),
            machine: machine.chars().map(plain).collect(),
        }
    }

    fn table_directory(&self, root: &Path, table: &str) -> PathBuf {
        let (day, machine) = (format!("day={}", self.day), format!("machine={}", self.machine));
        root.join(table).join(day).join(machine)
    }
}

/// The id of a run, independent of the path of its bundle.
pub fn id_of(manifest: &Manifest) -> String {
    let mut sum = Sha256::new();
    let machine = manifest.machine.as_deref().unwrap_or_default();
    let ended = manifest.ending.as_ref().map(|ending| ending.at.to_string());
    let parts = [
        &manifest.experiment,
        &manifest.created.to_string(),
        machine,
        &ended.unwrap_or_default(),
        &manifest.origin,
    ];
    for part in parts {
        // The length comes first: two lists of parts never give the same bytes.
        sum.update((part.len() as u64).to_le_bytes());
        sum.update(part);
    }
    encode_hex(&sum.finalize()[..8])
}

/// The tables of one partition under construction.
pub struct FleetTables {
    root: PathBuf,
    partition: FleetPartition,
    there: BTreeSet<String>,
    added: Vec<String>,
    tables: rows::Tables,
}

impl FleetTables {
    /// Opens a partition with the runs of earlier exports.
    pub fn open(root: &Path, partition: FleetPartition) -> Result<FleetTables, ExportError> {
        let stored_runs = runs_in(&partition.table_directory(root, rows::RUNS))?;
        let tables = rows::Tables::default();
        Ok(FleetTables {
            root: root.to_owned(),
            partition,
            there: stored_runs,
            added: Vec::new(),
            tables,
        })
    }

    /// Whether the run is already stored.
    pub fn has_run(&self, id: &str) -> bool {
        self.there.contains(id)
    }

    /// Adds a run that is not yet stored.
    pub fn add(&mut self, id: String, run: &FleetRun<'_>) {
        self.tables.add(&id, run);
        self.there.insert(id.clone());
        self.added.push(id);
    }

    /// Writes a file for each table; all are complete before the first is renamed into place, and
    /// the file of the runs is the last.
    pub fn finish(mut self) -> Result<(), ExportError> {
        if self.added.is_empty() {
            return Ok(());
        }
        self.added.sort();
        let sum = Sha256::digest(self.added.concat());
        let name = encode_hex(&sum[..8]);
        let mut written = Vec::new();
        for table in self.tables.all_tables() {
            let directory = self.partition.table_directory(&self.root, table.name());
            fs::create_dir_all(&directory)?;
            let temporary = directory.join(format!(".{name}.{}", std::process::id()));
            written.push((temporary.clone(), directory.join(format!("{name}.parquet"))));
            let mut file = File::create(&temporary)?;
            table.write(&mut file).map_err(|why| ExportError::Write(io::Error::other(why)))?;
        }
        let named = written.iter().try_for_each(|(from, to)| fs::rename(from, to));
        written.iter().for_each(|(from, _)| drop(fs::remove_file(from)));
        Ok(named?)
    }
}

/// The ids of the runs that the files of a partition hold.
fn runs_in(directory: &Path) -> Result<BTreeSet<String>, ExportError> {
    let mut run_ids = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry?.path();
        let member = Member::from_root(&path);
        if path.extension().is_none_or(|end| end != "parquet") || member.is_directory() {
            continue;
        }
        let damaged = |why: String| ExportError::Impossible {
            format: "parquet-tables",
            why: format!("{} is not a table of runs: {why}; remove it", path.display()),
        };
        let reader = SerializedFileReader::new(File::open(&path)?)
            .map_err(|why| damaged(why.to_string()))?;
        let rows = reader.get_row_iter(None).map_err(|why| damaged(why.to_string()))?;
        for row in rows {
            let row = row.map_err(|why| damaged(why.to_string()))?;
            run_ids.insert(row.get_string(0).map_err(|why| damaged(why.to_string()))?.clone());
        }
    }
    Ok(run_ids)
}
