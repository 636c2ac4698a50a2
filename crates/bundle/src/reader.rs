//! Opening a bundle: complete, still being written, or cut off by kill -9 or a power failure.

use crate::account::{self, SeriesAccount};
use crate::checkpoint;
use crate::lines::{self, SampleLine};
use crate::log::{self, LogContents};
use crate::manifest::{self, Manifest};
use crate::member::{Member, is_private};
use crate::meta::{PhaseMeta, SeriesMeta};
use crate::planned::{PLAN, PlannedRequests};
use crate::recording::RecordingReader;
use crate::state::SeriesState;
use crate::windows::WindowsReader;
use crate::{BundleError, FORMAT_VERSION, Timebase};
use punctual_core::{ClockNs, Fact, Finding, Nanos};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::{Path, PathBuf};

mod parts;

pub use parts::{DIRECTORY as PARTS, FIRST as FIRST_LATER, directory_of as part_directory};

/// The maximum size of a log: some hundred million samples (by default a series keeps a million).
const MAX_LOG: u64 = 8 << 30;

/// An opened bundle.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub directory: PathBuf,
    pub manifest: Manifest,
    pub completeness: Completeness,
    /// The phases that began, in order.
    pub phases: Vec<Phase>,
    /// Kernel events and test points, if recorded.
    pub recording: Option<RecordingReader>,
    /// The events around the worst samples, if kept.
    pub windows: Option<WindowsReader>,
    /// Findings from the run.
    pub findings: Vec<Finding>,
    /// Unreadable parts with reasons: every command reports them.
    pub damage: Vec<String>,
    /// Whether kept samples are no longer readable ([`Bundle::check_samples`]).
    pub damaged_samples: bool,
    /// The directories of the later parts in order, for a run that was cut off and continued.
    pub parts: Vec<PathBuf>,
}

/// Whether the run recorded an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completeness {
    /// The run recorded its end.
    Whole,
    /// No end was recorded: it was killed, the machine failed, or it is still running.
    CutOff,
}

/// The measurements between one set of loads and the next.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name, times and loads.
    pub meta: PhaseMeta,
    pub series: Vec<Series>,
}

/// A series with its statistics in memory. Its samples are read on demand.
#[derive(Clone, Debug)]
pub struct Series {
    pub meta: SeriesMeta,
    /// Its final statistics, or those of the last checkpoint if it was cut off.
    pub state: SeriesState,
    /// The breakdown of its samples' time into main parts.
    pub account: Fact<SeriesAccount>,
    files: OnDemandFiles,
    /// The files of later parts, each with the offset of its instants from the clock of the first.
    later: Vec<(OnDemandFiles, Nanos)>,
}

/// The files that are read on demand.
#[derive(Clone, Debug)]
struct OnDemandFiles {
    log: Member,
    old_log: Member,
    lines: Member,
    /// The number of samples in the logs of a series that ended: they are complete then.
    ended_with: Option<u64>,
}

impl Series {
    /// Reads the kept samples and windows. Of a run for weeks these are the newest, and the earlier
    /// windows are the lines of its long plot. A continued run returns those of all parts, on the
    /// clock of the first.
    pub fn load_log(&self) -> Result<LogContents, BundleError> {
        let mut contents = self.files.load_log()?;
        for (files, ahead) in &self.later {
            let mut log = files.load_log()?;
            log.samples.iter_mut().for_each(|sample| parts::shift_sample(sample, *ahead));
            log.windows
                .iter_mut()
                .for_each(|window| window.start = shift_instant(window.start, *ahead));
            contents.samples.append(&mut log.samples);
            contents.windows.append(&mut log.windows);
            contents.torn_bytes += log.torn_bytes;
        }
        Ok(contents)
    }

    /// The lines of its long plot; empty unless the run was for weeks.
    pub fn load_lines(&self) -> Result<Vec<SampleLine>, BundleError> {
        let mut all_lines = self.files.load_lines()?;
        for (files, ahead) in &self.later {
            let mut lines = files.load_lines()?;
            lines
                .iter_mut()
                .for_each(|line| line.clock_start = shift_instant(line.clock_start, *ahead));
            all_lines.append(&mut lines);
        }
        Ok(all_lines)
    }
}

