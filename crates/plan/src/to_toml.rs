//! An experiment or a plan written as TOML.

use crate::experiment::{
    Experiment, ExplainSpec, LoadSpec, MeasureSpec, PartitionSpec, PhaseSpec, PublishedSpec,
    RecordSpec, Settings, TargetSpec,
};
use crate::plan::Plan;
use crate::text::{At, Setting};
use crate::words::{CpuChoice, Output, Placement, RecordedEvents, Word};
use std::fmt::Display;

impl Experiment {
    /// The experiment in TOML, with what it sets and nothing else. Read again, it resolves to the
    /// same plan.
    pub fn to_toml(&self) -> String {
        let mut file = Writer::default();
        settings(&mut file, &self.settings);
        self.target.iter().for_each(|spec| target(&mut file, spec));
        self.partition.iter().for_each(|spec| partition(&mut file, spec));
        self.record.iter().for_each(|spec| record(&mut file, spec));
        self.explain.iter().for_each(|spec| explain(&mut file, spec));
        self.published.iter().for_each(|spec| published(&mut file, spec));
        self.measures.iter().for_each(|spec| measure(&mut file, spec));
        self.loads.iter().for_each(|spec| load(&mut file, spec));
        self.phases.iter().for_each(|spec| phase(&mut file, spec));
        file.text
    }
}

impl Plan {
    /// The plan as an experiment file with nothing left out. Read and resolved again for the same
    /// system, it is the same plan.
    pub fn to_toml(&self) -> String {
        self.to_experiment().to_toml()
    }
}

#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn section(&mut self, header: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text += &format!("{gap}{header}\n");
    }
    /// A line `key = value`, if it is set; `write` makes TOML of the value.
    fn set<T>(&mut self, key: &str, setting: &Setting<T>, write: impl Fn(&T) -> String) {
        if let Some(at) = setting {
            self.text += &format!("{key} = {}\n", write(&at.value));
        }
    }
    /// A list of texts, if it is not empty.
    fn list<T: Display>(&mut self, key: &str, list: &[At<T>]) {
        if !list.is_empty() {
            self.text +=
                &format!("{key} = {}\n", texts(list.iter().map(|at| at.value.to_string())));
        }
    }
}

fn settings(file: &mut Writer, spec: &Settings) {
    let mut section = Writer::default();
    section.set("name", &spec.name, text);
    section.set("cpus", &spec.cpus, cpus);
    section.set("refresh", &spec.refresh, text);
    section.set("memory_lock", &spec.memory_lock, bare);
    section.set("dma_latency", &spec.dma_latency, |bound| {
        bound.map_or(text("leave"), |bound| text(&bound))
    });
    section.set("seed", &spec.seed, bare);
    section.set("output", &spec.output, text);
    section.set("cpu_load", &spec.cpu_load, bare);
    section.set("keep_samples", &spec.keep_samples, bare);
    section.set("require_real_time", &spec.require_real_time, bare);
    section.set("force", &spec.force, bare);
    section.set("on_violation", &spec.on_violation, text);
    section.set("forever", &spec.forever, bare);
    if !section.text.is_empty() {
        file.section("[experiment]");
        file.text += &section.text;
    }
}

fn target(file: &mut Writer, spec: &TargetSpec) {
    file.section("[target]");
    file.set("kind", &spec.kind, word);
    file.set("kernel", &spec.kernel, text);
    file.set("modules", &spec.modules, text);
    file.set("cmdline", &spec.cmdline, text);
    file.set("cpus", &spec.cpus, bare);
    file.set("memory", &spec.memory, text);
    file.set("accel", &spec.accel, word);
    file.set("arch", &spec.arch, word);
    file.set("machine", &spec.machine, word);
    file.set("devices", &spec.devices, |devices| {
        texts(devices.iter().map(|at| at.value.word().to_owned()))
    });
    file.set("timeout", &spec.timeout, text);
    file.set("binary", &spec.binary, text);
    file.set("host", &spec.host, text);
    file.set("user", &spec.user, text);
    file.set("port", &spec.port, bare);
    file.set("identity", &spec.identity, text);
    file.set("known_hosts", &spec.known_hosts, text);
}

fn partition(file: &mut Writer, spec: &PartitionSpec) {
    file.section("[partition]");
    file.set("cpus", &spec.cpus, text);
    file.set("name", &spec.name, text);
    file.list("disable", &spec.disable);
}

fn record(file: &mut Writer, spec: &RecordSpec) {
    file.section("[record]");
    file.set("events", &spec.events, |groups| texts(groups.iter().map(|at| recorded(&at.value))));
    file.set("cpus", &spec.cpus, cpus);
    file.set("pids", &spec.pids, |pids| format!("{pids:?}"));
    file.set("points", &spec.points, bare);
    file.set("max_size", &spec.max_size, text);
    file.set("limits", &spec.limits, |limits| texts(limits.iter().map(|at| at.value.clone())));
}

