//! The waits of the subject, and the threads that cause them.

use super::lock::SubjectLock;
use super::{SubjectStage, now_ns, sleep_until};
use crate::block::Disk;
use crate::group::ControlGroup;
use crate::names::{CULPRIT, DEVICE, HOLDER, PRIORITY};
use crate::operation::{Holder, LockKind, Operation};
use crate::record;
use crate::score::Injected;
use punctual_core::{Clock, Nanos};
use punctual_sys::mapping::Mapping;
use punctual_sys::{attributes, clock, signals};
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::pipe::pipe;
use std::fs::{File, OpenOptions};
use std::hint::spin_loop;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

/// One cycle's work: returns the delay that it met, if any.
pub type CycleWork = Box<dyn FnMut(&SubjectStage) -> io::Result<Option<Injected>>>;

/// How long before a cycle the holder takes the subject's resource.
const AHEAD: i64 = 200_000;
/// The budget of a task in each period.
pub const RUNTIME: Nanos = Nanos(1_000_000);
/// A gap in its own time of at least the length divided by this is throttling.
const GAP_PART: i64 = 2;
/// How long a thread runs at most until it is throttled, in ns.
const UNTIL_GAP: i64 = 40_000_000;
/// The maximum of new pages of a cycle, in bytes.
const PAGES: usize = 64 << 20;
const PAGE: usize = 4096;

/// Starts the threads that make the subject wait.
pub fn prepare_operation(operation: Operation, stage: &Arc<SubjectStage>) -> io::Result<CycleWork> {
    match operation {
        Operation::Lock(kind, holder) => prepare_lock(stage, kind, holder),
        Operation::Chain(kind) => prepare_chain(stage, kind),
        Operation::Inversion => prepare_inversion(stage),
        Operation::KernelLock => kernel_lock(stage),
        Operation::Pipe => {
            let ((request, ask), (answer, reply)) = (pipe()?, pipe()?);
            let files = [request, reply, ask, answer].map(File::from);
            let [request, reply, ask, answer] = files;
            spawn_peer(stage, request, reply)?;
            Ok(ask_peer_work(ask, answer))
        }
        Operation::Socket => {
            let (own, other) = UnixStream::pair()?;
            spawn_peer(stage, other.try_clone()?, other)?;
            Ok(ask_peer_work(own.try_clone()?, own))
        }
        Operation::Signal => prepare_signal(stage),
        Operation::Device(word) => prepare_device(word),
        Operation::BlockRead => block_read(),
        Operation::Fsync => prepare_fsync(),
        Operation::MajorFault => major_fault(),
        Operation::MinorFaults => minor_faults(stage),
        Operation::Spin => Ok(Box::new(|stage| {
            let begin = now_ns();
            spin_until(begin + stage.length);
            Ok(Some(Injected::new(begin, now_ns())))
        })),
        Operation::Sleep => Ok(Box::new(|stage| {
            let (begin, time) = (now_ns(), clock::to_timespec(stage.length));
            clock::sleep_on_clock(clock::clock_id(Clock::Monotonic), 0, &time)?;
            Ok(Some(Injected::new(begin, now_ns())))
        })),
        Operation::Preempted => prepare_preemption(stage),
        Operation::Quota => {
            // Once the program is in the group, before its threads need the quota.
            let quota = RUNTIME.0 / 1_000;
            let period = quota + stage.length / 1_000;
            let group = ControlGroup::with_quota("punctual-truth-quota", quota, period)?;
            group.enter()?;
            Ok(Box::new(move |stage| Ok(spin_until_gap(stage))))
        }
        Operation::Budget => Ok(Box::new(|stage| Ok(spin_until_gap(stage)))),
    }
}

fn prepare_lock(
    stage: &Arc<SubjectStage>,
    kind: LockKind,
    holder: Holder,
) -> io::Result<CycleWork> {
    let lock = Arc::new(SubjectLock::new(kind));
    let subject_lock = Arc::clone(&lock);
    stage.spawn_culprit(AHEAD, move |stage, due| {
        lock.run_locked(|| {
            match holder {
                Holder::Runs => spin_until(due + stage.length),
                Holder::Sleeps => sleep_until(due + stage.length)?,
            }
            stage.note_end();
            Ok(())
        })
    })?;
    Ok(lock_work(subject_lock))
}

