//! Figures of all rounds of a list: whether time follows pages, and whether it grows from round to
//! round.

use super::kernel::count_pages;
use super::shared_memory::HeapBlock;
use punctual_core::{Cell, Column, Figure, Nanos, Table};

/// Rounds that are kept: the first ones.
const KEPT_ROUNDS: usize = 65_536;

/// Rows of the table of lists: the first ones.
const ROWS: usize = 1_024;

/// The kernel's counts for one list: for batches of one list.
#[derive(Clone, Copy)]
pub struct ListCounts {
    pub faults: u64,
    /// CPU time, in ns.
    pub cpu_time: i64,
}

/// A list that was built, visited, and taken down.
#[derive(Clone, Copy, Default)]
struct ListRound {
    nodes: u64,
    bytes: u64,
    /// The pages that contain its nodes.
    pages: u64,
    /// The kernel's counts, if they are for this list only.
    own: Option<ListCounts>,
    malloc: i64,
    touch: i64,
    free: i64,
}

impl ListRound {
    fn allocation_time(&self) -> i64 {
        self.malloc + self.touch
    }
}

/// All lists, in order.
pub struct Lists(Vec<ListRound>);

impl Lists {
    pub fn new() -> Lists {
        let mut rounds = vec![ListRound { pages: 1, ..ListRound::default() }; KEPT_ROUNDS];
        rounds.clear();
        Lists(rounds)
    }

    /// Adds a list; `own` if the kernel's counts are for this list only.
    pub fn add_list(&mut self, blocks: &[HeapBlock], page: u64, own: Option<ListCounts>) {
        if self.0.len() == KEPT_ROUNDS {
            return;
        }
        let (nodes, pages) = (blocks.len() as u64, count_pages(blocks, page));
        let mut round = ListRound { nodes, pages, own, ..ListRound::default() };
        for block in blocks {
            round.bytes += block.size;
            round.malloc += block.malloc[1] - block.malloc[0];
            round.touch += block.touch[1] - block.touch[0];
            round.free += block.free[1] - block.free[0];
        }
        self.0.push(round);
    }

    /// Bytes, pages and time of the first lists.
    pub(crate) fn list_table(&self) -> Option<Table> {
        let row = |(number, round): (usize, &ListRound)| -> Vec<Cell> {
            let counts = [number as u64 + 1, round.nodes, round.bytes, round.pages].map(Cell::from);
            let faults = round.own.map_or(Cell::Nothing, |own| own.faults.into());
            let times = [round.malloc, round.touch, round.free].map(|time| Cell::from(Nanos(time)));
            let cpu_time = round.own.map_or(Cell::Nothing, |own| Nanos(own.cpu_time).into());
            counts.into_iter().chain([faults]).chain(times).chain([cpu_time]).collect()
        };
        let shown_count = self.0.len().min(ROWS);
        let columns = [
            ("list", "count"),
            ("nodes", "count"),
            ("size", "bytes"),
            ("pages", "count"),
            ("page faults", "count"),
            ("malloc", "ns"),
            ("touch", "ns"),
            ("free", "ns"),
            ("CPU time", "ns"),
        ];
        (shown_count > 0).then(|| Table {
            name: "lists".to_owned(),
            title: format!("Each list, the first {shown_count} of {}", self.0.len()),
            columns: columns.map(|(name, unit)| Column::new(name, unit)).into(),
            rows: self.0.iter().take(ROWS).enumerate().map(row).collect(),
        })
    }

    /// The figures of lists that were touched.
    pub(crate) fn list_figures(&self) -> Vec<Figure> {
        let rounds = &self.0;
        let count = rounds.len() as u64;
        if count < 8 {
            return Vec::new();
        }
        let cost = |round: &ListRound| round.allocation_time() as f64 / round.pages.max(1) as f64;
        let quarter = rounds.len() / 4;
        let (first, last) = (&rounds[..quarter], &rounds[rounds.len() - quarter..]);
        let costs = |rounds: &[ListRound]| median(rounds.iter().map(cost).collect());
        let mut figures = vec![
            Figure::new(
                "page-cost",
                "malloc and touch of a list, for each page, median",
                costs(rounds),
                "ns",
            )
            .with_count(count),
        ];
        if let Some(r) =
            rank_correlation(rounds, |round| round.bytes as i64, |round| round.pages as i64)
        {
            let title = "rank correlation of a list's bytes and the pages in which its nodes lie \
                         (1: pages follow bytes)";
            figures.push(correlation_figure("bytes-pages-correlation", title, r, count));
        }
        let counted_rounds: Vec<ListRound> =
            rounds.iter().filter(|round| round.own.is_some()).copied().collect();
        let of_own = |value: fn(&ListCounts) -> i64| {
            let value = |round: &ListRound| round.own.as_ref().map_or(0, value);
            rank_correlation(&counted_rounds, |round| round.pages as i64, value)
                .filter(|_| counted_rounds.len() > 7)
        };
        if let Some(r) = of_own(|own| own.faults as i64) {
            let title = "rank correlation of a list's pages and its page faults (getrusage(2)) \
                         (1: each takes new pages)";
            figures.push(correlation_figure(
                "pages-faults-correlation",
                title,
                r,
                counted_rounds.len() as u64,
            ));
        }
        if let Some(r) = of_own(|own| own.cpu_time) {
            let title = "rank correlation of a list's pages and the CPU time of its program, \
                         which excludes other tasks";
            figures.push(correlation_figure(
                "pages-cpu-time-correlation",
                title,
                r,
                counted_rounds.len() as u64,
            ));
        }
        if let Some(r) =
            rank_correlation(rounds, |round| round.pages as i64, ListRound::allocation_time)
        {
            let title = "rank correlation of a list's pages and the time of its malloc and touch \
                         (1: time follows pages)";
            figures.push(correlation_figure("pages-time-correlation", title, r, count));
        }
        let title = "cost of a page, last quarter of the lists to the first (1: it does not grow)";
        figures.push(
            Figure::new(
                "page-cost-growth",
                title,
                costs(last) / costs(first).max(f64::MIN_POSITIVE),
                "ratio",
            )
            .with_count(count),
        );
        figures
    }
}

