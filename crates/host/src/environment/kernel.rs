//! The kernel: its version, command line, configuration and ticks.

use super::preemption::Preemption;
use super::read::{clip_text, cpu_list, parse_fact, read_text};
use super::{KernelConfig, PreemptionModel};
use crate::files::Files;
use punctual_core::{CpuSet, Fact};
use serde::{Deserialize, Serialize};

/// The running kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunningKernel {
    /// `6.1.0-56-rt-amd64`, from /proc/sys/kernel/osrelease.
    pub release: Fact<String>,
    /// `#1 SMP PREEMPT_RT Debian 6.1…`, from /proc/sys/kernel/version.
    pub version: Fact<String>,
    /// The processor's architecture as uname(2) names it: `x86_64`, `aarch64`. Linux has the file
    /// since 6.1.
    pub architecture: Fact<String>,
    /// The boot command line, from /proc/cmdline.
    pub command_line: Fact<KernelCommandLine>,
    pub config: Fact<KernelConfig>,
    /// The preemption model in force.
    pub preemption: Fact<Preemption>,
    pub tick: TimerTick,
}

impl RunningKernel {
    pub(super) fn read(files: &dyn Files) -> RunningKernel {
        let release = read_text(files, "/proc/sys/kernel/osrelease");
        let version = read_text(files, "/proc/sys/kernel/version");
        let command_line = read_text(files, "/proc/cmdline").map(KernelCommandLine);
        let config = KernelConfig::read(files, release.known_value().map(String::as_str));
        let preemption = Preemption::read(files, &version, &command_line, &config);
        let tick = TimerTick::read(files, &config);
        let architecture = read_text(files, "/proc/sys/kernel/arch");
        RunningKernel { release, version, architecture, command_line, config, preemption, tick }
    }

    /// Major and minor number of the release, if it begins with them.
    pub fn release_numbers(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.known_value()?.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Whether PREEMPT_RT is in force; `None` if the model is unknown.
    pub fn is_real_time(&self) -> Option<bool> {
        self.preemption.known_value().map(|p| p.model == PreemptionModel::RealTime)
    }
}

/// The kernel's command line. Words after ` -- ` go to init and are ignored.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelCommandLine(pub String);

impl KernelCommandLine {
    /// The kernel's own words, with quotation marks respected (lib/cmdline.c, next_arg).
    pub(crate) fn split_words(&self) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for c in self.0.chars() {
            match c {
                '"' => quoted = !quoted,
                c if c.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
                c => word.push(c),
            }
        }
        words.push(word);
        words.into_iter().filter(|word| !word.is_empty()).take_while(|word| word != "--").collect()
    }

    /// The values of all `name=value`, in order; an empty one for the bare word. The kernel treats
    /// `-` and `_` as equal (kernel/params.c, parameqn), and passes each value to the parameter's
    /// function, which decides on repeated ones.
    pub(crate) fn values_of(&self, name: &str) -> Vec<String> {
        let same = |word: &str| word.replace('-', "_") == name.replace('-', "_");
        let value = |word: &String| match word.split_once('=') {
            Some((key, value)) => same(key).then(|| value.to_owned()),
            None => same(word).then(String::new),
        };
        self.split_words().iter().filter_map(value).collect()
    }

    /// The last value, for parameters whose function replaces earlier ones.
    pub(crate) fn last_value(&self, name: &str) -> Option<String> {
        self.values_of(name).pop()
    }

    /// Whether the parameter is present.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.last_value(name).is_some()
    }
}

/// A value of `isolcpus=`: its flags and its CPUs (kernel/sched/isolation.c,
/// housekeeping_isolcpus_setup).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IsolCpus {
    /// The words before the list, also unknown ones: the kernel skips them since Linux 5.8.
    pub flags: Vec<String>,
    pub list: String,
}

impl IsolCpus {
    /// Splits a value. The kernel takes every part that begins with a letter for a flag, including
    /// `all` and `N`.
    pub fn read(value: &str) -> IsolCpus {
        let is_flag = |part: &&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
        let flags: Vec<String> = value.split(',').take_while(is_flag).map(clip_text).collect();
        let list = value.split(',').skip(flags.len()).collect::<Vec<_>>().join(",");
        IsolCpus { flags, list }
    }

    /// Whether a flag is present.
    pub(crate) fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// Whether it takes CPUs out of the scheduler's domains: the default without a known flag.
    pub(crate) fn isolates_domains(&self) -> bool {
        self.has_flag("domain") || !self.has_flag("nohz") && !self.has_flag("managed_irq")
    }
}

