//! Divides every sample of a timer into main parts, in the kernel at the time of the sample.
//!
//! ```no_run
//! use punctual_core::{CpuSet, MonotonicNs};
//! use punctual_record::{Backend, account::Accountant};
//! let mut accountant = Accountant::start(&"1".parse::<CpuSet>()?, false, 1_000, Backend::Auto)?;
//! accountant.watch(1234)?;
//! // … the thread measures …
//! accountant.drain(&mut |record| println!("{} was due at {:?}", record.tid, record.begin));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A record is written when the next sample begins: [`Accountant::last_record`] returns the one
//! left at the end. It needs BPF, and BTF or tracefs; otherwise the error says so. The measured
//! thread itself does no additional work.

mod cost;
mod programs;
mod record;

pub use record::AccountRecord;
pub(crate) use record::cause_of_part;

use crate::attached::AttachedPrograms;
use crate::bpf::{
    Attach, BpfObject, BufferSizes, Buffers, LoadError, borrow_constants, slot_constants, sys,
};
use crate::namespace::check_ids;
use crate::request::Backend;
use crate::start_error::StartError;
use crate::wire::layout::{AccountThread, Buffer};
use programs::AccountPrograms;
use punctual_core::{CpuSet, Finding, MonotonicNs, Severity};

/// The limits of a CPU's buffer. It holds the records of two seconds, as rings hold the samples of
/// two (`punctual_measure::sink`). Above 100,000 samples per second it holds fewer, which at the
/// shortest period is still twice the number between two polls.
const BUFFERS: std::ops::RangeInclusive<usize> = 1 << 20..=32 << 20;
const SPAN_SECONDS: u64 = 2;
/// The size of a record: time, thread, and the pieces.
const RECORD: u64 = 8 * (2 + 1 + crate::wire::layout::ACCOUNT_PIECES);

/// The buffer size for `rate` samples per second on one CPU.
fn buffer_for(rate: u64) -> usize {
    let bytes = rate.saturating_mul(SPAN_SECONDS * RECORD).min(*BUFFERS.end() as u64) as usize;
    bytes.next_power_of_two().clamp(*BUFFERS.start(), *BUFFERS.end())
}

/// Required tracepoints with programs; alternatives are separated by `|`.
const NEEDED: [(&str, &str); 5] = [
    ("sched_switch", "account_switched|account_switched_before_5_18"),
    ("sched_waking", "account_waking"),
    ("sched_wakeup", "account_waking"),
    ("hrtimer_expire_entry", "account_expire_entry"),
    ("hrtimer_expire_exit", "account_expire_exit"),
];
/// For threads that may run on several CPUs.
const MOVES: (&str, &str) = ("sched_migrate_task", "account_moved");
const ENTRY_AND_EXIT: (&str, &str) = ("account_irq_entry", "account_irq_exit");
/// If one of these is missing, its time counts for the interrupted part. The names lack `_entry`
/// and `_exit`.
pub(crate) const SERVED: [(&str, (&str, &str)); 8] = [
    ("softirq", ("account_soft_entry", "account_soft_exit")),
    ("irq_handler", ENTRY_AND_EXIT),
    ("local_timer", ENTRY_AND_EXIT),
    ("reschedule", ENTRY_AND_EXIT),
    ("call_function", ENTRY_AND_EXIT),
    ("call_function_single", ENTRY_AND_EXIT),
    ("irq_work", ENTRY_AND_EXIT),
    ("ipi", ENTRY_AND_EXIT),
];
/// Those that every kernel has.
const EVERYWHERE: [&str; 2] = ["softirq", "irq_handler"];

/// Its name in reports.
pub const NAME: &str = "accounting";

/// The accounting in the kernel; dropping this ends it.
pub struct Accountant {
    object: BpfObject,
    programs: AccountPrograms,
    attached: Vec<Attach>,
    buffers: Buffers,
    cpus: CpuSet,
    buffer: usize,
    scratch: Vec<u8>,
    /// The distinctions that are impossible here, with reasons.
    pub findings: Vec<Finding>,
}