/// A rank correlation of this many lists, with the interval of Fisher's transformation (Fieller,
/// Hartley and Pearson, "Tests for rank correlation coefficients I", Biometrika 44, 1957).
fn correlation_figure(name: &str, title: &str, r: f64, lists: u64) -> Figure {
    let error = 1.96 * (1.06 / (lists.max(4) as f64 - 3.0)).sqrt();
    let z = r.clamp(-1.0, 1.0).atanh();
    let (low, high) = ((z - error).tanh(), (z + error).tanh());
    Figure::new(name, title, r, "ratio").with_count(lists).with_interval(low, high)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Spearman's coefficient uses ranks, so that a list interrupted by another task is one of many and
/// does not dominate the figure. `None` if all lists agree in either value.
fn rank_correlation(
    rounds: &[ListRound],
    one: impl Fn(&ListRound) -> i64,
    other: impl Fn(&ListRound) -> i64,
) -> Option<f64> {
    let pages = rank_values(rounds.iter().map(one).collect());
    let times = rank_values(rounds.iter().map(other).collect());
    let middle = (rounds.len() as f64 - 1.0) / 2.0;
    let deviations =
        || pages.iter().map(|rank| rank - middle).zip(times.iter().map(|rank| rank - middle));
    let (xy, xx, yy) = deviations()
        .fold((0.0, 0.0, 0.0), |(xy, xx, yy), (x, y)| (xy + x * y, xx + x * x, yy + y * y));
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// The rank of each value; equal ones share the mean of their ranks.
fn rank_values(values: Vec<i64>) -> Vec<f64> {
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
        assert_eq!(rank_values(vec![30, 10, 10, 20]), [3.0, 0.5, 0.5, 2.0]);
        assert_eq!(
            rank_correlation(
                &[ListRound::default(); 9],
                |round| round.pages as i64,
                ListRound::allocation_time
            ),
            None
        );
    }

    #[test]
    fn the_interval_of_a_correlation_narrows_with_the_number_of_lists() {
        let of = |r, lists| correlation_figure("r", "", r, lists).interval.unwrap();
        // 1.96 √(1.06 / 100) = 0.2018; tanh(0.5493 ∓ 0.2018).
        let [low, high] = of(0.5, 103);
        assert!((low - 0.334).abs() < 0.001 && (high - 0.636).abs() < 0.001, "{low} {high}");
        assert_eq!(of(1.0, 8), [1.0, 1.0]);
        assert!(of(0.9, 1_000)[0] > of(0.9, 10)[0]);
    }

    #[test]
    fn each_list_is_a_row_with_bytes_pages_and_times() {
        let mut lists = Lists::new();
        let node = |at| HeapBlock {
            size: 40,
            visit: 0,
            at,
            malloc: [0, 5],
            touch: [5, 9],
            free: [9, 12],
            cpu: 0,
        };
        lists.add_list(
            &[node(4096), node(4144), node(8170)],
            4096,
            Some(ListCounts { faults: 2, cpu_time: 31 }),
        );
        let row: Vec<Cell> = [1, 3, 120, 2, 2, 15, 12, 9, 31].map(|n: u64| Cell::from(n)).into();
        assert_eq!(
            lists.list_table().unwrap().rows,
            [row],
            "the third node lies in two pages, one of them shared"
        );
    }

    #[test]
    fn cost_per_page_and_growth_over_time_are_distinguished() {
        let of = |touch: fn(u64) -> i64| {
            let mut lists = Lists::new();
            for number in 0..100u64 {
                let size = (number % 7 + 1) * 4096;
                let touch = [0, touch(number)];
                let block = HeapBlock {
                    size,
                    visit: 0,
                    at: 0,
                    malloc: [0, 0],
                    touch,
                    free: [0; 2],
                    cpu: 0,
                };
                let cpu_time = (number as i64 % 7 + 1) * 300;
                lists.add_list(
                    &[block],
                    4096,
                    Some(ListCounts { faults: number % 7 + 3, cpu_time }),
                );
            }
            let figures = lists.list_figures();
            let value =
                |name| figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
            assert!(
                value("pages-cpu-time-correlation").unwrap() > 0.999,
                "whatever the time on the clock"
            );
            (
                value("page-cost").unwrap(),
                value("pages-time-correlation").unwrap(),
                value("page-cost-growth").unwrap(),
            )
        };
        let (cost, r, growth) = of(|number| (number as i64 % 7 + 1) * 250);
        assert_eq!((cost, growth), (250.0, 1.0));
        assert!(r > 0.999, "{r}");
        let (_, r, growth) = of(|number| (number as i64 % 7 + 1) * (250 + 10 * number as i64));
        assert!(r < 0.99 && growth > 2.0, "{r} {growth}");
        assert!(Lists::new().list_figures().is_empty());
    }
}