fn shift_instant(instant: ClockNs, by: Nanos) -> ClockNs {
    ClockNs(instant.ns().saturating_add(by.ns()))
}

impl OnDemandFiles {
    /// The damage to the samples of a series that ended.
    fn find_damage(&self) -> Option<String> {
        let kept = self.ended_with.filter(|kept| *kept > 0)?;
        let check = |member: &Member| {
            let checked = member.open().and_then(|file| log::check_log(BufReader::new(file)));
            BundleError::if_there(checked.map_err(BundleError::from_io("read", member.path())))
        };
        let checked_logs = check(&self.old_log).and_then(|old| Ok((old, check(&self.log)?)));
        let name = self.log.path().display();
        match checked_logs {
            Err(why) => Some(why.to_string()),
            Ok((_, None)) => Some(format!("{name} is missing: {kept} samples were in it")),
            Ok((old, Some(new))) => {
                let samples = old.map_or(0, |old| old.samples).saturating_add(new.samples);
                let is_whole = new.is_whole && old.is_none_or(|old| old.is_whole);
                (!is_whole || samples < kept)
                    .then(|| format!("{name} is damaged: {samples} of {kept} samples can be read"))
            }
        }
    }

    fn load_log(&self) -> Result<LogContents, BundleError> {
        let Some(mut log) = BundleError::if_there(read_log(&self.old_log))? else {
            let log = read_log(&self.log)?;
            return Ok(self.with_lines(log));
        };
        // The writer may have died in the middle of a rotation.
        if let Some(newer) = BundleError::if_there(read_log(&self.log))? {
            log.samples.extend(newer.samples);
            log.windows.extend(newer.windows);
            log.torn_bytes += newer.torn_bytes;
        }
        Ok(self.with_lines(log))
    }

    fn load_lines(&self) -> Result<Vec<SampleLine>, BundleError> {
        let Some(bytes) = BundleError::if_there(self.lines.read_at_most(MAX_LOG))? else {
            return Ok(Vec::new());
        };
        lines::decode_lines(&bytes).map_err(|why| BundleError::from_damage(self.lines.path(), why))
    }

    fn with_lines(&self, mut log: LogContents) -> LogContents {
        let lines = self.load_lines().unwrap_or_default();
        let detail = log.windows.first().map(|window| window.start);
        let before = |line: &&SampleLine| {
            detail.is_none_or(|detail| line.clock_start + line.length <= detail)
        };
        let windows = lines.iter().take_while(before).filter_map(SampleLine::to_window);
        log.windows.splice(0..0, windows.collect::<Vec<_>>());
        log
    }
}

fn read_log(member: &Member) -> Result<LogContents, BundleError> {
    log::decode_log(&member.read_at_most(MAX_LOG)?)
        .map_err(|why| BundleError::from_damage(member.path(), why))
}

impl Bundle {
    /// Reads all samples and adds their damage to [`Bundle::damage`]. Takes as long as reading
    /// them; called before a bundle is shown or exported.
    pub fn check_samples(&mut self) {
        let files = |series: &Series| {
            let later: Vec<OnDemandFiles> =
                series.later.iter().map(|(files, _)| files.clone()).collect();
            std::iter::once(series.files.clone()).chain(later)
        };
        let all_files = self.phases.iter().flat_map(|phase| phase.series.iter().flat_map(files));
        let found: Vec<String> = all_files.filter_map(|files| files.find_damage()).collect();
        self.damaged_samples = !found.is_empty();
        self.damage.extend(found);
    }

    /// The timebase of its figures.
    pub fn timebase(&self) -> Timebase {
        Timebase::from_target(self.manifest.target.as_ref())
    }

