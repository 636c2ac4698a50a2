//! The CPUs on which systemd starts services: `CPUAffinity=` of its configuration, and
//! `systemd.cpu_affinity=` of the kernel's command line, which takes precedence
//! (systemd-system.conf(5), kernel-command-line(7); systemd's src/core/main.c and
//! src/shared/cpu-set-util.c).

use crate::environment::KernelCommandLine;
use crate::files::Files;
use punctual_core::CpuSet;
use std::collections::BTreeMap;

/// Directories with configuration; a file in an earlier one replaces a file of the same name in a
/// later one.
const PLACES: [&str; 4] =
    ["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];
const FILE: &str = "system.conf";
/// The maximum number of drop-ins read.
const MAX_DROP_INS: usize = 256;

/// The affinity that systemd gives itself and its services.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Affinity {
    /// The CPUs; `None` if none are set, so that services start on all.
    pub cpus: Option<CpuSet>,
    /// The settings that determine it, in order of precedence.
    pub settings: Vec<String>,
}

impl Affinity {
    /// Reads it. An error names the file that exists but cannot be read.
    pub fn read(files: &dyn Files, line: &KernelCommandLine) -> Result<Affinity, String> {
        let mut affinity = Affinity::default();
        for path in configuration_files(files) {
            let text = files.read(&path).map_err(|why| why.to_string())?;
            for value in read_assignments(&text, "Manager", "CPUAffinity") {
                affinity.merge_setting(&path, &value);
            }
        }
        for value in line.values_of("systemd.cpu_affinity") {
            affinity.replace_by_parameter(&value);
        }
        Ok(affinity)
    }

    /// Repeated lines are merged, an empty one resets earlier ones, and one that is no list is
    /// ignored.
    fn merge_setting(&mut self, path: &str, value: &str) {
        let setting = format!("{path}: CPUAffinity={}", clip_value(value));
        match read_list(value) {
            None => return self.settings.push(format!("{setting}, which systemd ignores")),
            Some(cpus) if cpus.is_empty() => self.cpus = None,
            Some(cpus) => {
                self.cpus = Some(self.cpus.take().unwrap_or_default().union(&cpus));
            }
        }
        self.settings.push(setting);
    }

    fn replace_by_parameter(&mut self, value: &str) {
        let setting = format!("/proc/cmdline has systemd.cpu_affinity={}", clip_value(value));
        let Some(cpus) = read_list(value) else {
            return self.settings.push(format!("{setting}, which systemd ignores"));
        };
        self.cpus = Some(cpus).filter(|cpus| !cpus.is_empty());
        self.settings = vec![setting];
    }
}

/// The main file (the first that exists) and the drop-ins of all directories by name.
fn configuration_files(files: &dyn Files) -> Vec<String> {
    let main = PLACES.iter().map(|place| format!("{place}/{FILE}"));
    let main = main.into_iter().find(|path| files.exists(path));
    let mut drop_ins = BTreeMap::new();
    for place in PLACES {
        let directory = format!("{place}/{FILE}.d");
        let names = files.list(&directory).unwrap_or_default();
        for name in names.into_iter().filter(|name| name.ends_with(".conf")).take(MAX_DROP_INS) {
            let path = format!("{directory}/{name}");
            drop_ins.entry(name).or_insert(path);
        }
    }
    main.into_iter().chain(drop_ins.into_values()).collect()
}

/// The values of a key in a section, in order (systemd.syntax(7)).
pub(super) fn read_assignments(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut values = Vec::new();
    let (mut inside, mut joined) = (false, String::new());
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        // A trailing backslash continues the line.
        if let Some(start) = line.strip_suffix('\\') {
            joined += start;
            joined.push(' ');
            continue;
        }
        let whole = std::mem::take(&mut joined) + line;
        let whole = whole.trim();
        if let Some(name) = whole.strip_prefix('[') {
            inside = name.strip_suffix(']') == Some(section);
        } else if let Some((name, value)) = whole.split_once('=')
            && inside
            && name.trim_end() == key
        {
            values.push(value.trim().to_owned());
        }
    }
    values
}

