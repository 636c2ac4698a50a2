//! `--list` and `--dry-run`: the settings to try, and the time needed. Nothing is changed.

use crate::commands::bundle::show_options;
use crate::exit::{Ending, Exit};
use crate::output;
use punctual_bundle::tune::NotTried;
use punctual_core::Nanos;
use punctual_core::format::duration;
use punctual_report::document::tune_settings;
use punctual_stats::tune::time_needed;
use punctual_study::tune::directory::TuningSpec;
use punctual_study::tune::setting::{Setting, traits};

/// Standard deviations between blocks of the same settings, in percent: a quiet machine, a usual
/// one, a noisy one.
const SPREADS: [u32; 3] = [5, 20, 50];

/// Prints these settings, and the omitted ones.
pub fn settings(settings: &[Setting], left_out: &[NotTried]) -> Ending {
    output::print(&text(settings, left_out))?;
    Ok(Exit::Done)
}

fn text(settings: &[Setting], left_out: &[NotTried]) -> String {
    let rows = settings.iter().map(|setting| {
        let known = traits(&setting.name);
        let named = if known.only_named { "only when named" } else { "" };
        [setting.name.clone(), known.risk.word().to_owned(), named.to_owned(), setting.value()]
    });
    let left = left_out.iter().map(|left| (&left.name, &left.why));
    tune_settings(rows.collect(), left).terminal(&show_options())
}

/// Prints the plan.
pub fn dry_run(spec: &TuningSpec) -> Ending {
    let mut out = text(&spec.settings, &spec.left_out);
    let slowest = spec.settings.iter().map(|setting| traits(&setting.name).wash_out_s).max();
    let around = Nanos::from_secs(slowest.unwrap_or(0));
    let block = spec.block + around;
    let blocks = spec.within.ns() / block.ns().max(1);
    out += &format!(
        "\n{} of {}, in blocks of {}{}; {} hold about {blocks} blocks\nto find every effect of \
         ×{} or more takes, by how much blocks of the same settings differ:\n",
        spec.figure,
        spec.experiment,
        duration(spec.block),
        match around.ns() {
            0 => String::new(),
            _ =>
                format!(" and up to {} before each, as some settings act slowly", duration(around)),
        },
        duration(spec.within),
        spec.options().smallest,
    );
    for (percent, time) in times(spec, block) {
        out += &format!("  by {percent:>2} %: {}\n", duration(time));
    }
    out += "nothing was changed\n";
    output::print(&out)?;
    Ok(Exit::Done)
}

/// The time needed with blocks of this length, by their spread.
fn times(spec: &TuningSpec, block: Nanos) -> [(u32, Nanos); 3] {
    SPREADS.map(|percent| {
        let spread = (1.0 + f64::from(percent) / 100.0).ln();
        (percent, time_needed(&spec.options(), spec.settings.len(), spread, block))
    })
}
