//! The places in a program at which a thread was delayed, or did what a real-time thread should
//! not do: by stacks of some of these events, with source lines where debug information has them.

use super::source::CycleRecorder;
use punctual_core::cycle::{CallClass, HolderDeed, MARKED, Moment, MomentKind, task_label};
use punctual_core::format;
use punctual_core::{
    CauseKind, Cell, Column, Finding, MonotonicNs, Nanos, PLACES, STACKS as STACKS_TABLE, Table,
};
use punctual_explain::cycles::CallNames;
use punctual_record::symbols::{FunctionNames, Mappings, SourceFrame, SymbolPlace};
use punctual_record::unwind::UserStack;
use punctual_sys::clock;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The maximum number of functions of a stack in a cell.
const FRAMES: usize = 8;
/// The minimum time between two reads of the mappings.
const REREAD: Nanos = Nanos::SECOND;
/// Moments that wait for their look-up, and distinct stacks that are kept.
const PENDING: usize = 4_096;
const STACKS: usize = 4_096;
/// Tasks that ended sleeps or held locks whose mappings are kept.
const OTHERS: usize = 64;
/// The maximum number of rows.
const ROWS: usize = 20;
/// The maximum number of stacks in the table for flame graphs.
const FOLDED: usize = 256;
/// The maximum number of lines in a finding.
const LINES: usize = 4;
/// Beginnings of the paths of source files that are not the user's: of compilers, distributions,
/// and packages.
const OF_OTHERS: [&str; 7] = [
    "/rustc/",
    "/usr/include/",
    "/usr/lib/",
    "/usr/src/",
    "/usr/local/go/src/",
    "/usr/local/include/",
    "/build/",
];
const PACKAGES: [&str; 2] = ["/.cargo/registry/", "/.rustup/toolchains/"];

/// A stack as places in files.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Stack {
    /// The innermost function first; `None`: not in any mapped code.
    pub places: Vec<Option<SymbolPlace>>,
    /// Whether the callers beyond the last one are unknown.
    is_cut: bool,
}

impl Stack {
    /// Its functions, with lines, and whether they are a library's.
    fn source_frames(&self, tid: u32, names: &mut FunctionNames) -> Vec<(SourceFrame, bool)> {
        // Beyond a frame that is not code there are no callers.
        let known_places = self.places.iter().map_while(Option::as_ref);
        let mut all_frames = Vec::new();
        for place in known_places {
            let (library, frames) = (place.is_in_library(), names.frames_at(place, tid));
            // Functions inlined in a library are left out.
            let inner = if library { frames.len().saturating_sub(1) } else { 0 };
            all_frames.extend(frames.into_iter().skip(inner).map(|frame| (frame, library)));
        }
        // The callers of main() are the same in all programs.
        let main =
            all_frames.iter().position(|(frame, library)| !library && frame.function == "main");
        all_frames.truncate(main.map_or(all_frames.len(), |main| main + 1));
        all_frames
    }

    /// All functions, the outermost first, with `;` between them.
    fn to_folded_line(&self, tid: u32, names: &mut FunctionNames) -> String {
        let named = |(frame, library): &(SourceFrame, bool)| {
            let name = match &frame.line {
                Some(line) if !library => format!("{} {}", frame.function, short_location(line)),
                _ => frame.function.clone(),
            };
            name.replace(';', "_")
        };
        let frames = self.source_frames(tid, names);
        let mut frame_labels: Vec<String> = frames.iter().rev().map(named).collect();
        if self.is_cut && !frame_labels.is_empty() {
            frame_labels.insert(0, "callers not known".to_owned());
        }
        frame_labels.join(";")
    }

    /// The innermost functions.
    pub(crate) fn innermost_functions(&self, tid: u32, names: &mut FunctionNames) -> String {
        let frames = self.source_frames(tid, names);
        let named = |(frame, library): &(SourceFrame, bool)| match &frame.line {
            Some(line) if !library => format!("{} {}", frame.function, short_location(line)),
            _ => frame.function.clone(),
        };
        let mut frame_labels: Vec<String> = frames.iter().take(FRAMES).map(named).collect();
        if self.is_cut && (1..FRAMES).contains(&frame_labels.len()) {
            frame_labels.push("callers not known".to_owned());
        }
        frame_labels.join(" < ")
    }
}