    /// Opens a bundle. Only a directory that is not a bundle or has a newer format is an error.
    /// Other damage is skipped and listed in [`Bundle::damage`].
    pub fn open(directory: &Path) -> Result<Bundle, BundleError> {
        let root = Member::from_root(directory);
        let mut bundle = Bundle::open_part(&root)?;
        let damage = &mut bundle.damage;
        let recording = RecordingReader::open(directory);
        damage.extend(recording.iter().flat_map(|recording| recording.damage.iter().cloned()));
        let windows = WindowsReader::open(directory);
        damage.extend(windows.iter().flat_map(|windows| windows.damage.iter().cloned()));
        let parts = parts::read(&root, damage);
        (bundle.recording, bundle.windows) = (recording, windows);
        let own_ending = bundle.manifest.ending.clone();
        parts.into_iter().for_each(|part| bundle.append_part(part));
        // Written at the end of the last part: its exit code is that of all parts.
        let manifest = &mut bundle.manifest;
        let last = manifest.ending.as_ref();
        match last.zip(own_ending.as_ref()).is_some_and(|(last, own)| last.at == own.at) {
            true => manifest.ending = own_ending,
            // The stored verdict is of the first part.
            false => manifest.verdict = None,
        }
        Ok(bundle)
    }

    /// Its series and findings, without the recording.
    fn open_part(root: &Member) -> Result<Bundle, BundleError> {
        let manifest = read_manifest(root)?;
        let mut damage = Vec::new();
        let findings = match root.join("findings.json").read_json() {
            Ok(findings) => findings,
            // Every ended run has one; a run that was killed early may not.
            Err(error) if error.is_missing() && manifest.ending.is_none() => Vec::new(),
            Err(error) => {
                damage.push(error.to_string());
                Vec::new()
            }
        };
        let completeness =
            if manifest.ending.is_some() { Completeness::Whole } else { Completeness::CutOff };
        let phases = read_phases(&root.join("phases"), &mut damage);
        Ok(Bundle {
            directory: root.path().to_owned(),
            manifest,
            completeness,
            phases,
            recording: None,
            windows: None,
            findings,
            damage,
            damaged_samples: false,
            parts: Vec::new(),
        })
    }

    /// A JSON document of the run: `environment`, `environment-end`, `check`; `Ok(None)` without
    /// one.
    pub fn read_document<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, BundleError> {
        BundleError::if_there(self.member(name).with_extension("json").read_json())
    }

    /// What lies in its directory under this name; made there, it is as private as what was
    /// recorded.
    pub fn member(&self, name: &str) -> Member {
        let member = Member::from_root(&self.directory).join(name);
        if is_private(&self.directory) { member.to_private() } else { member }
    }

    /// The plan as run (TOML); `Ok(None)` for imports.
    pub fn plan_text(&self) -> Result<Option<String>, BundleError> {
        BundleError::if_there(self.member(PLAN).read_text())
    }

    /// The requests of its plan; empty for imports and attachments, which have none.
    pub fn planned_requests(&self) -> Result<PlannedRequests, BundleError> {
        PlannedRequests::read(&self.member(PLAN))
    }

    /// All series, each with the name of its phase.
    pub fn all_series(&self) -> impl Iterator<Item = (&str, &Series)> {
        self.phases
            .iter()
            .flat_map(|phase| phase.series.iter().map(|series| (phase.meta.name.as_str(), series)))
    }
}

fn read_manifest(root: &Member) -> Result<Manifest, BundleError> {
    let directory = root.path();
    let not_a_bundle = |why: String| BundleError::NotABundle { path: directory.to_owned(), why };
    let text = root.join("bundle.json").read_text();
    let text = text.map_err(|error| not_a_bundle(error.to_string()))?;
    // The version is checked first: a newer manifest may have another shape.
    let raw: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| not_a_bundle(error.to_string()))?;
    if raw.get("format").and_then(|f| f.as_str()) != Some(manifest::FORMAT) {
        return Err(not_a_bundle(format!("its \"format\" is not {:?}", manifest::FORMAT)));
    }
    let found =
        raw.get("version").and_then(|v| v.as_u64()).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
    if found > FORMAT_VERSION {
        return Err(BundleError::TooNew {
            path: directory.to_owned(),
            found,
            known: FORMAT_VERSION,
        });
    }
    serde_json::from_value(raw).map_err(|error| not_a_bundle(error.to_string()))
}