impl Accountant {
    /// Starts on the CPUs of the measuring threads; `several_cpus` if a thread may run on several
    /// of them. `rate` is the number of samples per second on the busiest CPU and determines the
    /// buffer size. Nothing is divided before [`Accountant::watch_thread`]. [`Backend::Auto`] uses
    /// the kernel's types, or does without if it does not export them.
    pub fn start(
        cpus: &CpuSet,
        several_cpus: bool,
        rate: u64,
        backend: Backend,
    ) -> Result<Accountant, StartError> {
        check_ids()?;
        let typed = || {
            Accountant::load_programs(
                cpus,
                several_cpus,
                buffer_for(rate),
                AccountPrograms::load_typed,
            )
            .map_err(|why| StartError::from_load_error(programs::TYPED, &why))
        };
        let untyped = || {
            Accountant::load_programs(
                cpus,
                several_cpus,
                buffer_for(rate),
                AccountPrograms::load_untyped,
            )
            .map_err(|why| StartError::from_load_error(programs::UNTYPED, &why))
        };
        match backend {
            Backend::Auto => typed().or_else(|first| match untyped() {
                Ok(mut accountant) => {
                    accountant.findings.push(without_types(&first));
                    Ok(accountant)
                }
                Err(second) => Err(StartError::None(vec![first, second])),
            }),
            Backend::Btf => typed(),
            Backend::Tracepoint => untyped(),
            Backend::Tracefs => Err(StartError::Backend {
                backend: "tracefs",
                why: "the accounting needs BPF".to_owned(),
                remedy: None,
            }),
        }
    }

    fn load_programs(
        cpus: &CpuSet,
        several_cpus: bool,
        buffer: usize,
        prepare: impl FnOnce(
            &[(&str, &[u8])],
            u32,
            BufferSizes,
        ) -> Result<(BpfObject, AccountPrograms), LoadError>,
    ) -> Result<Accountant, LoadError> {
        let shape = BufferSizes::with_capacity(buffer, false);
        let mut constants = vec![
            ("mask", shape.index_mask().to_ne_bytes().to_vec()),
            ("several_cpus", vec![u8::from(several_cpus)]),
        ];
        constants.extend(slot_constants(cpus));
        let count = cpus.len() as u32;
        let (object, programs) = prepare(&borrow_constants(&constants), count, shape)?;
        let bytes = u64::from(shape.value_size()) * u64::from(count);
        let buffers = Buffers::map_buffers(object.map_fd("buffers")?, shape, count)
            .map_err(|why| LoadError::Map { bytes, why })?;
        let mut accountant = Accountant {
            object,
            programs,
            attached: Vec::new(),
            buffers,
            cpus: cpus.clone(),
            buffer,
            scratch: Vec::new(),
            findings: Vec::new(),
        };
        accountant.attach_programs(several_cpus)?;
        accountant.programs.set_clocks(&accountant.object)?;
        Ok(accountant)
    }

    /// Interrupts first: a switch must not occur in one whose start was unseen.
    fn attach_programs(&mut self, several_cpus: bool) -> Result<(), LoadError> {
        for (name, (entry, exit)) in SERVED {
            let exit_attach = self.attach_first_of(&format!("{name}_exit"), exit);
            let attach_pair = exit_attach.and_then(|exit| {
                Ok([exit, self.attach_first_of(&format!("{name}_entry"), entry)?])
            });
            match attach_pair {
                Ok(both) => self.attached.extend(both),
                Err(LoadError::NoTracepoint(_)) if !EVERYWHERE.contains(&name) => {}
                Err(why) => self.findings.push(describe_missing(name, &why)),
            }
        }
        let moves: &[(&str, &str)] = if several_cpus { &[MOVES] } else { &[] };
        for (tracepoint, programs) in
            NEEDED.iter().chain(self.programs.extra_tracepoints()).chain(moves)
        {
            let attach = self.attach_first_of(tracepoint, programs)?;
            self.attached.push(attach);
        }
        Ok(())
    }

