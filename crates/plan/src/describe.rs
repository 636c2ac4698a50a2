//! A plan as a person reads it: `punctual run --plan`.

use crate::escape::printable;
use crate::plan::{
    ExplainPlan, HistogramPlan, Length, LoadPlan, MeasurePlan, PhasePlan, Plan, RecordPlan,
    Scheduling, SystressFile, TimerPlan, Workload,
};
use crate::resolve::bytes;
use crate::target::{Acceleration, KernelChoice, TargetPlan, VmPlan};
use crate::words::{Output, Word};
use punctual_core::event::NamedTracepoint;
use punctual_core::{Fact, Nanos, PerfEvent};

impl Plan {
    fn describe_kept(&self) -> String {
        match self.forever {
            true => "the newest kept, within 128 MiB of all series".to_owned(),
            false => format!("up to {} kept of each series", self.keep_samples),
        }
    }

    /// Everything that the plan holds, in lines and tables; what does not print is escaped.
    pub fn describe(&self) -> String {
        let mut page = Page::default();
        page.line(0, format!("experiment {}", printable(&self.name)));
        page.fact(1, "output", self.output.display());
        page.fact(
            1,
            "estimated time",
            time(self.estimated_time(), self.phases.iter().all(PhasePlan::ends)),
        );
        page.fact(1, "controller CPUs", &self.controller_cpus);
        page.fact(1, "refresh", self.refresh);
        page.fact(1, "memory lock", yes(self.memory_lock));
        page.fact(
            1,
            "DMA latency",
            self.dma_latency.map_or("left alone".to_owned(), |bound| format!("held at {bound}")),
        );
        page.fact(1, "CPU load", if self.cpu_load { "shown and recorded" } else { "not recorded" });
        page.fact(1, "raw samples", self.describe_kept());
        page.fact(1, "real time", if self.require_real_time { "required" } else { "requested" });
        page.fact(
            1,
            "seed",
            self.seed.map_or("none: loads and timers start as written".to_owned(), |seed| {
                seed.to_string()
            }),
        );
        target(&mut page, &self.target);
        if self.force {
            page.fact(1, "force", "settings that could make the system unusable are allowed");
        }
        if let Some(command) = &self.on_violation {
            page.fact(1, "on violation", command);
        }
        if let Some(partition) = &self.partition {
            page.fact(1, "partition", format!("{}: CPUs {}", partition.name, partition.cpus));
            let without = if partition.disable.is_empty() {
                "no tweak".to_owned()
            } else {
                partition.disable.join(", ")
            };
            page.fact(1, "left out of it", without);
        }
        self.record.iter().for_each(|plan| record(&mut page, plan));
        self.explain.iter().for_each(|plan| explain(&mut page, plan));
        match self.calibration() {
            Fact::Known(()) => page.fact(1, "cost of that", "measured before the run"),
            Fact::Unavailable(why) => page.fact(1, "cost of that", format!("not measured: {why}")),
            Fact::NotAsked => {}
        }
        if let Some(published) = &self.published {
            let count = published.results.len();
            page.fact(1, "published", format!("{} ({count} results)", published.source));
        }
        // With what the seed adds to each start.
        self.seeded().phases.iter().for_each(|plan| phase(&mut page, plan));
        page.text
    }
}

fn target(page: &mut Page, target: &TargetPlan) {
    match target {
        TargetPlan::Host => {}
        TargetPlan::Vm(vm) => virtual_machine(page, vm),
        TargetPlan::Ssh(ssh) => {
            let user = ssh.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
            let port = ssh.port.map(|port| format!(", port {port}")).unwrap_or_default();
            page.fact(1, "target", format!("{user}{}, by ssh{port}", ssh.host));
        }
    }
}

fn virtual_machine(page: &mut Page, vm: &VmPlan) {
    let kernel = match &vm.kernel {
        KernelChoice::Named(name) => name.clone(),
        KernelChoice::Image { image, .. } => image.display().to_string(),
    };
    let accel = match vm.accel {
        Acceleration::VirtualTime => "virtual time",
        other => other.word(),
    };
    page.fact(1, "target", format!("virtual machine with the kernel {kernel}, {accel}"));
    let cpus = if vm.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", vm.cpus) };
    page.fact(
        1,
        "machine",
        format!("{} ({}), {cpus}, {}", vm.machine.word(), vm.arch.word(), vm.memory),
    );
    if !vm.cmdline.is_empty() {
        page.fact(1, "kernel command line", &vm.cmdline);
    }
    if !vm.devices.is_empty() {
        page.fact(
            1,
            "devices",
            vm.devices.iter().map(|device| device.word()).collect::<Vec<_>>().join(", "),
        );
    }
    vm.drivers.iter().for_each(|driver| page.fact(1, "driver", driver.display()));
    vm.timeout
        .iter()
        .for_each(|timeout| page.fact(1, "timeout", format!("{timeout} by this system's clock")));
    vm.binary.iter().for_each(|binary| page.fact(1, "punctual on target", binary.display()));
}

