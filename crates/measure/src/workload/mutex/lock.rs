//! The kinds of lock.

use punctual_plan::kinds::LockKind;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Spins between two checks whether a thread must give up.
const SPINS: u32 = 1 << 12;

/// A lock at a fixed address, which identifies it to the kernel and libc.
pub struct FixedLock {
    kind: LockKind,
    raw: Box<RawLock>,
}

#[repr(align(128))]
struct RawLock {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    spin: UnsafeCell<libc::pthread_spinlock_t>,
    rwlock: UnsafeCell<libc::pthread_rwlock_t>,
    /// The next ticket in the upper half, the served one in the lower: one word, so that drawing a
    /// ticket also returns the number of those ahead (as in the kernel's own ticket locks).
    tickets: AtomicU64,
}

/// The distance of two tickets in [`RawLock::tickets`].
const TICKET: u64 = 1 << 32;

/// The result of a request for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// It was given up, which only spinning threads can do; the lock is then unusable.
    GivenUp,
    /// Granted. Nothing shows the time of the request.
    Granted,
    /// Granted to a ticket with this many ahead when it was drawn, including the owner.
    Drawn { ahead: u32 },
}

// SAFETY: locks are made to be used by several threads at once; the cells are accessed only through
// the functions of pthreads.
unsafe impl Send for FixedLock {}
// SAFETY: as above.
unsafe impl Sync for FixedLock {}

fn check_result(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// Spins until `is_mine`, or until it must give up.
fn spin_until(mut is_mine: impl FnMut() -> bool, give_up: impl Fn() -> bool) -> bool {
    let mut spins = 0u32;
    while !is_mine() {
        std::hint::spin_loop();
        spins = spins.wrapping_add(1);
        if spins.is_multiple_of(SPINS) && give_up() {
            return false;
        }
    }
    true
}

impl FixedLock {
    /// A free lock. Fails if libc does not have the kind.
    pub fn new(kind: LockKind) -> io::Result<FixedLock> {
        let raw = Box::new(RawLock {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            // SAFETY: a pthread_spinlock_t is an integer; it is initialised below.
            spin: UnsafeCell::new(unsafe { std::mem::zeroed() }),
            rwlock: UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER),
            tickets: AtomicU64::new(0),
        });
        // SAFETY: everything initialised is at its final place and not yet in use; attributes are
        // initialised before they are used.
        unsafe {
            check_result(libc::pthread_spin_init(raw.spin.get(), libc::PTHREAD_PROCESS_PRIVATE))?;
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            check_result(libc::pthread_mutexattr_init(&mut attributes))?;
            check_result(match kind {
                LockKind::Pi => {
                    libc::pthread_mutexattr_setprotocol(&mut attributes, libc::PTHREAD_PRIO_INHERIT)
                }
                LockKind::Robust => {
                    libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST)
                }
                // PTHREAD_MUTEX_ADAPTIVE_NP of glibc (pthread.h).
                LockKind::Adaptive => libc::pthread_mutexattr_settype(&mut attributes, 3),
                _ => 0,
            })?;
            check_result(libc::pthread_mutex_init(raw.mutex.get(), &attributes))?;
            libc::pthread_mutexattr_destroy(&mut attributes);
        }
        Ok(FixedLock { kind, raw })
    }

    /// Takes it, without a time limit.
    #[inline(always)]
    pub fn lock(&self, give_up: impl Fn() -> bool) -> Grant {
        let raw = &*self.raw;
        // SAFETY: initialised in `new`; the calling thread does not hold it.
        let granted = unsafe {
            match self.kind {
                LockKind::Normal | LockKind::Pi | LockKind::Robust | LockKind::Adaptive => {
                    libc::pthread_mutex_lock(raw.mutex.get()) == 0
                }
                LockKind::Rwlock => libc::pthread_rwlock_wrlock(raw.rwlock.get()) == 0,
                LockKind::Spin => {
                    spin_until(|| libc::pthread_spin_trylock(raw.spin.get()) == 0, give_up)
                }
                LockKind::Ticket => {
                    let drawn = raw.tickets.fetch_add(TICKET, Ordering::Relaxed);
                    let (mine, served) = ((drawn / TICKET) as u32, drawn as u32);
                    let is_mine = || raw.tickets.load(Ordering::Acquire) as u32 == mine;
                    if spin_until(is_mine, give_up) {
                        return Grant::Drawn { ahead: mine.wrapping_sub(served) };
                    }
                    false
                }
            }
        };
        if granted { Grant::Granted } else { Grant::GivenUp }
    }

    /// Releases it.
    #[inline(always)]
    pub(crate) fn unlock(&self) {
        let raw = &*self.raw;
        // SAFETY: initialised in `new`; the calling thread holds it.
        unsafe {
            match self.kind {
                LockKind::Normal | LockKind::Pi | LockKind::Robust | LockKind::Adaptive => {
                    libc::pthread_mutex_unlock(raw.mutex.get());
                }
                LockKind::Rwlock => {
                    libc::pthread_rwlock_unlock(raw.rwlock.get());
                }
                LockKind::Spin => {
                    libc::pthread_spin_unlock(raw.spin.get());
                }
                LockKind::Ticket => {
                    // Only the owner changes the lower half: it restarts without a carry.
                    if raw.tickets.load(Ordering::Relaxed) as u32 == u32::MAX {
                        raw.tickets.fetch_sub(TICKET - 1, Ordering::Release);
                    } else {
                        raw.tickets.fetch_add(1, Ordering::Release);
                    }
                }
            }
        }
    }
}

