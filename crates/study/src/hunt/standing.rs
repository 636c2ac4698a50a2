//! The progress of a search in a line: updated each second on a terminal, else printed per batch.

use super::search::HuntSearch;
use punctual_core::Nanos;
use punctual_core::format::{count, counted, plain, roughly};
use std::time::{Duration, Instant};

/// The progress of a search.
#[derive(Clone, Debug)]
pub struct SearchProgress {
    began: Instant,
    /// The end of the budget.
    until: Instant,
    /// The maximum number of trials.
    most: Option<usize>,
    tried: usize,
    failed: usize,
    causes: usize,
    /// The function and the instructions of the longest cause.
    longest: Option<(String, u64)>,
}

impl SearchProgress {
    pub fn new(began: Instant, budget: Duration, most: Option<usize>) -> SearchProgress {
        let until = began + budget;
        SearchProgress { began, until, most, tried: 0, failed: 0, causes: 0, longest: None }
    }

    pub fn take(&mut self, search: &HuntSearch) {
        let ranked = search.archive.ranked();
        self.tried = search.tried.len();
        self.failed = search.tried.iter().filter(|tried| tried.shown.failure.is_some()).count();
        self.causes = ranked.len();
        self.longest = ranked.first().map(|((_, function), length, _)| {
            let function = if function.is_empty() { "a sample" } else { function };
            (plain(function), *length)
        });
    }

    /// The current line: `8 of 48 trials, about 4 min 10 s left, 12 causes, longest 4,033,607
    /// instructions: free_pcppages_bulk`.
    pub fn line(&self, now: Instant) -> String {
        let trials = match self.most {
            Some(most) => format!("{} of {}", self.tried, counted(most as u64, "trial")),
            None => match self.expected(now) {
                Some(all) => format!("{} of about {}", self.tried, counted(all as u64, "trial")),
                None => counted(self.tried as u64, "trial"),
            },
        };
        let left = Nanos(i64::try_from(self.left(now).as_nanos()).unwrap_or(i64::MAX));
        let left = Nanos(left.ns() / Nanos::SECOND.ns() * Nanos::SECOND.ns());
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {} failed", count(failed as u64)),
        };
        let longest = self.longest.as_ref().map_or_else(String::new, |(function, length)| {
            format!(", longest {} instructions: {function}", count(*length))
        });
        format!(
            "{trials}{failed}, about {} left, {}{longest}",
            roughly(left),
            counted(self.causes as u64, "cause"),
        )
    }

    /// The number of trials that fit into the budget at the pace so far.
    fn expected(&self, now: Instant) -> Option<usize> {
        let took = now.saturating_duration_since(self.began).as_secs_f64();
        let budget = self.until.saturating_duration_since(self.began).as_secs_f64();
        let all = self.tried as f64 * budget / took.max(0.001);
        (self.tried > 0).then(|| (all.round() as usize).max(self.tried))
    }

    /// The rest of the budget; less if the trials end before.
    fn left(&self, now: Instant) -> Duration {
        let budget = self.until.saturating_duration_since(now);
        let Some(most) = self.most.filter(|_| self.tried > 0) else { return budget };
        let one = now.saturating_duration_since(self.began) / self.tried as u32;
        budget.min(one.saturating_mul(most.saturating_sub(self.tried) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_derived_from_budget_or_trials() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut standing = SearchProgress::new(began, Duration::from_secs(600), None);
        assert_eq!(standing.line(began), "0 trials, about 10 min 00 s left, 0 causes");
        standing = SearchProgress { tried: 8, ..standing };
        let line = standing.line(at(60));
        assert!(line.starts_with("8 of about 80 trials, about 9 min 00 s left"), "{line}");
        standing = SearchProgress { tried: 0, most: Some(48), ..standing };
        assert_eq!(standing.line(at(30)), "0 of 48 trials, about 9 min 30 s left, 0 causes");
        standing = SearchProgress { tried: 8, failed: 1, causes: 1, ..standing };
        standing.longest = Some(("f".to_owned(), 4_033_607));
        assert_eq!(
            standing.line(at(40)),
            "8 of 48 trials, 1 failed, about 3 min 20 s left, 1 cause, longest 4,033,607 \
             instructions: f"
        );
        assert!(standing.line(at(700)).contains("about 0 s left"));
    }
}
