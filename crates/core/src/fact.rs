//! Facts: "unavailable", "not asked" and "zero" are three different things.

use serde::{Deserialize, Serialize};

/// A fact about the system, or the reason for its absence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    Known(T),
    Unavailable(String),
    /// Not requested.
    #[default]
    NotAsked,
}

impl<T> Fact<T> {
    /// Whether it was not requested.
    pub fn is_not_asked(&self) -> bool {
        matches!(self, Fact::NotAsked)
    }
    /// The value, if known.
    pub fn known_value(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            _ => None,
        }
    }
    /// Maps a known value and preserves the reasons.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(change(value)),
            Fact::Unavailable(why) => Fact::Unavailable(why),
            Fact::NotAsked => Fact::NotAsked,
        }
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Fact<T> {
    fn from(result: Result<T, E>) -> Fact<T> {
        match result {
            Ok(value) => Fact::Known(value),
            Err(why) => Fact::Unavailable(why.to_string()),
        }
    }
}
