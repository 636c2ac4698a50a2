//! Locks as used by programs.

use crate::operation::LockKind;
use punctual_sys::{attributes, futex};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError};

pub enum SubjectLock {
    Plain(AtomicU32),
    Inheriting(AtomicU32),
    Std(Mutex<()>),
}

/// Values of a plain lock: free; taken; taken with possible waiters.
const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WAITED_FOR: u32 = 2;
const SCOPE: futex::FutexScope = futex::FutexScope::Private;

impl SubjectLock {
    pub fn new(kind: LockKind) -> SubjectLock {
        match kind {
            LockKind::Plain => SubjectLock::Plain(AtomicU32::new(FREE)),
            LockKind::Inheriting => SubjectLock::Inheriting(AtomicU32::new(FREE)),
            LockKind::Std => SubjectLock::Std(Mutex::new(())),
        }
    }

    /// Runs a function with the lock held.
    pub fn run_locked(&self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let exchange =
            |word: &AtomicU32, from, to| word.compare_exchange(from, to, AcqRel, Acquire).is_ok();
        match self {
            SubjectLock::Std(lock) => {
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                work()
            }
            // Drepper, Futexes Are Tricky: the third mutex.
            SubjectLock::Plain(word) => {
                if !exchange(word, FREE, TAKEN) {
                    while word.swap(WAITED_FOR, AcqRel) != FREE {
                        // If the word has changed meanwhile, it is retried.
                        let _ = futex::wait(word, WAITED_FOR, SCOPE, None);
                    }
                }
                let worked = work();
                if word.swap(FREE, Release) == WAITED_FOR {
                    futex::wake(word, 1, SCOPE)?;
                }
                worked
            }
            SubjectLock::Inheriting(word) => {
                let own_tid = attributes::thread_id() as u32;
                if !exchange(word, FREE, own_tid) {
                    futex::lock_pi(word, SCOPE)?;
                }
                let worked = work();
                if !exchange(word, own_tid, FREE) {
                    futex::unlock_pi(word, SCOPE)?;
                }
                worked
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_lock_of_the_subject_provides_mutual_exclusion() {
        for kind in [LockKind::Plain, LockKind::Inheriting, LockKind::Std] {
            let (lock, count) = (Arc::new(SubjectLock::new(kind)), Arc::new(AtomicU64::new(0)));
            let adds = || {
                let (lock, count) = (Arc::clone(&lock), Arc::clone(&count));
                std::thread::spawn(move || {
                    for _ in 0..2_000 {
                        let add = || {
                            // Two steps: without a lock some updates would be lost.
                            count.store(count.load(Acquire) + 1, Release);
                            Ok(())
                        };
                        lock.run_locked(add).unwrap();
                    }
                })
            };
            [adds(), adds(), adds()].into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(count.load(Acquire), 6_000, "{kind:?}");
        }
    }
}
