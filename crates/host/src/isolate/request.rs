//! The request: which CPUs, under which names, without which tweaks.

use super::Refusal;
use crate::files::Files;
use punctual_core::CpuSet;
use punctual_core::cpuset::CpuSetError;

/// The longest name of a partition, in bytes.
pub(crate) const MAX_NAME: usize = 64;

/// A request for a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionRequest {
    pub target: TargetCpus,
    /// The name of the real-time cgroup.
    pub rt_name: String,
    /// The name of the housekeeping cgroup.
    pub nrt_name: String,
    pub without: Vec<String>,
    /// Processes that are not moved, with all their threads.
    pub leave: Vec<i32>,
    /// Whether the partition is only for this process (an experiment): once it has died, the
    /// partition is a leftover. Its cgroups of version 2 are threaded, so that a thread of this
    /// process can be in each (cgroups(7)).
    pub for_this_process: bool,
}

/// The CPUs that become real-time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetCpus {
    Cpus(CpuSet),
    /// Those of a NUMA node, together with its memory.
    Node(usize),
}

impl PartitionRequest {
    /// A partition of these CPUs with every tweak and the names `rt` and `nrt`.
    pub fn new(target: TargetCpus) -> PartitionRequest {
        PartitionRequest {
            target,
            rt_name: "rt".into(),
            nrt_name: "nrt".into(),
            without: Vec::new(),
            leave: Vec::new(),
            for_this_process: false,
        }
    }
    /// Whether a tweak is requested.
    pub(crate) fn includes_tweak(&self, tweak: &str) -> bool {
        !self.without.iter().any(|name| name == tweak)
    }

    /// Refuses invalid names of partitions.
    pub(super) fn check_names(&self) -> Result<(), Refusal> {
        check_name(&self.rt_name)?;
        check_name(&self.nrt_name)?;
        if self.rt_name == self.nrt_name {
            return Err(Refusal::SameName(self.rt_name.clone()));
        }
        Ok(())
    }
}

/// Refuses a name that is no single directory in the cgroup tree.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let fault = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME {
        "it is longer than 64 bytes"
    } else if name == "." || name == ".." || name.contains('/') {
        "it would leave its place in the cgroup tree"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if name.contains(char::is_whitespace) {
        "it contains white space"
    } else if ["cgroup.", "cpuset."].iter().any(|prefix| name.starts_with(prefix)) {
        "the kernel's own files begin like that"
    } else {
        return Ok(());
    };
    Err(Refusal::BadName { name: name.chars().take(MAX_NAME).collect(), fault })
}

/// Parses the CPUs of a partition: a list (`3`, `2-3`, `0,4`), or a hexadecimal mask with a leading
/// `0x` (`0x8`) or in comma-separated 32-bit words, of 8 digits after the first (`1,00000000` is
/// CPU 32). A bare number is a list: `8` is CPU 8.
pub(crate) fn parse_cpus(text: &str) -> Result<CpuSet, CpuSetError> {
    let text = text.trim();
    let mut words = text.split(',');
    let first = words.next().unwrap_or_default();
    let other_words: Vec<&str> = words.collect();
    let hex = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_hexdigit());
    let grouped = !other_words.is_empty()
        && hex(first)
        && other_words.iter().all(|word| word.len() == 8 && hex(word));
    if grouped || text.starts_with("0x") || text.starts_with("0X") {
        CpuSet::from_mask(text)
    } else {
        text.parse()
    }
}

/// The same, with `N` for the last present CPU: `2-N`. The kernel's own `N` is the last of its
/// mask, which the machine may not have.
pub fn parse_cpus_on(files: &dyn Files, text: &str) -> Result<CpuSet, CpuSetError> {
    let present = || files.read_trimmed("/sys/devices/system/cpu/present").ok()?.parse().ok();
    let last = |present: CpuSet| present.iter().last();
    match text.contains('N').then(present).flatten().and_then(last) {
        Some(last) => parse_cpus(&with_last(text, last)),
        None => parse_cpus(text),
    }
}

/// Replaces each number that is `N`.
fn with_last(text: &str, last: usize) -> String {
    let number = |number: &str| match number.trim() {
        "N" => last.to_string(),
        _ => number.to_owned(),
    };
    let range = |part: &str| part.split('-').map(number).collect::<Vec<_>>().join("-");
    text.split(',').map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;
    use proptest::prelude::*;

    #[test]
    fn cpu_lists_and_masks_are_distinguished() {
        let list = |text: &str| parse_cpus(text).unwrap().to_string();
        assert_eq!([list("3"), list("2-3"), list("0,4"), list("10")], ["3", "2-3", "0,4", "10"]);
        assert_eq!(
            [list("0x8"), list("1,00000000"), list("0xff,00000001")],
            ["3", "32", "0,32-39"]
        );
        assert!(parse_cpus("c").is_err(), "hexadecimal needs its 0x");
        assert!(parse_cpus("all").is_err());
    }

    #[test]
    fn n_stands_for_the_last_present_cpu() {
        let files = FakeFiles::new().with_file("/sys/devices/system/cpu/present", "0-3\n");
        let list = |text: &str| parse_cpus_on(&files, text).map(|cpus| cpus.to_string());
        assert_eq!(
            [list("N"), list("1-N"), list("0,2-N")].map(Result::unwrap),
            ["3", "1-3", "0,2-3"]
        );
        assert_eq!(list("0-1").unwrap(), "0-1");
        assert!(list("2N").is_err() && list("N-1").is_err() && list("n").is_err());
        assert!(
            parse_cpus_on(&FakeFiles::new(), "1-N").is_err(),
            "which CPUs there are is not known"
        );
    }

    #[test]
    fn a_partition_name_is_a_single_directory() {
        for name in ["rt", "real-time.0", "π", "a b".replace(' ', "_").as_str(), &"x".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../x",
            "a\nb",
            "\u{7f}",
            "a b",
            "cgroup.procs",
            "cpuset.cpus",
            &"x".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_accepted_name_escapes(text in "\\PC{0,80}") {
            let _ = parse_cpus(&text);
            if check_name(&text).is_ok() {
                prop_assert!(!text.contains('/') && text != ".." && text.len() <= MAX_NAME);
            }
        }
    }
}
