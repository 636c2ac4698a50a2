//! A requirement on the longest of all: `max < 20000 instructions`, `max < 100us`.

use punctual_bundle::sections::Required;
use punctual_bundle::summary::VerdictWord;
use punctual_core::Nanos;

/// A bound for the longest of all causes and samples.
#[derive(Clone, PartialEq, Debug)]
pub struct Require {
    text: String,
    or_equal: bool,
    bound: Bound,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Bound {
    Instructions(u64),
    Time(Nanos),
}

impl Require {
    /// # Errors
    /// The error in the text.
    pub fn parse(text: &str) -> Result<Require, String> {
        let wrong = || {
            format!(
                "`{text}` is not a requirement on sections or latencies\nhelp: write `max < 20000 \
                 instructions` or `max < 100us`"
            )
        };
        let rest = text.trim().strip_prefix("max").ok_or_else(wrong)?.trim_start();
        let rest = rest.strip_prefix('<').ok_or_else(wrong)?;
        let or_equal = rest.starts_with('=');
        let rest = rest.trim_start_matches('=').trim();
        let number = rest.strip_suffix("instructions").or(rest.strip_suffix("insn"));
        let bound = match number {
            Some(number) => {
                Bound::Instructions(number.trim().replace('_', "").parse().map_err(|_| wrong())?)
            }
            None => Bound::Time(rest.parse().map_err(|_| wrong())?),
        };
        Ok(Require { text: text.trim().to_owned(), or_equal, bound })
    }

    /// Whether the requirement holds. A violation is certain; without a measurement, it is
    /// undecided.
    pub fn judge(&self, longest: Option<u64>, ns_per_instruction: u32) -> Required {
        let time = |instructions: u64| {
            let ns = instructions.saturating_mul(ns_per_instruction.into());
            Nanos(i64::try_from(ns).unwrap_or(i64::MAX))
        };
        let holds = longest.map(|longest| match (self.bound, self.or_equal) {
            (Bound::Instructions(bound), false) => longest < bound,
            (Bound::Instructions(bound), true) => longest <= bound,
            (Bound::Time(bound), false) => time(longest) < bound,
            (Bound::Time(bound), true) => time(longest) <= bound,
        });
        let verdict = match holds {
            Some(true) => VerdictWord::Met,
            Some(false) => VerdictWord::NotMet,
            None => VerdictWord::Undecided,
        };
        Required { requirement: self.text.clone(), verdict, longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_accept_instructions_and_times() {
        let judged = |text: &str, longest| {
            Require::parse(text).expect("a requirement").judge(longest, 8).verdict
        };
        assert_eq!(judged("max < 20000 instructions", Some(19_999)), VerdictWord::Met);
        assert_eq!(judged("max < 20000 instructions", Some(20_000)), VerdictWord::NotMet);
        assert_eq!(judged("max<=20_000 instructions", Some(20_000)), VerdictWord::Met);
        assert_eq!(judged("max < 100us", Some(12_499)), VerdictWord::Met);
        assert_eq!(judged("max < 100us", Some(12_500)), VerdictWord::NotMet);
        assert_eq!(judged("max < 100us", None), VerdictWord::Undecided);
        for wrong in ["", "max", "p99 < 1us", "max < many", "max > 3 instructions", "max < 7"] {
            assert!(Require::parse(wrong).is_err(), "{wrong}");
        }
    }
}