/// `loop.cpp:142`.
fn short_location((path, line): &(String, u32)) -> String {
    format!("{}:{line}", path.rsplit('/').next().unwrap_or(path))
}

/// The innermost place in the user's own program: its line, if its source is not the compiler's or
/// a package's, else its function.
fn own_location(frames: &[(SourceFrame, bool)]) -> Option<String> {
    let of_others = |path: &str| {
        OF_OTHERS.iter().any(|begin| path.starts_with(begin))
            || PACKAGES.iter().any(|part| path.contains(part))
    };
    let mut outside = frames.iter().filter(|(_, library)| !library).map(|(frame, _)| frame);
    let mut lines = outside.clone().filter_map(|frame| frame.line.as_ref());
    let line = lines.find(|(path, _)| !of_others(path)).map(short_location);
    line.or_else(|| {
        outside.next().or(frames.first().map(|(frame, _)| frame))?.function.clone().into()
    })
}

/// The places at which these stacks differ, as lines or functions of the user's program: what
/// called all of them is left out.
pub(crate) fn tell_apart(stacks: &[Stack], tid: u32, names: &mut FunctionNames) -> Vec<String> {
    let mut outermost_first = |stack: &Stack| -> Vec<String> {
        let frames = stack.source_frames(tid, names);
        let own_frames = frames.iter().rev().filter(|(_, library)| !library);
        own_frames
            .map(|frame| own_location(std::slice::from_ref(frame)).unwrap_or_default())
            .collect()
    };
    let stack_labels: Vec<Vec<String>> = stacks.iter().map(&mut outermost_first).collect();
    let first = stack_labels.first().map_or(&[][..], Vec::as_slice);
    let is_common = |(depth, name): &(usize, &String)| {
        stack_labels.iter().all(|of| of.get(*depth) == Some(name))
    };
    let common = first.iter().enumerate().take_while(is_common).count();
    let mut places: Vec<String> =
        stack_labels.iter().filter_map(|of| of.get(common).or(of.last())).cloned().collect();
    // `a.c:7` before `a.c:10`.
    places.sort_by_key(|place| (place.trim_end_matches(char::is_numeric).to_owned(), place.len()));
    places.dedup();
    places
}

/// From addresses to places in files.
#[derive(Default)]
pub struct Resolver {
    own: ProcessMappings,
    /// The process has executed another program.
    is_over: bool,
    /// Those of tasks that woke it, or held its locks.
    others: BTreeMap<u32, ProcessMappings>,
}

#[derive(Default)]
struct ProcessMappings {
    mappings: Mappings,
    read: Option<MonotonicNs>,
}

impl ProcessMappings {
    /// `may_read`: the mappings are read (again) for an address in none of them.
    fn resolve_stack(&mut self, tid: u32, stack: &UserStack, may_read: bool) -> Stack {
        let is_known = |address: &u64| self.mappings.place_of(*address).is_some();
        if !stack.addresses.first().is_none_or(is_known) && may_read {
            let now = clock::monotonic_now();
            if self.read.is_none_or(|read| now - read >= REREAD) {
                self.read = Some(now);
                self.mappings = Mappings::read(tid).unwrap_or_default();
            }
        }
        // A caller's address is that of the instruction after the call.
        let call = |(depth, address): (usize, &u64)| address.wrapping_sub(u64::from(depth > 0));
        let addresses = stack.addresses.iter().enumerate();
        let places = addresses.map(|one| self.mappings.place_of(call(one))).collect();
        Stack { places, is_cut: stack.is_cut }
    }
}

impl Resolver {
    /// The mappings are those of another program from now on.
    pub(crate) fn stop_reading(&mut self) {
        self.is_over = true;
    }

    /// The stack at an instant, looked up while the process exists; `None` if it was lost.
    pub(crate) fn stack_at_moment(
        &mut self,
        tid: u32,
        moment: &Moment,
        attacher: &CycleRecorder,
    ) -> Option<Stack> {
        let stack = attacher.user_stack(moment)?;
        let may_read = attacher.is_live() && !self.is_over;
        Some(self.own.resolve_stack(tid, &stack, may_read))
    }

