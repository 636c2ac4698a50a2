//! The end of a run as systress leaves it: the file of each thread, and its last lines.

use crate::exit::{Failure, Outputs};
use crate::output;
use punctual_bundle::{Bundle, Series};
use punctual_core::format::escape_unsafe;
use punctual_core::{Nanos, Sample};
use punctual_plan::{Plan, SystressFile, SystressFormat};
use punctual_report::export::systress::{self, SystressLayout};
use punctual_report::terminal::LiveFigures;
use punctual_session::messages::display_path;

/// Writes the files, in the current directory, and returns the last lines for programs that read
/// them: the last block of figures, the path of each thread's statistics, and the total time.
/// `None` if the experiment is not one of systress.
pub fn write(plan: &Plan, bundle: &Bundle, outputs: &mut Outputs) -> Option<String> {
    let threads = systress_threads(plan, bundle);
    threads.iter().for_each(|(file, series)| {
        outputs.add(write_one(file, series, bundle));
    });
    (!threads.is_empty()).then(|| format_closing(&threads, bundle))
}

type Thread<'a> = (&'a SystressFile, &'a Series);

fn systress_threads<'a>(plan: &'a Plan, bundle: &'a Bundle) -> Vec<Thread<'a>> {
    let mut found = Vec::new();
    for (planned, measured) in plan.phases.iter().zip(&bundle.phases) {
        let wanted = planned
            .measures
            .iter()
            .flat_map(|m| m.threads.iter().map(move |t| (t, m.systress.as_ref())));
        for (thread, file) in wanted {
            let series = measured.series.iter().find(|series| series.meta.name == thread.name);
            found.extend(Option::zip(file, series));
        }
    }
    found
}

fn write_one(file: &SystressFile, series: &Series, bundle: &Bundle) -> Result<(), Failure> {
    let layout = match file.format {
        SystressFormat::Csv => SystressLayout::Csv,
        SystressFormat::Txt => SystressLayout::Txt,
    };
    let mut bytes = Vec::new();
    systress::write_series(file.index as usize, series, bundle.timebase(), layout, &mut bytes)?;
    output::write_to(Some(&file.path), &bytes)
}

fn format_closing(threads: &[Thread], bundle: &Bundle) -> String {
    let rows: Vec<LiveFigures> = threads.iter().map(live_figures).collect();
    let load = bundle.phases.last().and_then(|phase| phase.meta.cpu_load.known_value());
    let files = threads.iter().map(|(file, series)| {
        let (name, file) = (escape_unsafe(&series.meta.name), display_path(&file.path));
        format!("Statistics for {name} in '{file}'\n")
    });
    let elapsed: i64 =
        bundle.phases.iter().filter_map(|phase| phase.meta.duration).map(Nanos::ns).sum();
    format!(
        "{}\n{}Total elapsed time: {:.3} s\n",
        systress::format_block(&rows, load),
        files.collect::<String>(),
        elapsed as f64 / 1e9
    )
}

fn live_figures((file, series): &Thread) -> LiveFigures {
    let last = series.load_log().ok().and_then(|log| log.samples.last().map(Sample::latency));
    LiveFigures::from_series(file.index as usize, series.meta.tid, &series.state.data, last)
}
