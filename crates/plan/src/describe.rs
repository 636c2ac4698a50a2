//! A plan as text: `punctual run --plan`. Keys and values are those of the experiment that sets the
//! whole plan, with the results of resolving beside them.

use crate::escape::printable;
use crate::kinds::WorkloadKind;
use crate::plan::{
    HistogramPlan, Length, LoadPlan, MeasurePlan, PhasePlan, Plan, SchedulingSpec, Workload,
};
use crate::resolve::bytes;
use crate::section::FileSection;
use crate::to_experiment::{explain, load as load_spec, partition, record};
use crate::words::Word;
use punctual_core::{Fact, Nanos};

/// Keys shown in another way: as a title, or computed.
const ELSEWHERE: [&str; 7] =
    ["name", "command", "duration", "samples", "histogram", "phases", "deadline"];

impl Plan {
    /// The whole plan, in lines and tables; unprintable characters are escaped.
    pub fn describe(&self) -> String {
        let mut page = DescribedPage::default();
        page.line(0, format!("experiment {}", printable(&self.name)));
        let ends = self.phases.iter().all(PhasePlan::ends);
        page.fact(1, "estimated time", time(self.estimated_time(), ends));
        match self.calibration() {
            Fact::Known(()) => page.fact(1, "recording costs", "measured before the run"),
            Fact::Unavailable(why) => {
                page.fact(1, "recording costs", format!("not measured: {why}"));
            }
            Fact::NotAsked => {}
        }
        page.keys(1, &self.settings());
        page.section("target", self.target.to_spec());
        page.section("partition", self.partition.as_ref().map(partition));
        page.section("record", self.record.as_ref().map(record));
        page.section("explain", self.explain.as_ref().map(explain));
        if let Some(published) = &self.published {
            let count = published.results.len();
            page.line(1, "published".to_owned());
            page.fact(2, "source", format!("{} ({count} results)", published.source));
        }
        // Includes the delays that the seed adds to each start.
        let seeded = self.seeded();
        seeded.phases.iter().for_each(|plan| phase(&mut page, &seeded, plan));
        page.text
    }
}

fn phase(page: &mut DescribedPage, plan: &Plan, phase: &PhasePlan) {
    page.line(0, String::new());
    page.line(
        0,
        format!(
            "phase {} ({})",
            printable(&phase.name),
            time(phase.estimated_time(), phase.ends())
        ),
    );
    phase.measures.iter().for_each(|one| measure(page, plan, one));
    if phase.measures.is_empty() {
        page.line(1, "nothing measured".to_owned());
    }
    phase.loads.iter().for_each(|plan| load(page, plan));
    if phase.loads.is_empty() {
        page.line(1, "no load".to_owned());
    }
}

fn measure(page: &mut DescribedPage, plan: &Plan, measure: &MeasurePlan) {
    let kind = measure.workload.kind();
    page.line(1, format!("measure {}: {}", printable(&measure.name), kind.word()));
    page.fact(2, "measures", kind.title());
    measure.workload.facts().iter().for_each(|(key, value)| page.fact(2, key, value));
    page.keys(2, &plan.measure(measure));
    let parts = measure.workload.parts();
    if !parts.is_empty() {
        page.fact(2, "series", parts.join(", "));
    }
    let program = matches!(measure.workload, Workload::Program(_));
    match measure.length {
        Length::UntilInterrupted if program => page.fact(2, "lasts", "until the program ends"),
        ended => page.fact(2, "lasts", length(ended)),
    }
    if !program {
        page.fact(2, "histogram", histogram(measure.histogram));
    }
    if let Some(deadline) = measure.deadline {
        page.fact(2, "deadline", deadline);
    }
    if kind == WorkloadKind::Entries {
        return;
    }
    let mut rows = vec![["thread", "CPUs", "policy", "starts"].map(str::to_owned)];
    rows.extend(measure.threads.iter().map(|thread| {
        let name = printable(&thread.name).into_owned();
        [
            name,
            thread.cpus.to_string(),
            scheduling(thread.scheduling),
            format!("+{}", thread.start_offset),
        ]
    }));
    page.table(2, &rows);
}

fn load(page: &mut DescribedPage, load: &LoadPlan) {
    let command = shell_words::join(&load.argv);
    page.line(1, format!("load {}: {}", printable(&load.name), printable(&command)));
    page.fact(2, "program", load.program.display());
    page.keys(2, &load_spec(load));
}

fn length(length: Length) -> String {
    match length {
        Length::Duration(duration) => duration.to_string(),
        Length::Samples(samples) => format!("{samples} samples"),
        Length::UntilInterrupted => "until interrupted".to_owned(),
    }
}

fn histogram(plan: HistogramPlan) -> String {
    format!(
        "0 to {} in steps of {}: {} bins, {}",
        plan.range,
        plan.resolution,
        plan.bins(),
        bytes(plan.bins() * 8)
    )
}

fn scheduling(scheduling: SchedulingSpec) -> String {
    let policy = scheduling.policy();
    match scheduling {
        SchedulingSpec::Fifo(priority) | SchedulingSpec::Rr(priority) => {
            format!("{policy} {priority}")
        }
        SchedulingSpec::Other(nice) | SchedulingSpec::Batch(nice) => {
            format!("{policy}, nice {nice}")
        }
        SchedulingSpec::Idle => policy.to_string(),
        SchedulingSpec::Deadline(p) => {
            format!("{policy}, {} of each {}, by {}", p.runtime, p.period, p.deadline)
        }
    }
}

fn time(time: Option<Nanos>, ends: bool) -> String {
    let unknown = if ends { "as long as its samples take" } else { "until interrupted" };
    time.map_or(unknown.to_owned(), |time| time.to_string())
}

/// Text under construction: lines indented by steps, facts with their names in a column.
#[derive(Default)]
struct DescribedPage {
    text: String,
}

impl DescribedPage {
    fn line(&mut self, depth: usize, text: String) {
        let indent = if text.is_empty() { String::new() } else { "  ".repeat(depth) };
        self.text += &format!("{indent}{text}\n");
    }

    fn fact(&mut self, depth: usize, name: &str, value: impl std::fmt::Display) {
        let line = format!("{name:<17}  {}", printable(&value.to_string()));
        self.line(depth, line.trim_end().to_owned());
    }

    /// The keys of a section that are set, except those shown in another way.
    fn keys(&mut self, depth: usize, section: &impl FileSection) {
        let facts = section.facts().into_iter().filter(|(key, _)| !ELSEWHERE.contains(key));
        facts.for_each(|(key, value)| self.fact(depth, key, value));
    }

    /// A section with its header, if the plan has it.
    fn section(&mut self, header: &str, section: Option<impl FileSection>) {
        let Some(section) = section else { return };
        self.line(1, header.to_owned());
        section.facts().into_iter().for_each(|(key, value)| self.fact(2, key, value));
    }

    fn table<const N: usize>(&mut self, depth: usize, rows: &[[String; N]]) {
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..N).map(width).collect();
        for row in rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            self.line(depth, line.trim_end().to_owned());
        }
    }
}
