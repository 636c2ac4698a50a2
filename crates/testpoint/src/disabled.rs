//! Points that compile to nothing: the feature `enabled` is off.

/// A point that compiles to nothing.
pub struct Point;

/// The empty result of [`Point::scope`].
#[must_use = "the scope ends when this is dropped: bind it to a name that begins with `_`"]
pub struct Scope;

impl Drop for Scope {
    // Gives `drop(scope)` the same meaning with and without the feature.
    #[inline(always)]
    fn drop(&mut self) {}
}

#[allow(missing_docs)] // See the methods of the same names where the feature is on.
impl Point {
    pub const fn new(_name: &'static str) -> Point {
        Point
    }
    #[inline(always)]
    pub fn hit(&self) {}
    #[inline(always)]
    pub fn hit1(&self, _a: i64) {}
    #[inline(always)]
    pub fn hit2(&self, _a: i64, _b: i64) {}
    #[inline(always)]
    pub fn begin(&self) {}
    #[inline(always)]
    pub fn begin1(&self, _a: i64) {}
    #[inline(always)]
    pub fn begin2(&self, _a: i64, _b: i64) {}
    #[inline(always)]
    pub fn end(&self) {}
    #[inline(always)]
    pub fn end1(&self, _a: i64) {}
    #[inline(always)]
    pub fn end2(&self, _a: i64, _b: i64) {}
    #[inline(always)]
    pub fn scope(&'static self) -> Scope {
        Scope
    }
}
