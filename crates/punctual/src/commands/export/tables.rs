//! `punctual export --format parquet-tables`: the results of many bundles and labs for queries.

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::{Bundle, Manifest, Member, lab};
use punctual_core::format::{count_with_noun, escape_unsafe};
use punctual_report::export::fleet::{FleetPartition, FleetRun, FleetTables, LabRun, id_of};
use punctual_session::explanation::{self, Wanted};
use punctual_session::messages::display_path;
use punctual_study::labs::run_name::RunName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The search depth for bundles: a directory of labs has them three levels below it.
const DEPTH: usize = 6;

/// A bundle of the search.
struct FoundBundle {
    path: PathBuf,
    id: String,
    lab: Option<(String, RunName)>,
}

/// The counts of bundles by result.
#[derive(Default)]
struct ExportedCounts {
    added: u64,
    there: u64,
    without_end: u64,
    unreadable: u64,
}

/// Finds all bundles, and writes missing ones, partition by partition.
pub fn write(paths: &[PathBuf], machine: Option<&str>, output: Option<&Path>) -> Ending {
    let root = output.ok_or_else(|| {
        Failure::refused("this format is a directory of tables: name it with -o DIR")
    })?;
    let mut finder = Finder { machine: machine.unwrap_or("unknown"), ..Finder::default() };
    for path in paths {
        if !path.is_dir() {
            return Err(Failure::refused(format!("{} is not a directory", display_path(path))));
        }
        finder.find_bundles(path, None, DEPTH);
    }
    if finder.found.is_empty() && finder.counted.without_end + finder.counted.unreadable == 0 {
        let searched_paths: Vec<String> = paths.iter().map(|path| display_path(path)).collect();
        return Err(Failure::refused(format!(
            "there is no bundle in {}",
            searched_paths.join(", ")
        )));
    }
    let Finder { found, mut counted, .. } = finder;
    for (partition, bundles) in found {
        let mut tables = FleetTables::open(root, partition).map_err(Failure::failed)?;
        for found in bundles {
            add(&mut tables, found, &mut counted);
        }
        tables.finish().map_err(Failure::failed)?;
    }
    output::print_stdout(&format!("{}\n", counted.format_counts(root)))?;
    Ok(if counted.unreadable > 0 { Exit::Failed } else { Exit::Done })
}

fn add(tables: &mut FleetTables, found: FoundBundle, counted: &mut ExportedCounts) {
    if tables.has_run(&found.id) {
        counted.there += 1;
        return;
    }
    match Bundle::open(&found.path) {
        Ok(bundle) => {
            let explanations = bundle.windows.is_some().then(|| {
                explanation::explain_samples(&bundle, &Wanted::default())
                    .map(|found| found.to_document())
            });
            let document = explanations.and_then(Result::ok);
            let lab = found.lab.as_ref().map(|(lab, run)| LabRun {
                lab,
                cell: &run.cell,
                seed: run.seed,
            });
            tables.add(found.id, &FleetRun { bundle: &bundle, explained: document.as_ref(), lab });
            counted.added += 1;
        }
        Err(why) => {
            output::print_error(&escape_unsafe(&why.to_string()));
            counted.unreadable += 1;
        }
    }
}

#[derive(Default)]
struct Finder<'a> {
    machine: &'a str,
    found: BTreeMap<FleetPartition, Vec<FoundBundle>>,
    counted: ExportedCounts,
}

impl Finder<'_> {
    /// Adds a bundle, or those below a directory; `lab` is the name of its lab.
    fn find_bundles(&mut self, path: &Path, lab: Option<&str>, depth: usize) {
        let place = Member::from_root(path);
        if place.join("bundle.json").exists() {
            return self.add_bundle(path, lab);
        }
        if depth == 0 {
            return;
        }
        let lab_name = lab::read(path).ok().map(|document| document.name);
        let mut below: Vec<PathBuf> =
            std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        below.sort();
        for path in below {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Skips unfinished and failed runs of a lab.
            if !name.starts_with('.') && !name.ends_with(".failed") && is_directory(&path) {
                self.find_bundles(&path, lab_name.as_deref().or(lab), depth - 1);
            }
        }
    }

    fn add_bundle(&mut self, path: &Path, lab: Option<&str>) {
        let manifest: Manifest = match Member::from_root(path).join("bundle.json").read_json() {
            Ok(manifest) => manifest,
            Err(why) => {
                output::print_error(&escape_unsafe(&why.to_string()));
                self.counted.unreadable += 1;
                return;
            }
        };
        if manifest.ending.is_none() {
            self.counted.without_end += 1;
            return;
        }
        let name =
            |part: &Path| part.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let run = || {
            let text = format!("{}/{}", name(path.parent()?), name(path));
            Some((lab?.to_owned(), text.parse().ok()?))
        };
        let found = FoundBundle { path: path.to_owned(), id: id_of(&manifest), lab: run() };
        let partition = FleetPartition::from_manifest(&manifest, self.machine);
        self.found.entry(partition).or_default().push(found);
    }
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

impl ExportedCounts {
    fn format_counts(&self, root: &Path) -> String {
        let mut text =
            format!("{} added to {}", count_with_noun(self.added, "run"), display_path(root));
        for (count, what) in [
            (self.there, "there already"),
            (self.without_end, "no recorded end: running or cut off, not included"),
            (self.unreadable, "unreadable"),
        ] {
            if count > 0 {
                text += &format!("; {count} {what}");
            }
        }
        text
    }
}
