//! Steps and functions of programs that the compiler put points into: their names and lines, looked
//! up where a recording is read, and what of these programs ran.

use punctual_bundle::steps::{LineSteps, StepCounts};
use punctual_core::event::{Event, EventKind, Names, PointId, PointKind};
use punctual_core::{Finding, Severity};
use punctual_record::symbols::lines::LineRow;
use punctual_record::symbols::short_name;
use punctual_record::symbols::steps::InstrumentedFile;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Places named; events of further ones keep the name of their program.
const PLACES_MAX: usize = 1 << 20;

/// How the library names a program or library in its points.
const PREFIX: &str = "punctual.steps:";

/// The bytes that the argument of a hook and its call take at most, on x86-64 and arm64.
const ARGUMENT_AND_CALL: u64 = 13;

/// A program or library of a recording.
struct Program {
    path: PathBuf,
    /// Whether a list left out functions.
    is_partial: bool,
    /// Its code, or why nothing is known of it.
    file: Result<InstrumentedFile, String>,
}

/// A program or library, and the address of a function or step in it.
type Place = (PointId, u64);

/// The names of a recording, with those of all steps and functions in it.
pub struct StepNames {
    pub(crate) names: Names,
    programs: BTreeMap<PointId, Program>,
    /// The name of each place, and how often it was entered or passed.
    places: BTreeMap<Place, (PointId, u64)>,
}

impl StepNames {
    /// Looks up what these events name; `None` if nothing of that sort is in them.
    pub(crate) fn from_events(
        names: &Names,
        events: impl Iterator<Item = Event>,
    ) -> Option<StepNames> {
        let points = (0..).map(PointId).zip(&names.points);
        let programs: BTreeMap<PointId, Program> =
            points.filter_map(|(id, name)| Some((id, Program::of_point(name)?))).collect();
        if programs.is_empty() {
            return None;
        }
        let mut found = StepNames { names: names.clone(), programs, places: BTreeMap::new() };
        for event in events {
            let Some((place, kind)) = place_of(&event) else { continue };
            let has_room = found.places.len() < PLACES_MAX || found.places.contains_key(&place);
            if has_room && found.programs.contains_key(&place.0) {
                let (_, passed) = found.places.entry(place).or_insert((place.0, 0));
                *passed += u64::from(kind != PointKind::End);
            }
        }
        let mut points_by_name: HashMap<String, PointId> = HashMap::new();
        for ((program, address), (id, _)) in &mut found.places {
            let name = found.programs[program].place_name(*address);
            *id = *points_by_name.entry(name).or_insert_with_key(|name| {
                found.names.points.push(name.clone());
                PointId(found.names.points.len() as u32 - 1)
            });
        }
        Some(found)
    }

    /// Gives an event the name of its place.
    pub(crate) fn name_event(&self, event: &mut Event) {
        let named = place_of(event).and_then(|(place, _)| self.places.get(&place));
        if let (Some((id, _)), EventKind::Point { point, count, .. }) = (named, &mut event.what) {
            (*point, *count) = (*id, 0);
        }
    }

    /// Counts by a recording that lost this many events.
    pub fn count_steps(&self, lost: u64) -> StepCounts {
        let mut counts = StepCounts::default();
        for (id, program) in &self.programs {
            let path = program.path.display().to_string();
            let mut found = |severity, id, message, why: &str| {
                let finding = Finding::new(id, severity, &path, message);
                counts.findings.push(finding.with_evidence(why));
            };
            if lost > 0 {
                let message = "Points were lost: what is counted 0 may have run.";
                found(Severity::Bad, "steps-lost", message, &lost.to_string());
            }
            if program.is_partial {
                let message = "A list left out functions: what is counted 0 may have run.";
                found(Severity::Warning, "steps-left-out", message, "PUNCTUAL_STEPS");
            }
            match &program.file {
                Ok(file) => {
                    if let Err(why) = &file.rows {
                        found(Severity::Bad, "steps-no-lines", "Lines are not known.", why);
                    }
                    self.add(*id, file, &mut counts);
                }
                Err(why) => found(Severity::Bad, "steps-unread", "What ran is not known.", why),
            }
        }
        counts
    }

    /// Adds the counts of a program's functions and lines.
    fn add(&self, id: PointId, program: &InstrumentedFile, counts: &mut StepCounts) {
        let passed_count = |at: u64| self.places.get(&(id, at)).map_or(0, |(_, passed)| *passed);
        for function in &program.functions {
            let first = function.steps.first().filter(|_| !function.enters);
            let entered = passed_count(*first.unwrap_or(&function.code.start));
            if let Some(row) = program.row_at(function.code.start) {
                let file = counts.files.entry(row.source.path.clone()).or_default();
                *file.functions.entry((row.line, function.name.clone())).or_default() += entered;
            }
            for step in &function.steps {
                if let Some(row) = program.row_at(*step) {
                    line_steps(counts, row).steps.push(passed_count(*step));
                }
            }
            for row in program.rows_of(&function.code) {
                // A call with its argument at the begin of the row is the row's own.
                let own_end = row.code.end.min(row.code.start.saturating_add(ARGUMENT_AND_CALL));
                let steps = function.steps.partition_point(|step| *step < own_end);
                let before = steps.checked_sub(1).map(|last| function.steps[last]);
                let line = line_steps(counts, row);
                line.before = line.before.max(before.map_or(entered, passed_count));
            }
        }
    }
}

fn line_steps<'c>(counts: &'c mut StepCounts, row: &LineRow) -> &'c mut LineSteps {
    let file = counts.files.entry(row.source.path.clone()).or_default();
    file.lines.entry(row.line).or_default()
}

impl Program {
    /// The program or library that a point of this name is of.
    fn of_point(name: &str) -> Option<Program> {
        let (build, path) = name.strip_prefix(PREFIX)?.split_once(':')?;
        let (whole, path) = (build.strip_suffix('-'), Path::new(path));
        let file = InstrumentedFile::read(path, whole.unwrap_or(build));
        Some(Program { path: path.to_owned(), is_partial: whole.is_some(), file })
    }

    /// The name of a place: a function's, or a step's line.
    fn place_name(&self, address: u64) -> String {
        let file = self.file.as_ref().ok();
        let function = file.and_then(|file| file.function_at(address));
        match (file.and_then(|file| file.row_at(address)), function) {
            (_, Some(function)) if address == function.code.start => function.name.clone(),
            (Some(row), _) => format!("{}:{}", row.source.name, row.line),
            (_, Some(function)) => {
                format!("{}+{:#x}", function.name, address - function.code.start)
            }
            _ => format!("{}+{address:#x}", short_name(&self.path)),
        }
    }
}

/// The place that an event of a step or function is of.
fn place_of(event: &Event) -> Option<(Place, PointKind)> {
    match event.what {
        EventKind::Point { point, kind, count: 1, values } => {
            Some(((point, values[0].cast_unsigned()), kind))
        }
        _ => None,
    }
}