    /// The stack of a thread that waits, likewise.
    pub(super) fn wait_stack(
        &mut self,
        tid: u32,
        place: u64,
        attacher: &CycleRecorder,
    ) -> Option<Stack> {
        let stack = attacher.wait_stack(place)?;
        Some(self.own.resolve_stack(tid, &stack, attacher.is_live() && !self.is_over))
    }

    /// The stack with this number of another task, likewise.
    fn other_stack(&mut self, tid: u32, number: u32, attacher: &CycleRecorder) -> Option<Stack> {
        let stack = attacher.copied_stack(number)?;
        let is_kept = self.others.contains_key(&tid);
        if !is_kept && self.others.len() >= OTHERS {
            return None;
        }
        let mappings = self.others.entry(tid).or_default();
        Some(mappings.resolve_stack(tid, &stack, attacher.is_live()))
    }
}

/// An action of a thread, or a delay that it had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Deed {
    Fault,
    /// A system call that a real-time thread should avoid, by its number.
    Called(u32),
    /// It slept within a cycle: the part, and its system call.
    Asleep(CauseKind, Option<u32>),
    Preempted,
}

impl Deed {
    fn from_moment(moment: &Moment) -> Option<Deed> {
        match moment.what {
            MomentKind::Fault => Some(Deed::Fault),
            MomentKind::Called => moment.call.map(Deed::Called),
            MomentKind::Asleep { part, .. } => Some(Deed::Asleep(part, moment.call)),
            MomentKind::Preempted { .. } => Some(Deed::Preempted),
            MomentKind::Ran | MomentKind::Exec | MomentKind::Exit { .. } => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Deed::Fault => "page fault",
            Deed::Called(_) => "called",
            Deed::Asleep(part, _) => part.words(),
            Deed::Preempted => "preempted",
        }
    }

    /// Whether the finding with this id is about it.
    fn is_of(self, finding: &str, calls: &CallNames) -> bool {
        let class = |number: u32| {
            let name = calls.get(&number)?;
            MARKED.iter().find(|(marked, _)| marked == name).map(|(_, class)| *class)
        };
        match (finding, self) {
            ("page-faults-in-cycle", Deed::Fault) => true,
            ("lock-without-pi", Deed::Asleep(CauseKind::Lock, _)) => true,
            ("memory-call-in-cycle", Deed::Called(number)) => {
                class(number) == Some(CallClass::Memory)
            }
            ("prints-in-cycle", Deed::Called(number)) => class(number) == Some(CallClass::Write),
            ("file-call-in-cycle", Deed::Called(number)) => {
                matches!(class(number), Some(CallClass::File | CallClass::Write))
            }
            _ => false,
        }
    }

