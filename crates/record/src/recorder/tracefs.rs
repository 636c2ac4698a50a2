//! Recording through tracefs, for kernels without BPF or users without access to it: the kernel's
//! own buffers, in a separate instance.

use crate::recorder::findings::{self, MissingTracepoints};
use crate::request::Request;
use crate::start_error::StartError;
use crate::tracefs::{Instance, Tracefs};
use crate::tracepoints::{self, NAMING, TracepointTable};
use crate::translate::{NR_FUTEX, RawRecord, Translator};
use crate::wire;
use punctual_core::event::NamedTracepoint;
use punctual_core::event::{Event, EventKind, Group, Tid, TracepointFormat};
use punctual_core::{CpuSet, Finding, MonotonicNs};
use punctual_sys::clock;
use punctual_traces::page::{PageItem, PageReader, PageShape};

pub(super) const NAME: &str = "tracefs";

pub(super) struct TracefsRecorder {
    instance: Instance,
    shape: PageShape,
    translator: Translator,
    cpus: Vec<TracefsCpu>,
    groups: Vec<Group>,
    findings: Vec<Finding>,
    /// New tasks and new names on all CPUs, whatever is recorded.
    naming: Instance,
    page: Vec<u8>,
}

struct TracefsCpu {
    number: u16,
    last: MonotonicNs,
    lost: u64,
}

impl TracefsRecorder {
    pub(super) fn start(request: &Request) -> Result<TracefsRecorder, StartError> {
        TracefsRecorder::open_instances(request).map_err(|why| {
            let remedy = "run as root, on a kernel with CONFIG_EVENT_TRACING=y, without \
                          lockdown=confidentiality"
                .to_owned();
            StartError::Backend { backend: NAME, why, remedy: Some(remedy) }
        })
    }

    fn open_instances(request: &Request) -> Result<TracefsRecorder, String> {
        let instance = prepare_instance(request.buffer)?;
        let naming = prepare_instance(NAMES_BUFFER)?;
        let shape = instance.tracefs().page_shape();
        let mut recorder = TracefsRecorder {
            instance,
            shape,
            translator: Translator::new(request),
            cpus: Vec::new(),
            groups: Vec::new(),
            findings: Vec::new(),
            naming,
            page: Vec::new(),
        };
        recorder.watch_names();
        recorder.set_filters(request)?;
        recorder.enable_events(request)?;
        for number in request.cpus.iter() {
            recorder.instance.open_pipe(number)?;
            recorder.cpus.push(TracefsCpu { number: number as u16, last: MonotonicNs(0), lost: 0 });
        }
        recorder.instance.write_setting("tracing_on", "1")?;
        let now = clock::monotonic_now();
        recorder.cpus.iter_mut().for_each(|cpu| cpu.last = now);
        Ok(recorder)
    }

    /// A task without a name still has a number: failures here are ignored.
    fn watch_names(&mut self) {
        for tracepoint in NAMING {
            if let Ok(format) =
                self.naming.tracefs().tracepoint_format(tracepoint.system, tracepoint.name)
            {
                self.translator.add(tracepoint, &format);
                let _ = self.naming.write_setting(
                    &format!("events/{}/{}/enable", tracepoint.system, tracepoint.name),
                    "1",
                );
            }
        }
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        for cpu in cpus.trim().parse::<CpuSet>().unwrap_or_default().iter() {
            let _ = self.naming.open_pipe(cpu);
        }
        let _ = self.naming.write_setting("tracing_on", "1");
    }

    fn set_filters(&mut self, request: &Request) -> Result<(), String> {
        // The filter language cannot express them.
        if let Some(comm) = request.comms.iter().find(|comm| comm.contains(['"', '\\'])) {
            return Err(format!(
                "tracefs cannot filter by the task name `{}`",
                comm.escape_debug()
            ));
        }
        self.instance.write_setting("tracing_cpumask", &request.cpus.to_mask())?;
        if !request.pids.is_empty() {
            if request.threads_alone {
                self.instance.write_setting("set_event_pid", &format_tids(&request.pids))?;
                return Ok(());
            }
            // tracefs filters by thread.
            let threads: Vec<u32> = request.pids.iter().flat_map(|pid| threads_of(*pid)).collect();
            self.instance.write_setting("set_event_pid", &format_tids(&threads))?;
            // New threads are followed by it, and cannot be distinguished from children.
            self.instance.write_setting("options/event-fork", "1")?;
            if !request.follow_children {
                self.findings.push(findings::recorded_children_finding());
            }
        }
        Ok(())
    }

    /// Also records this thread, or the `whole` process.
    pub(super) fn follow_task(&self, pid: u32, whole: bool) -> Result<(), StartError> {
        let threads = if whole { threads_of(pid) } else { vec![pid] };
        let refused = |why| StartError::Backend { backend: NAME, why, remedy: None };
        // Without O_TRUNC, these are added to the existing ones.
        self.instance.write_setting("set_event_pid", &format_tids(&threads)).map_err(refused)
    }

