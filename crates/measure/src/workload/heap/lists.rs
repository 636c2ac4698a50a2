//! What the rounds of a list have to say together: whether time follows pages, and whether it grows from round to round.

use super::board::Block;
use punctual_core::Figure;

/// Rounds that are kept, the first ones.
const KEPT: usize = 65_536;

/// A list that was built, visited, and taken down.
#[derive(Clone, Copy, Default)]
struct Round {
    pages: u64,
    malloc: i64,
    touch: i64,
}

/// All of them, in order.
pub struct Lists(Vec<Round>);

impl Lists {
    pub fn new() -> Lists {
        let mut rounds = vec![Round { pages: 1, ..Round::default() }; KEPT];
        rounds.clear();
        Lists(rounds)
    }

    pub fn take(&mut self, blocks: &[Block], page: u64) {
        if self.0.len() == KEPT {
            return;
        }
        let mut round = Round::default();
        for block in blocks {
            round.pages += block.size.div_ceil(page);
            round.malloc += block.malloc[1] - block.malloc[0];
            round.touch += block.touch[1] - block.touch[0];
        }
        self.0.push(round);
    }

    /// Of lists that were touched.
    pub fn figures(&self) -> Vec<Figure> {
        let rounds = &self.0;
        let count = rounds.len() as u64;
        if count < 8 {
            return Vec::new();
        }
        let cost = |round: &Round| (round.malloc + round.touch) as f64 / round.pages.max(1) as f64;
        let quarter = rounds.len() / 4;
        let (first, last) = (&rounds[..quarter], &rounds[rounds.len() - quarter..]);
        let costs = |rounds: &[Round]| median(rounds.iter().map(cost).collect());
        let mut figures = vec![
            Figure::new("page-cost", "malloc and touch of a list, for each page, median", costs(rounds), "ns")
                .of(count),
        ];
        if let Some(r) = correlation(rounds) {
            let title =
                "rank correlation of a list's pages and the time of its malloc and touch (1: time follows pages)";
            figures.push(Figure::new("pages-time-correlation", title, r, "ratio").of(count));
        }
        let title = "cost of a page, last quarter of the lists to the first (1: it does not grow)";
        figures.push(
            Figure::new("page-cost-growth", title, costs(last) / costs(first).max(f64::MIN_POSITIVE), "ratio")
                .of(count),
        );
        figures
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Spearman's coefficient: of ranks, so that a list during which another task ran is one of many and not the whole figure. `None` where all
/// lists have as many pages, or take as long.
fn correlation(rounds: &[Round]) -> Option<f64> {
    let pages = ranks(rounds.iter().map(|round| round.pages as i64).collect());
    let times = ranks(rounds.iter().map(|round| round.malloc + round.touch).collect());
    let middle = (rounds.len() as f64 - 1.0) / 2.0;
    let both = || pages.iter().map(|rank| rank - middle).zip(times.iter().map(|rank| rank - middle));
    let (xy, xx, yy) = both().fold((0.0, 0.0, 0.0), |(xy, xx, yy), (x, y)| (xy + x * y, xx + x * x, yy + y * y));
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// The place of each value among all, in order; equal ones share the mean of their places.
fn ranks(values: Vec<i64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by_key(|place| values[*place]);
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|place| ranks[*place] = rank);
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(vec![30, 10, 10, 20]), [3.0, 0.5, 0.5, 2.0]);
        assert_eq!(correlation(&[Round::default(); 9]), None);
    }

    #[test]
    fn time_that_follows_pages_and_time_that_grows() {
        let of = |touch: fn(u64) -> i64| {
            let mut lists = Lists::new();
            for number in 0..100u64 {
                let size = (number % 7 + 1) * 4096;
                let touch = [0, touch(number)];
                lists.take(&[Block { size, visit: 0, at: 0, malloc: [0, 0], touch, free: [0; 2], cpu: 0 }], 4096);
            }
            let figures = lists.figures();
            let value = |name| figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
            (value("page-cost").unwrap(), value("pages-time-correlation").unwrap(), value("page-cost-growth").unwrap())
        };
        let (cost, r, growth) = of(|number| (number as i64 % 7 + 1) * 250);
        assert_eq!((cost, growth), (250.0, 1.0));
        assert!(r > 0.999, "{r}");
        let (_, r, growth) = of(|number| (number as i64 % 7 + 1) * (250 + 10 * number as i64));
        assert!(r < 0.99 && growth > 2.0, "{r} {growth}");
        assert!(Lists::new().figures().is_empty());
    }
}
