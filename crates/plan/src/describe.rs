//! A plan as text: `punctual run --plan`. Keys and values are those of the experiment that sets the
//! whole plan, with the results of resolving beside them.

use crate::escape::escape_unprintable;
use crate::kinds::WorkloadKind;
use crate::plan::{
    HistogramPlan, Length, LoadPlan, MeasurePlan, PhasePlan, Plan, SchedulingSpec, Workload,
};
use crate::resolve::format_bytes;
use crate::section::FileSection;
use crate::to_experiment::{
    to_explain_spec, to_load_spec as load_spec, to_partition_spec, to_record_spec,
};
use crate::words::Word;
use punctual_core::{Fact, Nanos};

/// Keys shown in another way: as a title, or computed.
const ELSEWHERE: [&str; 7] =
    ["name", "command", "duration", "samples", "histogram", "phases", "deadline"];

impl Plan {
    /// The whole plan, in lines and tables; unprintable characters are escaped.
    pub fn describe(&self) -> String {
        let mut page = DescribedPage::default();
        page.push_line(0, format!("experiment {}", escape_unprintable(&self.name)));
        let ends = self.phases.iter().all(PhasePlan::has_end);
        page.push_fact(1, "estimated time", format_time(self.estimated_time(), ends));
        match self.calibration_decision() {
            Fact::Known(()) => page.push_fact(1, "recording costs", "measured before the run"),
            Fact::Unavailable(why) => {
                page.push_fact(1, "recording costs", format!("not measured: {why}"));
            }
            Fact::NotAsked => {}
        }
        page.push_keys(1, &self.to_settings());
        page.push_section("target", self.target.to_spec());
        page.push_section("partition", self.partition.as_ref().map(to_partition_spec));
        page.push_section("record", self.record.as_ref().map(to_record_spec));
        page.push_section("explain", self.explain.as_ref().map(to_explain_spec));
        if let Some(published) = &self.published {
            let count = published.results.len();
            page.push_line(1, "published".to_owned());
            page.push_fact(2, "source", format!("{} ({count} results)", published.source));
        }
        // Includes the delays that the seed adds to each start.
        let seeded = self.to_seeded();
        seeded.phases.iter().for_each(|plan| describe_phase(&mut page, &seeded, plan));
        page.text
    }
}

fn describe_phase(page: &mut DescribedPage, plan: &Plan, phase: &PhasePlan) {
    page.push_line(0, String::new());
    page.push_line(
        0,
        format!(
            "phase {} ({})",
            escape_unprintable(&phase.name),
            format_time(phase.estimated_time(), phase.has_end())
        ),
    );
    phase.measures.iter().for_each(|one| describe_measure(page, plan, one));
    if phase.measures.is_empty() {
        page.push_line(1, "nothing measured".to_owned());
    }
    phase.loads.iter().for_each(|plan| describe_load(page, plan));
    if phase.loads.is_empty() {
        page.push_line(1, "no load".to_owned());
    }
}

fn describe_measure(page: &mut DescribedPage, plan: &Plan, measure: &MeasurePlan) {
    let kind = measure.workload.kind();
    page.push_line(1, format!("measure {}: {}", escape_unprintable(&measure.name), kind.word()));
    page.push_fact(2, "measures", kind.title());
    measure.workload.facts().iter().for_each(|(key, value)| page.push_fact(2, key, value));
    page.push_keys(2, &plan.to_measure_spec(measure));
    let parts = measure.workload.series_parts();
    if !parts.is_empty() {
        page.push_fact(2, "series", parts.join(", "));
    }
    let program = matches!(measure.workload, Workload::Program(_));
    match measure.length {
        Length::UntilInterrupted if program => page.push_fact(2, "lasts", "until the program ends"),
        ended => page.push_fact(2, "lasts", format_length(ended)),
    }
    if !program {
        page.push_fact(2, "histogram", format_histogram(measure.histogram));
    }
    if let Some(deadline) = measure.deadline {
        page.push_fact(2, "deadline", deadline);
    }
    if kind == WorkloadKind::Entries {
        return;
    }
    let mut rows = vec![["thread", "CPUs", "policy", "starts"].map(str::to_owned)];
    rows.extend(measure.threads.iter().map(|thread| {
        let name = escape_unprintable(&thread.name).into_owned();
        [
            name,
            thread.cpus.to_string(),
            format_scheduling(thread.scheduling),
            format!("+{}", thread.start_offset),
        ]
    }));
    page.push_table(2, &rows);
}

fn describe_load(page: &mut DescribedPage, load: &LoadPlan) {
    let command = shell_words::join(&load.argv);
    page.push_line(
        1,
        format!("load {}: {}", escape_unprintable(&load.name), escape_unprintable(&command)),
    );
    page.push_fact(2, "program", load.program.display());
    page.push_keys(2, &load_spec(load));
}

fn format_length(length: Length) -> String {
    match length {
        Length::Duration(duration) => duration.to_string(),
        Length::Samples(samples) => format!("{samples} samples"),
        Length::UntilInterrupted => "until interrupted".to_owned(),
    }
}

fn format_histogram(plan: HistogramPlan) -> String {
    format!(
        "0 to {} in steps of {}: {} bins, {}",
        plan.range,
        plan.resolution,
        plan.bin_count(),
        format_bytes(plan.bin_count() * 8)
    )
}

fn format_scheduling(scheduling: SchedulingSpec) -> String {
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

fn format_time(time: Option<Nanos>, ends: bool) -> String {
    let unknown = if ends { "as long as its samples take" } else { "until interrupted" };
    time.map_or(unknown.to_owned(), |time| time.to_string())
}

/// Text under construction: lines indented by steps, facts with their names in a column.
#[derive(Default)]
struct DescribedPage {
    text: String,
}

impl DescribedPage {
    fn push_line(&mut self, depth: usize, text: String) {
        let indent = if text.is_empty() { String::new() } else { "  ".repeat(depth) };
        self.text += &format!("{indent}{text}\n");
    }

    fn push_fact(&mut self, depth: usize, name: &str, value: impl std::fmt::Display) {
        let line = format!("{name:<17}  {}", escape_unprintable(&value.to_string()));
        self.push_line(depth, line.trim_end().to_owned());
    }

    /// The keys of a section that are set, except those shown in another way.
    fn push_keys(&mut self, depth: usize, section: &impl FileSection) {
        let facts =
            section.display_entries().into_iter().filter(|(key, _)| !ELSEWHERE.contains(key));
        facts.for_each(|(key, value)| self.push_fact(depth, key, value));
    }

    /// A section with its header, if the plan has it.
    fn push_section(&mut self, header: &str, section: Option<impl FileSection>) {
        let Some(section) = section else { return };
        self.push_line(1, header.to_owned());
        section
            .display_entries()
            .into_iter()
            .for_each(|(key, value)| self.push_fact(2, key, value));
    }

    fn push_table<const N: usize>(&mut self, depth: usize, rows: &[[String; N]]) {
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..N).map(width).collect();
        for row in rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            self.push_line(depth, line.trim_end().to_owned());
        }
    }
}
