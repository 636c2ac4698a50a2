//! The indirect cost of a switch: the additional time of a task's walk through its working set
//! after it.
//!
//! Both walks of a pair follow one another in the same task, between the same two switches, so that
//! other influences on speed affect both. The difference is a median of pairs with a
//! distribution-free confidence interval; one that does not exceed the clock's own reading counts
//! as none.

/// The text of the table if the difference is not significant.
pub(crate) const NOT_RESOLVED: &str = "not resolved";
/// Fewer pairs have no interval: of 6 values, the smallest and the largest enclose the median with
/// 97 %.
const LEAST_PAIRS: usize = 6;

/// Two walks through a working set, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Walks {
    pub after: i64,
    /// The second time, without a task between.
    pub alone: i64,
}

/// The result of pairs of walks, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Indirect {
    pub after: i64,
    pub alone: i64,
    /// The median of the differences.
    pub indirect: i64,
    /// Its 95 % confidence interval.
    pub least: i64,
    pub most: i64,
    /// Whether the whole interval exceeds the possible contribution of one clock reading.
    pub is_resolved: bool,
}

/// The result of these pairs, if a reading of the clock takes `clock` ns; `None`: too few.
pub(crate) fn estimate_indirect(walks: &[Walks], clock: i64) -> Option<Indirect> {
    if walks.len() < LEAST_PAIRS {
        return None;
    }
    let sorted = |of: fn(&Walks) -> i64| {
        let mut values: Vec<i64> = walks.iter().map(of).collect();
        values.sort_unstable();
        values
    };
    let middle = walks.len() / 2;
    let differences = sorted(|pair| pair.after - pair.alone);
    // Binomial: the median lies between the k-th smallest and the k-th largest value with 95 %,
    // where k is n/2 - 1.96·√n/2 rounded down (Conover, Practical Nonparametric Statistics, section
    // 3.2).
    let n = walks.len() as f64;
    let rank = ((n - 1.96 * n.sqrt()) / 2.0).floor().max(0.0) as usize;
    let outer = rank.saturating_sub(1);
    let (least, most) = (differences[outer], differences[walks.len() - 1 - outer]);
    Some(Indirect {
        after: sorted(|pair| pair.after)[middle],
        alone: sorted(|pair| pair.alone)[middle],
        indirect: differences[middle],
        least,
        most,
        is_resolved: least > clock,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs with a difference of `by`, and noise of up to `noise` in either walk.
    fn pairs(count: usize, by: i64, noise: i64) -> Vec<Walks> {
        let mut state = 7u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            if noise > 0 { (state >> 33) as i64 % noise } else { 0 }
        };
        (0..count)
            .map(|_| Walks { after: 40_000 + by + random(), alone: 40_000 + random() })
            .collect()
    }

    #[test]
    fn a_switch_cost_is_resolved_only_if_it_exceeds_its_spread() {
        let cost = estimate_indirect(&pairs(200, 5_000, 3_000), 30).unwrap();
        assert!(cost.is_resolved && cost.least > 4_000 && cost.most < 6_000, "{cost:?}");
        assert!((4_500..5_500).contains(&cost.indirect), "{cost:?}");
        let none = estimate_indirect(&pairs(200, 0, 3_000), 30).unwrap();
        assert!(!none.is_resolved && none.least < 0 && none.most > 0, "{none:?}");
        assert!(
            !estimate_indirect(&pairs(200, -25_000, 3_000), 30).unwrap().is_resolved,
            "none is negative"
        );
        assert!(
            !estimate_indirect(&pairs(200, 20, 0), 30).unwrap().is_resolved,
            "below a reading of the clock"
        );
        assert_eq!(estimate_indirect(&pairs(5, 5_000, 0), 30), None);
    }

    #[test]
    fn the_interval_of_the_switch_cost_uses_order_statistics() {
        let walks: Vec<Walks> = (1..=100).map(|k| Walks { after: k, alone: 0 }).collect();
        let cost = estimate_indirect(&walks, 0).unwrap();
        // The tables: of 100 values the 40th and the 61st, with 95 %.
        assert_eq!((cost.least, cost.most, cost.indirect), (40, 61, 51));
        let cost = estimate_indirect(&walks[..6], 0).unwrap();
        assert_eq!((cost.least, cost.most), (1, 6));
    }
}