    fn attach_first_of(&self, tracepoint: &str, programs: &str) -> Result<Attach, LoadError> {
        Attach::first_of(programs, |program| {
            self.programs.attach_program(&self.object, program, tracepoint)
        })
    }

    /// Divides the samples of this thread from now on.
    pub fn watch_thread(&mut self, tid: u32) -> Result<(), StartError> {
        self.set_thread(tid, &[0; AccountThread::SIZE])
    }

    fn set_thread(&self, tid: u32, value: &[u8]) -> Result<(), StartError> {
        let refused = |why| {
            StartError::from_load_error(
                self.programs.name(),
                &LoadError::Map { bytes: AccountThread::SIZE as u64, why },
            )
        };
        let map = self
            .object
            .map_fd("threads")
            .map_err(|why| StartError::from_load_error(self.programs.name(), &why))?;
        sys::update_map(map, &tid.to_ne_bytes(), value).map_err(refused)
    }

    /// Returns the new records of each CPU, in order of time.
    pub fn drain_records(&mut self, take: &mut dyn FnMut(AccountRecord)) {
        // A clock may have been set meanwhile. If that is unknown, samples of that clock have no
        // record.
        let _ = self.programs.set_clocks(&self.object);
        for slot in 0..self.cpus.len() as u32 {
            self.scratch.clear();
            self.buffers.take_records(slot, &mut self.scratch);
            record::read(&self.scratch, take);
        }
    }

    /// The sample of a thread when it was last switched away from, which no later one has caused to
    /// be written.
    pub fn last_record(&self, tid: u32) -> Option<AccountRecord> {
        let mut bytes = [0; AccountThread::SIZE];
        sys::look_up(self.object.map_fd("threads").ok()?, &tid.to_ne_bytes(), &mut bytes).ok()?;
        let thread = AccountThread::read(&bytes);
        let begin = MonotonicNs(thread.begin as i64);
        let (cpu, moved) = (thread.timer_cpu as u16, thread.moved != 0);
        (thread.active != 0).then_some(AccountRecord {
            tid,
            cpu,
            moved,
            begin,
            pieces: thread.pieces,
        })
    }

    /// The number of records lost for lack of space.
    pub fn lost_records(&self) -> u64 {
        (0..self.cpus.len() as u32).map(|slot| self.buffers.lost_records(slot)).sum()
    }

    pub fn attached_programs(&self) -> AttachedPrograms {
        AttachedPrograms::from_programs(NAME, &self.attached)
    }

    /// Its memory in the kernel, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.cpus.len() * (self.buffer + Buffer::SIZE)
    }
}

fn without_types(why: &StartError) -> Finding {
    let message = "the accounting works without BTF: docs/reference/account.md describes what it \
                   then misses";
    Finding::new("account-untyped", Severity::Note, "account", message)
        .with_evidence(why.to_string())
}

fn describe_missing(name: &str, why: &LoadError) -> Finding {
    let message =
        format!("the accounting cannot separate {name}: its time counts for what it interrupted");
    Finding::new("account-incomplete", Severity::Warning, "account", message)
        .with_evidence(why.to_string())
        .with_remedy(
            "use a kernel with these tracepoints (irq:softirq_entry, irq:irq_handler_entry)",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_two_seconds_of_records() {
        assert_eq!(buffer_for(0), 1 << 20);
        assert_eq!(buffer_for(1_000), 1 << 20);
        for rate in [10_000, 100_000] {
            assert!(buffer_for(rate) as u64 >= 2 * rate * RECORD, "{rate}");
        }
        assert_eq!(buffer_for(u64::MAX), 32 << 20);
        // At the shortest period, the records during a round of draining of twice the planned
        // length.
        assert!(buffer_for(1_000_000) as u64 / RECORD > 200_000);
    }
}
