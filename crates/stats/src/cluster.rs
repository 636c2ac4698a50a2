//! Bursts: long latencies that belong together count once.
//!
//! Ferro and Segers, "Inference for clusters of extreme values", J. R. Statist. Soc. B 65 (2003):
//! the extremal index θ from the distances between exceedances, and from it the distance that
//! separates clusters, without parameters.

/// Exceedances in clusters.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Clusters {
    /// The extremal index: the reciprocal of the mean number of exceedances in a cluster; 1 for
    /// independent samples.
    pub index: f64,
    /// The index of the worst sample in each cluster, in order of time.
    pub peaks: Vec<usize>,
}

/// The intervals estimator of θ (equations 4 and 5 of the paper), from ascending places.
pub(crate) fn extremal_index(places: &[u64]) -> f64 {
    let distances: Vec<f64> =
        places.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    if distances.is_empty() {
        return 1.0;
    }
    let n = distances.len() as f64;
    let sum = |f: &dyn Fn(f64) -> f64| distances.iter().map(|d| f(*d)).sum::<f64>();
    let theta = if distances.iter().all(|d| *d <= 2.0) {
        2.0 * sum(&|d| d).powi(2) / (n * sum(&|d| d * d))
    } else {
        2.0 * sum(&|d| d - 1.0).powi(2) / (n * sum(&|d| (d - 1.0) * (d - 2.0)))
    };
    if theta.is_finite() && theta > 0.0 { theta.min(1.0) } else { 1.0 }
}

/// Declusters exceedances, given by place (ascending) and value: θ·N clusters, split at their
/// largest distances (section 4 of the paper).
pub(crate) fn decluster_exceedances(exceedances: &[(u64, i64)]) -> Clusters {
    let places: Vec<u64> = exceedances.iter().map(|(place, _)| *place).collect();
    let index = extremal_index(&places);
    let requested = (index * exceedances.len() as f64).floor() as usize + 1;
    let mut distances: Vec<u64> =
        places.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    distances.sort_unstable_by(|a, b| b.cmp(a));
    // Equal distances are either all split or none: the smallest splitting distance is above the
    // first that does not split.
    let together = distances.get(requested.saturating_sub(1)).copied().unwrap_or(0);
    let mut peaks: Vec<usize> = Vec::new();
    for (k, (place, value)) in exceedances.iter().enumerate() {
        let begins_cluster = k == 0 || place.saturating_sub(places[k - 1]) > together;
        match peaks.last_mut().filter(|_| !begins_cluster) {
            Some(peak) if exceedances[*peak].1 < *value => *peak = k,
            Some(_) => {}
            None => peaks.push(k),
        }
    }
    Clusters { index, peaks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use proptest::prelude::*;

    #[test]
    fn a_burst_of_exceedances_is_one_cluster() {
        let mut random = Random::from_seed(3);
        let (mut place, mut exceedances) = (0u64, Vec::new());
        for _ in 0..300 {
            place += 10 + (-random.next_unit().ln() * 5_000.0) as u64;
            // A burst of three, its worst in the middle.
            exceedances.extend((0..3).map(|k| (place + k, if k == 1 { 9 } else { 7 })));
        }
        let clusters = decluster_exceedances(&exceedances);
        assert!((clusters.index - 1.0 / 3.0).abs() < 0.05, "{}", clusters.index);
        assert!((280..=300).contains(&clusters.peaks.len()), "{}", clusters.peaks.len());
        assert!(clusters.peaks.iter().all(|k| exceedances[*k].1 == 9));
    }

    #[test]
    fn independent_exceedances_form_no_clusters() {
        let mut random = Random::from_seed(4);
        let mut place = 0;
        let places: Vec<u64> = (0..500)
            .map(|_| {
                place += 1 + (-random.next_unit().ln() * 1_000.0) as u64;
                place
            })
            .collect();
        assert!(extremal_index(&places) > 0.9, "{}", extremal_index(&places));
        assert_eq!(extremal_index(&[]), 1.0);
        assert_eq!(decluster_exceedances(&[]).peaks, [0usize; 0]);
    }

    proptest! {
        #[test]
        fn no_input_panics(
            mut exceedances in proptest::collection::vec((any::<u64>(), any::<i64>()), 0..50),
        ) {
            exceedances.sort();
            let clusters = decluster_exceedances(&exceedances);
            prop_assert!(clusters.index > 0.0 && clusters.index <= 1.0);
            prop_assert_eq!(clusters.peaks.is_empty(), exceedances.is_empty());
        }
    }
}