fn record(page: &mut Page, record: &RecordPlan) {
    let mut groups: Vec<String> =
        record.events.iter().map(|group| group.word().to_owned()).collect();
    groups.extend(record.tracepoints.iter().map(NamedTracepoint::to_string));
    let events = if groups.is_empty() { "no kernel event".to_owned() } else { groups.join(", ") };
    let of = match record.pids.as_slice() {
        [] => String::new(),
        pids => format!(
            ", of processes {}",
            pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        ),
    };
    page.fact(1, "recorded", format!("{events} on CPUs {}{of}", record.cpus));
    page.fact(1, "test points", if record.points { "recorded" } else { "not recorded" });
    page.fact(1, "recording", format!("at most {}", record.max_size));
    record.limits.iter().for_each(|limit| page.fact(1, "limit", printable(limit)));
}

fn explain(page: &mut Page, explain: &ExplainPlan) {
    let groups: Vec<&str> = explain.events.iter().map(|group| group.word()).collect();
    let above = explain.above.map_or(String::new(), |above| format!(" above {above}"));
    page.fact(1, "explained", format!("the worst {} samples of each series{above}", explain.worst));
    let stacks = if explain.stacks { ", kernel stacks" } else { "" };
    page.fact(
        1,
        "by",
        format!("{}{stacks}, from {} before each", groups.join(", "), explain.before),
    );
    page.fact(1, "kept", format!("the newest {} of each CPU", explain.buffer));
    page.fact(1, "accounted", if explain.account { "every sample, in the kernel" } else { "no" });
}

fn phase(page: &mut Page, phase: &PhasePlan) {
    page.line(0, String::new());
    page.line(
        0,
        format!(
            "phase {} ({})",
            printable(&phase.name),
            time(phase.estimated_time(), phase.ends())
        ),
    );
    phase.measures.iter().for_each(|plan| measure(page, plan));
    if phase.measures.is_empty() {
        page.line(1, "nothing measured".to_owned());
    }
    phase.loads.iter().for_each(|plan| load(page, plan));
    if phase.loads.is_empty() {
        page.line(1, "no load".to_owned());
    }
}

fn measure(page: &mut Page, measure: &MeasurePlan) {
    let what = match &measure.workload {
        Workload::Timer(timer) => waits(timer),
        other => format!("{}, {}", other.kind().word(), other.kind().title()),
    };
    page.line(1, format!("measure {}: {what}", printable(&measure.name)));
    if !matches!(measure.workload, Workload::Timer(_)) {
        measure.workload.facts().iter().for_each(|(key, value)| page.fact(2, key, value));
        let parts = measure.workload.parts();
        if !parts.is_empty() {
            page.fact(2, "series", parts.join(", "));
        }
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
        page.fact(2, "counts", format!("response times above {deadline}"));
    }
    if let Some(threshold) = measure.stop_above {
        page.fact(2, "stops the run", format!("above {threshold}"));
    }
    if !measure.counters.is_empty() {
        let names: Vec<String> = measure.counters.iter().map(PerfEvent::to_string).collect();
        page.fact(2, "counts", names.join(", "));
    }
    for requirement in &measure.requirements {
        page.fact(2, "requires", requirement);
    }
    if let Some(file) = &measure.systress {
        page.fact(2, "systress file", systress(file));
    }
    let mut rows =
        vec![["thread".to_owned(), "CPUs".to_owned(), "policy".to_owned(), "starts".to_owned()]];
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

fn load(page: &mut Page, load: &LoadPlan) {
    page.line(
        1,
        format!("load {}: {}", printable(&load.name), printable(&shell_words::join(&load.argv))),
    );
    page.fact(2, "program", load.program.display());
    page.fact(2, "CPUs", &load.cpus);
    page.fact(2, "policy", scheduling(load.scheduling));
    page.fact(2, "starts", format!("+{}", load.start_delay));
    page.fact(2, "output", format!("{}, errors {}", output(&load.stdout), output(&load.stderr)));
    page.fact(
        2,
        "at its end",
        format!("{} on success, {} on failure", load.on_success.word(), load.on_failure.word()),
    );
    if load.may_rest {
        page.fact(2, "may rest", "yes");
    }
}

fn waits(timer: &TimerPlan) -> String {
    format!("timer, {} on {}, period {}", timer.method.word(), timer.clock, timer.period)
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

fn systress(file: &SystressFile) -> String {
    format!("{} ({}, index {})", file.path.display(), file.format.word(), file.index)
}

fn scheduling(scheduling: Scheduling) -> String {
    let policy = scheduling.policy();
    match scheduling {
        Scheduling::Fifo(priority) | Scheduling::Rr(priority) => format!("{policy} {priority}"),
        Scheduling::Other(nice) | Scheduling::Batch(nice) => format!("{policy}, nice {nice}"),
        Scheduling::Idle => policy.to_string(),
        Scheduling::Deadline(p) => {
            format!("{policy}, {} of each {}, by {}", p.runtime, p.period, p.deadline)
        }
    }
}

fn output(output: &Output) -> String {
    match output {
        Output::Null => "/dev/null".to_owned(),
        Output::File(path) => path.display().to_string(),
    }
}

fn time(time: Option<Nanos>, ends: bool) -> String {
    let unknown = if ends { "as long as its samples take" } else { "until interrupted" };
    time.map_or(unknown.to_owned(), |time| time.to_string())
}

fn yes(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// Text in the making: lines indented by steps, facts with their names in a column.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, depth: usize, text: String) {
        let indent = if text.is_empty() { String::new() } else { "  ".repeat(depth) };
        self.text += &format!("{indent}{text}\n");
    }

    fn fact(&mut self, depth: usize, name: &str, value: impl std::fmt::Display) {
        self.line(depth, format!("{name:<15}  {}", printable(&value.to_string())));
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
