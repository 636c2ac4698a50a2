//! The kernel's configuration: from the kernel itself, or from the distribution's files.

use crate::files::{FileError, Files};
use flate2::read::MultiGzDecoder;
use punctual_core::Fact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;

/// A configuration has some 300 kB; a file that unpacks to more than this is none.
const MAX_CONFIG: u64 = 4 << 20;

/// Options that affect latency or tracing. Stored in the bundle; the rules use no others.
pub(crate) const OPTIONS: [&str; 66] = [
    "BPF_SYSCALL",
    "COMPACTION",
    "CPUSETS",
    "CPU_FREQ",
    "CPU_IDLE",
    "CPU_ISOLATION",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_INFO_BTF",
    "DEBUG_KMEMLEAK",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_OBJECTS",
    "DEBUG_PREEMPT",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "DEBUG_VM",
    "DETECT_HUNG_TASK",
    "FTRACE",
    "FUNCTION_TRACER",
    "GCOV_KERNEL",
    "HIGH_RES_TIMERS",
    "HWLAT_TRACER",
    "HZ",
    "HZ_PERIODIC",
    "IRQSOFF_TRACER",
    "IRQ_FORCED_THREADING",
    "KASAN",
    "KCOV",
    "KCSAN",
    "KMSAN",
    "KPROBES",
    "KSM",
    "LOCKDEP",
    "LOCKUP_DETECTOR",
    "LOCK_STAT",
    "NO_HZ_COMMON",
    "NO_HZ_FULL",
    "NO_HZ_IDLE",
    "NUMA",
    "NUMA_BALANCING",
    "OSNOISE_TRACER",
    "PCIEASPM",
    "PERF_EVENTS",
    "PREEMPT",
    "PREEMPTIRQ_TRACEPOINTS",
    "PREEMPT_DYNAMIC",
    "PREEMPT_LAZY",
    "PREEMPT_NONE",
    "PREEMPT_RT",
    "PREEMPT_TRACER",
    "PREEMPT_VOLUNTARY",
    "PROVE_LOCKING",
    "PROVE_RCU",
    "RCU_NOCB_CPU",
    "RCU_NOCB_CPU_DEFAULT_ALL",
    "RT_GROUP_SCHED",
    "SCHEDSTATS",
    "SCHED_SMT",
    "SECURITY_LOCKDOWN_LSM",
    "SLUB_DEBUG_ON",
    "STACK_TRACER",
    "SWAP",
    "TIMERLAT_TRACER",
    "TRANSPARENT_HUGEPAGE",
    "UPROBES",
    "X86_MCE",
];

/// Where the configuration was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConfigSource(pub String);

/// The kernel's configuration, limited to [`OPTIONS`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KernelConfig {
    /// The file that it was read from.
    pub source: ConfigSource,
    /// `y`, `m`, a number or a text, by option without `CONFIG_`. Unset options are absent.
    pub options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// Whether an option is built in or a module.
    pub(crate) fn has_option(&self, option: &str) -> bool {
        matches!(self.get(option), Some("y" | "m"))
    }
    /// An option's value; `None` if it is not set.
    pub fn get(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// Reads the usual files of kernels and distributions: the kernel itself
    /// (CONFIG_IKCONFIG_PROC), /boot (Debian, Fedora, SUSE), and beside the modules (Fedora,
    /// openSUSE, Arch).
    pub(crate) fn read(files: &dyn Files, release: Option<&str>) -> Fact<KernelConfig> {
        let mut tried = match files.read_bytes("/proc/config.gz").map(|packed| unpack_gzip(&packed))
        {
            Ok(Ok(text)) => return parse("/proc/config.gz", &text),
            Ok(Err(why)) => vec![format!("/proc/config.gz: {why}")],
            Err(why) => vec![why.to_string()],
        };
        // The release becomes part of a path, and a captured tree is untrusted.
        let Some(release) =
            release.filter(|r| !r.is_empty() && !r.contains('/') && !r.contains(".."))
        else {
            return Fact::Unavailable(format!(
                "{}; the kernel's release is not known",
                tried.join("; ")
            ));
        };
        for path in [
            format!("/boot/config-{release}"),
            format!("/lib/modules/{release}/config"),
            format!("/usr/lib/modules/{release}/config"),
        ] {
            match files.read(&path) {
                Ok(text) => return parse(&path, &text),
                Err(why @ FileError { .. }) => tried.push(why.to_string()),
            }
        }
        Fact::Unavailable(tried.join("; "))
    }
}

fn unpack_gzip(packed: &[u8]) -> Result<String, String> {
    let mut text = Vec::new();
    MultiGzDecoder::new(packed)
        .take(MAX_CONFIG + 1)
        .read_to_end(&mut text)
        .map_err(|why| format!("cannot be unpacked: {why}"))?;
    if text.len() as u64 > MAX_CONFIG {
        return Err(format!("unpacks to more than {MAX_CONFIG} bytes"));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Parses `CONFIG_X=value` lines. A text without any is no configuration: it does not prove that
/// options are unset.
fn parse(source: &str, text: &str) -> Fact<KernelConfig> {
    let set = |line: &str| -> Option<(String, String)> {
        let (option, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
        Some((option.to_owned(), value.trim_matches('"').chars().take(64).collect()))
    };
    let all_options: Vec<(String, String)> = text.lines().filter_map(set).collect();
    if all_options.is_empty() {
        return Fact::Unavailable(format!("{source} holds no kernel configuration"));
    }
    let options =
        all_options.into_iter().filter(|(option, _)| OPTIONS.contains(&option.as_str())).collect();
    Fact::Known(KernelConfig { source: ConfigSource(source.to_owned()), options })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(text).unwrap();
        gz.finish().unwrap()
    }

    #[test]
    fn config_gz_is_preferred_over_the_file_in_boot() {
        let gz = packed(
            b"# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT=y\nCONFIG_HZ=250\n\
              CONFIG_UNHEARD_OF=y\n",
        );
        let files = FakeFiles::new()
            .with_bytes("/proc/config.gz", &gz)
            .with_file("/boot/config-6.1", "CONFIG_PREEMPT_RT=y");
        let config = KernelConfig::read(&files, Some("6.1"));
        let config = config.known_value().expect("it is there");
        assert_eq!(config.source.0, "/proc/config.gz");
        assert_eq!(
            (config.has_option("PREEMPT"), config.has_option("PREEMPT_NONE"), config.get("HZ")),
            (true, false, Some("250"))
        );
        assert!(!config.options.contains_key("UNHEARD_OF"), "only what bears on latency is kept");
    }

    #[test]
    fn a_broken_file_is_not_a_configuration_without_options() {
        let cut = &packed(b"CONFIG_PREEMPT=y\n")[..12];
        let files = FakeFiles::new().with_bytes("/proc/config.gz", cut);
        let Fact::Unavailable(why) = KernelConfig::read(&files, Some("6.1")) else {
            panic!("it is cut off")
        };
        assert!(why.contains("/proc/config.gz: cannot be unpacked"), "{why}");
        assert!(why.contains("/boot/config-6.1"), "{why}");
    }

    #[test]
    fn a_decompression_bomb_does_not_fill_the_memory() {
        let gz = packed(&vec![b'A'; 8 << 20]);
        assert!(unpack_gzip(&gz).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_release_cannot_lead_out_of_boot() {
        let files = FakeFiles::new().with_file("/boot/config-../../etc/x", "CONFIG_PREEMPT=y");
        assert!(KernelConfig::read(&files, Some("../../etc/x")).known_value().is_none());
    }
}
