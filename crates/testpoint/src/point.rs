//! A point, and the cost of passing it.
//!
//! Not recording: a load and a branch. Recording: a check of the thread's ring, the counter, a
//! reservation that a signal handler cannot split, and two stores. Everything else is in
//! [`crate::slow`].

use crate::fast::{CONTROL, RING, write_slot};
use crate::layout::{COUNT_SHIFT, KIND_BEGIN, KIND_END, KIND_POINT};
use std::sync::atomic::{AtomicU32, Ordering};

/// A test point: a name, and the number by which it is recorded.
///
/// ```
/// use punctual_testpoint::Point;
/// static TICK: Point = Point::new("control.tick");
///
/// TICK.hit(); // an instant
/// TICK.hit1(42); // with a value
/// {
///     let _scope = TICK.scope(); // begins here, ends with the block
/// }
/// ```
pub struct Point {
    name: &'static str,
    id: AtomicU32,
}

impl Point {
    /// A point with this name. Readers treat points with the same name as one point. At most 120
    /// bytes of the name are kept.
    pub const fn new(name: &'static str) -> Point {
        Point { name, id: AtomicU32::new(0) }
    }

    /// Records that the point was passed.
    #[inline(always)]
    pub fn hit(&self) {
        self.record_if_enabled::<{ KIND_POINT }>(0, 0);
    }
    /// Records that the point was passed, with a value.
    #[inline(always)]
    pub fn hit1(&self, a: i64) {
        self.record_if_enabled::<{ KIND_POINT | 1 << COUNT_SHIFT }>(a, 0);
    }
    /// Records that the point was passed, with two values.
    #[inline(always)]
    pub fn hit2(&self, a: i64, b: i64) {
        self.record_if_enabled::<{ KIND_POINT | 2 << COUNT_SHIFT }>(a, b);
    }
    /// Begins the interval that the point is named after.
    #[inline(always)]
    pub fn begin(&self) {
        self.record_if_enabled::<{ KIND_BEGIN }>(0, 0);
    }
    /// Begins it, with a value.
    #[inline(always)]
    pub fn begin1(&self, a: i64) {
        self.record_if_enabled::<{ KIND_BEGIN | 1 << COUNT_SHIFT }>(a, 0);
    }
    /// Begins it, with two values.
    #[inline(always)]
    pub fn begin2(&self, a: i64, b: i64) {
        self.record_if_enabled::<{ KIND_BEGIN | 2 << COUNT_SHIFT }>(a, b);
    }
    /// Ends it.
    #[inline(always)]
    pub fn end(&self) {
        self.record_if_enabled::<{ KIND_END }>(0, 0);
    }
    /// Ends it, with a value.
    #[inline(always)]
    pub fn end1(&self, a: i64) {
        self.record_if_enabled::<{ KIND_END | 1 << COUNT_SHIFT }>(a, 0);
    }
    /// Ends it, with two values.
    #[inline(always)]
    pub fn end2(&self, a: i64, b: i64) {
        self.record_if_enabled::<{ KIND_END | 2 << COUNT_SHIFT }>(a, b);
    }
    /// Begins it; the drop of the returned guard ends it.
    #[inline(always)]
    pub fn scope(&'static self) -> Scope {
        self.begin();
        Scope { point: self }
    }

    #[inline(always)]
    fn record_if_enabled<const BITS: u32>(&self, a: i64, b: i64) {
        if CONTROL.control.recording.load(Ordering::Relaxed) != 0 {
            self.write::<BITS>(a, b);
        }
    }

    #[inline(always)]
    fn write<const BITS: u32>(&self, a: i64, b: i64) {
        let ring = RING.get();
        let id = self.id.load(Ordering::Relaxed);
        // SAFETY: `RING` holds `NO_RING` or the ring that this thread has mapped until it ends.
        let ring = unsafe { &*ring };
        if id == 0 || ring.head.load(Ordering::Relaxed) >= ring.limit.load(Ordering::Relaxed) {
            crate::slow::record_or_drop(&self.id, self.name.as_bytes(), BITS, [a, b]);
        } else {
            write_slot(ring, crate::counter::ticks(), id | BITS, BITS >> COUNT_SHIFT, [a, b]);
        }
    }
}

/// Ends its interval when it is dropped: see [`Point::scope`].
#[must_use = "the scope ends when this is dropped: bind it to a name that begins with `_`"]
pub struct Scope {
    point: &'static Point,
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        self.point.end();
    }
}
