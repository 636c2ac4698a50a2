//! The kinds of lock.

use punctual_plan::kinds::LockKind;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Spins between two checks of a thread whether to give up.
const SPINS: u32 = 1 << 12;

/// A lock that stays where it is: its address is what the kernel and libc know it by.
pub struct Lock {
    kind: LockKind,
    raw: Box<Raw>,
}

#[repr(align(128))]
struct Raw {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    spin: UnsafeCell<libc::pthread_spinlock_t>,
    rwlock: UnsafeCell<libc::pthread_rwlock_t>,
    next: AtomicU32,
    serving: AtomicU32,
}

// SAFETY: locks are made to be used by several threads at once; the cells are reached through the
// functions of pthreads alone.
unsafe impl Send for Lock {}
// SAFETY: as above.
unsafe impl Sync for Lock {}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// Spins until `is_mine`, or until it is to give up.
fn spin(mut is_mine: impl FnMut() -> bool, give_up: impl Fn() -> bool) -> bool {
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

impl Lock {
    /// A free lock. Fails where libc does not have the kind.
    pub fn new(kind: LockKind) -> io::Result<Lock> {
        let raw = Box::new(Raw {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            // SAFETY: a pthread_spinlock_t is an integer; it is initialised below.
            spin: UnsafeCell::new(unsafe { std::mem::zeroed() }),
            rwlock: UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER),
            next: AtomicU32::new(0),
            serving: AtomicU32::new(0),
        });
        // SAFETY: what is initialised is at its final place, and nobody uses it yet; attributes are
        // initialised before they are used.
        unsafe {
            checked(libc::pthread_spin_init(raw.spin.get(), libc::PTHREAD_PROCESS_PRIVATE))?;
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            checked(libc::pthread_mutexattr_init(&mut attributes))?;
            checked(match kind {
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
            checked(libc::pthread_mutex_init(raw.mutex.get(), &attributes))?;
            libc::pthread_mutexattr_destroy(&mut attributes);
        }
        Ok(Lock { kind, raw })
    }

    /// Takes it, however long that takes. False: it gave up, which only spinning threads can; the
    /// lock is of no use any more then.
    #[inline(always)]
    pub fn lock(&self, give_up: impl Fn() -> bool) -> bool {
        let raw = &*self.raw;
        // SAFETY: initialised in `new`; the calling thread does not hold it.
        unsafe {
            match self.kind {
                LockKind::Normal | LockKind::Pi | LockKind::Robust | LockKind::Adaptive => {
                    libc::pthread_mutex_lock(raw.mutex.get()) == 0
                }
                LockKind::Rwlock => libc::pthread_rwlock_wrlock(raw.rwlock.get()) == 0,
                LockKind::Spin => spin(|| libc::pthread_spin_trylock(raw.spin.get()) == 0, give_up),
                LockKind::Ticket => {
                    let mine = raw.next.fetch_add(1, Ordering::Relaxed);
                    spin(|| raw.serving.load(Ordering::Acquire) == mine, give_up)
                }
            }
        }
    }

    /// Releases it.
    #[inline(always)]
    pub fn unlock(&self) {
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
                    raw.serving.fetch_add(1, Ordering::Release);
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`; nobody can use it any more. One that was given up is held
        // by nobody who still runs.
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

    #[test]
    fn every_kind_excludes() {
        use LockKind::*;
        for kind in [Normal, Pi, Robust, Adaptive, Spin, Ticket, Rwlock] {
            let (lock, count) = (Lock::new(kind).unwrap(), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..2_000 {
                            assert!(lock.lock(|| false));
                            // Two steps, so that a lock that does not exclude loses some.
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
    fn a_spinning_thread_can_give_up() {
        for kind in [LockKind::Spin, LockKind::Ticket] {
            let lock = Lock::new(kind).unwrap();
            assert!(lock.lock(|| false));
            assert!(!lock.lock(|| true));
        }
    }
}