/// How the kernel's timers run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TimerTick {
    pub hz: Fact<u32>,
    /// Whether timers fire between ticks: `.hres_active` of /proc/timer_list if readable (root),
    /// else the configuration and `highres=` (kernel/time/hrtimer.c).
    pub high_resolution: Fact<bool>,
    /// The file with this information.
    pub high_resolution_source: String,
    /// CPUs that can stop their tick while a single task runs on them.
    pub nohz_full: Fact<CpuSet>,
    /// The device that raises the timer interrupts of the first CPU.
    pub event_device: Fact<String>,
}

impl TimerTick {
    fn read(files: &dyn Files, config: &Fact<KernelConfig>) -> TimerTick {
        let hz = match config {
            Fact::Known(config) => {
                let value = config.get("HZ").unwrap_or("unset").to_owned();
                parse_fact(
                    &config.source.0,
                    Fact::Known(value),
                    |text| text.parse().ok(),
                    "a rate in CONFIG_HZ",
                )
            }
            Fact::Unavailable(why) => Fact::Unavailable(why.clone()),
            Fact::NotAsked => Fact::NotAsked,
        };
        let (high_resolution, high_resolution_source) = high_resolution(files, config);
        TimerTick {
            hz,
            high_resolution,
            high_resolution_source,
            nohz_full: cpu_list(files, "/sys/devices/system/cpu/nohz_full"),
            event_device: read_text(
                files,
                "/sys/devices/system/clockevents/clockevent0/current_device",
            ),
        }
    }
}

fn high_resolution(files: &dyn Files, config: &Fact<KernelConfig>) -> (Fact<bool>, String) {
    let path = "/proc/timer_list";
    let refused = match files.read(path) {
        Ok(list) => {
            // One line per CPU: `  .hres_active    : 1`.
            let line = |line: &str| {
                line.trim().strip_prefix(".hres_active")?.split(':').nth(1)?.trim().parse().ok()
            };
            let active: Vec<u32> = list.lines().filter_map(line).collect();
            if !active.is_empty() {
                return (Fact::Known(active.iter().all(|a| *a == 1)), path.to_owned());
            }
            format!("{path} has no line `.hres_active`")
        }
        Err(why) => why.to_string(),
    };
    match config {
        Fact::Known(config) => {
            (Fact::Known(config.has_option("HIGH_RES_TIMERS")), config.source.0.clone())
        }
        _ => (Fact::Unavailable(refused), path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_parsed_like_the_kernel_does() {
        let line = KernelCommandLine(
            "quiet isolcpus=managed_irq,domain,2-3 dyndbg=\"file a +p\" nohz-full=1 nohz_full=2 \
             -- nohz_full=3"
                .into(),
        );
        assert_eq!(line.last_value("quiet"), Some(String::new()));
        assert_eq!(
            line.last_value("nohz_full"),
            Some("2".into()),
            "the last one wins, and init's words do not count"
        );
        assert_eq!(line.last_value("dyndbg"), Some("file a +p".into()));
        assert_eq!(line.values_of("nohz_full"), ["1", "2"]);
        assert!(!line.has_parameter("irqaffinity"));
    }

    #[test]
    fn flags_of_isolcpus_are_separated_from_the_list() {
        let read = |value: &str| {
            let read = IsolCpus::read(value);
            (read.flags.join(" "), read.list.clone(), read.isolates_domains())
        };
        assert_eq!(
            read("managed_irq,domain,2-3"),
            ("managed_irq domain".into(), "2-3".into(), true)
        );
        assert_eq!(read("2,3"), (String::new(), "2,3".into(), true));
        assert_eq!(read("nohz,1-N"), ("nohz".into(), "1-N".into(), false));
        assert_eq!(read("other,2"), ("other".into(), "2".into(), true));
        assert_eq!(read("all"), ("all".into(), String::new(), true));
    }

    #[test]
    fn the_kernel_version_is_parsed_from_the_release() {
        let kernel = |release: &str| RunningKernel {
            release: Fact::Known(release.into()),
            ..RunningKernel::default()
        };
        assert_eq!(kernel("6.1.0-56-rt-amd64").release_numbers(), Some((6, 1)));
        assert_eq!(kernel("6.18").release_numbers(), Some((6, 18)));
        assert_eq!(kernel("odd").release_numbers(), None);
        assert_eq!(RunningKernel::default().release_numbers(), None);
    }
}
