//! The commands under test: how they measure, and how their explanations are read.

use super::block::{self, Disk};
use super::document::TruthScore;
use super::group::{self, ControlGroup};
use super::names::MEASURING;
use super::recorder::{NOT_RECORDED, TruthRecorder};
use super::score::{Expected, Injected, score_account, score_samples, whole_delays};
use super::{InjectedCase, record, subject};
use punctual_bundle::Bundle;
use punctual_core::{MonotonicNs, Nanos};
use punctual_session::exit::Failure;
use punctual_session::explanation::{self, Wanted};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The period of the timer.
const PERIOD: &str = "500us";
const WORST: usize = 100;
/// The recorded events, if everything is recorded for an explanation.
const EVENTS: &str =
    "sched,irq,vectors,softirq,ipi,hrtimer,idle,fault,page,futex,lock,block,syscall";
/// The file in which the measured program stores the delays that it met.
const MET: &str = "met";

/// The command whose explanations are scored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// `punctual run` with an `[explain]` section.
    Run,
    /// `punctual attach --explain`, without knowledge of its target.
    Attach,
    /// A recording of everything: `punctual run` with a `[record]` section, or `punctual trace`.
    Trace,
    /// The accounting of `punctual run`: causes without culprits, of all samples.
    Account,
    /// A trace that another tool recorded, as `punctual explain FILE` explains it.
    Recorded(TruthRecorder),
}

impl Through {
    /// The commands that record themselves.
    const SELF_RECORDING: [Through; 4] =
        [Through::Run, Through::Attach, Through::Trace, Through::Account];

    pub fn all_variants() -> impl Iterator<Item = Through> {
        Through::SELF_RECORDING.into_iter().chain(TruthRecorder::ALL.map(Through::Recorded))
    }

    /// The program that must exist beside this one.
    pub fn required_program(self) -> Option<&'static str> {
        match self {
            Through::Recorded(recorder) => recorder.required_program(),
            _ => None,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Through::Run => "run",
            Through::Attach => "attach",
            Through::Trace => "trace",
            Through::Account => "account",
            Through::Recorded(recorder) => recorder.word(),
        }
    }

    /// The events that the cause of a case needs, where this way does not record them.
    pub fn unrecorded_events(self, case: &InjectedCase) -> Option<&'static str> {
        match self {
            Through::Recorded(recorder) => recorder.missing_events(case),
            _ => None,
        }
    }

    /// Why a case cannot be measured this way.
    pub fn unsupported_reason(self, case: &InjectedCase) -> Option<String> {
        (self == Through::Account && case.is_of_subject())
            .then(|| "the accounting of a run divides samples of timers alone".to_owned())
    }
}

/// The measurement: a case for a time, on a CPU.
pub struct TruthMeasurement<'m> {
    pub case: &'m InjectedCase,
    pub duration: Nanos,
    pub cpu: usize,
    pub through: Through,
    pub place: &'m Path,
}

