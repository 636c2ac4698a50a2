//! The most likely mistakes on a command line, each with its answer.

use crate::common::{Place, text};
use std::fmt::Write;

/// The typed words, with arguments separated by `|`.
const MISTAKES: &[&str] = &[
    "mesure|timer",
    "measure|tmer",
    "measure|timer|--require|max < 100",
    "measure|timer|--require|maximum < 100us",
    "measure|timer|--duration|10",
    "measure|timer|-h|400",
    "measure|timer|-d|500",
    "measure|timer|-t|four",
    "measure|timer|-a|first",
    "run|missing.toml",
    "run|experiment.toml|--set|piority=80",
    "run|experiment.toml|--set|piority",
    "attach|servo",
    "attach",
    "attach|--comm|nobody-is-called-so",
    "show",
    "show|nowhere",
    "explain",
];

#[test]
fn the_likeliest_mistakes_are_answered_with_what_to_type() {
    let place = Place::with(super::GOOD);
    let mut all = String::new();
    for line in MISTAKES {
        let arguments: Vec<&str> = line.split('|').collect();
        let answer = place.punctual(&arguments);
        assert_eq!(answer.status.code(), Some(2), "{line}: {}", text(&answer));
        writeln!(all, "$ punctual {}\n{}", arguments.join(" "), text(&answer)).unwrap();
    }
    insta::assert_snapshot!(all);
}
