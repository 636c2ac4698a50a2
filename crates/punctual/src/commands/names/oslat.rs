//! This program under the name oslat: the workload `spin`, with oslat's options and output
//! (rt-tests 2.4, src/oslat/oslat.c).

use super::getopt::Takes::{Nothing, Value};
use super::getopt::{Known, cpus, duration, number};
use super::{NamedTool, written};
use crate::exit::Failure;
use crate::output;
use punctual_bundle::{Bundle, Outcome};
use punctual_core::{CpuSet, Nanos};
use punctual_plan::text::quoted;
use punctual_report::export::oslat_output::OslatOutput;
use std::process::ExitCode;

const VERSION: &str = "oslat V 2.40 (punctual)\n";
/// The usage, with the options that are supported.
const HELP: &str = "Usage:
oslat <options>

This is an OS latency detector by running busy loops on specified cores.

Available options:

-b, --bucket-size      Specify the number of the buckets (4-1024)
-c, --cpu-list         Specify CPUs to run on, e.g. '1,3,5,7-15'
-C, --cpu-main-thread  Specify which CPU the main thread runs on.  Default is cpu0.
-D, --duration         Specify test duration, e.g., 60, 20m, 2H
                       (m/M: minutes, h/H: hours, d/D: days)
    --json=FILENAME    write final results into FILENAME, JSON formatted
-f, --rtprio           Using SCHED_FIFO priority (1-99)
-m, --workload-mem     No effect without a workload
-q  --quiet            print a summary only on exit
-T, --trace-threshold  Stop the test when threshold triggered (in us)
-v, --version          Display the version of the software.
-w, --workload         no: the only one here
-z, --zero-omit        Don't display buckets in the output histogram if all zeros.
";

#[derive(Default)]
pub struct Oslat {
    buckets: Option<u64>,
    cpus: Option<CpuSet>,
    main_cpu: u64,
    duration: Option<Nanos>,
    json: Option<String>,
    priority: Option<u64>,
    threshold: Option<u64>,
    quiet: bool,
    omits_zeros: bool,
    ends: bool,
    /// The message about an option that makes no sense.
    wrong: Option<String>,
}

const KNOWN: &[Known<Oslat>] = &[
    Known('b', "bucket-size", Value, |o, text| match number(text) {
        buckets @ 5..=1024 => o.buckets = Some(buckets),
        _ => o.wrong = Some(format!("Illegal bucket size: {text} (should be: 4-1024)")),
    }),
    Known('c', "cpu-list", Value, |o, text| match cpus(text) {
        _ if text == "all" => o.cpus = None,
        Ok(cpus) => o.cpus = Some(cpus),
        Err(_) => o.wrong = Some("oslat: numa_parse_cpustring_all failed.".to_owned()),
    }),
    Known('C', "cpu-main-thread", Value, |o, cpu| o.main_cpu = number(cpu)),
    Known('D', "duration", Value, |o, text| match duration(text) {
        Some(duration) => o.duration = Some(duration),
        None => o.wrong = Some(format!("Illegal runtime: {text}")),
    }),
    Known(' ', "json", Value, |o, path| o.json = Some(path.to_owned())),
    Known('f', "rtprio", Value, |o, text| match number(text) {
        priority @ 1..=99 => o.priority = Some(priority),
        _ => o.wrong = Some(format!("Illegal RT priority: {text} (should be: 1-99)")),
    }),
    Known('h', "help", Nothing, |o, _| {
        let _ = output::print(&format!("{VERSION}{HELP}"));
        o.ends = true;
    }),
    Known('m', "workload-mem", Value, |_, _| {}),
    Known('q', "quiet", Nothing, |o, _| o.quiet = true),
    Known('T', "trace-threshold", Value, |o, text| match number(text) {
        0 => o.wrong = Some("Parameter --trace-threshold needs to be positive".to_owned()),
        us => o.threshold = Some(us),
    }),
    Known('v', "version", Nothing, |o, _| {
        let _ = output::print(VERSION);
        o.ends = true;
    }),
    Known('w', "workload", Value, |o, text| {
        if text != "no" {
            o.wrong = Some(format!("Unknown workload '{text}'.  Please choose from: 'no'\n"));
        }
    }),
    Known('z', "zero-omit", Nothing, |o, _| o.omits_zeros = true),
];

