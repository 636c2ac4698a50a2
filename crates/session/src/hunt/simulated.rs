//! A simulated landscape with planted needles: whether the search finds them in fewer trials than
//! others (docs/hunt.md has the table that it prints).

use super::archive::{Key, Kind, Shown};
use super::minimise::{minimise, shows, simpler};
use super::random::Random;
use super::search::{BATCH, Search, Trials};
use super::space::{Choice, Input, QUARTERS, Space};
use super::spec::Strategy;
use std::convert::Infallible;

/// Loads of the landscape, about as many as stress-ng has stressors.
const LOADS: usize = 300;
/// No method is given more trials.
const MOST: usize = 2_000;
/// The longest of what is no needle.
const ORDINARY: u64 = 20_000;
const NEEDLE: u64 = 100_000;

/// What shows a needle in full.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Needle {
    /// A load with one of its parameters, which alone shows a tenth.
    Parameter,
    /// Many instances: each shows its share.
    Instances,
    /// Two loads together; the first alone shows a fifth.
    Pair,
    /// A long run: a quarter of it shows a quarter.
    Long,
    /// The phase, within a tenth: the section is seen, a sample meets it only then.
    Phase,
}

const NEEDLES: [Needle; 5] =
    [Needle::Parameter, Needle::Instances, Needle::Pair, Needle::Long, Needle::Phase];

struct Landscape {
    /// The load of each needle, and one beside.
    places: Vec<usize>,
    seed: u64,
    trials: usize,
    most: usize,
    /// The trial that showed each needle first.
    found: [Option<usize>; NEEDLES.len()],
}

fn key(needle: usize) -> Key {
    match NEEDLES[needle] {
        Needle::Phase => (Kind::Sample, String::new()),
        _ => (Kind::IrqsDisabled, format!("needle{needle}")),
    }
}

fn space() -> Space {
    let choice = |load: usize| Choice {
        name: format!("load{load}"),
        parameters: (0..1 + load % 6)
            .map(|p| if p == 0 { String::new() } else { p.to_string() })
            .collect(),
        command: None,
    };
    Space { loads: (0..LOADS).map(choice).collect(), thorough: 0, lives_ms: &[0], shift_us: 1_000 }
}