impl Drop for FixedLock {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`; no thread can use it any more. If it was given up, no
        // running thread holds it.
        unsafe {
            libc::pthread_mutex_destroy(self.raw.mutex.get());
            libc::pthread_spin_destroy(self.raw.spin.get());
            libc::pthread_rwlock_destroy(self.raw.rwlock.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_ticket_counts_the_waiters_ahead_even_if_numbers_wrap() {
        let lock = FixedLock::new(LockKind::Ticket).unwrap();
        let before = u64::from(u32::MAX - 1);
        lock.raw.tickets.store((before * TICKET) | before, Ordering::Relaxed);
        for _ in 0..4 {
            assert_eq!(lock.lock(|| false), Grant::Drawn { ahead: 0 });
            lock.unlock();
        }
        assert_eq!(lock.raw.tickets.load(Ordering::Relaxed), (2 * TICKET) | 2);
        assert_eq!(lock.lock(|| false), Grant::Drawn { ahead: 0 });
        std::thread::scope(|scope| {
            let other = scope.spawn(|| lock.lock(|| false));
            while lock.raw.tickets.load(Ordering::Relaxed) / TICKET < 4 {
                std::thread::yield_now();
            }
            let third = scope.spawn(|| lock.lock(|| false));
            while lock.raw.tickets.load(Ordering::Relaxed) / TICKET < 5 {
                std::thread::yield_now();
            }
            lock.unlock();
            assert_eq!(other.join().unwrap(), Grant::Drawn { ahead: 1 });
            lock.unlock();
            assert_eq!(third.join().unwrap(), Grant::Drawn { ahead: 2 });
        });
    }

    #[test]
    fn every_kind_of_lock_provides_mutual_exclusion() {
        use LockKind::*;
        for kind in [Normal, Pi, Robust, Adaptive, Spin, Ticket, Rwlock] {
            let (lock, count) = (FixedLock::new(kind).unwrap(), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..2_000 {
                            assert_ne!(lock.lock(|| false), Grant::GivenUp);
                            // Two steps, so that a lock without mutual exclusion loses increments.
                            let seen = count.load(Ordering::Relaxed);
                            count.store(seen + 1, Ordering::Relaxed);
                            lock.unlock();
                        }
                    });
                }
            });
            assert_eq!(count.into_inner(), 6_000, "{kind:?}");
        }
    }

    #[test]
    fn a_spinning_thread_can_abandon_the_lock() {
        for kind in [LockKind::Spin, LockKind::Ticket] {
            let lock = FixedLock::new(kind).unwrap();
            assert_ne!(lock.lock(|| false), Grant::GivenUp);
            assert_eq!(lock.lock(|| true), Grant::GivenUp);
        }
    }
}
