//! The cycles of threads of other programs, timed and divided by cause in the kernel.
//!
//! ```no_run
//! use punctual_record::attach::Attacher;
//! let mut attacher = Attacher::start(&"0-3".parse()?, false, true)?;
//! attacher.watch_process(4711)?;
//! // … later …
//! attacher.drain(&mut |cycle| println!("{}: {}", cycle.tid, cycle.response_time()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It needs BPF and BTF; without them, [`TracedThreads`] records the events for the same results by
//! tracefs. The program itself is not modified, stopped or traced.

mod compat;
mod copies;
mod cost;
mod open;
mod ordinary;
mod places;
mod record;
mod stacks;
mod steal;
mod traced;
mod wait_places;

pub use cost::AttachCost;
pub use traced::TracedThreads;

use crate::account::SERVED;
use crate::attached::AttachedPrograms;
use crate::bpf::{
    Attach, BpfObject, BufferSizes, Buffers, LoadError, borrow_constants, slot_constants, sys,
};
use crate::start_error::StartError;
use crate::translate::NR_FUTEX;
use crate::unwind::{Unwinder, UserStack};
use crate::wire::layout::{
    self as wire, DelayedKey, DelayedTask as DelayedValue, Selection, Times,
};
use aya_obj::btf::Btf;
use copies::Copies;
use places::AttachPlaces;
use punctual_core::cycle::{
    CallClass, Cycle, DelayedTask, FILE_CALLS, Gap, MARKED, Moment, OpenCycle, POLLS, TaskComm,
    ThreadTimes, WAITING_CALLS, WaitingCall, WokenBy,
};
use punctual_core::{CpuSet, Finding, MonotonicNs, Nanos, Severity};
use punctual_sys::clock;
use record::Moments;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/attach.bpf.o.z"));
const BACKEND: &str = "BPF (BTF tracepoints)";
/// The buffer of each CPU: some 10,000 cycles.
const BUFFER: usize = 4 << 20;
/// The maximum number of watched threads: the kernel allocates their table in one piece.
pub const THREADS: u32 = wire::WATCHED as u32;

/// The functions that run at the start of a SCHED_DEADLINE thread's period, and at the expiry of
/// timerfds, POSIX timers and interval timers.
const EXPIRIES: [&str; 4] = ["dl_task_timer", "timerfd_tmrproc", "posix_timer_fn", "it_real_fn"];

/// Ordered pairs of tracepoint and programs; alternatives are separated by `|`.
const NEEDED: [(&str, &str); 9] = [
    ("sched_process_exit", "attach_exit"),
    ("sched_process_exec", "attach_exec"),
    ("sched_process_fork", "attach_fork"),
    ("sched_migrate_task", "attach_moved"),
    ("hrtimer_expire_entry", "attach_expire_entry"),
    ("sched_switch", "attach_switched|attach_switched_before_5_18"),
    ("sched_waking", "attach_waking"),
    ("sys_exit", "attach_sys_exit"),
    ("sys_enter", "attach_sys_enter"),
];
/// The programs with the longest verification.
const LONGEST: [&str; 5] = [
    "attach_switched",
    "attach_sys_exit",
    "attach_expire_entry",
    "attach_waking",
    "account_irq_exit",
];
/// Timers that expire without a waiting thread; their starts are only watched if needed.
const TIMER_STARTS: (&str, &str) = ("hrtimer_start", "attach_hrtimer_start");
/// The number of cycles with other releases after which no timer is expected to release any.
const WITHOUT_TIMERS: u32 = 200;
/// Only needed if the end of the interrupt with timer expiries is not seen.
const TIMER_ENDS: (&str, &str) = ("hrtimer_expire_exit", "account_expire_exit");

/// The task that stops a thread, which is unknown without it.
const SIGNALS: (&str, &str) = ("signal_generate", "attach_signal");

/// If one is missing, its count stays 0, which is reported.
const FAULTS: [&str; 2] = ["page_fault_user", "page_fault_kernel"];
/// The function that returns at the end of a page fault, and the substitute count if it cannot be
/// traced: PERF_COUNT_SW_PAGE_FAULTS_MIN.
const FAULT_ENDS: &str = "handle_mm_fault";
const FAULT_COUNTED: (&str, u64) = ("minor-faults", 5);

