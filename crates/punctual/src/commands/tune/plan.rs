//! `--list` and `--dry-run`: the settings to try, and the time needed. Nothing is changed.

use crate::commands::bundle::show_options;
use crate::exit::{Ending, Exit};
use crate::output;
use punctual_bundle::tune::NotTried;
use punctual_core::Nanos;
use punctual_core::format::duration_text;
use punctual_report::document::tune_settings;
use punctual_stats::tune::time_needed;
use punctual_study::tune::directory::TuningSpec;
use punctual_study::tune::setting::{Setting, traits_of_setting};

/// Standard deviations between blocks of the same settings, in percent: a quiet machine, a usual
/// one, a noisy one.
const SPREADS: [u32; 3] = [5, 20, 50];

/// Prints these settings, and the omitted ones.
pub fn print_settings(settings: &[Setting], left_out: &[NotTried]) -> Ending {
    output::print_stdout(&format_settings(settings, left_out))?;
    Ok(Exit::Done)
}

fn format_settings(settings: &[Setting], left_out: &[NotTried]) -> String {
    let rows = settings.iter().map(|setting| {
        let setting_traits = traits_of_setting(&setting.name);
        let named = if setting_traits.only_named { "only when named" } else { "" };
        [
            setting.name.clone(),
            setting_traits.risk.word().to_owned(),
            named.to_owned(),
            setting.format_value(),
        ]
    });
    let left = left_out.iter().map(|left| (&left.name, &left.why));
    tune_settings(rows.collect(), left).to_terminal_text(&show_options())
}

/// Prints the plan.
pub fn dry_run(spec: &TuningSpec) -> Ending {
    let mut out = format_settings(&spec.settings, &spec.left_out);
    let slowest =
        spec.settings.iter().map(|setting| traits_of_setting(&setting.name).wash_out_s).max();
    let around = Nanos::from_secs(slowest.unwrap_or(0));
    let block = spec.block + around;
    let blocks = spec.within.ns() / block.ns().max(1);
    out += &format!(
        "\n{} of {}, in blocks of {}{}; {} hold about {blocks} blocks\nto find every effect of \
         ×{} or more takes, by how much blocks of the same settings differ:\n",
        spec.figure,
        spec.experiment,
        duration_text(spec.block),
        match around.ns() {
            0 => String::new(),
            _ => format!(
                " and up to {} before each, as some settings act slowly",
                duration_text(around)
            ),
        },
        duration_text(spec.within),
        spec.tuning_options().smallest,
    );
    for (percent, time) in needed_times(spec, block) {
        out += &format!("  by {percent:>2} %: {}\n", duration_text(time));
    }
    out += "nothing was changed\n";
    output::print_stdout(&out)?;
    Ok(Exit::Done)
}

/// The time needed with blocks of this length, by their spread.
fn needed_times(spec: &TuningSpec, block: Nanos) -> [(u32, Nanos); 3] {
    SPREADS.map(|percent| {
        let spread = (1.0 + f64::from(percent) / 100.0).ln();
        (percent, time_needed(&spec.tuning_options(), spec.settings.len(), spread, block))
    })
}
