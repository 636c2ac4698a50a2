//! The series of a thread's cycles.

/// The measured quantity of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesKind {
    /// The time from the release to the return of the waiting call.
    Wakeup,
    /// The time from the release to the next wait.
    Response,
    /// The time on a CPU within the cycle.
    Execution,
    /// The time from the previous release to this one.
    Period,
    /// For a polling thread: the time without a CPU.
    Gap,
}

impl SeriesKind {
    /// The series of a thread with cycles, in the order of listing.
    pub const CYCLIC: [SeriesKind; 4] =
        [SeriesKind::Wakeup, SeriesKind::Response, SeriesKind::Execution, SeriesKind::Period];
    pub const ALL: [SeriesKind; 5] = [
        SeriesKind::Wakeup,
        SeriesKind::Response,
        SeriesKind::Execution,
        SeriesKind::Period,
        SeriesKind::Gap,
    ];

    /// The last part of the name of its series.
    pub fn as_str(self) -> &'static str {
        match self {
            SeriesKind::Wakeup => "wakeup",
            SeriesKind::Response => "response",
            SeriesKind::Execution => "execution",
            SeriesKind::Period => "period",
            SeriesKind::Gap => "gap",
        }
    }

    /// The kind with this name.
    pub fn from_word(word: &str) -> Option<SeriesKind> {
        SeriesKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether a release without a cycle is a missing sample in this series.
    pub fn misses_releases(self) -> bool {
        matches!(self, SeriesKind::Wakeup | SeriesKind::Response)
    }
}