/// Tracepoints of direct reclaim, without `_begin` and `_end`: of the machine's memory, of a
/// control group's, of a node's.
const RECLAIM: [&str; 3] =
    ["mm_vmscan_direct_reclaim", "mm_vmscan_memcg_reclaim", "mm_vmscan_node_reclaim"];

/// Its name in reports.
pub const NAME: &str = "cycles";

/// The programs in the kernel; dropping this ends them.
pub struct Attacher {
    object: BpfObject,
    attached: Vec<Attach>,
    timer_starts: Option<Attach>,
    /// The number of cycles before the first one released by a timer.
    without_timers: u32,
    has_timers: bool,
    buffers: Buffers,
    cpus: CpuSet,
    scratch: Vec<u8>,
    cycles: Vec<Cycle>,
    moments: Moments,
    places: AttachPlaces,
    /// The thread of this process that measured the cost; 0: none.
    own: AtomicU32,
    /// The distinctions that are impossible here, with reasons.
    pub findings: Vec<Finding>,
}

impl Attacher {
    /// Starts on all these CPUs, which must include those of the program; no thread is watched yet.
    /// With `children`, children of watched processes are watched too; with `lines`, user stacks
    /// are copied, which source lines need.
    pub fn start(cpus: &CpuSet, children: bool, lines: bool) -> Result<Attacher, StartError> {
        Attacher::load_programs(cpus, children, lines)
            .map_err(|why| StartError::from_load_error(BACKEND, &why))
    }

    fn load_programs(cpus: &CpuSet, children: bool, lines: bool) -> Result<Attacher, LoadError> {
        let copy_stacks = lines && Unwinder::IS_AVAILABLE;
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let (shape, count) = (BufferSizes::with_capacity(BUFFER, false), cpus.len() as u32);
        let [period_expiry, expiries @ ..] = crate::names::kernel_functions(EXPIRIES);
        let number = |name| crate::syscall_number(name).unwrap_or(u32::MAX);
        let mut constants = vec![
            ("mask", shape.index_mask().to_ne_bytes().to_vec()),
            ("children", vec![u8::from(children)]),
            ("copy_stacks", vec![u8::from(copy_stacks)]),
            ("pid_namespace", crate::namespace::inner_number().to_ne_bytes().to_vec()),
            ("waits", syscall_bitmap(&WAITING_CALLS)),
            ("files", syscall_bitmap(&FILE_CALLS)),
            ("polls", syscall_bitmap(&POLLS)),
            ("marks", syscall_marks()),
            ("futex", NR_FUTEX.to_ne_bytes().to_vec()),
            ("futex_wait", number("futex_wait").to_ne_bytes().to_vec()),
            ("futex_waitv", number("futex_waitv").to_ne_bytes().to_vec()),
            ("native", compat::native_calls()),
            ("clock_nanosleep", number("clock_nanosleep").to_ne_bytes().to_vec()),
            ("nanosleep", number("nanosleep").to_ne_bytes().to_vec()),
            ("restart_syscall", number("restart_syscall").to_ne_bytes().to_vec()),
            ("pause", number("pause").to_ne_bytes().to_vec()),
            ("rt_sigsuspend", number("rt_sigsuspend").to_ne_bytes().to_vec()),
            ("sched_yield", number("sched_yield").to_ne_bytes().to_vec()),
            ("period_expiry", period_expiry.to_ne_bytes().to_vec()),
            ("expiries", expiries.iter().flat_map(|address| address.to_ne_bytes()).collect()),
        ];
        constants.extend(slot_constants(cpus));
        let mut object = BpfObject::open(OBJECT, &borrow_constants(&constants))?;
        object.set_map_shape("buffers", shape.value_size(), count);
        object.set_map_entries("cpus", count);
        object.prepare_programs(Some(&kernel))?;
        let bytes = u64::from(shape.value_size()) * u64::from(count);
        let buffers = Buffers::map_buffers(object.map_fd("buffers")?, shape, count)
            .map_err(|why| LoadError::Map { bytes, why })?;
        let places = AttachPlaces::from_object(&object)?;
        let copies = copy_stacks.then(|| Copies::from_object(&object)).transpose()?;
        let moments = Moments { copies, ..Moments::default() };
        let (attached, scratch) = (Vec::new(), Vec::new());
        let timers = expiries.contains(&0).then(timers_not_known);
        let findings = timers.into_iter().chain(steal::not_divided()).collect();
        let mut attacher = Attacher {
            object,
            attached,
            timer_starts: None,
            without_timers: 0,
            has_timers: false,
            buffers,
            cpus: cpus.clone(),
            scratch,
            cycles: Vec::new(),
            moments,
            places,
            own: AtomicU32::new(0),
            findings,
        };
        attacher.attach_programs(&kernel)?;
        Ok(attacher)
    }