/// The subject's part: takes the lock and releases it.
fn lock_work(lock: Arc<SubjectLock>) -> CycleWork {
    Box::new(move |stage| {
        let begin = now_ns();
        lock.run_locked(|| Ok(()))?;
        Ok(stage.delay_since(begin))
    })
}

/// The subject waits for a thread, which waits for the culprit.
fn prepare_chain(stage: &Arc<SubjectStage>, kind: LockKind) -> io::Result<CycleWork> {
    let (near, far) = (Arc::new(SubjectLock::new(kind)), Arc::new(SubjectLock::new(kind)));
    let (own, farther) = (Arc::clone(&near), Arc::clone(&far));
    stage.spawn_culprit(AHEAD * 2, move |stage, due| {
        far.run_locked(|| {
            spin_until(due + stage.length);
            stage.note_end();
            Ok(())
        })
    })?;
    let above_culprit = PRIORITY - 5;
    stage.spawn_holder(above_culprit, AHEAD, move |_, _| {
        near.run_locked(|| farther.run_locked(|| Ok(())))
    })?;
    Ok(lock_work(own))
}

/// The subject waits for a thread, which waits for the CPU that the culprit has.
fn prepare_inversion(stage: &Arc<SubjectStage>) -> io::Result<CycleWork> {
    let lock = Arc::new(SubjectLock::new(LockKind::Plain));
    let subject_lock = Arc::clone(&lock);
    stage.spawn_culprit(AHEAD / 2, |stage, due| {
        spin_until(due + stage.length);
        stage.note_end();
        Ok(())
    })?;
    let below_culprit = PRIORITY - 20;
    stage.spawn_holder(below_culprit, AHEAD * 2, move |_, due| {
        lock.run_locked(|| {
            spin_until(due);
            Ok(())
        })
    })?;
    Ok(lock_work(subject_lock))
}

/// The kernel module has a mutex.
fn kernel_lock(stage: &Arc<SubjectStage>) -> io::Result<CycleWork> {
    let mut holds = open_device()?;
    stage.spawn_culprit(AHEAD, move |stage, _| {
        holds.write_all(format!("hold {}", stage.length + AHEAD).as_bytes())
    })?;
    let mut device = open_device()?;
    Ok(Box::new(move |_| {
        let begin = now_ns();
        device.write_all(b"contend 0")?;
        let end = record::read_device(&mut device)?.last().map_or(begin, |last| last.end);
        Ok((end > begin).then_some(Injected::new(begin, end)))
    }))
}

/// The culprit as a peer that answers after a time.
fn spawn_peer(
    stage: &Arc<SubjectStage>,
    mut request: impl Read + Send + 'static,
    mut reply: impl Write + Send + 'static,
) -> io::Result<()> {
    stage.spawn_thread(CULPRIT, PRIORITY - 10, move |stage| {
        let mut byte = [0];
        while request.read(&mut byte)? > 0 {
            spin_until(now_ns() + stage.length);
            stage.note_end();
            reply.write_all(&byte)?;
        }
        Ok(())
    })
}

fn ask_peer_work(mut ask: impl Write + 'static, mut answer: impl Read + 'static) -> CycleWork {
    Box::new(move |stage| {
        ask.write_all(&[0])?;
        let begin = now_ns();
        answer.read_exact(&mut [0])?;
        Ok(stage.delay_since(begin))
    })
}

/// The subject sleeps longer than the culprit allows.
fn prepare_signal(stage: &Arc<SubjectStage>) -> io::Result<CycleWork> {
    signals::prepare_waking()?;
    let subject = attributes::thread_id();
    stage.spawn_culprit(0, move |stage, due| {
        spin_until(due + stage.length);
        stage.note_end();
        signals::wake_thread(subject)
    })?;
    Ok(Box::new(|stage| {
        // No signal arrives during the sleep after it.
        let (begin, time) = (now_ns(), clock::to_timespec(stage.period / 2));
        match clock::sleep_on_clock(clock::clock_id(Clock::Monotonic), 0, &time) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => Ok(stage.delay_since(begin)),
            // The signal arrived before the sleep began.
            slept => slept.map(|()| None),
        }
    }))
}