/// CPUs and ranges between white space or commas; a backward range is ignored.
fn read_list(value: &str) -> Option<CpuSet> {
    let mut cpus = CpuSet::new();
    let words = value.split(|c: char| c == ',' || c.is_ascii_whitespace());
    let words = words.map(|word| word.trim_matches(['"', '\'']));
    for word in words.filter(|word| !word.is_empty()) {
        let backwards = |(first, last): (&str, &str)| {
            let both_ends = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
            both_ends.is_some_and(|(first, last)| first > last)
        };
        if word.split_once('-').is_some_and(backwards) {
            continue;
        }
        cpus = cpus.union(&word.parse().ok()?);
    }
    Some(cpus)
}

fn clip_value(value: &str) -> String {
    value.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;
    use proptest::prelude::*;

    const MAIN: &str = "/etc/systemd/system.conf";

    fn cpus(files: &FakeFiles, line: &str) -> String {
        let affinity =
            Affinity::read(files, &KernelCommandLine(line.into())).expect("it can be read");
        affinity.cpus.map_or("all".into(), |cpus| cpus.to_string())
    }

    fn of(text: &str) -> String {
        cpus(&FakeFiles::new().with_file(MAIN, text), "")
    }

    #[test]
    fn repeated_lines_merge_and_an_empty_one_resets() {
        assert_eq!(of("[Manager]\nCPUAffinity=0 1\n"), "0-1");
        assert_eq!(of("[Manager]\nCPUAffinity=0-1\nCPUAffinity=3\n"), "0-1,3");
        assert_eq!(of("[Manager]\nCPUAffinity=0-3\nCPUAffinity=\nCPUAffinity=0\n"), "0");
        assert_eq!(of("[Manager]\nCPUAffinity=0\nCPUAffinity=\n"), "all");
        assert_eq!(of("[Manager]\nCPUAffinity = 0, 2\n"), "0,2");
        assert_eq!(of("[Manager]\nCPUAffinity=0 \\\n# between\n  2\n"), "0,2");
    }

    #[test]
    fn lines_that_systemd_ignores_are_ignored() {
        assert_eq!(of("#CPUAffinity=0\n;CPUAffinity=0\n"), "all");
        assert_eq!(of("CPUAffinity=0\n"), "all", "outside of a section");
        assert_eq!(of("[Service]\nCPUAffinity=0\n[Manager]\n"), "all");
        assert_eq!(of("[Manager]\nCPUAffinity=0\nCPUAffinity=none of them\n"), "0");
        assert_eq!(of("[Manager]\nCPUAffinity=3-1 0\n"), "0");
    }

    #[test]
    fn systemd_drop_ins_are_applied_by_name_and_override_their_namesakes() {
        let files = FakeFiles::new()
            .with_file(MAIN, "[Manager]\nCPUAffinity=0\n")
            .with_file("/usr/lib/systemd/system.conf", "[Manager]\nCPUAffinity=7\n")
            .with_file("/usr/lib/systemd/system.conf.d/10-a.conf", "[Manager]\nCPUAffinity=6\n")
            .with_file("/etc/systemd/system.conf.d/10-a.conf", "[Manager]\nCPUAffinity=1\n")
            .with_file("/run/systemd/system.conf.d/90-b.conf", "[Manager]\nCPUAffinity=3\n")
            .with_file("/etc/systemd/system.conf.d/other", "[Manager]\nCPUAffinity=5\n");
        assert_eq!(cpus(&files, ""), "0-1,3");
        let reset =
            files.with_file("/etc/systemd/system.conf.d/50-x.conf", "[Manager]\nCPUAffinity=\n");
        assert_eq!(cpus(&reset, ""), "3");
    }

    #[test]
    fn the_command_line_replaces_the_files() {
        let files = FakeFiles::new().with_file(MAIN, "[Manager]\nCPUAffinity=0-3\n");
        assert_eq!(cpus(&files, "quiet systemd.cpu_affinity=0,1"), "0-1");
        assert_eq!(cpus(&files, "systemd.cpu-affinity=2 systemd.cpu_affinity=1"), "1");
        assert_eq!(cpus(&files, "systemd.cpu_affinity="), "all");
        assert_eq!(cpus(&files, "systemd.cpu_affinity=x"), "0-3");
    }

    #[test]
    fn a_file_that_refuses_is_named() {
        let files = FakeFiles::new().with_refusal(MAIN, libc::EACCES);
        let why = Affinity::read(&files, &KernelCommandLine::default()).unwrap_err();
        assert!(why.contains(MAIN), "{why}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\[Manager\\]\nCPUAffinity=)?\\PC{0,60}") {
            of(&text);
        }
    }
}