    /// Interrupts first: a switch must not occur in one whose start was unseen.
    fn attach_programs(&mut self, kernel: &Btf) -> Result<(), LoadError> {
        self.load_ahead(kernel);
        let mut ends_seen = !cfg!(target_arch = "x86_64");
        for (name, (entry, exit)) in SERVED {
            let exit = self.object.attach_btf_tracepoint(kernel, exit, &format!("{name}_exit"));
            let entry = self.object.attach_btf_tracepoint(kernel, entry, &format!("{name}_entry"));
            match (exit, entry) {
                (Ok(exit), Ok(entry)) => {
                    ends_seen |= name == "local_timer" && !has_other_timer_interrupt();
                    self.attached.extend([exit, entry]);
                }
                // Not every architecture has all of them.
                (Err(why @ LoadError::Refused { .. }), _)
                | (_, Err(why @ LoadError::Refused { .. })) => {
                    let message = format!("the time of {name} is not known: {why}");
                    let id = "interrupts-not-timed";
                    self.findings.push(Finding::new(id, Severity::Warning, "attach", message));
                }
                _ => {}
            }
        }
        // Without the end of a fault, its time counts for the thread itself.
        let ends = self.object.attach_function_exit(kernel, "attach_fault_ends", FAULT_ENDS);
        let counted =
            |_| self.object.attach_software_event("attach_fault_ends", FAULT_COUNTED, &self.cpus);
        let ends = ends.or_else(counted);
        let begins = if ends.is_ok() { "attach_fault_begins" } else { "attach_fault" };
        match ends {
            Ok(ends) => self.attached.push(ends),
            Err(why) => self.findings.push(faults_not_timed(&why)),
        }
        let faults = FAULTS.map(|name| self.object.attach_btf_tracepoint(kernel, begins, name));
        if faults.iter().any(Result::is_err) {
            let message = "page faults are not counted: this kernel has no tracepoints for them";
            self.findings.push(Finding::new(
                "faults-not-counted",
                Severity::Note,
                "attach",
                message,
            ));
        }
        self.attached.extend(faults.into_iter().flatten());
        self.attach_reclaim(kernel);
        self.attach_signals(kernel);
        let (tracepoint, program) = TIMER_STARTS;
        let starts = self.object.attach_btf_tracepoint(kernel, program, tracepoint)?;
        self.timer_starts = Some(starts.clone());
        self.attached.push(starts);
        let ends = (!ends_seen).then_some(TIMER_ENDS);
        for (tracepoint, programs) in NEEDED.into_iter().chain(ends) {
            self.attached.push(Attach::first_of(programs, |program| {
                self.object.attach_btf_tracepoint(kernel, program, tracepoint)
            })?);
        }
        Ok(())
    }

    /// All that may be attached, the longest first: each tracepoint has a program of its own.
    fn load_ahead(&self, kernel: &Btf) {
        let first = |(tracepoint, programs): &(&'static str, &'static str)| {
            (programs.split('|').next().unwrap_or_default(), (*tracepoint).to_owned())
        };
        let mut programs_to_load: Vec<(&str, String)> =
            NEEDED.iter().chain([&TIMER_STARTS, &SIGNALS]).map(first).collect();
        for (name, (entry, exit)) in SERVED {
            programs_to_load
                .extend([(exit, format!("{name}_exit")), (entry, format!("{name}_entry"))]);
        }
        for name in RECLAIM {
            programs_to_load.push(("attach_reclaim_ends", format!("{name}_end")));
            programs_to_load.push(("attach_reclaim_begins", format!("{name}_begin")));
        }
        programs_to_load.extend(FAULTS.map(|name| ("attach_fault_begins", name.to_owned())));
        programs_to_load.sort_by_key(|(program, _)| !LONGEST.contains(program));
        self.object.load_ahead(kernel, &programs_to_load);
    }

    fn attach_signals(&mut self, kernel: &Btf) {
        let (tracepoint, program) = SIGNALS;
        self.attached.extend(self.object.attach_btf_tracepoint(kernel, program, tracepoint));
    }