impl NamedTool for Oslat {
    const NAME: &'static str = "oslat";
    const KNOWN: &'static [&'static [Known<Oslat>]] = &[KNOWN];
    const REFUSED: &'static [&'static str] = &["bias", "bucket-width", "single-preheat"];

    fn refuse(why: &str, is_unknown: bool) -> ExitCode {
        let text = match is_unknown {
            true => HELP.to_owned(),
            false => format!("{why}\n"),
        };
        if is_unknown {
            output::say(&format!("oslat: {why}\n"));
        }
        let _ = output::print(&format!("{VERSION}{text}"));
        ExitCode::FAILURE
    }

    fn ends(&self) -> bool {
        self.ends
    }

    fn complete(&mut self, online: &CpuSet) -> Result<String, String> {
        if let Some(why) = self.wrong.take() {
            return Err(why);
        }
        let all = self.cpus.get_or_insert_with(|| online.clone());
        match all.is_subset(online) {
            true => Ok(String::new()),
            false => Err("oslat: numa_parse_cpustring_all failed.".to_owned()),
        }
    }

    fn experiment(&self) -> String {
        let cpus = self.cpus.clone().unwrap_or_default().to_string();
        let buckets = self.buckets();
        let mut text = format!(
            "[experiment]\nname = \"oslat\"\nmemory_lock = true\ndma_latency = \"leave\"\n\
             calibrate = false\ncpus = \"{}\"\n\n[[measure]]\nname = \"oslat\"\nkind = \"spin\"\n\
             cpus = {}\nattribute = false\nduration = {}\n\
             histogram = {{ range = \"{buckets}us\", resolution = \"1us\" }}\n",
            self.main_cpu,
            quoted(&cpus),
            quoted(&self.duration().to_string()),
        );
        text += &match self.priority {
            Some(priority) => format!("policy = \"fifo\"\npriority = {priority}\n"),
            None => "policy = \"other\"\n".to_owned(),
        };
        if let Some(us) = self.threshold {
            text += &format!("stop_above = \"{us}us\"\n");
        }
        text
    }

    fn begin(&self) -> String {
        let cpus = self.cpus.clone().unwrap_or_default();
        let mut text = VERSION.to_owned();
        if cpus.contains(0) && self.priority.is_some() {
            text += "WARNING: Running SCHED_FIFO workload on CPU 0 may hang the thread\n";
        }
        if self.quiet {
            return text;
        }
        let priority = self.priority.map(|of| format!("SCHED_FIFO:{of}"));
        text + &format!(
            "Total runtime: \t\t{} seconds\nThread priority: \t{}\nCPU list: \t\t{cpus}\n\
             CPU for main thread: \t{}\nWorkload: \t\tno\nWorkload mem: \t\t0 (KiB)\n\n\
             Test starts...\n",
            self.duration().ns() / Nanos::SECOND.ns(),
            priority.as_deref().unwrap_or("default"),
            self.main_cpu,
        )
    }

    fn print(&self, bundle: &Bundle, command: &str) -> Result<ExitCode, Failure> {
        let outcome = bundle.manifest.ending.as_ref().map(|ending| &ending.outcome);
        if let Some(Outcome::StoppedAbove { series, latency, .. }) = outcome {
            let us = (latency.max(&0).unsigned_abs()).div_ceil(1_000);
            let of = |(phase, one): &(&str, &punctual_bundle::Series)| {
                *series == format!("{phase}/{}", one.meta.name)
            };
            let cpu = bundle.series().find(of).and_then(|(_, one)| one.meta.cpus.first());
            output::say(&format!(
                "oslat: Trace threshold ({} us) triggered on cpu {} with {us} us!\nStopping the \
                 test.\n",
                self.threshold.unwrap_or_default(),
                cpu.map_or_else(|| "?".to_owned(), |cpu| cpu.to_string()),
            ));
            return Ok(ExitCode::FAILURE);
        }
        let output = OslatOutput {
            bundle,
            buckets: self.buckets() as usize,
            omits_zeros: self.omits_zeros,
            command,
        };
        written(None, |text| {
            if !self.quiet {
                text.write_all(b"Test completed.\n\n")?;
            }
            output.text(text)
        })?;
        if let Some(file) = &self.json {
            written(Some(file), |text| output.json(text))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Oslat {
    fn buckets(&self) -> u64 {
        self.buckets.unwrap_or(32)
    }

    fn duration(&self) -> Nanos {
        self.duration.unwrap_or(Nanos::SECOND)
    }
}
