//! The CPUs that irqbalance excludes (irqbalance's cputree.c, setup_banned_cpus, 1.0 to 1.9.5).
//!
//! A mask in `IRQBALANCE_BANNED_CPUS` takes precedence over a list in `IRQBALANCE_BANNED_CPULIST`,
//! although the daemon logs that the mask "is discarded", and either replaces its own detection:
//! the isolated and the nohz_full CPUs count only if neither is set.

use crate::files::Files;
use punctual_core::CpuSet;

/// The files of its environment in distributions, later ones override earlier ones: upstream,
/// Debian, Fedora and SUSE (misc/irqbalance.service.in).
const FILES: [&str; 4] = [
    "/usr/lib/irqbalance/defaults.env",
    "/etc/irqbalance.env",
    "/etc/default/irqbalance",
    "/etc/sysconfig/irqbalance",
];
const MASK: &str = "IRQBALANCE_BANNED_CPUS";
const LIST: &str = "IRQBALANCE_BANNED_CPULIST";

/// The CPUs that irqbalance excludes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ban {
    /// No setting: it excludes the isolated and nohz_full CPUs of the kernel.
    Detected,
    /// Only these CPUs, by this setting.
    Cpus(CpuSet, String),
    /// An empty value. An empty list is the same as none up to 1.9.5, later it bans no CPU
    /// (irqbalance(1)); an empty mask bans no CPU up to 1.6 and is the same as none later.
    Empty(String),
    /// The effect of this setting is unknown, or a file cannot be read.
    Unknown(String),
}

/// A variable of its environment, and the file that sets it.
type Variable = Option<(String, String)>;

impl Ban {
    /// The ban of a running irqbalance: from its environment, if this user may read it, else from
    /// the environment files of its service.
    pub fn read(files: &dyn Files, pid: u32) -> Ban {
        let path = format!("/proc/{pid}/environ");
        let own_environment = files.read(&path).ok().filter(|environment| !environment.is_empty());
        let (mask, list) = match own_environment {
            Some(environment) => {
                let find = |name: &str| {
                    let mut entries = environment.split('\0');
                    let found =
                        entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
                    found.map(|value| (value.to_owned(), path.clone()))
                };
                (find(MASK), find(LIST))
            }
            None => match of_files(files) {
                Ok(both) => both,
                Err(why) => return Ban::Unknown(why),
            },
        };
        Ban::from_variables(mask, list)
    }

    fn from_variables(mask: Variable, list: Variable) -> Ban {
        let set =
            |variable: &Variable| variable.as_ref().is_some_and(|(value, _)| !value.is_empty());
        if !set(&list)
            && let Some((_, path)) = mask.as_ref().filter(|(value, _)| value.is_empty())
        {
            return Ban::Empty(format!("{path} has {MASK}="));
        }
        if let Some((value, path)) = mask.filter(|(value, _)| !value.is_empty()) {
            let evidence = format!("{path} has {MASK}={}", clip_value(&value));
            return match read_mask(&value) {
                Some(cpus) => Ban::Cpus(cpus, evidence),
                None => Ban::Unknown(format!(
                    "{evidence}, which irqbalance does not accept as a \
                                              mask"
                )),
            };
        }
        let Some((value, path)) = list else { return Ban::Detected };
        let evidence = format!("{path} has {LIST}={}", clip_value(&value));
        match value.trim().parse::<CpuSet>() {
            _ if value.is_empty() => Ban::Empty(evidence),
            Ok(cpus) if !cpus.is_empty() => Ban::Cpus(cpus, evidence),
            _ => Ban::Unknown(format!("{evidence}, which irqbalance does not accept as a list")),
        }
    }
}

/// Hexadecimal digits; a leading `0x` ends the parsing at the x, with no CPU banned (bitmap.c,
/// __bitmap_parse).
fn read_mask(value: &str) -> Option<CpuSet> {
    let prefixed = ["0x", "0X"].iter().any(|prefix| value.trim_start().starts_with(prefix));
    if prefixed { Some(CpuSet::new()) } else { CpuSet::from_mask(value).ok() }
}