    /// The end first: without a seen start the end is ignored.
    fn attach_reclaim(&mut self, kernel: &Btf) {
        for name in RECLAIM {
            let one = |program: &str, event: &str| {
                self.object.attach_btf_tracepoint(kernel, program, &format!("{name}_{event}"))
            };
            let ends = one("attach_reclaim_ends", "end");
            if let (Ok(ends), Ok(begins)) = (ends, one("attach_reclaim_begins", "begin")) {
                self.attached.extend([ends, begins]);
            }
        }
    }

    /// Watches all current and future threads of a process.
    pub fn watch_process(&self, process: u32) -> Result<(), StartError> {
        self.update_entry("processes", process, &1u32.to_ne_bytes())?;
        // In this order, a thread started meanwhile is found one way or the other.
        let tasks =
            std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        tids.into_iter().try_for_each(|tid| self.watch_thread(tid))
    }

    pub fn watch_thread(&self, tid: u32) -> Result<(), StartError> {
        let clear = |number: u32| {
            let mut value = vec![0; self.object.value_size("values")];
            value[wire::ATTACHED_NUMBER as usize..][..4].copy_from_slice(&number.to_ne_bytes());
            self.update_entry("selections", number, &[0; Selection::SIZE])?;
            self.update_entry("values", number, &value)
        };
        match self.places.watch_thread(tid, clear)? {
            true => Ok(()),
            false => Err(StartError::Backend {
                backend: BACKEND,
                why: format!("{THREADS} threads are watched already"),
                remedy: None,
            }),
        }
    }

    /// From now on a cycle of this thread ends at its wait in this call, at its place if that is
    /// known; with `by_argument` only for the same file or address. With `None` no more cycles are
    /// recorded.
    pub fn select_wait(
        &mut self,
        tid: u32,
        call: Option<(WaitingCall, bool)>,
    ) -> Result<(), StartError> {
        // Of a thread that has ended nothing is left to select for.
        let Some(number) = self.places.number_of(tid) else { return Ok(()) };
        let mut selection = Selection::read(&[0; Selection::SIZE]);
        (selection.call, selection.how) = (wire::MAX_SYSCALLS as u32, wire::SELECTED as u16);
        if let Some((call, by_argument)) = call {
            (selection.argument, selection.call) = (call.argument, call.number);
            selection.operation = call.operation;
            if by_argument {
                selection.how = wire::SELECTED_ARGUMENT as u16;
            }
            self.moments.waits.fill_selection(&mut selection, call.place);
        }
        // The kernel may read it meanwhile: it is whole before it counts.
        let mut bytes = [0; Selection::SIZE];
        Selection { how: 0, ..selection }.write(&mut bytes);
        self.update_entry("selections", number, &bytes)?;
        selection.write(&mut bytes);
        self.update_entry("selections", number, &bytes)?;
        self.moments.waits.forget_thread(tid, clock::monotonic_now());
        if let Some((call, _)) = call.filter(|(call, _)| call.place != 0) {
            self.moments.waits.select_place(tid, call.place, clock::monotonic_now());
        }
        Ok(())
    }

    fn update_entry(&self, map: &str, key: u32, value: &[u8]) -> Result<(), StartError> {
        let refused = |why| {
            StartError::from_load_error(BACKEND, &LoadError::Map { bytes: value.len() as u64, why })
        };
        let map =
            self.object.map_fd(map).map_err(|why| StartError::from_load_error(BACKEND, &why))?;
        sys::update_map(map, &key.to_ne_bytes(), value).map_err(refused)
    }

    /// Returns the ended cycles of each CPU, in order of time.
    pub fn drain_cycles(&mut self, take: &mut dyn FnMut(Cycle)) {
        let mut cycles = std::mem::take(&mut self.cycles);
        for slot in 0..self.cpus.len() as u32 {
            self.scratch.clear();
            self.buffers.take_records(slot, &mut self.scratch);
            record::read(&self.scratch, &mut |cycle| cycles.push(cycle), &mut self.moments);
        }
        // The places of waits may come from other CPUs.
        for mut cycle in cycles.drain(..) {
            cycle.call.place = self.moments.waits.take_place(&cycle);
            self.has_timers |= cycle.by == WokenBy::Timer;
            self.without_timers = self.without_timers.saturating_add(1);
            take(cycle);
        }
        self.cycles = cycles;
        self.look_at_timers();
    }