    fn call_number(self) -> Option<u32> {
        match self {
            Deed::Called(number) => Some(number),
            Deed::Asleep(_, call) => call,
            Deed::Fault | Deed::Preempted => None,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    stacks: u64,
    total: Nanos,
    longest: Nanos,
    /// The number of the longest cycles in which it was there.
    in_longest: u64,
    /// The time of the sleeps with a known holder of the lock, and that of it during which the
    /// holder had no CPU.
    held: Nanos,
    off_cpu: Nanos,
}

impl Sums {
    fn merge(&mut self, other: &Sums) {
        self.stacks += other.stacks;
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
        self.held += other.held;
        self.off_cpu += other.off_cpu;
    }
}

/// A place of the program with what happened there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub deed: Deed,
    /// `loop.cpp:142`; without debug information the function.
    pub line: String,
    stack: String,
    /// The stacks that were kept of these events, and how many there are of all places.
    pub stacks: u64,
    pub of: u64,
    longest: Nanos,
    in_longest: u64,
    /// The task that mostly ended these sleeps, and at which line of its own.
    ended_by: Option<String>,
    /// What the holder of the lock mostly did meanwhile, at which line of its own, and how long it
    /// had no CPU.
    holder: Option<String>,
}

/// What another task did for a sleep, and its stack then.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OtherDeed {
    tid: u32,
    what: OtherKind,
    stack: Option<Stack>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum OtherKind {
    /// The task of this name ended it.
    Ended(String),
    /// It held the lock, and did this in a system call.
    Held(HolderDeed, Option<u32>),
}

impl OtherDeed {
    /// `logger-77`, `preempted in write`.
    fn describe_deed(&self, calls: &CallNames) -> String {
        match &self.what {
            OtherKind::Ended(task) => task.clone(),
            OtherKind::Held(deed, call) => {
                let call = call.map(|call| format!("in {}", call_name(call, calls)));
                let deed = match deed {
                    HolderDeed::Called => None,
                    HolderDeed::Preempted => Some("preempted".to_owned()),
                    HolderDeed::Asleep => Some("asleep".to_owned()),
                };
                deed.into_iter().chain(call).collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn own_line(&self, names: &mut FunctionNames) -> Option<String> {
        own_location(&self.stack.as_ref()?.source_frames(self.tid, names))
    }
}

/// How often something was, and at which lines as far as stacks show it.
#[derive(Default)]
struct LineCounts {
    times: u64,
    lines: BTreeMap<String, u64>,
}

fn most_frequent<T>(all: BTreeMap<String, T>, times: impl Fn(&T) -> u64) -> Option<(String, T)> {
    all.into_iter().max_by_key(|(_, one)| times(one))
}

fn call_name(number: u32, calls: &CallNames) -> String {
    calls.get(&number).cloned().unwrap_or_else(|| format!("system call {number}"))
}

/// The places of a thread.
#[derive(Default)]
pub struct Places {
    queue: Vec<Moment>,
    all: BTreeMap<(Deed, Stack), Sums>,
    /// What others did for the sleeps at each.
    others: BTreeMap<(Deed, Stack), BTreeMap<OtherDeed, u64>>,
    /// The number of distinct ones.
    distinct_others: usize,
    /// The stacks that were kept of each.
    stacks: BTreeMap<Deed, u64>,
    rows: Vec<Row>,
    table: Option<Table>,
    folded: Option<Table>,
}

impl Places {
    /// Adds the moments of a cycle.
    pub fn add(&mut self, moments: &[Moment]) {
        let room = PENDING.saturating_sub(self.queue.len());
        let with_stack =
            moments.iter().filter(|one| one.stack.is_some() && Deed::from_moment(one).is_some());
        self.queue.extend(with_stack.take(room));
    }

    /// Looks up the stacks of new moments.
    pub fn look_up(&mut self, tid: u32, resolver: &mut Resolver, attacher: &CycleRecorder) {
        for moment in std::mem::take(&mut self.queue) {
            let (Some(deed), Some(stack)) =
                (Deed::from_moment(&moment), resolver.stack_at_moment(tid, &moment, attacher))
            else {
                continue;
            };
            let key = (deed, stack);
            if self.all.len() >= STACKS && !self.all.contains_key(&key) {
                continue;
            }
            *self.stacks.entry(deed).or_default() += 1;
            let time = moment.time_off_cpu();
            let holder = moment.holder;
            let one = Sums {
                stacks: 1,
                total: time,
                longest: time,
                in_longest: 0,
                held: holder.map_or(Nanos::ZERO, |_| time),
                off_cpu: holder.map_or(Nanos::ZERO, |holder| holder.off_cpu),
            };
            self.all.entry(key.clone()).or_default().merge(&one);
            let mut add_other_deed = |tid: u32, what: OtherKind, stack: Option<u32>| {
                let stack = stack.and_then(|stack| resolver.other_stack(tid, stack, attacher));
                self.add_other(key.clone(), OtherDeed { tid, what, stack });
            };
            if let Some(waker) = moment.waker {
                let task = task_label(waker.name, waker.tid);
                add_other_deed(waker.tid, OtherKind::Ended(task), waker.stack);
            }
            if let Some((holder, deed)) = holder.and_then(|of| Some((of, of.did?))) {
                add_other_deed(holder.tid, OtherKind::Held(deed, holder.call), holder.stack);
            }
        }
    }

    fn add_other(&mut self, key: (Deed, Stack), deed: OtherDeed) {
        let other_deeds = self.others.entry(key).or_default();
        if !other_deeds.contains_key(&deed) {
            if self.distinct_others >= STACKS {
                return;
            }
            self.distinct_others += 1;
        }
        *other_deeds.entry(deed).or_default() += 1;
    }

    /// What others did most frequently for the sleeps at each line: `is_held`, while they held the
    /// lock, else when they ended it.
    fn deeds_of_others(
        &self,
        is_held: bool,
        names: &mut FunctionNames,
        calls: &CallNames,
        tid: u32,
    ) -> BTreeMap<(Deed, String), String> {
        let mut deeds_by_line: BTreeMap<(Deed, String), BTreeMap<String, LineCounts>> =
            BTreeMap::new();
        for ((deed, stack), others) in &self.others {
            let Some(line) = own_location(&stack.source_frames(tid, names)) else { continue };
            let of_line = deeds_by_line.entry((*deed, line)).or_default();
            let is_it = |other: &&OtherDeed| is_held == matches!(other.what, OtherKind::Held(..));
            for (other, times) in others.iter().filter(|(other, _)| is_it(other)) {
                let counts = of_line.entry(other.describe_deed(calls)).or_default();
                counts.times += times;
                if let Some(line) = other.own_line(names) {
                    *counts.lines.entry(line).or_default() += times;
                }
            }
        }
        let text = |of_line| {
            let (words, counts) = most_frequent(of_line, |counts: &LineCounts| counts.times)?;
            Some(match most_frequent(counts.lines, |times| *times) {
                Some((line, _)) => format!("{words} at {line}"),
                None => words,
            })
        };
        deeds_by_line.into_iter().filter_map(|(key, of_line)| Some((key, text(of_line)?))).collect()
    }

    fn find_lines_of_others(&self, names: &mut FunctionNames) {
        for other in self.others.values().flat_map(BTreeMap::keys) {
            let stack = other.stack.iter();
            let places = stack.flat_map(|stack| stack.places.iter().flatten().cloned());
            names.find_lines(places, other.tid);
        }
    }

    /// All places of these stacks.
    pub(crate) fn all_places(&self) -> impl Iterator<Item = SymbolPlace> {
        self.all.keys().flat_map(|(_, stack)| stack.places.iter().flatten().cloned())
    }

    /// Names the lines permanently. `longest`: the moments of each of the longest cycles.
    pub(crate) fn name_lines(
        &mut self,
        tid: u32,
        names: &mut FunctionNames,
        calls: &CallNames,
        longest: &[Vec<(&Moment, &Stack)>],
    ) {
        // Of several stacks that meet at a line, the most frequent one is shown.
        let mut of_lines: BTreeMap<(Deed, String), (Sums, u64, String)> = BTreeMap::new();
        let line = |stack: &Stack, names: &mut FunctionNames| {
            own_location(&stack.source_frames(tid, names))
        };
        for ((deed, stack), sums) in &self.all {
            let Some(line) = line(stack, names) else { continue };
            let (all, most, text) = of_lines.entry((*deed, line)).or_default();
            all.merge(sums);
            if sums.stacks > *most {
                (*most, *text) = (sums.stacks, stack.innermost_functions(tid, names));
            }
        }
        for cycle in longest {
            let mut keys_of_cycle: Vec<(Deed, String)> = Vec::new();
            for (moment, stack) in cycle {
                let key =
                    Deed::from_moment(moment).and_then(|deed| Some((deed, line(stack, names)?)));
                keys_of_cycle.extend(key);
            }
            keys_of_cycle.sort_unstable();
            keys_of_cycle.dedup();
            for key in keys_of_cycle {
                if let Some((sums, ..)) = of_lines.get_mut(&key) {
                    sums.in_longest += 1;
                }
            }
        }
        self.find_lines_of_others(names);
        let mut ended_by = self.deeds_of_others(false, names, calls, tid);
        let mut holders = self.deeds_of_others(true, names, calls, tid);
        let row = |((deed, line), (sums, _, stack)): ((Deed, String), (Sums, u64, String))| Row {
            deed,
            ended_by: ended_by.remove(&(deed, line.clone())),
            holder: holders.remove(&(deed, line.clone())).map(|held| match sums.off_cpu {
                Nanos::ZERO => held,
                off => format!(
                    "{held} (no CPU for {} of the waits)",
                    format::percent_text(off.ns() as f64 / sums.held.ns().max(1) as f64)
                ),
            }),
            line,
            stack,
            stacks: sums.stacks,
            of: self.stacks.get(&deed).copied().unwrap_or_default(),
            longest: sums.longest,
            in_longest: sums.in_longest,
        };
        self.rows = of_lines.into_iter().map(row).collect();
        self.rows.sort_by_key(|row| Reverse((row.in_longest, row.longest, row.stacks)));
        self.table = (!self.rows.is_empty()).then(|| self.build_table(calls));
        self.folded = self.fold_stacks(tid, names, longest);
    }

    /// All stacks with their counts, the most frequent ones of the longest cycles first.
    fn fold_stacks(
        &self,
        tid: u32,
        names: &mut FunctionNames,
        longest: &[Vec<(&Moment, &Stack)>],
    ) -> Option<Table> {
        // Stacks, and those of the longest cycles.
        let mut stack_counts: BTreeMap<(&str, String), [u64; 2]> = BTreeMap::new();
        for ((deed, stack), sums) in &self.all {
            let text = stack.to_folded_line(tid, names);
            stack_counts.entry((deed.words(), text)).or_default()[0] += sums.stacks;
        }
        for (moment, stack) in longest.iter().flatten() {
            let what = match (moment.what, Deed::from_moment(moment)) {
                (_, Some(deed)) => deed.words(),
                (MomentKind::Ran, None) => "ran",
                _ => continue,
            };
            let counts = stack_counts.entry((what, stack.to_folded_line(tid, names))).or_default();
            counts[1] += 1;
            counts[0] = counts[0].max(counts[1]);
        }
        let mut sorted_stacks: Vec<_> =
            stack_counts.into_iter().filter(|((_, text), _)| !text.is_empty()).collect();
        sorted_stacks.sort_by_key(|(_, [stacks, in_longest])| Reverse((*in_longest, *stacks)));
        sorted_stacks.truncate(FOLDED);
        let row = |((what, text), [stacks, in_longest]): ((&str, String), [u64; 2])| {
            let text = format::escape_unsafe(&text);
            vec![Cell::from(what), Cell::from(text), Cell::from(stacks), Cell::from(in_longest)]
        };
        (!sorted_stacks.is_empty()).then(|| Table {
            name: STACKS_TABLE.to_owned(),
            title: "the stacks of the program".to_owned(),
            columns: vec![
                Column::new("what", ""),
                Column::new("stack", ""),
                Column::new("stacks", "count"),
                Column::new("in longest cycles", "count"),
            ],
            rows: sorted_stacks.into_iter().map(row).collect(),
        })
    }

    /// Adds to findings at which lines it was, as far as stacks show it.
    pub(crate) fn locate_findings(&self, findings: &mut [Finding], calls: &CallNames) {
        for finding in findings {
            let is_it = |row: &&Row| row.deed.is_of(&finding.id, calls);
            let mut of_it: Vec<&Row> = self.rows.iter().filter(is_it).collect();
            of_it.sort_by_key(|row| Reverse(row.stacks));
            let total_stacks: u64 = of_it.iter().map(|row| row.stacks).sum();
            let line = |row: &&Row| {
                format!("{} ({} of {total_stacks})", format::escape_unsafe(&row.line), row.stacks)
            };
            let lines: Vec<String> = of_it.iter().take(LINES).map(line).collect();
            if lines.is_empty() {
                continue;
            }
            let stacks_text = format::count_with_noun(total_stacks, "stack");
            let other_text = |words: &str, text: fn(&Row) -> Option<&str>| {
                let text = of_it.iter().find_map(|row| text(row)).map(format::escape_unsafe);
                text.map_or(String::new(), |text| format!("; {words} {text}"))
            };
            let ended = other_text("mostly ended by", |row| row.ended_by.as_deref());
            let holder = other_text("the holder meanwhile mostly", |row| row.holder.as_deref());
            let at = format!("at {}, by {stacks_text}{holder}{ended}", lines.join(", "));
            finding.evidence = Some(match finding.evidence.take() {
                Some(evidence) => format!("{evidence}; {at}"),
                None => at,
            });
        }
    }

    pub(crate) fn line_table(&self) -> Option<Table> {
        self.table.clone()
    }

    pub(crate) fn folded_table(&self) -> Option<Table> {
        self.folded.clone()
    }

    fn build_table(&self, calls: &CallNames) -> Table {
        let call = |number: u32| Cell::from(call_name(number, calls));
        let text = |text: &Option<String>| {
            text.as_ref().map_or(Cell::Nothing, |text| Cell::from(format::escape_unsafe(text)))
        };
        let row = |row: &Row| {
            let has_time = row.longest > Nanos::ZERO;
            vec![
                Cell::from(row.deed.words().to_owned()),
                row.deed.call_number().map_or(Cell::Nothing, call),
                Cell::from(format::escape_unsafe(&row.line)),
                Cell::from(row.stacks),
                Cell::from(row.of),
                if has_time { Cell::from(row.longest) } else { Cell::Nothing },
                Cell::from(row.in_longest),
                text(&row.holder),
                text(&row.ended_by),
                Cell::from(format::escape_unsafe(&row.stack)),
            ]
        };
        Table {
            name: PLACES.to_owned(),
            title: "at which lines of the program".to_owned(),
            columns: vec![
                Column::new("what", ""),
                Column::new("system call", ""),
                Column::new("line", ""),
                Column::new("stacks", "count"),
                Column::new("of", "count"),
                Column::new("longest", "ns"),
                Column::new("in longest cycles", "count"),
                Column::new("holder meanwhile", ""),
                Column::new("mostly ended by", ""),
                Column::new("stack", ""),
            ],
            rows: self.rows.iter().take(ROWS).map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap as Map;

    fn frame(function: &str, line: Option<(&str, u32)>, library: bool) -> (SourceFrame, bool) {
        let line = line.map(|(path, line)| (path.to_owned(), line));
        (SourceFrame { function: function.to_owned(), line }, library)
    }

    #[test]
    fn the_line_is_the_innermost_of_the_users_own_source() {
        let malloc = frame("malloc", Some(("./malloc/malloc.c", 3_323)), true);
        let push =
            frame("std::vector::push_back", Some(("/usr/include/c++/12/vector.h", 9)), false);
        let alloc = frame("alloc::alloc", Some(("/rustc/abc/library/alloc.rs", 9)), false);
        let serde = frame("de", Some(("/home/a/.cargo/registry/src/x/serde/de.rs", 5)), false);
        let fill = frame("fill", Some(("/home/a/loop.cpp", 97)), false);
        let main = frame("main", Some(("/home/a/loop.cpp", 142)), false);
        let of = |frames: &[&(SourceFrame, bool)]| {
            own_location(&frames.iter().map(|one| (*one).clone()).collect::<Vec<_>>())
        };
        for inner in [&malloc, &push, &alloc, &serde] {
            assert_eq!(of(&[inner, &fill, &main]).as_deref(), Some("loop.cpp:97"));
        }
        let stripped = frame("loop+0x1234", None, false);
        assert_eq!(of(&[&malloc, &stripped]).as_deref(), Some("loop+0x1234"), "no false line");
        assert_eq!(of(&[&malloc]).as_deref(), Some("malloc"), "no line that is not the user's");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn findings_name_only_the_lines_of_what_they_are_about() {
        let row = |deed, line: &str, stacks| Row {
            deed,
            line: line.to_owned(),
            stack: String::new(),
            stacks,
            of: 9,
            longest: Nanos::ZERO,
            in_longest: 0,
            ended_by: None,
            holder: None,
        };
        let calls: CallNames = Map::from([(1, "write".to_owned()), (9, "mmap".to_owned())]);
        let places = Places {
            rows: vec![
                row(Deed::Fault, "loop.cpp:31", 3),
                row(Deed::Fault, "loop.cpp:23", 5),
                row(Deed::Called(9), "loop.cpp:24", 7),
                row(Deed::Called(1), "loop.cpp:39", 2),
                row(Deed::Preempted, "loop.cpp:50", 2),
            ],
            ..Places::default()
        };
        let evidence = |id: &str| {
            let mut all = [Finding::new(id, punctual_core::Severity::Note, "a", "b")];
            places.locate_findings(&mut all, &calls);
            all[0].evidence.clone()
        };
        let faults = evidence("page-faults-in-cycle");
        let both = "at loop.cpp:23 (5 of 8), loop.cpp:31 (3 of 8), by 8 stacks";
        assert_eq!(faults.as_deref(), Some(both));
        let memory = evidence("memory-call-in-cycle");
        assert_eq!(memory.as_deref(), Some("at loop.cpp:24 (7 of 7), by 7 stacks"));
        let file = evidence("file-call-in-cycle");
        assert_eq!(file.as_deref(), Some("at loop.cpp:39 (2 of 2), by 2 stacks"));
        assert_eq!(evidence("lock-without-pi"), None);
        assert_eq!(evidence("cpu-shared"), None);
    }
}
