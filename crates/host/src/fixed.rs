//! Settings of all CPUs that an experiment fixes while it runs: governor, frequency and SMT
//! (Documentation/admin-guide/pm/cpufreq.rst, Documentation/ABI/testing/sysfs-devices-system-cpu).

use crate::files::Files;
use crate::journal::record::{FileValue, KernelWrite};
use crate::journal::value::{is_same_value, normalize_value};
use punctual_core::CpuSet;

const CPUS: &str = "/sys/devices/system/cpu";
const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";

/// The requested settings; `None` leaves one as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FixedSettings {
    pub governor: Option<String>,
    /// In kHz.
    pub frequency: Option<u64>,
    pub smt: Option<bool>,
}

/// How they are set, and read back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FixedDraft {
    /// The writes in order, each with its setting.
    pub writes: Vec<(&'static str, KernelWrite)>,
    /// The values that the files have while all of it is in force.
    pub checks: Vec<FileValue>,
}

impl FixedDraft {
    fn add_write(&mut self, files: &dyn Files, name: &'static str, path: String, value: &str) {
        let old = files.read(&path).map(|text| normalize_value(&text)).unwrap_or_default();
        self.writes.push((name, KernelWrite::new(&path, old, value)));
    }

    /// The settings that are not in force.
    pub fn missing_settings(&self, files: &dyn Files) -> Vec<String> {
        let describe_difference = |check: &FileValue| match files.read(&check.path) {
            Ok(now) if is_same_value(&now, &check.value) => None,
            Ok(now) => {
                let (now, asked) = (normalize_value(&now), &check.value);
                Some(format!("{} holds {now}, not {asked}", check.path))
            }
            Err(why) => Some(why.to_string()),
        };
        self.checks.iter().filter_map(describe_difference).collect()
    }
}

/// The CPUs that are left without SMT: the first thread of each core.
pub fn first_threads(files: &dyn Files, cpus: &CpuSet) -> CpuSet {
    let is_first = |cpu: &usize| {
        let path = format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
        let siblings = files.read_trimmed(&path).ok().and_then(|text| text.parse::<CpuSet>().ok());
        siblings.and_then(|set| set.first_cpu()).is_none_or(|first| first == *cpu)
    };
    CpuSet::from_iter(cpus.iter().filter(is_first))
}

impl FixedSettings {
    /// Whether any is requested.
    pub fn is_requested(&self) -> bool {
        *self != FixedSettings::default()
    }

    /// How this machine sets them.
    ///
    /// # Errors
    /// It has no such setting or value: the reason, with the values that it has.
    pub fn draft_settings(&self, files: &dyn Files) -> Result<FixedDraft, String> {
        let mut draft = FixedDraft::default();
        let read = |path: &str| files.read_trimmed(path).map_err(|why| why.to_string());
        let mut online: CpuSet = read(&format!("{CPUS}/online"))?
            .parse()
            .map_err(|why| format!("{CPUS}/online: {why}"))?;
        if let Some(smt) = self.smt {
            let first = first_threads(files, &online);
            self.draft_smt(files, smt, first.len() < online.len(), &mut draft)?;
            online = if smt { online } else { first };
        }
        if self.governor.is_none() && self.frequency.is_none() {
            return Ok(draft);
        }
        let mut policies = 0;
        for name in files.list(POLICIES).unwrap_or_default() {
            let directory = format!("{POLICIES}/{name}");
            let Ok(of) = files.read_trimmed(&format!("{directory}/affected_cpus")) else {
                continue;
            };
            let policy_cpus: CpuSet =
                of.split_whitespace().filter_map(|cpu| cpu.parse().ok()).collect();
            if policy_cpus.intersection(&online).is_empty() {
                continue;
            }
            policies += 1;
            if let Some(governor) = &self.governor {
                let known_governors = read(&format!("{directory}/scaling_available_governors"))?;
                if !known_governors.split_whitespace().any(|one| one == governor) {
                    return Err(format!(
                        "CPU {policy_cpus} has no governor {governor}, only: {known_governors}"
                    ));
                }
                let path = format!("{directory}/scaling_governor");
                draft.add_write(files, "governor", path.clone(), governor);
                draft.checks.push(FileValue { path, value: governor.clone() });
            }
            if let Some(frequency) = self.frequency {
                draft_frequency(files, &directory, &policy_cpus, frequency, &mut draft)?;
            }
        }
        match policies {
            0 => Err("no CPU of this machine has a frequency governor (cpufreq)".to_owned()),
            _ => Ok(draft),
        }
    }

    fn draft_smt(
        &self,
        files: &dyn Files,
        smt: bool,
        has_siblings: bool,
        draft: &mut FixedDraft,
    ) -> Result<(), String> {
        let value = if smt { "on" } else { "off" };
        let control = format!("{CPUS}/smt/control");
        let now = files.read_trimmed(&control).unwrap_or_else(|_| "notimplemented".to_owned());
        if ["notimplemented", "notsupported", "forceoff"].contains(&now.as_str()) {
            return match smt || has_siblings {
                true => Err(format!("SMT cannot be switched {value} here: {control} is {now}")),
                false => Ok(()),
            };
        }
        draft.add_write(files, "smt", control, value);
        let value = if smt { "1" } else { "0" }.to_owned();
        draft.checks.push(FileValue { path: format!("{CPUS}/smt/active"), value });
        Ok(())
    }
}