    /// The current wait of a thread, or the cycle after it: the kernel writes no record of a cycle
    /// before its end. `None` if unknown, or changing at this instant.
    pub fn open_cycle(&self, tid: u32) -> Option<OpenCycle> {
        let map = self.object.map_fd("values").ok()?;
        let mut value = vec![0; self.object.value_size("values")];
        let mut look = || {
            let number = self.places.number_of(tid)?;
            sys::look_up(map, &number.to_ne_bytes(), &mut value).ok()?;
            open::read_sleep_end(&mut value, tid);
            open::decode_open_cycle(&value, clock::monotonic_now())
        };
        // The programs may write it meanwhile.
        look().filter(|first| look() == Some(*first))
    }

    /// Watches timer starts only if a cycle needs them, as each exit from idle starts a timer. A
    /// failed attempt is repeated.
    fn look_at_timers(&self) {
        match &self.timer_starts {
            Some(starts) if self.has_timers => _ = starts.resume_program(),
            Some(starts) if self.without_timers >= WITHOUT_TIMERS => starts.pause_program(),
            _ => {}
        }
    }

    pub fn attached_programs(&self) -> AttachedPrograms {
        AttachedPrograms::from_programs(NAME, &self.attached)
    }

    /// The gaps of polling threads since the last call.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        let own_thread = self.own.load(Ordering::Relaxed);
        let mut gaps = std::mem::take(&mut self.moments.gaps);
        gaps.retain(|gap| gap.tid != own_thread);
        gaps.sort_by_key(|gap| gap.end);
        gaps
    }

    /// The time of threads in each state: of those ended since the last call and, with `living`, of
    /// the current ones.
    pub fn take_times(&mut self, living: bool) -> Vec<(u32, ThreadTimes)> {
        let own_thread = self.own.load(Ordering::Relaxed);
        let mut state_times = std::mem::take(&mut self.moments.times);
        state_times.retain(|(tid, _)| *tid != own_thread);
        if living {
            state_times.extend(self.living_times());
        }
        state_times
    }

    /// The time of the current threads in each state, with what was lost of them.
    pub fn living_times(&self) -> Vec<(u32, ThreadTimes)> {
        let mut living_threads = Vec::new();
        let Ok(map) = self.object.map_fd("values").map_err(drop) else { return living_threads };
        let now = u64::try_from(clock::monotonic_now().ns()).unwrap_or_default();
        let mut value = vec![0; self.object.value_size("values")];
        for (tid, number) in self.places.watched_threads() {
            let read = sys::look_up(map, &number.to_ne_bytes(), &mut value);
            // The end of the value.
            if let (Ok(()), Some(times)) = (read, value.last_chunk::<{ Times::SIZE }>()) {
                living_threads.push((tid, record::thread_times(&Times::read(times), now)));
            }
        }
        living_threads
    }

    /// The tasks that watched threads delayed, since the start.
    pub fn delayed_tasks(&self) -> Vec<DelayedTask> {
        let Ok(map) = self.object.map_fd("delayed_tasks") else { return Vec::new() };
        let nanos = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX));
        let (mut key, mut next) = (None::<[u8; DelayedKey::SIZE]>, [0; DelayedKey::SIZE]);
        let (mut all, mut value) = (Vec::new(), [0; DelayedValue::SIZE]);
        // A key that is evicted meanwhile would begin the walk again.
        for _ in 0..wire::DELAYED_TASKS {
            if sys::next_key(map, key.as_ref().map(|key| &key[..]), &mut next).is_err() {
                break;
            }
            key = Some(next);
            if sys::look_up(map, &next, &mut value).is_ok() {
                let (of, sums) = (DelayedKey::read(&next), DelayedValue::read(&value));
                all.push(DelayedTask {
                    thread: of.thread,
                    tid: of.task,
                    name: TaskComm(sums.comm),
                    times: sums.times,
                    total: nanos(sums.total),
                    longest: nanos(sums.longest),
                });
            }
        }
        all
    }

    /// The positions of threads within cycles since the last call.
    pub fn take_moments(&mut self) -> Vec<Moment> {
        let mut moments = std::mem::take(&mut self.moments.kept);
        moments.sort_by_key(|moment| moment.begin);
        moments
    }

    /// The functions' addresses in user mode at an instant; `None` if they were released
    /// meanwhile. Without a copy of the stack they are those that frame pointers lead to.
    pub fn user_stack(&self, moment: &Moment) -> Option<UserStack> {
        let copies = self.moments.copies.as_ref();
        if let Some(copied) = copies.and_then(|copies| copies.kept_stack(moment.stack?)) {
            return Some(copied.clone());
        }
        let stacks = self.object.map_fd("stacks").ok()?;
        let addresses = self.moments.stacks.stack_addresses(stacks, moment)?;
        let is_cut = addresses.len() == 1;
        Some(UserStack { addresses, is_cut })
    }

    /// The functions at a place where a thread waits ([`WaitingCall::place`]).
    pub fn wait_stack(&self, place: u64) -> Option<UserStack> {
        self.moments.waits.place_stack(place).cloned()
    }

    /// The copied stack with this number, as that of a waker.
    pub fn copied_stack(&self, number: u32) -> Option<UserStack> {
        self.moments.copies.as_ref()?.kept_stack(number).cloned()
    }

    /// Frees space for further stacks when due, except for `needed` ones.
    pub fn free_stacks(&mut self, needed: impl FnOnce() -> BTreeSet<u32>) {
        let needed = needed();
        if let Some(copies) = &mut self.moments.copies {
            copies.free_unneeded(&needed, clock::monotonic_now());
        }
        if let Ok(map) = self.object.map_fd("stacks") {
            self.moments.stacks.free_unneeded(map, || needed);
        }
    }

    /// Instants before which records were lost, since the last call.
    pub fn take_breaks(&mut self) -> Vec<MonotonicNs> {
        std::mem::take(&mut self.moments.breaks)
    }

    /// The number of stacks lost for lack of space.
    pub fn lost_stacks(&self) -> u64 {
        self.moments.stacks.lost + self.moments.copies.as_ref().map_or(0, |copies| copies.lost)
    }

    /// The number of instants within cycles lost for lack of space: half of each buffer is reserved
    /// for cycles.
    pub fn lost_moments(&self) -> u64 {
        (0..self.cpus.len() as u32).map(|slot| self.buffers.refused_moments(slot)).sum()
    }

    /// The number of cycles lost for lack of space.
    pub fn lost_cycles(&self) -> u64 {
        (0..self.cpus.len() as u32).map(|slot| self.buffers.lost_records(slot)).sum()
    }

    /// The number of events that the kernel did not pass on, as the same program was already
    /// running on that CPU.
    pub fn missed_events(&self) -> u64 {
        self.attached.iter().filter_map(Attach::recursion_misses).sum()
    }
}