    fn enable_events(&mut self, request: &Request) -> Result<(), String> {
        let mut missing = MissingTracepoints::default();
        let mut enabled: Vec<String> = Vec::new();
        for group in Group::ALL.iter().filter(|group| request.groups.contains(group)) {
            let mut is_any_enabled = false;
            for tracepoint in tracepoints::of_groups(&[*group]) {
                if enabled.contains(&tracepoint.full_name()) {
                    is_any_enabled = true;
                    continue;
                }
                match self.enable_one(tracepoint, filter_of(request, tracepoint).as_deref()) {
                    Ok(()) => {
                        is_any_enabled = true;
                        enabled.push(tracepoint.full_name());
                    }
                    Err(why) => missing.add(tracepoint, why),
                }
            }
            if is_any_enabled {
                self.groups.push(*group);
            }
            self.findings.extend(missing.take_finding(*group, is_any_enabled));
        }
        // A tracepoint requested by name is required.
        for named in &request.tracepoints {
            let own_filter = (!named.filter.is_empty()).then(|| format!("({})", named.filter));
            let parts: Vec<String> = comms_filter(request).into_iter().chain(own_filter).collect();
            let filter = (!parts.is_empty()).then(|| parts.join(" && "));
            self.enable_named(named, filter.as_deref())?;
            enabled.push(named.to_string());
        }
        if enabled.is_empty() { Err(missing.first_reason()) } else { Ok(()) }
    }

    fn enable_named(
        &mut self,
        named: &NamedTracepoint,
        filter: Option<&str>,
    ) -> Result<(), String> {
        let format = self.instance.tracefs().tracepoint_format(&named.group, &named.name)?;
        let events = format!("events/{}/{}", named.group, named.name);
        if let Some(filter) = filter {
            let fields = || format.field_names().join(", ");
            let refused = |why| format!("{named}: {why}; its fields are {}", fields());
            self.instance.write_setting(&format!("{events}/filter"), filter).map_err(refused)?;
        }
        self.translator.add_named(named, &format);
        self.instance.write_setting(&format!("{events}/enable"), "1")
    }

    fn enable_one(
        &mut self,
        tracepoint: &TracepointTable,
        filter: Option<&str>,
    ) -> Result<(), String> {
        let format =
            self.instance.tracefs().tracepoint_format(tracepoint.system, tracepoint.name)?;
        let events = format!("events/{}/{}", tracepoint.system, tracepoint.name);
        if let Some(filter) = filter {
            self.instance.write_setting(&format!("{events}/filter"), filter)?;
        }
        self.translator.add(tracepoint, &format);
        self.instance.write_setting(&format!("{events}/enable"), "1")
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }
    pub(super) fn tracepoints(&self) -> &[TracepointFormat] {
        self.translator.formats()
    }
    pub(super) fn findings(&self) -> &[Finding] {
        &self.findings
    }
    pub(super) fn add_findings(&mut self, findings: Vec<Finding>) {
        self.findings.extend(findings);
    }
    pub(super) fn lost_records(&self, slot: u32) -> u64 {
        self.cpus.get(slot as usize).map_or(0, |cpu| cpu.lost)
    }
    /// Returns `false` if names were lost.
    pub(super) fn take_names(&mut self, to: &mut Vec<u8>) -> bool {
        let mut whole = true;
        // A fork and the following new name may be in the buffers of two CPUs.
        let mut names_by_time: Vec<(u64, Vec<u8>)> = Vec::new();
        for pipe in 0..self.naming.pipe_count() {
            while self.naming.read(pipe, &mut self.page) {
                let mut items = PageReader::new(&self.page, self.shape);
                while let Some(item) = items.next(&self.page) {
                    let PageItem::Record { at, from, to } = item else {
                        whole = false;
                        continue;
                    };
                    let mut name = Vec::new();
                    translate_record(
                        &mut self.translator,
                        MonotonicNs(at as i64),
                        NAMING_CPU,
                        &self.page[from..to],
                        &mut Vec::new(),
                        &mut name,
                    );
                    names_by_time.push((at, name));
                }
            }
        }
        names_by_time.sort_by_key(|(at, _)| *at);
        names_by_time.iter().for_each(|(_, name)| to.extend_from_slice(name));
        whole
    }

