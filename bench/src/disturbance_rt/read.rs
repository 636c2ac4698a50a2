//! The figures of one round of each tool, parsed from its output.

use serde_json::Value;

/// Latencies in ns, exact to the 8 ns of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    pub p50: u64,
    pub p99_9: u64,
    pub samples: u64,
    /// Periods without a sample, and samples beyond the histogram.
    pub missed: u64,
}

/// `summary.json` of a bundle with one series.
pub fn punctual(json: &[u8]) -> Result<Figures, String> {
    let summary: Value = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    let series = &summary["phases"][0]["series"][0];
    let percentiles = &series["percentiles"];
    // A short round supports no p99.9; its p99 is used instead.
    let rare = percentiles["99.9"]
        .as_f64()
        .or(percentiles["99"].as_f64())
        .ok_or("no percentiles in the summary")?;
    let number = |name: &str| series[name].as_u64().ok_or(format!("no {name} in the summary"));
    Ok(Figures {
        p50: percentiles["50"].as_f64().ok_or("no median in the summary")? as u64,
        p99_9: rare as u64,
        samples: number("count")?,
        missed: number("overruns")? + number("lost")?,
    })
}

/// The JSON of `cyclictest -N -h`: a histogram in ns.
pub fn cyclictest(json: &[u8]) -> Result<Figures, String> {
    let document: Value = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    let cycles =
        document["thread"]["0"]["cycles"].as_u64().ok_or("no cycles in cyclictest's JSON")?;
    of_bins(&crate::tools::bins(json)?, cycles)
}

/// The text of `rtla timerlat hist -n` of one CPU: an index in ns and a column for each place where
/// time is read, of which the last is the thread's: `Usr` (back in user mode) if present, else
/// `Thr`.
pub fn rtla(text: &str) -> Result<Figures, String> {
    let columns =
        text.lines().find_map(|line| line.strip_prefix("Index")).ok_or("no histogram of rtla's")?;
    let columns = columns.split_whitespace().count();
    let mut bins = Vec::new();
    let mut beyond = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != columns + 1 {
            continue;
        }
        let last: Option<u64> = words[columns].parse().ok();
        match (words[0].parse(), last) {
            (Ok(ns), Some(n)) => bins.push((ns, n)),
            (Err(_), Some(n)) if words[0] == "over:" => beyond = n,
            _ => {}
        }
    }
    let within: u64 = bins.iter().map(|(_, n)| n).sum();
    of_bins(&bins, within + beyond)
}

/// Nearest ranks of a histogram that ends before the last of `all` samples.
fn of_bins(bins: &[(u64, u64)], all: u64) -> Result<Figures, String> {
    let within: u64 = bins.iter().map(|(_, n)| n).sum();
    let at = |share: f64| {
        let wanted = (all as f64 * share).ceil() as u64;
        let mut before = 0;
        bins.iter()
            .find(|(_, n)| {
                before += n;
                before >= wanted
            })
            .map(|(ns, _)| *ns)
            .ok_or(format!(
                "{} of {all} samples are beyond the histogram",
                all.saturating_sub(within)
            ))
    };
    if all == 0 {
        return Err("no samples".to_owned());
    }
    Ok(Figures {
        p50: at(0.5)?,
        p99_9: at(if all < 5000 { 0.99 } else { 0.999 })?,
        samples: all,
        missed: all.saturating_sub(within),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of rtla 6.12.
    const RTLA: &str = "# RTLA timerlat histogram\n# Time unit is nanoseconds (ns)\n# Duration:   \
                        0 00:00:03\nIndex   IRQ-000   Thr-000   Usr-000\n24000         3         \
                        0         0\n31008         0         2         1\n40000         0         \
                        1         1\nover:         0         0         1\ncount:        3         \
                        3         3\nmin:      24001     31010     31012\navg:      24002     \
                        31015     40000\nmax:      24007     40001     90000\n";

    #[test]
    fn the_last_column_of_rtla_is_the_threads() {
        let figures = rtla(RTLA).map_err(|why| assert!(why.contains("1 of 3"), "{why}"));
        assert!(figures.is_err(), "its worst is beyond the histogram: {figures:?}");
        let whole =
            rtla(&RTLA.replace(
                "over:         0         0         1",
                "over:         0         0         0",
            ))
            .unwrap();
        assert_eq!(whole, Figures { p50: 31008, p99_9: 40000, samples: 2, missed: 0 });
        let without_user = "Index   IRQ-000   Thr-000\n24000         1         0\n\
             31008         0         1\nover:         0         0\n";
        assert_eq!(
            rtla(without_user).unwrap(),
            Figures { p50: 31008, p99_9: 31008, samples: 1, missed: 0 }
        );
        assert!(rtla("nothing").is_err());
    }

    #[test]
    fn what_is_beyond_the_histogram_counts() {
        let json = br#"{"thread": {"0": {"cycles": 4, "histogram": {"8": 1, "16": 2}}}}"#;
        assert!(cyclictest(json).unwrap_err().contains("1 of 4"));
        let json = br#"{"thread": {"0": {"cycles": 3, "histogram": {"8": 1, "16": 2}}}}"#;
        assert_eq!(
            cyclictest(json).unwrap(),
            Figures { p50: 16, p99_9: 16, samples: 3, missed: 0 }
        );
    }

    #[test]
    fn a_short_round_has_its_99_percent() {
        let json = br#"{"phases": [{"series": [
            {"count": 900, "overruns": 1, "lost": 2, "percentiles": {"50": 10, "99": 30}}
        ]}]}"#;
        assert_eq!(
            punctual(json).unwrap(),
            Figures { p50: 10, p99_9: 30, samples: 900, missed: 3 }
        );
        assert!(punctual(b"{}").is_err());
    }
}
