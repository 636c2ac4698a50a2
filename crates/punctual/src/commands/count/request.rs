//! The requested counts.

use crate::exit::Failure;
use punctual_core::PerfEvent;
use punctual_core::perf_event::NAMED;
use punctual_record::perf::{PerfCounter, Whom, vendor_events};
use punctual_record::tracefs::Tracefs;

/// A count and its source.
#[derive(Clone, Debug)]
pub struct WantedCount {
    /// The name of the count.
    pub name: String,
    /// The event to count; `None`: only wait4(2) has it.
    pub event: Option<PerfEvent>,
}

/// The default counts.
fn default_counts() -> Vec<WantedCount> {
    let wanted_count =
        |name: &str, event: PerfEvent| WantedCount { name: name.to_owned(), event: Some(event) };
    let from_wait4 = |name: &str| WantedCount { name: name.to_owned(), event: None };
    let named = |name: &str| name.parse().ok().map(|event| wanted_count(name, event));
    let mut usual_counts = vec![
        wanted_count("context-switches", PerfEvent::CONTEXT_SWITCHES),
        from_wait4("voluntary-switches"),
        from_wait4("involuntary-switches"),
        wanted_count("cpu-migrations", PerfEvent::CPU_MIGRATIONS),
        wanted_count("page-faults", PerfEvent::PAGE_FAULTS),
        wanted_count("minor-faults", PerfEvent::MINOR_FAULTS),
        wanted_count("major-faults", PerfEvent::MAJOR_FAULTS),
        wanted_count("system-calls", PerfEvent::from_tracepoint("raw_syscalls", "sys_enter")),
        wanted_count("futex-calls", PerfEvent::from_tracepoint("syscalls", "sys_enter_futex")),
        wanted_count("signals", PerfEvent::from_tracepoint("signal", "signal_deliver")),
    ];
    // The number that most PMUs count at once.
    usual_counts.extend(
        ["cycles", "instructions", "branches", "branch-misses"].into_iter().filter_map(named),
    );
    usual_counts
}

/// Parses the words of `--events`; reports all errors at once.
pub fn parse_events(words: &[String]) -> Result<Vec<WantedCount>, Failure> {
    let added = words.first().is_some_and(|first| first.starts_with('+'));
    let mut wanted_counts = if words.is_empty() || added { default_counts() } else { Vec::new() };
    let (mut wrong, tracefs) = (Vec::new(), Tracefs::open().ok());
    for word in join_pmu_terms(words) {
        match parse_event(word.strip_prefix('+').unwrap_or(&word), tracefs.as_ref()) {
            Ok(event) if wanted_counts.iter().any(|other| other.event.as_ref() == Some(&event)) => {
            }
            Ok(event) => {
                wanted_counts.push(WantedCount { name: event.to_string(), event: Some(event) })
            }
            Err(why) => wrong.push(why),
        }
    }
    match wrong.is_empty() {
        true if wanted_counts.len() > MAX_COUNTS => {
            Err(Failure::refused(format!("at most {MAX_COUNTS} events are counted at once")))
        }
        true => Ok(wanted_counts),
        false => Err(Failure::refused(wrong.join("\n       "))),
    }
}

/// The words with the terms of an event of a PMU together again: `cpu/event=0x3c`, `umask=1/`.
fn join_pmu_terms(words: &[String]) -> Vec<String> {
    let mut joined_words: Vec<String> = Vec::new();
    for word in words {
        match joined_words.last_mut().filter(|last| last.matches('/').count() == 1) {
            Some(open) => *open += &format!(",{word}"),
            None => joined_words.push(word.clone()),
        }
    }
    joined_words
}

/// The maximum: each is a descriptor, also for every task of the command.
const MAX_COUNTS: usize = 64;

fn parse_event(word: &str, tracefs: Option<&Tracefs>) -> Result<PerfEvent, String> {
    let event: PerfEvent = word.parse().map_err(|why| format!("--events: {why}"))?;
    // Without access to tracefs the reason is the access, not a missing tracepoint.
    if let (PerfEvent::Tracepoint { group, name }, Some(tracefs)) = (&event, tracefs)
        && !tracefs.event_names(group).contains(name)
    {
        return Err(format!("--events: {}", tracefs.no_tracepoint(group, name)));
    }
    Ok(event)
}

/// The valid names, each with why it is not counted here.
pub fn list_events() -> String {
    let named = NAMED.iter().map(|event| (PerfEvent::Named(*event), event.alias));
    let vendor = vendor_events().into_iter().map(|event| (PerfEvent::OfPmu(event), ""));
    let mut text = String::new();
    for (event, alias) in named.chain(vendor) {
        let alias = if alias.is_empty() { String::new() } else { format!("  or {alias}") };
        let who = match (PerfCounter::open_event(&event, Whom::ThisThread), event.is_hardware()) {
            (Err(why), _) => format!("not here: {why}"),
            (Ok(_), true) => "counted by the CPU".to_owned(),
            (Ok(_), false) => "counted by the kernel".to_owned(),
        };
        text += &format!("{:<26} {who}{alias}\n", event.to_string());
    }
    text += "GROUP:NAME                 any tracepoint, as under events/ of tracefs\n";
    text += "PMU/TERM=NUMBER,…/, r1a8   an event by the terms in sysfs, by its raw number\n\n";
    let usual: Vec<String> = default_counts().into_iter().map(|one| one.name).collect();
    text + &format!("Counted by default: {}\n", usual.join(", "))
}
