//! Plots that a page draws without a script; and effects as ratios with their intervals, on a
//! common logarithmic axis.

use super::overlaid::Overlaid;
use super::scatter::Scatter;
use super::table::{Table, tone_class};
use super::text::format_name;
use crate::sentence::format_ratio;
use crate::tables::Tone;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub(crate) enum Plot {
    Dots(Scatter),
    Curves(Overlaid),
    Forest(Forest),
    Heat(Table),
}

/// A figure with a setting, or of another side, over that without it.
pub(crate) struct Effect {
    pub name: String,
    pub tone: Tone,
    pub answer: &'static str,
    pub words: String,
    /// The ratio with the ends of its interval; without an end, it is unbounded.
    pub ratio: Option<(f64, [Option<f64>; 2])>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Forest {
    caption: String,
    ticks: Vec<Tick>,
    rows: Vec<Row>,
    /// A row of all together, with its title.
    set: Option<(String, Row)>,
}

#[derive(Debug, Serialize)]
struct Tick {
    /// From the left, in percent.
    at: f64,
    label: String,
    /// Whether it marks the factor 1: no effect.
    is_one: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    class: &'static str,
    answer: &'static str,
    words: String,
    /// The ends of the interval, and the estimate, in percent.
    place: Option<[f64; 3]>,
    /// Whether an end is outside of the drawing, or unbounded.
    open: [bool; 2],
}

impl Forest {
    /// `None` if no effect is known.
    pub(crate) fn from_effects(
        caption: String,
        rows: impl Iterator<Item = Effect>,
        set: Option<(String, Effect)>,
    ) -> Option<Forest> {
        let rows: Vec<Effect> = rows.collect();
        let all_effects = rows.iter().chain(set.as_ref().map(|(_, row)| row));
        let known_ratios = all_effects.filter_map(|row| row.ratio);
        let ends = known_ratios.flat_map(|(at, [low, high])| [Some(at), low, high]).flatten();
        let widest = ends.map(|end| end.ln().abs()).reduce(f64::max)?;
        // Up to a factor of 100; an arrow marks values beyond it.
        let reach = widest.clamp(1.02f64.ln(), 100f64.ln()) * 1.08;
        // The finest step with at most four ticks per side.
        let steps = [1.01f64, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0];
        let step = steps.into_iter().find(|step| reach / step.ln() <= 4.0).unwrap_or(10.0);
        let ticks = (-4..=4).filter(|k| f64::from(*k).abs() * step.ln() <= reach);
        let tick = |k| Tick {
            at: place_of_factor(step.powi(k), reach),
            label: format_ratio(step.powi(k)),
            is_one: k == 0,
        };
        Some(Forest {
            caption,
            ticks: ticks.map(tick).collect(),
            rows: rows.into_iter().map(|effect| to_row(effect, reach)).collect(),
            set: set.map(|(title, effect)| (title, to_row(effect, reach))),
        })
    }
}

fn to_row(effect: Effect, reach: f64) -> Row {
    let ends =
        effect.ratio.map(|(at, [low, high])| [low.unwrap_or(0.0), high.unwrap_or(f64::MAX), at]);
    Row {
        name: format_name(&effect.name),
        class: tone_class(effect.tone),
        answer: effect.answer,
        words: effect.words,
        place: ends.map(|ends| ends.map(|end| place_of_factor(end, reach))),
        open: ends.map_or([false; 2], |[low, high, _]| [low.ln() < -reach, high.ln() > reach]),
    }
}

/// The position of a factor, in percent of the width; some room is left at either end.
fn place_of_factor(factor: f64, reach: f64) -> f64 {
    50.0 + 47.0 * (factor.max(f64::MIN_POSITIVE).ln() / reach).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unbounded_interval_ends_in_an_arrow_at_the_edge() {
        let effect = |ratio| Effect {
            name: "p99".to_owned(),
            tone: Tone::Good,
            answer: "lower",
            words: String::new(),
            ratio,
        };
        let open = effect(Some((0.5, [None, Some(1.0)])));
        let drawn =
            Forest::from_effects(String::new(), [open, effect(None)].into_iter(), None).unwrap();
        let [first, second] = &drawn.rows[..] else { panic!("{drawn:?}") };
        assert_eq!(
            (first.open, first.place.unwrap()[..2].to_vec()),
            ([true, false], vec![3.0, 50.0])
        );
        assert!(first.place.unwrap()[2] < 10.0 && second.place.is_none());
        assert!(drawn.ticks.iter().any(|tick| tick.is_one && tick.at == 50.0));
        // Without an effect nothing is drawn.
        assert!(Forest::from_effects(String::new(), [effect(None)].into_iter(), None).is_none());
    }
}