fn read_phases(directory: &Member, damage: &mut Vec<String>) -> Vec<Phase> {
    let mut phases = Vec::new();
    for directory in directory.readable_entries("", damage) {
        match directory.join("phase.json").read_json() {
            Ok(meta) => phases.push(Phase { meta, series: read_all_series(&directory, damage) }),
            Err(error) => damage.push(error.to_string()),
        }
    }
    phases
}

fn read_all_series(directory: &Member, damage: &mut Vec<String>) -> Vec<Series> {
    let entries = directory.readable_entries("", damage);
    let ending = |ending: &'static str| {
        let ends = move |entry: &&Member| entry.path().to_string_lossy().ends_with(ending);
        entries.iter().filter(ends)
    };
    let mut series_list = Vec::new();
    for meta in ending(".meta.json") {
        match read_series(meta, damage) {
            Ok(series) => series_list.push(series),
            // The run was killed before the first checkpoint of this series: no data were saved, so
            // none are damaged.
            Err(error) if error.is_missing() => {
                damage.push(format!("{}: no checkpoint yet", meta.display()))
            }
            Err(error) => damage.push(error.to_string()),
        }
    }
    // A series with data but without the file that describes it, which is written first.
    let data = ending(".state.json").chain(ending(".checkpoint")).chain(ending(".log"));
    let metas: BTreeSet<Member> =
        data.map(|data| member_stem(data).with_extension("meta.json")).collect();
    let orphans = metas.into_iter().filter(|meta| !meta.exists());
    damage.extend(
        orphans.map(|meta| format!("{} is missing: its series is left out", meta.display())),
    );
    series_list
}

/// `0000.meta.json` → `0000`
fn member_stem(member: &Member) -> Member {
    member.with_extension("").with_extension("")
}

fn read_series(meta: &Member, damage: &mut Vec<String>) -> Result<Series, BundleError> {
    let stem = member_stem(meta);
    let (state, has_ended) = read_state(&stem)?;
    let account = account::read(&stem.with_extension("account.json"), damage);
    let [log, old_log, lines] = ["log", "old.log", "lines"].map(|end| stem.with_extension(end));
    let ended_with = has_ended.then_some(state.samples_kept);
    let files = OnDemandFiles { log, old_log, lines, ended_with };
    Ok(Series { meta: meta.read_json()?, state, account, files, later: Vec::new() })
}