impl Landscape {
    fn new(seed: u64, most: usize) -> Landscape {
        let mut random = Random::new(seed ^ 0x6c61_6e64);
        // The first is a load that has parameters.
        let mut places = vec![random.below(LOADS / 6) * 6 + 5];
        while places.len() < NEEDLES.len() + 1 {
            let place = random.below(LOADS);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Landscape { places, seed, trials: 0, most, found: [None; NEEDLES.len()] }
    }

    fn shown(&self, input: &Input) -> Shown {
        let mut shown = Shown::default();
        let mut add = |key: Key, length: u64| {
            let longest = shown.lengths.entry(key).or_default();
            *longest = length.max(*longest);
        };
        for part in &input.parts {
            // Ordinary causes are shared by loads, and spread by a factor of some hundred.
            let mut random = Random::new(self.seed ^ (part.load as u64 * 977));
            let function = (Kind::IrqsDisabled, format!("f{}", random.below(60)));
            let scale = 60 + (ORDINARY - 60) * (random.below(100) as u64).pow(3) / 1_000_000;
            let mut noise = Random::new(random.bits() ^ u64::from(input.seed));
            let length = scale * (70 + noise.below(31) as u64) / 100;
            add(function, length);
            add((Kind::Sample, String::new()), length / 2);
            let own = |needle: usize| part.load == self.places[needle];
            if own(0) {
                add(key(0), if part.parameter == 3 { NEEDLE } else { NEEDLE / 10 });
            }
            if own(1) {
                add(key(1), NEEDLE * u64::from(part.instances) / 8);
            }
            if own(2) {
                let both = input.parts.iter().any(|other| other.load == self.places[5]);
                add(key(2), if both { NEEDLE } else { NEEDLE / 5 });
            }
            if own(3) {
                add(key(3), NEEDLE * u64::from(input.quarters) / u64::from(QUARTERS[2]));
            }
            if own(4) {
                add((Kind::IrqsDisabled, "hit".into()), NEEDLE / 2);
                let met = (450..550).contains(&part.delay_us);
                add(key(4), if met { NEEDLE } else { ORDINARY / 2 });
            }
        }
        shown
    }
}

impl Trials for Landscape {
    type Error = Infallible;
    fn run(&mut self, batch: &[Input]) -> Result<Option<Vec<Shown>>, Infallible> {
        if self.trials + batch.len() > self.most || self.found.iter().all(Option::is_some) {
            return Ok(None);
        }
        let all: Vec<Shown> = batch.iter().map(|input| self.shown(input)).collect();
        for shown in &all {
            self.trials += 1;
            for needle in 0..NEEDLES.len() {
                if shown.of(&key(needle)) >= NEEDLE && self.found[needle].is_none() {
                    self.found[needle] = Some(self.trials);
                }
            }
        }
        Ok(Some(all))
    }
}

type Found = [Option<usize>; NEEDLES.len()];

fn searched(seed: u32) -> Found {
    let space = space();
    let mut landscape = Landscape::new(seed.into(), MOST);
    let mut search = Search::new(&space, seed, Strategy::Search);
    while search.step(&mut landscape) == Ok(true) {}
    landscape.found
}

fn by_chance(seed: u32) -> Found {
    let space = space();
    let mut landscape = Landscape::new(seed.into(), MOST);
    let mut random = Random::new(u64::from(seed) ^ 0x7261_6e64);
    loop {
        let batch: Vec<Input> = (0..BATCH).map(|_| space.random(&mut random)).collect();
        if landscape.run(&batch) == Ok(None) {
            return landscape.found;
        }
    }
}

/// Every load alone, for the longest time, with one seed after the other.
fn each_alone(seed: u32) -> Found {
    let mut landscape = Landscape::new(seed.into(), MOST);
    for round in 0.. {
        for load in 0..LOADS {
            let mut input = Input::simple(load..load + 1, round + 1);
            input.quarters = QUARTERS[2];
            if landscape.run(&[input]) == Ok(None) {
                return landscape.found;
            }
        }
    }
    landscape.found
}

/// The median over seeds; one that was not found counts as the most trials.
fn medians(method: fn(u32) -> Found, seeds: u32) -> Vec<usize> {
    let all: Vec<Found> = (1..=seeds).map(method).collect();
    let median = |needle: usize| {
        let mut trials: Vec<usize> = all.iter().map(|f| f[needle].unwrap_or(MOST)).collect();
        trials.sort_unstable();
        trials[trials.len() / 2]
    };
    (0..NEEDLES.len()).map(median).collect()
}

/// The medians of search, random inputs, each load alone; and as a table.
fn compared(seeds: u32) -> ([Vec<usize>; 3], String) {
    let all = [medians(searched, seeds), medians(by_chance, seeds), medians(each_alone, seeds)];
    let mut table =
        "| needle | search | random | each load alone |\n|---|---|---|---|\n".to_owned();
    for (needle, what) in NEEDLES.iter().enumerate() {
        let cell = |method: usize| match all[method][needle] {
            MOST => format!("not in {MOST}"),
            trials => trials.to_string(),
        };
        table += &format!("| {what:?} | {} | {} | {} |\n", cell(0), cell(1), cell(2));
    }
    (all, table)
}

#[test]
fn needles_are_found_in_fewer_trials_than_by_chance() {
    let (all, table) = compared(3);
    // Two loads that only together show it remain out of reach for all.
    let found = |method: usize| all[method].iter().filter(|trials| **trials < MOST).count();
    assert!(found(0) >= found(1) && found(1) > found(2), "{table}");
    let sum = |method: usize| all[method].iter().sum::<usize>();
    assert!(sum(0) < sum(1), "{table}");
}

#[test]
#[ignore = "minutes without optimisation: prints the table of docs/hunt.md"]
fn the_table_of_the_document() {
    println!("{}", compared(15).1);
}

#[test]
fn a_search_is_the_same_again_and_a_longer_one_begins_with_it() {
    let space = space();
    let run = |most: usize| {
        let mut landscape = Landscape::new(3, most);
        let mut search = Search::new(&space, 3, Strategy::Search);
        while search.step(&mut landscape) == Ok(true) {}
        search.tried
    };
    let (short, again, long) = (run(80), run(80), run(160));
    assert_eq!(short, again);
    assert!(long.len() > short.len());
    assert_eq!(short[..], long[..short.len()]);
    let mut inputs: Vec<&Input> = long.iter().map(|tried| &tried.input).collect();
    inputs.sort();
    inputs.dedup();
    assert_eq!(inputs.len(), long.len(), "an input was tried twice");
}

/// Runs the first three of a batch, and then the time is over.
struct Short(Landscape);

impl Trials for Short {
    type Error = Infallible;
    fn run(&mut self, batch: &[Input]) -> Result<Option<Vec<Shown>>, Infallible> {
        self.0.run(&batch[..3])
    }
}

#[test]
fn a_batch_that_was_cut_short_counts_as_far_as_it_came() {
    let space = space();
    let mut short = Search::new(&space, 3, Strategy::Search);
    assert_eq!(short.step(&mut Short(Landscape::new(3, MOST))), Ok(false));
    let mut whole = Search::new(&space, 3, Strategy::Search);
    assert_eq!(whole.step(&mut Landscape::new(3, MOST)), Ok(true));
    assert_eq!((short.tried.len(), whole.tried.len()), (3, BATCH));
    assert_eq!(short.tried[..], whole.tried[..3]);
}

#[test]
fn what_is_left_shows_it_and_nothing_can_be_taken_away() {
    let space = space();
    for seed in 1..20 {
        let mut landscape = Landscape::new(seed, usize::MAX);
        landscape.found = [None; NEEDLES.len()];
        let mut search = Search::new(&space, 1, Strategy::Search);
        let mut random = Random::new(seed);
        let mut parts: Vec<_> =
            (0..2).map(|_| space.random(&mut random).parts[0].clone()).collect();
        let mut part =
            Input::simple(landscape.places[1]..landscape.places[1] + 1, 1).parts.remove(0);
        part.instances = 8;
        part.delay_us = 700;
        parts.push(part);
        let input = space.whole(Input { parts, seed: 1, quarters: QUARTERS[2] });
        let first = vec![(input, super::search::Stage::Survey)];
        assert_eq!(search.try_all(first, &mut landscape), Ok(true));
        let (least, left, whole) = minimise(&mut search, &key(1), &mut landscape)
            .unwrap_or_else(|e| match e {})
            .expect("it is known");
        assert!(whole);
        assert_eq!(left, landscape.shown(&least).of(&key(1)));
        assert!(left >= NEEDLE * 9 / 10);
        for less in simpler(&least) {
            assert!(!shows(&landscape.shown(&less), &key(1), NEEDLE), "{less:?}");
        }
        assert_eq!((least.parts.len(), least.parts[0].delay_us, least.quarters), (1, 0, 1));
    }
}
