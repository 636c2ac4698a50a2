//! What to record: as an experiment or a command line says it.

use crate::exit::Failure;
use punctual_bundle::recording::Keeps;
use punctual_core::CpuSet;
use punctual_core::event::{Group, ProbeCost};
use punctual_core::words::nearest;
use punctual_plan::RecordPlan;
use punctual_record::Backend;
use punctual_record::probe::ProbeRequest;
use punctual_record::symbols::Function;
use punctual_record::symbols::lines::Line;

/// What to record.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Groups of kernel events; none for test points alone.
    pub groups: Vec<Group>,
    /// Whether nothing at all shall be recorded where kernel events cannot be.
    pub insist: bool,
    /// The CPUs whose kernel events are wanted.
    pub cpus: CpuSet,
    /// The processes that kernel events are limited to; empty: all.
    pub pids: Vec<u32>,
    /// With those that they bear from now on.
    pub follow_children: bool,
    /// The task names that kernel events are limited to; empty: all.
    pub comms: Vec<String>,
    /// The system calls that are meant; empty: all.
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
    /// What becomes of it when it has.
    pub keeps: Keeps,
    /// Where the thread that takes it all runs; empty: anywhere.
    pub thread_cpus: CpuSet,
}

/// What a busy CPU records in about a third of a second.
pub const BUFFER: usize = 8 << 20;
/// Functions to time.
#[derive(Clone, Debug)]
pub struct WantedProbes {
    /// The functions.
    pub functions: Vec<Function>,
    /// The source lines.
    pub lines: Vec<Line>,
    /// Whose calls, and what to keep of them.
    pub request: ProbeRequest,
    /// What probes cost here.
    pub costs: Vec<ProbeCost>,
}

impl Wanted {
    /// As a plan wants it; the thread that takes it all runs where the conducting thread does.
    pub fn of(record: &RecordPlan, thread_cpus: &CpuSet) -> Wanted {
        Wanted {
            groups: record.events.clone(),
            insist: true,
            cpus: record.cpus.clone(),
            pids: record.pids.clone(),
            follow_children: false,
            comms: Vec::new(),
            syscalls: Vec::new(),
            backend: Backend::Auto,
            points: record.points,
            buffer: BUFFER,
            online: record.cpus.clone(),
            probes: None,
            max_size: record.max_size.0,
            keeps: Keeps::All,
            thread_cpus: thread_cpus.clone(),
        }
    }
}

/// The groups of these words: `all`, `none`, or their names; where the first begins with `+`, they are added to the usual ones. The usual ones
/// where there are no words.
pub fn groups(words: &[String], usual: &[Group]) -> Result<Vec<Group>, Failure> {
    match words {
        [] => Ok(usual.to_vec()),
        [word] if word == "all" => Ok(Group::ALL.to_vec()),
        [word] if word == "none" => Ok(Vec::new()),
        words => {
            let added = words[0].starts_with('+');
            let mut groups = if added { usual.to_vec() } else { Vec::new() };
            for word in words {
                let word = word.strip_prefix('+').filter(|_| added).unwrap_or(word);
                let group = Group::from_word(word).ok_or_else(|| unknown_group(word))?;
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
            Ok(groups)
        }
    }
}

fn unknown_group(word: &str) -> Failure {
    let near = nearest(word, Group::ALL.iter().map(|group| group.word()));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Failure::refused(format!(
        "`{word}` is not a group of kernel events{near} (`punctual trace --events list` shows all)"
    ))
}
