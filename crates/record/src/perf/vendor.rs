//! Events that only the machine knows: by number, or by the names that its performance monitoring
//! units (PMUs) have in sysfs (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).

use super::attr::PerfEventAttr;
use punctual_core::words::{format_suggestion, nearest_word};
use std::path::{Path, PathBuf};

/// Where the kernel describes PMUs.
pub(super) const DEVICES: &str = "/sys/bus/event_source/devices";
/// PERF_TYPE_RAW.
const RAW: u32 = 4;

/// The attribute of `r1a8` or `PMU/TERMS/` (checked by `punctual_core::PerfEvent`), by the PMUs
/// described in this directory.
///
/// # Errors
/// No such PMU, event or term here, by name, with a similar one.
pub(super) fn parse_attribute(text: &str, devices: &Path) -> Result<PerfEventAttr, String> {
    if let Some(number) = text.strip_prefix('r')
        && let Ok(config) = u64::from_str_radix(number, 16)
    {
        return Ok(PerfEventAttr { kind: RAW, config, ..PerfEventAttr::default() });
    }
    let (name, terms) = text.trim_end_matches('/').split_once('/').unwrap_or((text, ""));
    let pmu = Pmu { name, directory: devices.join(name) };
    let kind = std::fs::read_to_string(pmu.directory.join("type"));
    let Some(kind) = kind.ok().and_then(|kind| kind.trim().parse().ok()) else {
        return Err(format!("this machine has no PMU `{name}`{}", suggest_name(devices, name)));
    };
    let mut attr = PerfEventAttr { kind, ..PerfEventAttr::default() };
    terms.split(',').try_for_each(|term| pmu.add(&mut attr, term, true))?;
    Ok(attr)
}

struct Pmu<'t> {
    name: &'t str,
    directory: PathBuf,
}

impl Pmu<'_> {
    /// Sets the bits of a term. `events`: whether it may be an event of the PMU, which itself
    /// consists of terms.
    fn add(&self, attr: &mut PerfEventAttr, term: &str, events: bool) -> Result<(), String> {
        let (name, value) = term.split_once('=').map_or((term, None), |(n, v)| (n, Some(v)));
        let read = |what: &str| std::fs::read_to_string(self.directory.join(what).join(name));
        if events
            && value.is_none()
            && let Ok(of_event) = read("events")
        {
            return of_event.trim().split(',').try_for_each(|term| self.add(attr, term, false));
        }
        let pmu = self.name;
        let number = value.map_or(Some(1), parse_number);
        let number = number.ok_or_else(|| format!("`{term}` of PMU `{pmu}`: not a number"))?;
        let format = match name {
            "config" | "config1" | "config2" => format!("{name}:0-63"),
            _ => read("format").map_err(|_| {
                let near =
                    ["events", "format"].map(|what| suggest_name(&self.directory.join(what), name));
                format!("PMU `{pmu}` has no event and no term `{name}`{}", near.concat())
            })?,
        };
        let unknown =
            || format!("`{name}` of PMU `{pmu}` has a format that is not known: {format}");
        let (field, bits) = format.trim().split_once(':').ok_or_else(unknown)?;
        let place = match field {
            "config" => &mut attr.config,
            "config1" => &mut attr.config1,
            "config2" => &mut attr.config2,
            _ => return Err(unknown()),
        };
        let mut rest = number;
        for range in bits.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high): (u32, u32) =
                low.parse().ok().zip(high.parse().ok()).ok_or_else(unknown)?;
            if low > high || high > 63 {
                return Err(unknown());
            }
            let mask = u64::MAX >> (63 - (high - low));
            *place = *place & !(mask << low) | (rest & mask) << low;
            rest = rest.checked_shr(high - low + 1).unwrap_or(0);
        }
        match rest {
            0 => Ok(()),
            _ => Err(format!("`{term}` of PMU `{pmu}`: larger than its bits {bits}")),
        }
    }
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The names in a directory, in order.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A similar name in this directory.
fn suggest_name(directory: &Path, name: &str) -> String {
    format_suggestion(nearest_word(name, names_in(directory).iter().map(String::as_str)))
}

/// The events that PMUs name, as `PMU/EVENT/`, in order; without those that describe another one's
/// unit.
pub fn vendor_events() -> Vec<String> {
    named_events(Path::new(DEVICES))
}

fn named_events(devices: &Path) -> Vec<String> {
    let events_of_pmu = |pmu: String| {
        let events = names_in(&devices.join(&pmu).join("events")).into_iter();
        events.filter(|event| !event.contains('.')).map(move |event| format!("{pmu}/{event}/"))
    };
    names_in(devices).into_iter().flat_map(events_of_pmu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the driver of a Core i7 has it (arch/x86/events/intel/core.c), with a term of two ranges.
    fn devices() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("cpu/type", "4\n"),
            ("cpu/format/event", "config:0-7\n"),
            ("cpu/format/umask", "config:8-15\n"),
            ("cpu/format/inv", "config:23\n"),
            ("cpu/format/wide", "config1:0-3,32-35\n"),
            ("cpu/events/cache-misses", "event=0x2e,umask=0x41\n"),
            ("cpu/events/cache-misses.scale", "2.0\n"),
            ("power/type", "22\n"),
            ("power/events/loop", "loop\n"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn terms_are_put_into_the_bits_that_sysfs_names() {
        let root = devices();
        let of = |text: &str| {
            parse_attribute(text, root.path()).map(|attr| (attr.kind, attr.config, attr.config1))
        };
        assert_eq!(of("r1a8"), Ok((RAW, 0x1a8, 0)));
        assert_eq!(of("cpu/event=0x3c,umask=1,inv/"), Ok((4, 0x80_013c, 0)));
        assert_eq!(of("cpu/cache-misses/"), Ok((4, 0x412e, 0)));
        assert_eq!(of("cpu/cache-misses,umask=2/"), Ok((4, 0x22e, 0)), "the last one counts");
        assert_eq!(of("cpu/config=0x10,wide=0xa5/"), Ok((4, 0x10, 0xa_0000_0005)));
        let refused = [
            ("cpus/event=1/", "no PMU `cpus`: did you mean `cpu`?"),
            ("cpu/cache-mises/", "`cache-mises`: did you mean `cache-misses`?"),
            ("cpu/umask=256/", "larger than its bits 8-15"),
            ("cpu/umask=x/", "not a number"),
            ("power/loop/", "no event and no term `loop`"),
        ];
        for (text, why) in refused {
            let found = of(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
        assert_eq!(named_events(root.path()), ["cpu/cache-misses/", "power/loop/"]);
    }
}