fn draft_frequency(
    files: &dyn Files,
    directory: &str,
    cpus: &CpuSet,
    frequency: u64,
    draft: &mut FixedDraft,
) -> Result<(), String> {
    let number = |file: &str| -> Result<u64, String> {
        let path = format!("{directory}/{file}");
        let text = files.read_trimmed(&path).map_err(|why| why.to_string())?;
        text.parse().map_err(|_| format!("{path} is not a number"))
    };
    let (least, most) = (number("cpuinfo_min_freq")?, number("cpuinfo_max_freq")?);
    if !(least..=most).contains(&frequency) {
        return Err(format!("CPU {cpus} has {least} to {most} kHz, not {frequency}"));
    }
    // Drivers with a table choose a neighbour of other values.
    let table = files.read_trimmed(&format!("{directory}/scaling_available_frequencies"));
    let table = table.unwrap_or_default();
    let value = frequency.to_string();
    if !table.is_empty() && !table.split_whitespace().any(|one| one == value) {
        return Err(format!("CPU {cpus} has no frequency of {value} kHz, only: {table}"));
    }
    // The kernel takes no minimum above the maximum, neither now nor when this is reverted.
    let mut order = ["scaling_min_freq", "scaling_max_freq"];
    if frequency > number("scaling_max_freq")? {
        order.reverse();
    }
    for file in order {
        let path = format!("{directory}/{file}");
        draft.add_write(files, "frequency", path.clone(), &value);
        draft.checks.push(FileValue { path, value: value.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;

    fn board() -> FakeFiles {
        let mut files = FakeFiles::new()
            .with_file(&format!("{CPUS}/online"), "0-3\n")
            .with_file(&format!("{CPUS}/smt/control"), "on\n")
            .with_file(&format!("{CPUS}/smt/active"), "1\n");
        for cpu in 0..4 {
            let siblings = format!("{},{}\n", cpu % 2, cpu % 2 + 2);
            let path = format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
            files = files.with_file(&path, &siblings);
        }
        for policy in [0, 1] {
            let cpus = format!("{policy} {}\n", policy + 2);
            for (file, text) in [
                ("affected_cpus", cpus.as_str()),
                ("scaling_governor", "schedutil\n"),
                ("scaling_available_governors", "performance schedutil\n"),
                ("cpuinfo_min_freq", "600000\n"),
                ("cpuinfo_max_freq", "1800000\n"),
                ("scaling_min_freq", "600000\n"),
                ("scaling_max_freq", "1000000\n"),
                ("scaling_available_frequencies", "600000 1000000 1800000\n"),
            ] {
                files = files.with_file(&format!("{POLICIES}/policy{policy}/{file}"), text);
            }
        }
        files
    }

    fn written(draft: &FixedDraft) -> Vec<(&str, &str)> {
        let file = |(_, one): &'_ (&str, KernelWrite)| one.path.rfind('/').unwrap_or(0) + 1;
        draft.writes.iter().map(|one| (&one.1.path[file(one)..], &*one.1.new)).collect()
    }

    #[test]
    fn fixed_settings_are_written_in_an_order_that_the_kernel_takes_and_read_back() {
        let files = board();
        let asked = FixedSettings {
            governor: Some("performance".into()),
            frequency: Some(1_800_000),
            smt: Some(false),
        };
        let draft = asked.draft_settings(&files).expect("this board has all of it");
        let policy = [
            ("scaling_governor", "performance"),
            ("scaling_max_freq", "1800000"),
            ("scaling_min_freq", "1800000"),
        ];
        assert_eq!(written(&draft), [&[("control", "off")][..], &policy, &policy].concat());
        let lower = FixedSettings { frequency: Some(600_000), ..FixedSettings::default() };
        let draft_of_lower = lower.draft_settings(&files).expect("a lower frequency");
        let files_of = written(&draft_of_lower);
        assert_eq!(files_of[..2], [("scaling_min_freq", "600000"), ("scaling_max_freq", "600000")]);
        assert_eq!(draft.missing_settings(&files).len(), draft.checks.len(), "nothing is set yet");
        let set =
            draft.checks.iter().fold(board(), |of, check| of.with_file(&check.path, &check.value));
        assert_eq!(draft.missing_settings(&set), Vec::<String>::new());
        let path = format!("{POLICIES}/policy1/scaling_max_freq");
        let limited = set.with_file(&path, "1000000\n");
        assert_eq!(
            draft.missing_settings(&limited),
            [format!("{path} holds 1000000, not 1800000")]
        );
        assert_eq!(first_threads(&files, &"0-3".parse().expect("CPUs")).to_string(), "0-1");
    }

    #[test]
    fn settings_that_a_machine_does_not_have_are_refused_with_those_that_it_has() {
        let none = FakeFiles::new().with_file(&format!("{CPUS}/online"), "0\n");
        let of = |governor: &str, frequency| FixedSettings {
            governor: Some(governor.to_owned()).filter(|of| !of.is_empty()),
            frequency,
            smt: None,
        };
        let refused =
            |files: &FakeFiles, asked: FixedSettings| asked.draft_settings(files).unwrap_err();
        assert!(refused(&board(), of("ondemand", None)).contains("only: performance schedutil"));
        assert!(refused(&board(), of("", Some(700_000))).contains("only: 600000 1000000 1800000"));
        assert!(refused(&board(), of("", Some(2_000_000))).contains("600000 to 1800000 kHz"));
        assert!(refused(&none, of("performance", None)).contains("no CPU"));
        let smt = |smt| FixedSettings { smt: Some(smt), ..FixedSettings::default() };
        assert!(refused(&none, smt(true)).contains("cannot be switched on"));
        assert_eq!(
            smt(false).draft_settings(&none),
            Ok(FixedDraft::default()),
            "there is one thread"
        );
        let forced = board().with_file(&format!("{CPUS}/smt/control"), "notimplemented\n");
        assert!(refused(&forced, smt(false)).contains("cannot be switched off"));
    }
}