impl TruthMeasurement<'_> {
    /// Measures like a user; the error says why there is nothing to explain.
    pub fn run_measurement(&self) -> Result<(), String> {
        let failed = |why: io::Error| why.to_string();
        let own_program = std::env::current_exe().map_err(failed)?;
        let program = super::find_tested_program(&own_program).map_err(|why| why.render(false))?;
        fs::write(self.place.join("experiment.toml"), self.format_experiment(&own_program))
            .map_err(failed)?;
        // Alone in its group, so that nothing else is stopped with it.
        let group = self.case.is_confined().then(|| ControlGroup::new(group::GROUP));
        let group = group.transpose().map_err(failed)?;
        let start = |program: &Path| match group.as_ref() {
            Some(group) => group.command_in_group(program),
            None => Command::new(program),
        };
        let of_command = |command: Command| {
            let program = command.get_program().to_owned();
            let words = command.get_args().map(ToOwned::to_owned).collect::<Vec<_>>();
            [vec![program], words].concat()
        };
        let of_subject = self.case.is_of_subject();
        let mut command = match self.through {
            Through::Recorded(_) if of_subject => start(&own_program),
            Through::Run | Through::Account | Through::Recorded(_) => start(&program),
            Through::Trace if !of_subject => start(&program),
            Through::Attach | Through::Trace => Command::new(&program),
        };
        let run = ["run", "--quiet", "--no-calibration"];
        match self.through {
            Through::Attach => {
                command.args(["attach", "--quiet", "--explain", "--output", "bundle"]);
                if of_subject {
                    command.args(["--cycle", "absolute", "--", &own_program.to_string_lossy()]);
                    command.args(self.subject_arguments());
                } else {
                    command.arg("--").args(of_command(start(&program)));
                    command.args(run).args(["--output", "own", "experiment.toml"]);
                }
            }
            Through::Trace if of_subject => {
                command.args(["trace", "--quiet", "--events", EVENTS, "--output", "bundle", "--"]);
                command.arg(&own_program).args(self.subject_arguments());
            }
            Through::Recorded(_) if of_subject => drop(command.args(self.subject_arguments())),
            Through::Recorded(_) => {
                command.args(run).args(["--output", "own", "experiment.toml"]);
            }
            _ => drop(command.args(run).args(["--output", "bundle", "experiment.toml"])),
        }
        let recording = match self.through {
            Through::Recorded(recorder) => {
                Some(recorder.start_recording(&program, self.place, self.duration)?)
            }
            _ => None,
        };
        command.current_dir(self.place);
        let ran = command.stdin(Stdio::null()).output();
        let thread = if of_subject { subject::NAME } else { MEASURING };
        let recorded =
            recording.map_or(Ok(()), |one| one.finish_bundle(thread, &self.place.join("bundle")));
        let ran = ran.map_err(failed)?;
        match ran.status.code() {
            // Exit code 4: the machine took time from it, or a load did; the samples exist.
            Some(0 | 4) => recorded,
            _ => {
                let message = String::from_utf8_lossy(&ran.stderr).into_owned();
                Err(message.lines().next().unwrap_or("punctual failed").to_owned())
            }
        }
    }

    /// The arguments that select the measured program's operation.
    fn subject_arguments(&self) -> [String; 5] {
        let name = subject::ARGUMENT.to_owned();
        [name, self.case.name(), self.cpu.to_string(), self.duration.0.to_string(), MET.to_owned()]
    }

    fn format_experiment(&self, own: &Path) -> String {
        let TruthMeasurement { case, duration, cpu, through, .. } = self;
        let (policy, priority) = case.measured_scheduling();
        let priority =
            priority.map_or(String::new(), |priority| format!("priority = {priority}\n"));
        let mut text = "[[measure]]\n".to_owned();
        text.push_str(&match case.is_of_subject() {
            true => {
                let met = self.place.join(MET).to_string_lossy().into_owned();
                let mut words = vec![own.to_string_lossy().into_owned()];
                words.extend(self.subject_arguments());
                words.pop();
                words.push(met);
                format!(
                    "name = \"program\"\nkind = \"program\"\ncycle = \"absolute\"\ncommand = {}\n",
                    toml::Value::String(shell_words::join(words))
                )
            }
            false => format!(
                "name = \"timer\"\nkind = \"timer\"\npolicy = \"{policy}\"\n{priority}cpus = \
                 \"{cpu}\"\nperiod = \"{PERIOD}\"\nduration = \"{duration}\"\n"
            ),
        });
        let quote_words = |words: &str| {
            let words: Vec<String> = words.split(',').map(|word| format!("\"{word}\"")).collect();
            words.join(", ")
        };
        text.push_str(&match through {
            Through::Run => format!("\n[explain]\nworst = {WORST}\naccount = false\n"),
            Through::Account => "\n[explain]\nworst = 0\naccount = true\n".to_owned(),
            Through::Trace => format!("\n[record]\nevents = [{}]\n", quote_words(EVENTS)),
            Through::Attach | Through::Recorded(_) => String::new(),
        });
        text
    }

    /// The delays that the measured program met itself.
    pub fn read_met_delays(&self) -> Result<Vec<Injected>, String> {
        let text = fs::read_to_string(self.place.join(MET)).map_err(|why| why.to_string())?;
        record::read(&text)
    }

    /// Compares the causes reported for samples with the injected ones.
    pub fn score_explanation(&self, injected: &[Injected]) -> Result<TruthScore, Failure> {
        let TruthMeasurement { case, through, .. } = self;
        let bundle = Bundle::open(&self.place.join("bundle")).map_err(Failure::failed)?;
        // Traces of other tools do not contain the names of disks.
        let number = match through {
            Through::Recorded(_) if case.needs_disk() => Some(Disk::device_number()),
            _ => None,
        };
        let number = number.transpose().map_err(Failure::failed)?;
        let of_disk = case.expected_causes().iter().filter(|(_, who)| *who == block::NAME);
        let numbered = of_disk.filter_map(|(cause, _)| Some((*cause, number.as_deref()?)));
        let unrecorded = through.unrecorded_events(case).is_some();
        let causes: Vec<(&str, &str)> = match unrecorded {
            true => NOT_RECORDED.to_vec(),
            false => case.expected_causes().iter().copied().chain(numbered).collect(),
        };
        let is_usual = *through == Through::Account && case.is_usual();
        let expected = Expected {
            causes: &causes,
            placing: case.placing(),
            is_shared: case.is_shared() || is_usual || unrecorded,
        };
        if *through == Through::Account {
            let (mut all, mut begin, mut end) = (TruthScore::default(), i64::MAX, i64::MIN);
            for (_, series) in bundle.all_series() {
                let Some(account) = series.account.known_value() else { continue };
                let log = series.load_log().map_err(Failure::failed)?;
                let samples = log.samples.iter();
                let samples: Vec<_> =
                    samples.map(|one| (MonotonicNs(one.due.0), one.latency())).collect();
                let ends = samples.iter().map(|(due, latency)| (*due + *latency).0);
                begin = samples.iter().map(|(due, _)| due.0).min().unwrap_or(begin).min(begin);
                end = ends.max().unwrap_or(end).max(end);
                all.add(&score_account(&samples, &account.account, injected, expected));
            }
            if all.explained == 0 {
                return Err(Failure::failed("the run has no accounting"));
            }
            all.injected = count_within(injected, begin, end);
            return Ok(all);
        }
        let samples =
            explanation::explain_samples(&bundle, &self.wanted_samples())?.to_document().samples;
        let mut result = score_samples(&samples, injected, expected);
        let begin = samples.iter().map(|sample| sample.at).min().unwrap_or_default();
        let end =
            samples.iter().map(|sample| sample.at + sample.latency_ns).max().unwrap_or_default();
        result.injected = count_within(injected, begin, end);
        Ok(result)
    }

    /// The response times of the subject, or of the measuring thread of a run, by the names of
    /// `attach`; in our own recording the subject's cycles between its own test points.
    fn wanted_samples(&self) -> Wanted {
        let name = |name: &str| vec![format!("{name}/response")];
        let (series, pairs) = match (self.through, self.case.is_of_subject()) {
            (Through::Trace, true) => (Vec::new(), vec![subject::CYCLE.to_owned()]),
            (_, true) => (name(subject::NAME), Vec::new()),
            (Through::Attach | Through::Recorded(_), false) => (name(MEASURING), Vec::new()),
            _ => Default::default(),
        };
        Wanted { series, pairs, worst: Some(WORST), ..Wanted::default() }
    }
}

fn count_within(injected: &[Injected], begin: i64, end: i64) -> u64 {
    let delays = whole_delays(injected);
    delays.iter().filter(|one| one.end >= begin && one.begin <= end).count() as u64
}
