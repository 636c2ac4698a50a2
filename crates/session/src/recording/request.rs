//! The request of a recording, from an experiment or a command line.

use crate::exit::Failure;
use punctual_bundle::recording::Keeps;
use punctual_core::CpuSet;
use punctual_core::event::{Group, NamedTracepoint, ProbeCost};
use punctual_core::words::nearest_word;
use punctual_plan::{ExplainPlan, RecordPlan};
use punctual_record::probe::ProbeRequest;
use punctual_record::symbols::Function;
use punctual_record::symbols::lines::SourceLine;
use punctual_record::tracefs::Tracefs;
use punctual_record::{Backend, group_of};

/// The request of a recording.
#[derive(Clone, Debug, Default)]
pub struct RecordingWanted {
    /// Kernel events; none for test points alone.
    pub events: KernelEvents,
    /// Whether to record nothing at all if kernel events are unavailable.
    pub insist: bool,
    /// The CPUs whose kernel events are requested.
    pub cpus: CpuSet,
    /// The processes that kernel events are limited to; empty: all.
    pub pids: Vec<u32>,
    /// Also record children that they start from now on.
    pub follow_children: bool,
    /// The task names that kernel events are limited to; empty: all.
    pub comms: Vec<String>,
    /// The system calls to record; empty: all.
    pub syscalls: Vec<u32>,
    /// How kernel events are recorded.
    pub backend: Backend,
    /// Whether test points of applications are recorded.
    pub points: bool,
    /// Bytes of the buffer of each CPU.
    pub buffer: usize,
    /// All CPUs that are online.
    pub online: CpuSet,
    /// Functions of programs that are timed.
    pub probes: Option<WantedProbes>,
    /// Bytes that the recording may take.
    pub max_size: u64,
    /// The events to keep once that size is reached.
    pub keeps: Keeps,
    /// The CPUs of the reading thread; empty: any.
    pub thread_cpus: CpuSet,
}

/// Bytes that a busy CPU records in about a third of a second.
pub const BUFFER: usize = 8 << 20;
/// Functions to time.
#[derive(Clone, Debug)]
pub struct WantedProbes {
    pub functions: Vec<Function>,
    pub lines: Vec<SourceLine>,
    /// The processes to probe, and what to keep of the calls.
    pub request: ProbeRequest,
    pub costs: Vec<ProbeCost>,
}

impl RecordingWanted {
    /// The request of a plan; the recording thread runs on the CPUs of the controller thread.
    pub fn from_plan(record: &RecordPlan, thread_cpus: &CpuSet) -> RecordingWanted {
        RecordingWanted {
            events: KernelEvents {
                groups: record.events.clone(),
                tracepoints: ungrouped_tracepoints(record),
            },
            insist: true,
            cpus: record.cpus.clone(),
            pids: record.pids.clone(),
            backend: Backend::Auto,
            points: record.points,
            buffer: BUFFER,
            online: record.cpus.clone(),
            max_size: record.max_size.0,
            keeps: Keeps::All,
            thread_cpus: thread_cpus.clone(),
            ..RecordingWanted::default()
        }
    }
}

impl RecordingWanted {
    /// The replacement of an unavailable flight recorder: the newest events of the whole run, up to
    /// this many bytes.
    pub(crate) fn instead_of_flight(
        explain: &ExplainPlan,
        online: CpuSet,
        thread_cpus: &CpuSet,
        max_size: u64,
    ) -> RecordingWanted {
        RecordingWanted {
            events: KernelEvents { groups: explain.events.clone(), tracepoints: Vec::new() },
            insist: true,
            cpus: online.clone(),
            backend: Backend::Auto,
            buffer: BUFFER,
            online,
            max_size,
            keeps: Keeps::Newest,
            thread_cpus: thread_cpus.clone(),
            ..RecordingWanted::default()
        }
    }
}

/// The tracepoints of a plan that none of its groups records anyway.
fn ungrouped_tracepoints(record: &RecordPlan) -> Vec<NamedTracepoint> {
    let recorded = |named: &NamedTracepoint| {
        group_of(named).is_some_and(|group| record.events.contains(&group))
    };
    record.tracepoints.iter().filter(|named| !recorded(named)).cloned().collect()
}

/// Kernel events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelEvents {
    pub groups: Vec<Group>,
    /// Tracepoints by name, beyond the groups.
    pub tracepoints: Vec<NamedTracepoint>,
}

impl KernelEvents {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.tracepoints.is_empty()
    }
}

/// Parses the words for events: `all`, `none`, names of groups, or `GROUP:NAME` of tracepoints; a
/// leading `+` adds them to the usual ones. Without words, the usual ones.
pub fn parse_events(words: &[String], usual: &[Group]) -> Result<KernelEvents, Failure> {
    match words {
        [] => Ok(KernelEvents { groups: usual.to_vec(), ..KernelEvents::default() }),
        [word] if word == "all" => {
            Ok(KernelEvents { groups: Group::ALL.to_vec(), ..KernelEvents::default() })
        }
        [word] if word == "none" => Ok(KernelEvents::default()),
        words => {
            let added = words[0].starts_with('+');
            let mut events = KernelEvents {
                groups: if added { usual.to_vec() } else { Vec::new() },
                ..KernelEvents::default()
            };
            let (mut named, mut wrong) = (Vec::new(), Vec::new());
            for word in words {
                let word = word.strip_prefix('+').filter(|_| added).unwrap_or(word);
                match (Group::from_word(word), word.contains(':')) {
                    (Some(group), _) if events.groups.contains(&group) => {}
                    (Some(group), _) => events.groups.push(group),
                    (None, true) => named.push(word),
                    (None, false) => wrong.push(unknown_group(word)),
                }
            }
            if !named.is_empty() {
                let tracefs = Tracefs::open().map_err(Failure::refused)?;
                for word in named {
                    match parse_tracepoint(word, &tracefs, &events.groups) {
                        Ok(tracepoint) if events.tracepoints.contains(&tracepoint) => {}
                        Ok(tracepoint) => events.tracepoints.push(tracepoint),
                        Err(why) => wrong.push(why),
                    }
                }
            }
            match wrong.is_empty() {
                true => Ok(events),
                false => Err(Failure::refused(wrong.join("\n       "))),
            }
        }
    }
}

fn parse_tracepoint(
    word: &str,
    tracefs: &Tracefs,
    groups: &[Group],
) -> Result<NamedTracepoint, String> {
    let whole = word.split('/').next().unwrap_or(word);
    if whole.contains(['*', '?']) {
        let group = whole.split(':').next().unwrap_or(whole);
        let names = tracefs.event_names(group);
        let known_events = match names.is_empty() {
            true => String::new(),
            false => format!("; {group} has {}", names.join(", ")),
        };
        return Err(format!(
            "`{word}`: tracepoints are named one by one, not by patterns{known_events}"
        ));
    }
    let named: NamedTracepoint = word.parse()?;
    let (group, name) = (&named.group, &named.name);
    if !tracefs.event_names(group).contains(name) {
        return Err(tracefs.no_tracepoint(group, name));
    }
    match group_of(&named).filter(|group| groups.contains(group)) {
        Some(group) => {
            Err(format!("{named} is one of the group `{}`, which is recorded anyway", group.word()))
        }
        None => Ok(named),
    }
}

fn unknown_group(word: &str) -> String {
    let near = nearest_word(word, Group::ALL.iter().map(|group| group.word()));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!(
        "`{word}` is not a group of kernel events{near} (`punctual trace --events list` shows all \
         groups; a tracepoint is GROUP:NAME)"
    )
}
