//! The series that the cycles of a thread fill.

/// What is measured of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesKind {
    /// From the release to the return of the waiting call.
    Wakeup,
    /// From the release to the next wait.
    Response,
    /// On a CPU within the cycle.
    Execution,
    /// From the release before to this one.
    Period,
    /// Of a thread that polls: the time that it had no CPU.
    Gap,
}

impl SeriesKind {
    /// Those of a thread with cycles, in the order in which they are listed.
    pub const CYCLIC: [SeriesKind; 4] =
        [SeriesKind::Wakeup, SeriesKind::Response, SeriesKind::Execution, SeriesKind::Period];
    pub const ALL: [SeriesKind; 5] = [
        SeriesKind::Wakeup,
        SeriesKind::Response,
        SeriesKind::Execution,
        SeriesKind::Period,
        SeriesKind::Gap,
    ];

    /// The last part of its series' name.
    pub fn word(self) -> &'static str {
        match self {
            SeriesKind::Wakeup => "wakeup",
            SeriesKind::Response => "response",
            SeriesKind::Execution => "execution",
            SeriesKind::Period => "period",
            SeriesKind::Gap => "gap",
        }
    }

    /// The kind of this word.
    pub fn from_word(word: &str) -> Option<SeriesKind> {
        SeriesKind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether a release that had no cycle is a sample that is missing here.
    pub fn misses_releases(self) -> bool {
        matches!(self, SeriesKind::Wakeup | SeriesKind::Response)
    }
}