/// The timer interrupt of Hyper-V, which has no tracepoint (arch/x86/kernel/irq.c).
fn has_other_timer_interrupt() -> bool {
    let interrupts_text = std::fs::read_to_string("/proc/interrupts").unwrap_or_default();
    interrupts_text.lines().any(|line| line.trim_start().starts_with("HVS:"))
}

fn faults_not_timed(why: &LoadError) -> Finding {
    let message = format!(
        "the time of page faults that do not sleep is in `self` or `system-call`: neither the \
         return of {FAULT_ENDS}() can be traced here, nor minor faults ({why})"
    );
    Finding::new("faults-not-timed", Severity::Note, "attach", message)
}

fn timers_not_known() -> Finding {
    let message = "timers that expire before the thread waits for them are not recognised as \
                   releases: their functions are not in /proc/kallsyms";
    Finding::new("timers-not-recognised", Severity::Note, "attach", message)
        .with_remedy("set kernel.kptr_restrict to 0 or 1 and run as root")
}

/// A set of system calls in the format of the programs. Calls that this architecture lacks are
/// omitted.
fn syscall_bitmap(names: &[&str]) -> Vec<u8> {
    let mut bits = vec![0u8; wire::MAX_SYSCALLS as usize / 8];
    for number in names.iter().filter_map(|name| crate::syscall_number(name)) {
        if let Some(byte) = bits.get_mut(number as usize / 8) {
            *byte |= 1 << (number % 8);
        }
    }
    bits
}

/// The marks of system calls in the format of the programs.
fn syscall_marks() -> Vec<u8> {
    let mut marks = vec![0u8; wire::MAX_SYSCALLS as usize];
    for (place, (name, class)) in MARKED.into_iter().enumerate() {
        let number = crate::syscall_number(name).map(|number| number as usize);
        if let Some(mark) = number.and_then(|number| marks.get_mut(number)) {
            let write = if class == CallClass::Write { wire::MARK_WRITE } else { 0 };
            *mark = place as u8 | (wire::MARK | write) as u8;
        }
    }
    marks
}