/// The two variables as `EnvironmentFile=` reads them from these files (systemd.exec(5)): the last
/// assignment of each counts.
fn of_files(files: &dyn Files) -> Result<(Variable, Variable), String> {
    let (mut mask, mut list) = (None, None);
    for path in FILES {
        let text = match files.read(path) {
            Ok(text) => text,
            Err(why) if why.is_missing() => continue,
            Err(why) => return Err(why.to_string()),
        };
        for line in text.lines().map(str::trim) {
            let Some((name, value)) = line.split_once('=') else { continue };
            let value = unquote_value(value.trim());
            match name.trim() {
                MASK => mask = Some((value, path.to_owned())),
                LIST => list = Some((value, path.to_owned())),
                _ => {}
            }
        }
    }
    Ok((mask, list))
}

/// A value without surrounding quotation marks.
fn unquote_value(value: &str) -> String {
    let inner = ['"', '\''].iter().find_map(|mark| value.strip_prefix(*mark)?.strip_suffix(*mark));
    inner.unwrap_or(value).to_owned()
}

fn clip_value(value: &str) -> String {
    value.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;
    use proptest::prelude::*;

    const DEBIAN: &str = "/etc/default/irqbalance";

    fn ban(files: FakeFiles) -> String {
        match Ban::read(&files, 900) {
            Ban::Detected => "detected".into(),
            Ban::Cpus(cpus, _) => format!("bans `{cpus}`"),
            Ban::Empty(_) => "empty".into(),
            Ban::Unknown(_) => "unknown".into(),
        }
    }

    fn of(text: &str) -> String {
        ban(FakeFiles::new().with_file(DEBIAN, text))
    }

    #[test]
    fn an_irqbalance_mask_overrides_a_list_which_overrides_detection() {
        assert_eq!(ban(FakeFiles::new()), "detected");
        assert_eq!(of("#IRQBALANCE_BANNED_CPULIST=1\nENABLED=\"1\"\n"), "detected");
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=0000000c\n"), "bans `2-3`");
        assert_eq!(of("IRQBALANCE_BANNED_CPULIST=\"1,3\"\n"), "bans `1,3`");
        let both = "IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_BANNED_CPUS=c\n";
        assert_eq!(of(both), "bans `2-3`");
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=ff,00000001\n"), "bans `0,32-39`");
        // Versions that read the list treat an empty mask as unset.
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=\nIRQBALANCE_BANNED_CPULIST=1\n"), "bans `1`");
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=\n"), "empty");
    }

    #[test]
    fn the_last_of_repeated_irqbalance_assignments_is_used() {
        assert_eq!(of("IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_BANNED_CPULIST=2\n"), "bans `2`");
        let two = FakeFiles::new()
            .with_file(DEBIAN, "IRQBALANCE_BANNED_CPULIST=1")
            .with_file("/etc/sysconfig/irqbalance", "IRQBALANCE_BANNED_CPULIST=3");
        assert_eq!(ban(two), "bans `3`");
    }

    #[test]
    fn the_environment_of_irqbalance_overrides_its_files() {
        let files = FakeFiles::new().with_file(DEBIAN, "IRQBALANCE_BANNED_CPULIST=1");
        let own = files.with_file("/proc/900/environ", "A=b\0IRQBALANCE_BANNED_CPULIST=2\0");
        assert_eq!(ban(own.clone()), "bans `2`");
        assert_eq!(ban(own.with_file("/proc/900/environ", "A=b\0")), "detected");
    }

    #[test]
    fn what_it_cannot_read_bans_nothing_or_is_not_known() {
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=0xc\n"), "bans ``");
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=2-3\n"), "unknown");
        assert_eq!(of("IRQBALANCE_BANNED_CPULIST=1-N\n"), "unknown");
        assert_eq!(of("IRQBALANCE_BANNED_CPULIST=\n"), "empty");
        assert_eq!(ban(FakeFiles::new().with_refusal(DEBIAN, libc::EACCES)), "unknown");
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "(IRQBALANCE_BANNED_CPU(S|LIST)=)?\\PC{0,40}") {
            of(&text);
        }
    }
}