fn prepare_device(word: &'static str) -> io::Result<CycleWork> {
    let mut device = open_device()?;
    Ok(Box::new(move |stage| {
        let begin = now_ns();
        device.write_all(format!("{word} {}", stage.length).as_bytes())?;
        let end = record::read_device(&mut device)?.last().map_or(begin, |last| last.end);
        Ok((end > begin).then_some(Injected::new(begin, end)))
    }))
}

fn open_device() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(DEVICE)
}

fn block_read() -> io::Result<CycleWork> {
    let direct = OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(direct).open(Disk::device_path())?;
    let mut room = vec![0; PAGE * 2];
    let start = room.as_ptr().align_offset(PAGE);
    Ok(Box::new(move |_| {
        let begin = now_ns();
        file.read_exact_at(&mut room[start..start + PAGE], 0)?;
        Ok(Some(Injected::new(begin, now_ns())))
    }))
}

fn prepare_fsync() -> io::Result<CycleWork> {
    let file = OpenOptions::new().read(true).write(true).open(Disk::device_path())?;
    Ok(Box::new(move |_| {
        file.write_all_at(&[1; PAGE], 0)?;
        let begin = now_ns();
        file.sync_all()?;
        Ok(Some(Injected::new(begin, now_ns())))
    }))
}

fn major_fault() -> io::Result<CycleWork> {
    let file = OpenOptions::new().read(true).open(Disk::device_path())?;
    Ok(Box::new(move |_| {
        fadvise(&file, 0, None::<NonZeroU64>, Advice::DontNeed)?;
        let page = Mapping::of_file(&file, 0, PAGE, READ, 0)?;
        let begin = now_ns();
        page.word_at(0).load(Ordering::Relaxed);
        Ok(Some(Injected::new(begin, now_ns())))
    }))
}

/// Permission to read the pages of a file (PROT_READ).
const READ: i32 = 1;

/// Another thread unmaps the pages, while the subject sleeps.
fn minor_faults(stage: &Arc<SubjectStage>) -> io::Result<CycleWork> {
    let (used, unmaps) = mpsc::channel::<Mapping>();
    stage.spawn_thread(HOLDER, 1, move |_| {
        unmaps.iter().for_each(drop);
        Ok(())
    })?;
    Ok(Box::new(move |stage| {
        let pages = Mapping::new_anonymous(PAGES)?;
        let begin = now_ns();
        let mut end = begin;
        for page in 0..PAGES / PAGE {
            pages.word_at(page * PAGE).store(1, Ordering::Relaxed);
            end = now_ns();
            if end >= begin + stage.length {
                break;
            }
        }
        // The thread that unmaps ends with this one.
        let _ = used.send(pages);
        Ok(Some(Injected::new(begin, end)))
    }))
}

/// The subject runs, and is preempted for a part of that.
fn prepare_preemption(stage: &Arc<SubjectStage>) -> io::Result<CycleWork> {
    let above = PRIORITY + 10;
    stage.before_each(CULPRIT, above, -AHEAD, |stage, _| {
        stage.note_begin();
        spin_until(now_ns() + stage.length);
        stage.note_end();
        Ok(())
    })?;
    Ok(Box::new(|stage| {
        let begin = now_ns();
        // Without the culprit the cycle ends nevertheless.
        while stage.delay_since(begin).is_none() && now_ns() < begin + stage.period / 2 {
            spin_loop();
        }
        Ok(stage.delay_since(begin))
    }))
}

/// Runs until time is missing: the budget was used up then.
fn spin_until_gap(stage: &SubjectStage) -> Option<Injected> {
    let begin = now_ns();
    let mut last = begin;
    while last < begin + UNTIL_GAP {
        let at = now_ns();
        if at - last >= stage.length / GAP_PART {
            return Some(Injected::new(last, at));
        }
        last = at;
    }
    None
}

fn spin_until(at: i64) {
    while now_ns() < at {
        spin_loop();
    }
}
