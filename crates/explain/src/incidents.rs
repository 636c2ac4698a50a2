//! Groups late samples that follow from one another into incidents, with the cause of the first.

use punctual_core::MonotonicNs;

/// The release and end of a late cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LateCycle {
    pub released: MonotonicNs,
    pub ended: MonotonicNs,
}

/// The late cycles of one thread grouped into incidents, as indices ordered by release; incidents
/// are ordered by their first cycle. A cycle belongs to the previous incident if it was released
/// before that had ended: it would have been late anyway.
pub fn group_incidents(cycles: &[LateCycle]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..cycles.len()).collect();
    order.sort_by_key(|place| (cycles[*place].released, cycles[*place].ended));
    let mut incidents: Vec<Vec<usize>> = Vec::new();
    let mut ended = None;
    for place in order {
        let LateCycle { released, ended: own } = cycles[place];
        match incidents.last_mut().filter(|_| ended.is_some_and(|ended| released < ended)) {
            Some(incident) => incident.push(place),
            None => incidents.push(vec![place]),
        }
        ended = ended.max(Some(own));
    }
    incidents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cycles: &[(i64, i64)]) -> Vec<Vec<usize>> {
        let cycle = |(released, ended): &(i64, i64)| LateCycle {
            released: MonotonicNs(*released),
            ended: MonotonicNs(*ended),
        };
        group_incidents(&cycles.iter().map(cycle).collect::<Vec<_>>())
    }

    #[test]
    fn cycles_that_catch_up_belong_to_one_incident() {
        // Every 10: the first takes 35, the next three were released meanwhile; the one at 40 was
        // not.
        let cycles = [(0, 35), (10, 37), (20, 38), (30, 39), (40, 55)];
        assert_eq!(of(&cycles), [vec![0, 1, 2, 3], vec![4]]);
    }

    #[test]
    fn a_cycle_released_when_the_previous_one_ends_is_a_new_incident() {
        assert_eq!(of(&[(0, 10), (10, 30)]), [vec![0], vec![1]]);
        assert_eq!(of(&[(0, 11), (10, 30)]), [vec![0, 1]]);
    }

    #[test]
    fn incidents_do_not_depend_on_the_order_of_samples() {
        assert_eq!(of(&[(20, 38), (0, 35), (40, 55), (10, 37)]), [vec![1, 3, 0], vec![2]]);
    }

    #[test]
    fn a_missing_sample_does_not_split_an_incident() {
        // Only the worst samples are kept: the one at 10 is not.
        assert_eq!(of(&[(0, 35), (20, 38), (30, 39)]), [vec![0, 1, 2]]);
    }

    #[test]
    fn negative_lengths_and_empty_input_are_accepted() {
        assert_eq!(of(&[(5, 1), (6, 7)]), [vec![0], vec![1]]);
        assert!(of(&[]).is_empty());
    }
}