fn recorded(events: &RecordedEvents) -> String {
    match events {
        RecordedEvents::Group(group) => group.word().to_owned(),
        RecordedEvents::Tracepoint(named) => named.to_string(),
    }
}

fn explain(file: &mut Writer, spec: &ExplainSpec) {
    file.section("[explain]");
    file.set("worst", &spec.worst, bare);
    file.set("above", &spec.above, text);
    file.set("before", &spec.before, text);
    file.set("account", &spec.account, bare);
    file.set("buffer", &spec.buffer, text);
    file.set("events", &spec.events, |groups| {
        texts(groups.iter().map(|at| at.value.word().to_owned()))
    });
    file.set("stacks", &spec.stacks, bare);
}

fn published(file: &mut Writer, spec: &PublishedSpec) {
    file.section("[published]");
    file.set("source", &spec.source, text);
    for result in &spec.results {
        file.section("[[published.result]]");
        file.set("what", &result.what, text);
        file.set("value", &result.value, text);
        file.set("here", &result.here, text);
        file.set("shape", &result.shape, text);
    }
}

fn measure(file: &mut Writer, spec: &MeasureSpec) {
    file.section("[[measure]]");
    file.set("name", &spec.name, text);
    file.text += &format!("kind = {}\n", text(spec.workload.kind().word()));
    file.set("cpus", &spec.cpus, cpus);
    file.set("threads", &spec.threads, |placement| match placement {
        Placement::PerCpu => text("per-cpu"),
        Placement::Shared(count) => count.to_string(),
    });
    file.set("policy", &spec.policy, |policy| text(policy.word()));
    file.set("priority", &spec.priority, bare);
    file.set("runtime", &spec.runtime, text);
    file.set("deadline", &spec.deadline, text);
    for (key, value) in spec.workload.entries() {
        file.text += &format!("{key} = {value}\n");
    }
    file.set("duration", &spec.duration, text);
    file.set("samples", &spec.samples, bare);
    let shape = [inline("range", &spec.range, text), inline("resolution", &spec.resolution, text)];
    if shape.iter().any(Option::is_some) {
        file.text += &table("histogram", &shape);
    }
    file.set("stop_above", &spec.stop_above, text);
    file.list("counters", &spec.counters);
    file.list("require", &spec.require);
    file.set("phases", &spec.phases, |phases| texts(phases.iter().map(|at| at.value.clone())));
    if let Some(spec) = &spec.systress {
        let result = [
            inline("file", &spec.file, text),
            inline("format", &spec.format, word),
            inline("index", &spec.index, bare),
        ];
        file.text += &table("systress", &result);
    }
}

fn load(file: &mut Writer, spec: &LoadSpec) {
    file.section("[[load]]");
    file.set("name", &spec.name, text);
    file.set("command", &spec.command, |argv| texts(argv.iter().cloned()));
    file.set("cpus", &spec.cpus, cpus);
    file.set("policy", &spec.policy, |policy| text(policy.word()));
    file.set("priority", &spec.priority, bare);
    file.set("nice", &spec.nice, bare);
    file.set("stdout", &spec.stdout, output);
    file.set("stderr", &spec.stderr, output);
    file.set("on_success", &spec.on_success, word);
    file.set("on_failure", &spec.on_failure, word);
    file.set("start_delay", &spec.start_delay, text);
    file.set("may_rest", &spec.may_rest, bare);
}

fn phase(file: &mut Writer, spec: &PhaseSpec) {
    file.section("[[phase]]");
    file.set("name", &spec.name, text);
    file.set("duration", &spec.duration, text);
    file.list("loads", &spec.loads);
}

/// A value in quotes, with whatever it holds escaped.
fn text<T: Display + ?Sized>(value: &T) -> String {
    toml::Value::String(value.to_string()).to_string()
}

fn bare<T: Display>(value: &T) -> String {
    value.to_string()
}

fn word<W: Word>(value: &W) -> String {
    text(value.word())
}

fn cpus(choice: &CpuChoice) -> String {
    match choice {
        CpuChoice::All => text("all"),
        CpuChoice::Listed(cpus) => text(cpus),
    }
}

fn output(output: &Output) -> String {
    match output {
        Output::Null => text("null"),
        Output::File(path) => text(&path.to_string_lossy()),
    }
}

fn texts(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.map(|value| text(&value)).collect::<Vec<_>>().join(", "))
}

fn inline<T>(key: &str, setting: &Setting<T>, write: impl Fn(&T) -> String) -> Option<String> {
    setting.as_ref().map(|at| format!("{key} = {}", write(&at.value)))
}

/// An inline table on a line of its own.
fn table(key: &str, settings: &[Option<String>]) -> String {
    let set: Vec<&str> = settings.iter().flatten().map(String::as_str).collect();
    if set.is_empty() {
        format!("{key} = {{}}\n")
    } else {
        format!("{key} = {{ {} }}\n", set.join(", "))
    }
}