    pub(super) fn take_records(&mut self, slot: u32, to: &mut Vec<u8>) {
        let Some(cpu) = self.cpus.get_mut(slot as usize) else { return };
        let mut before = 0;
        // At most the size of the buffer: events may arrive faster than they are read.
        for _ in 0..MOST_PAGES {
            if !self.instance.read(slot as usize, &mut self.page) {
                break;
            }
            let mut items = PageReader::new(&self.page, self.shape);
            while let Some(item) = items.next(&self.page) {
                match item {
                    PageItem::Lost(count) => before += count.unwrap_or(1),
                    // The kernel returns no such page; its content is lost.
                    PageItem::Damaged => before += 1,
                    PageItem::Record { at, from, to: end } => {
                        let (at, record) = (MonotonicNs(at as i64), &self.page[from..end]);
                        if before > 0 {
                            record_loss(cpu, at, std::mem::take(&mut before), to);
                        }
                        cpu.last = at;
                        let translator = &mut self.translator;
                        translate_record(translator, at, cpu.number, record, to, &mut Vec::new());
                    }
                }
            }
        }
        if before > 0 {
            record_loss(cpu, clock::monotonic_now(), before, to);
        }
    }

    pub(super) fn detach_all(&mut self) {
        let _ = self.instance.write_setting("tracing_on", "0");
        let dropped = |cpu: &TracefsCpu| {
            self.instance.read_statistic(usize::from(cpu.number), "dropped events").unwrap_or(0)
        };
        let dropped: u64 = self.cpus.iter().map(dropped).sum();
        if dropped > 0 {
            self.findings.push(findings::dropped_events_finding(dropped));
        }
    }
}

/// An instance that does not trace yet.
fn prepare_instance(buffer: usize) -> Result<Instance, String> {
    let instance = Instance::create_instance(Tracefs::open()?)?;
    instance.write_setting("tracing_on", "0")?;
    instance.write_setting("trace_clock", "mono")?;
    instance.write_setting("options/overwrite", "1")?;
    instance.write_setting("buffer_size_kb", &(buffer / 1024).clamp(64, 1 << 20).to_string())?;
    Ok(instance)
}

/// Space for a thousand new tasks between two drains.
const NAMES_BUFFER: usize = 64 << 10;

/// The number in place of a CPU's, for records with names only.
const NAMING_CPU: u16 = u16::MAX;

/// A record begins with its tracepoint and, at offset 4, the thread (`struct trace_entry`).
fn translate_record(
    translator: &mut Translator,
    at: MonotonicNs,
    cpu: u16,
    record: &[u8],
    to: &mut Vec<u8>,
    names: &mut Vec<u8>,
) {
    let id = record.get(..2).map_or(0, |id| u16::from_le_bytes([id[0], id[1]]));
    let tid = record.get(4..8).and_then(|tid| tid.try_into().ok()).map_or(0, u32::from_le_bytes);
    // Records of names are in separate buffers without tracepoints by name.
    let number = if cpu == NAMING_CPU { translator.by_id(id) } else { translator.of_record(id) };
    if let Some(tracepoint) = number {
        translator.translate_record(tracepoint, RawRecord { at, cpu, tid, record }, to, names);
    }
}

fn record_loss(cpu: &mut TracefsCpu, at: MonotonicNs, count: u64, to: &mut Vec<u8>) {
    cpu.lost += count;
    wire::encode(
        &Event {
            at,
            cpu: cpu.number,
            tid: Tid(0),
            what: EventKind::Lost { count, since: cpu.last },
        },
        to,
    );
}

/// The maximum per call: 64 MiB of pages of the usual size.
const MOST_PAGES: usize = 1 << 14;

fn format_tids(tids: &[u32]) -> String {
    tids.iter().map(|tid| tid.to_string()).collect::<Vec<_>>().join(" ")
}

/// The threads of a process, or the thread itself.
fn threads_of(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut threads: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    if threads.is_empty() {
        threads.push(pid);
    }
    threads
}

/// The filter for tasks with one of the requested names.
fn comms_filter(request: &Request) -> Option<String> {
    let comms: Vec<String> =
        request.comms.iter().map(|comm| format!("COMM == \"{comm}\"")).collect();
    (!comms.is_empty()).then(|| format!("({})", comms.join(" || ")))
}

/// The filter of a tracepoint's events for tracefs, in its language
/// (Documentation/trace/events.rst).
fn filter_of(request: &Request, tracepoint: &TracepointTable) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(comms_filter(request));
    if tracepoint.system == "raw_syscalls" {
        let mut numbers = request.syscalls.clone();
        let is_unfiltered = request.syscalls.is_empty() && request.groups.contains(&Group::Syscall);
        if request.groups.contains(&Group::Futex) {
            numbers.push(NR_FUTEX);
        }
        if !is_unfiltered {
            let numbers: Vec<String> =
                numbers.iter().map(|number| format!("id == {number}")).collect();
            parts.push(format!("({})", numbers.join(" || ")));
        }
    }
    (!parts.is_empty()).then(|| parts.join(" && "))
}
