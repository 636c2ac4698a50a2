//! The settings that a tuning tried, by effect.

use super::{Cell, Column, Face, Table, Tone};
use crate::sentence::tune::more_time;
use punctual_bundle::tune::{TuneAnswer, TunedSetting, TuningDocument};

/// One row per setting, the best first.
pub(crate) fn setting_table(document: &TuningDocument) -> Table {
    let columns = vec![
        Column::text("setting", 0).with_shrinking(),
        Column::text("answer", 0),
        Column::figures("effect", 0).with_explanation(
            "the figure with the setting over that without it; below 1 is better",
        ),
        Column::text("95 %", 1).with_meaning("the interval of the effect"),
        Column::text(draw_axis(document), 2).with_verbatim_heading().with_only_face(Face::Terminal),
        Column::text("to know", 3).with_meaning("how much longer it would take to resolve it"),
        Column::text("risk", 4).with_meaning("what it may do besides what it is for"),
        Column::text("value", 5).with_wide_texts().with_only_face(Face::Page),
    ];
    let reach = axis_reach(document);
    let rows = by_effect(document).into_iter().map(|setting| setting_row(setting, reach));
    let mut table =
        Table::new("settings by effect", columns).with_rows(rows).with_row_limit(60, 1_000);
    let drawing = "drawn on a logarithmic axis: o is the effect in its interval, | no effect";
    table.remark_in(Face::Terminal, Tone::Faint, drawing);
    table
}

/// The settings, the best first; those without an effect last.
pub(crate) fn by_effect(document: &TuningDocument) -> Vec<&TunedSetting> {
    let mut all_settings: Vec<&TunedSetting> = document.settings.iter().collect();
    let key = |setting: &TunedSetting| setting.effect.map_or(f64::INFINITY, |of| of.ratio);
    all_settings.sort_by(|a, b| key(a).total_cmp(&key(b)));
    all_settings
}

fn setting_row(setting: &TunedSetting, reach: f64) -> Vec<Cell> {
    let (sign, tone) = answer_sign(setting.answer);
    let no_effect = || Cell::absent("too few blocks");
    let (effect, interval, plot) = match &setting.effect {
        Some(of) => (
            Cell::figure(of.ratio, format!("×{:.2}", of.ratio)).with_tone(tone),
            Cell::text(format!("{:.2} to {:.2}", of.interval[0], of.interval[1])),
            Cell::text(draw_interval(of.ratio, of.interval, reach)),
        ),
        None => (no_effect(), Cell::text(""), Cell::text("")),
    };
    let to_know = match setting.answer {
        TuneAnswer::NotResolved => Cell::text(more_time(setting.more_time)),
        _ => Cell::text(""),
    };
    vec![
        Cell::name(setting.name.clone()),
        Cell::verdict(sign, setting.answer.to_words(), tone),
        effect,
        interval,
        plot,
        to_know,
        Cell::text(setting.risk.clone()),
        Cell::name(setting.value.clone()),
    ]
}

/// The mark of an answer.
pub(crate) fn answer_sign(answer: TuneAnswer) -> (&'static str, Tone) {
    match answer {
        TuneAnswer::Better => ("✓", Tone::Good),
        TuneAnswer::Worse => ("✗", Tone::Bad),
        TuneAnswer::NoEffect => ("=", Tone::Faint),
        TuneAnswer::NotResolved => ("?", Tone::Uncertain),
    }
}

/// The range of the axis: the factor at its right end, and the inverse at its left.
pub(crate) fn axis_reach(document: &TuningDocument) -> f64 {
    let ends = document.settings.iter().filter_map(|setting| setting.effect);
    let set = document.set.iter().filter_map(|set| set.effect);
    let ends = ends.chain(set).flat_map(|of| of.interval.map(|end| end.max(1.0 / end)));
    let widest = ends.filter(|end| end.is_finite()).fold(1.0, f64::max);
    [1.5, 2.0, 3.0, 5.0, 10.0, 30.0].into_iter().find(|end| *end >= widest).unwrap_or(100.0)
}

/// Columns of the drawing on either side of no effect.
const HALF: usize = 10;

fn draw_axis(document: &TuningDocument) -> String {
    let reach = axis_reach(document);
    let (left, right) = (format!("×{:.2}", 1.0 / reach), format!("×{reach}"));
    let width = 2 * HALF + 1;
    let gap = width.saturating_sub(left.chars().count() + right.chars().count());
    format!("{left}{}{right}", " ".repeat(gap))
}

/// An interval as `   <--o--->  |`.
fn draw_interval(ratio: f64, interval: [f64; 2], reach: f64) -> String {
    let place = |factor: f64| -> usize {
        let part = (factor.ln() / reach.ln()).clamp(-1.0, 1.0);
        (HALF as f64 * (1.0 + part)).round() as usize
    };
    let mut line = [' '; 2 * HALF + 1];
    let (low, high) = (place(interval[0]), place(interval[1]));
    line[low..=high].fill('-');
    line[HALF] = '|';
    line[place(ratio)] = 'o';
    line.iter().collect::<String>().trim_end().to_owned()
}

/// Settings that can be tried: name, risk, condition, value.
pub(crate) fn offered_table(settings: Vec<[String; 4]>) -> Table {
    let columns = vec![
        Column::text("setting", 0),
        Column::text("risk", 1).with_meaning("what it may do besides what it is for"),
        Column::text("tried", 2),
        Column::text("value", 0).with_wide_texts().with_shrinking(),
    ];
    let row = |[name, risk, tried, value]: [String; 4]| {
        let tried = if tried.is_empty() { "yes".to_owned() } else { tried };
        vec![Cell::name(name), Cell::text(risk), Cell::text(tried), Cell::name(value)]
    };
    Table::new("settings that can be tried", columns).with_rows(settings.into_iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::draw_interval;

    #[test]
    fn an_interval_is_drawn_around_its_estimate() {
        assert_eq!(draw_interval(0.5, [0.25, 1.0], 4.0), "-----o----|");
        assert_eq!(draw_interval(1.0, [0.9, 1.1], 2.0), "        --o-");
        assert_eq!(draw_interval(9.0, [8.0, 9.5], 2.0), "          |         o");
    }
}