/// The final statistics with `true` if the series ended, else those of the newest checkpoint.
fn read_state(stem: &Member) -> Result<(SeriesState, bool), BundleError> {
    let for_good = || {
        let member = stem.with_extension("state.json");
        let state = SeriesState::from_json(&member.read_text()?);
        let state = state.map_err(|why| BundleError::from_damage(member.path(), why))?;
        Ok((state, true))
    };
    let saved = || {
        let member = stem.with_extension("checkpoint");
        let state = checkpoint::decode_newest(&member.read()?);
        let state = state.map_err(|why| BundleError::from_damage(member.path(), why))?;
        Ok((state, false))
    };
    let mut read = for_good();
    if read.as_ref().is_err_and(BundleError::is_missing) {
        read = saved();
    }
    // The series may have ended between the two reads.
    if read.as_ref().is_err_and(BundleError::is_missing) { for_good() } else { read }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::PartGap;
    use crate::meta::TIMER_WORKLOAD;
    use crate::{BundleWriter, PhaseMeta, SeriesWriter};
    use punctual_core::{Clock, ClockNs, CpuSet, Fact, Nanos, Sample, SeriesData, SeriesShape};
    use std::fs;

    fn write_one(directory: &Path) -> (SeriesWriter, SeriesState) {
        write_part(directory, 0, 5_000, None)
    }

    /// Samples of this latency. CLOCK_MONOTONIC began `since` ns after 1970; the samples begin
    /// there.
    fn write_part(
        directory: &Path,
        since: i64,
        latency: i64,
        gap: Option<PartGap>,
    ) -> (SeriesWriter, SeriesState) {
        let mut writer = BundleWriter::create(directory, "x", "run").unwrap();
        gap.into_iter().for_each(|gap| writer.set_gap(gap).unwrap());
        let phase = PhaseMeta::new("main", jiff::Timestamp::from_nanosecond(since.into()).unwrap());
        writer.write_phase(0, &phase).unwrap();
        let meta = SeriesMeta {
            name: "timer/cpu0".into(),
            workload: TIMER_WORKLOAD.into(),
            clock: Clock::Monotonic,
            cpus: CpuSet::from_cpu(0),
            scheduling: "SCHED_FIFO 80".into(),
            real_time: true,
            period: Some(Nanos::MILLI),
            tid: Some(1),
            ..SeriesMeta::default()
        };
        let mut series = writer.begin_series(0, 0, &meta, 5).unwrap();
        let shape =
            SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: meta.period };
        let mut data = SeriesData::new(shape);
        for seq in 0..8u64 {
            let due = seq as i64 * 1_000_000;
            let sample = Sample { seq, due: ClockNs(due), woke: ClockNs(due + latency), cpu: 0 };
            data.record_sample(&sample, 0);
            series.append_samples(&[sample]).unwrap();
        }
        let (samples_kept, log_bytes) = (series.kept_count(), series.log_bytes());
        let state =
            SeriesState { data, usage: Fact::NotAsked, digest: None, samples_kept, log_bytes };
        series.save_checkpoint(&state).unwrap();
        (series, state)
    }

    #[test]
    fn a_bundle_without_an_ending_is_opened_as_truncated() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("b");
        let (_, written) = write_one(&directory);
        let bundle = Bundle::open(&directory).unwrap();
        assert_eq!(bundle.completeness, Completeness::CutOff);
        assert_eq!(bundle.damage, Vec::<String>::new());
        let (phase, series) = bundle.all_series().next().unwrap();
        assert_eq!(
            (phase, series.state.data.sample_count()),
            ("main", written.data.sample_count())
        );
        assert_eq!((series.state.samples_kept, series.load_log().unwrap().samples.len()), (5, 5));
    }

    #[test]
    fn damaged_series_are_omitted_and_reported() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("b");
        write_one(&directory);
        for (file, content) in [("0000.checkpoint", "PNCTCKP1"), ("0000.state.json", "{")] {
            fs::write(directory.join("phases/000").join(file), content).unwrap();
            let bundle = Bundle::open(&directory).unwrap();
            assert!(bundle.phases[0].series.is_empty());
            assert!(bundle.damage[0].contains(file), "{:?}", bundle.damage);
        }
    }

    #[test]
    fn samples_that_can_no_longer_be_read_are_damage() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("b");
        let (mut series, state) = write_one(&directory);
        let damage = || {
            let mut bundle = Bundle::open(&directory).unwrap();
            bundle.check_samples();
            (bundle.damaged_samples, bundle.damage)
        };
        let log = directory.join("phases/000/0000.log");
        let whole = fs::read(&log).unwrap();
        fs::write(&log, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(damage(), (false, Vec::new()), "a run that goes on, or was killed");
        fs::write(&log, &whole).unwrap();
        series.finish(&state).unwrap();
        assert_eq!(damage(), (false, Vec::new()));
        let mut flipped = whole.clone();
        flipped[40] ^= 4;
        fs::write(&log, &flipped).unwrap();
        let (damaged, what) = damage();
        assert!(damaged && what[0].contains("is damaged: "), "{what:?}");
        fs::remove_file(&log).unwrap();
        assert!(damage().1[0].contains("is missing: 5 samples"), "{:?}", damage());
    }

    /// A bundle, and the directory of its second part.
    fn begun_again() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("b");
        write_one(&directory);
        fs::create_dir(directory.join("parts")).unwrap();
        let part = part_directory(&directory, FIRST_LATER);
        (place, directory, part)
    }

    /// The power failed, and the clock restarted at 0.
    #[test]
    fn a_continued_run_is_read_as_one_run_with_a_gap() {
        let (_place, directory, part) = begun_again();
        let [from, to] = [1, 3_600].map(|s| jiff::Timestamp::from_second(s).unwrap());
        let hour = 3_600_000_000_000;
        write_part(&part, hour, 9_000, Some(PartGap { from, to }));
        let bundle = Bundle::open(&directory).unwrap();
        assert_eq!((&bundle.damage, &bundle.parts), (&Vec::new(), &vec![part]));
        assert_eq!(bundle.manifest.gaps, [PartGap { from, to }]);
        assert_eq!(bundle.manifest.gaps[0].length(), Nanos::from_secs(3_599));
        let (_, series) = bundle.all_series().next().unwrap();
        let data = &series.state.data;
        assert_eq!((data.sample_count(), data.losses.recorded), (16, 16));
        assert_eq!((data.min, data.max), (Some(Nanos(5_000)), Some(Nanos(9_000))));
        assert_eq!((data.mean(), data.worst.len()), (Some(7_000.0), 16));
        assert!(data.worst.iter().any(|of| of.due.ns() >= hour), "on the first part's clock");
        let log = series.load_log().unwrap();
        assert_eq!((series.state.samples_kept, log.samples.len()), (10, 10));
        let dues: Vec<i64> = log.samples.iter().map(|sample| sample.due.ns()).collect();
        assert!(dues.is_sorted() && dues[5] == hour, "{dues:?}");
        assert_eq!(log.samples[5].latency(), Nanos(9_000));
    }

    /// If one part did not get its scheduling, the whole run is not as requested.
    #[test]
    fn the_worse_scheduling_of_the_parts_is_that_of_the_run() {
        for worse in [0, 1] {
            let (_place, directory, part) = begun_again();
            write_part(&part, 3_600_000_000_000, 9_000, None);
            let meta = Member::from_root(if worse == 0 { &directory } else { &part })
                .join("phases/000/0000.meta.json");
            let mut text: SeriesMeta = meta.read_json().unwrap();
            (text.scheduling, text.real_time) = ("SCHED_OTHER".into(), false);
            meta.replace_json(&text).unwrap();
            let bundle = Bundle::open(&directory).unwrap();
            let meta = &bundle.all_series().next().unwrap().1.meta;
            assert_eq!((meta.scheduling.as_str(), meta.real_time), ("SCHED_OTHER", false));
        }
    }

    #[test]
    fn the_command_of_the_last_part_is_that_of_the_run() {
        let (_place, directory, part) = begun_again();
        write_part(&part, 3_600_000_000_000, 9_000, None);
        let header = Member::from_root(&part).join("bundle.json");
        let mut json: serde_json::Value = header.read_json().unwrap();
        json["command"] = serde_json::json!({ "code": 7, "by_itself": true });
        header.replace_json(&json).unwrap();
        let ended = crate::CommandEnd { code: 7, by_itself: true };
        assert_eq!(Bundle::open(&directory).unwrap().manifest.command, Some(ended));
    }

    #[test]
    fn a_finished_series_is_read_without_a_checkpoint() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("b");
        let (mut series, mut state) = write_one(&directory);
        state.usage = Fact::Unavailable("not reported".into());
        series.finish(&state).unwrap();
        assert!(!directory.join("phases/000/0000.checkpoint").exists());
        let bundle = Bundle::open(&directory).unwrap();
        assert_eq!(bundle.all_series().next().unwrap().1.state.usage, state.usage);
    }

    #[test]
    fn the_newer_of_two_checkpoints_is_read() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("b");
        let (mut series, mut state) = write_one(&directory);
        state.data.losses.dropped = 3;
        series.save_checkpoint(&state).unwrap();
        let bundle = Bundle::open(&directory).unwrap();
        assert_eq!(bundle.all_series().next().unwrap().1.state.data.losses.dropped, 3);
    }

    #[test]
    fn directories_that_are_no_bundle_are_refused() {
        let place = tempfile::tempdir().unwrap();
        assert!(matches!(Bundle::open(place.path()), Err(BundleError::NotABundle { .. })));
        fs::write(
            place.path().join("bundle.json"),
            r#"{"format": "punctual-bundle", "version": 999}"#,
        )
        .unwrap();
        assert!(matches!(Bundle::open(place.path()), Err(BundleError::TooNew { found: 999, .. })));
        assert!(matches!(
            BundleWriter::create(place.path(), "x", "run"),
            Err(BundleError::Exists(_))
        ));
    }
}
