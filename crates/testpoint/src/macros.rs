//! Macros that define a point in place.

/// Passes a point: `point!("name")`, `point!("name", a)`, `point!("name", a, b)`, with integers of
/// any type (`as i64`).
///
/// The name is a constant. Values are computed only if points are compiled in, whether or not they
/// are recorded.
#[cfg(feature = "enabled")]
#[macro_export]
macro_rules! point {
    ($name:expr $(,)?) => {
        $crate::__site!($name).hit()
    };
    ($name:expr, $a:expr $(,)?) => {
        $crate::__site!($name).hit1($a as i64)
    };
    ($name:expr, $a:expr, $b:expr $(,)?) => {
        $crate::__site!($name).hit2($a as i64, $b as i64)
    };
}

/// Begins an interval that [`end!`] with the same name in the same thread ends: `begin!("name")`,
/// with up to two integers like [`point!`].
#[cfg(feature = "enabled")]
#[macro_export]
macro_rules! begin {
    ($name:expr $(,)?) => {
        $crate::__site!($name).begin()
    };
    ($name:expr, $a:expr $(,)?) => {
        $crate::__site!($name).begin1($a as i64)
    };
    ($name:expr, $a:expr, $b:expr $(,)?) => {
        $crate::__site!($name).begin2($a as i64, $b as i64)
    };
}

/// Ends the interval begun by [`begin!`] with the same name.
#[cfg(feature = "enabled")]
#[macro_export]
macro_rules! end {
    ($name:expr $(,)?) => {
        $crate::__site!($name).end()
    };
    ($name:expr, $a:expr $(,)?) => {
        $crate::__site!($name).end1($a as i64)
    };
    ($name:expr, $a:expr, $b:expr $(,)?) => {
        $crate::__site!($name).end2($a as i64, $b as i64)
    };
}

/// Begins here and ends with the block: `let _scope = scope!("name");`.
#[macro_export]
macro_rules! scope {
    ($name:expr $(,)?) => {
        $crate::__site!($name).scope()
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($name:expr) => {{
        static SITE: $crate::Point = $crate::Point::new($name);
        &SITE
    }};
}

#[cfg(not(feature = "enabled"))]
mod disabled {
    /// Compiles to nothing, values included: the feature `enabled` is off.
    #[macro_export]
    macro_rules! point {
        ($name:expr $(, $value:expr)* $(,)?) => {{ if false { $(let _ = $value as i64;)* } }};
    }
    /// Compiles to nothing, values included: the feature `enabled` is off.
    #[macro_export]
    macro_rules! begin {
        ($name:expr $(, $value:expr)* $(,)?) => {{ if false { $(let _ = $value as i64;)* } }};
    }
    /// Compiles to nothing, values included: the feature `enabled` is off.
    #[macro_export]
    macro_rules! end {
        ($name:expr $(, $value:expr)* $(,)?) => {{ if false { $(let _ = $value as i64;)* } }};
    }
}
