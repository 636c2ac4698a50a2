//! Lists of CPUs on the kernel's command line, parsed as by the booted kernel (lib/bitmap-str.c,
//! bitmap_parselist; before Linux 6.6 in lib/bitmap.c).
//!
//! The grammar grew: `N`, the last CPU of the kernel's mask, came with Linux 5.13, and `all` with
//! 5.14. No file states the width of the mask: it covers at least the possible CPUs. Results that
//! depend on more are unknown.

use punctual_core::CpuSet;
use punctual_core::cpuset::MAX_CPUS;

/// The first Linux that reads `N` ("lib: bitmap: support "N" as an alias for size of bitmap").
const SINCE_N: (u32, u32) = (5, 13);
/// The first Linux that reads `all` ("bitmap_parse: Support 'all' semantics").
const SINCE_ALL: (u32, u32) = (5, 14);

/// The result of a kernel's parsing of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BootList {
    /// These of the possible CPUs.
    Cpus(CpuSet),
    /// The kernel refuses the whole list, for this reason.
    Refused(String),
    /// The result depends on this unknown fact.
    Unknown(String),
}

/// The kernel that parses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListReader<'a> {
    /// Major and minor number of its release.
    pub release: Option<(u32, u32)>,
    /// The possible CPUs.
    pub possible: Option<&'a CpuSet>,
}

/// A number of a list.
#[derive(Clone, Copy)]
enum ListNumber {
    Cpu(usize),
    /// `N`, if the kernel knows it.
    Last,
}

/// A part of a list: from and to, and for groups the group size and the used CPUs of each group.
struct Region {
    first: ListNumber,
    last: ListNumber,
    groups: Option<(usize, usize)>,
}

impl ListReader<'_> {
    pub fn read(&self, list: &str) -> BootList {
        let mut cpus = CpuSet::new();
        let ends = |c: char| c == ',' || c.is_ascii_whitespace();
        for part in list.split(ends).filter(|part| !part.is_empty()) {
            match self.parse_region(part).and_then(|region| self.cpus_of(part, &region)) {
                Ok(some) => cpus = cpus.union(&some),
                Err(stopped) => return stopped,
            }
        }
        BootList::Cpus(cpus)
    }

    fn parse_region(&self, part: &str) -> Result<Region, BootList> {
        let wrong = || BootList::Refused(format!("`{}` is not part of a list", clip_part(part)));
        let (range, pattern) = match part.split_once(':') {
            Some((range, pattern)) => (range, Some(pattern)),
            None => (part, None),
        };
        let is_all = range.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("all"));
        let (first, last) = if is_all && range.len() == 3 {
            self.check_known_word("all", SINCE_ALL)?;
            (ListNumber::Cpu(0), ListNumber::Last)
        } else if let Some((first, last)) = range.split_once('-') {
            (self.parse_number(first, part)?, self.parse_number(last, part)?)
        } else if pattern.is_some() {
            // Only ranges have groups.
            return Err(wrong());
        } else {
            let one = self.parse_number(range, part)?;
            (one, one)
        };
        let groups = match pattern.map(|pattern| pattern.split_once('/')) {
            None => None,
            Some(None) => return Err(wrong()),
            Some(Some((used, size))) => {
                match (self.parse_number(used, part)?, self.parse_number(size, part)?) {
                    (ListNumber::Cpu(used), ListNumber::Cpu(size)) if size > 0 && used <= size => {
                        Some((used, size))
                    }
                    (ListNumber::Cpu(_), ListNumber::Cpu(_)) => return Err(wrong()),
                    _ => return Err(self.of_the_mask(part)),
                }
            }
        };
        Ok(Region { first, last, groups })
    }

    fn parse_number(&self, text: &str, part: &str) -> Result<ListNumber, BootList> {
        if text == "N" {
            return self.check_known_word("N", SINCE_N).map(|()| ListNumber::Last);
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(cpu) if digits => Ok(ListNumber::Cpu(cpu)),
            _ => Err(BootList::Refused(format!("`{}` is not part of a list", clip_part(part)))),
        }
    }

    /// Fails if this kernel does not know a word.
    fn check_known_word(&self, word: &str, since: (u32, u32)) -> Result<(), BootList> {
        let (major, minor) = since;
        match self.release {
            Some(release) if release >= since => Ok(()),
            Some(_) => Err(BootList::Refused(format!(
                "`{word}` is read by Linux {major}.{minor} and later only"
            ))),
            None => Err(BootList::Unknown(format!(
                "`{word}` is read by Linux {major}.{minor} and later only, and this release is \
                 not known"
            ))),
        }
    }

    fn of_the_mask(&self, part: &str) -> BootList {
        let part = clip_part(part);
        BootList::Unknown(format!("`{part}` depends on the width of the kernel's CPU masks"))
    }

    /// The possible CPUs of a part of a list.
    fn cpus_of(&self, part: &str, region: &Region) -> Result<CpuSet, BootList> {
        let Some(end) = self.possible.and_then(|possible| possible.iter().last()) else {
            return Err(BootList::Unknown("the possible CPUs are not known".into()));
        };
        let first = match region.first {
            ListNumber::Cpu(first) => first,
            ListNumber::Last => return Err(self.of_the_mask(part)),
        };
        let beyond = |cpu: usize| match cpu >= MAX_CPUS {
            true => BootList::Refused(format!("no kernel has a CPU {cpu}")),
            false => self.of_the_mask(part),
        };
        let last = match region.last {
            ListNumber::Cpu(last) if last < first => {
                return Err(BootList::Refused(format!("`{}` runs backwards", clip_part(part))));
            }
            ListNumber::Cpu(last) if last > end => return Err(beyond(last)),
            ListNumber::Cpu(last) => last,
            ListNumber::Last if first > end => return Err(beyond(first)),
            ListNumber::Last => end,
        };
        let used =
            |cpu: &usize| region.groups.is_none_or(|(used, size)| (cpu - first) % size < used);
        let possible = |cpu: &usize| self.possible.is_none_or(|possible| possible.contains(*cpu));
        Ok((first..=last).filter(used).filter(possible).collect())
    }
}

fn clip_part(part: &str) -> String {
    part.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(list: &str) -> CpuSet {
        list.parse().expect("a list")
    }

    fn read(release: (u32, u32), possible: &str, list: &str) -> BootList {
        ListReader { release: Some(release), possible: Some(&set(possible)) }.read(list)
    }

    fn cpus(release: (u32, u32), list: &str) -> String {
        match read(release, "0-3", list) {
            BootList::Cpus(cpus) => cpus.to_string(),
            BootList::Refused(_) => "refused".into(),
            BootList::Unknown(_) => "unknown".into(),
        }
    }

    #[test]
    fn each_kernel_has_its_own_grammar() {
        let read = |list: &str| [(5, 10), (5, 13), (6, 1)].map(|release| cpus(release, list));
        assert_eq!(read("1-3"), ["1-3"; 3]);
        assert_eq!(read("1-3:1/2"), ["1,3"; 3]);
        assert_eq!(read("0-3:2/3"), ["0-1,3"; 3]);
        assert_eq!(read("1-N"), ["refused", "1-3", "1-3"]);
        assert_eq!(read("0-N:1/2"), ["refused", "0,2", "0,2"]);
        assert_eq!(read("all"), ["refused", "refused", "0-3"]);
        assert_eq!(read("ALL:1/2"), ["refused", "refused", "0,2"]);
        assert_eq!(read("0,,2"), ["0,2"; 3], "empty parts are passed over");
        assert_eq!(read(""), [""; 3]);
    }

    #[test]
    fn a_cpu_list_that_no_kernel_accepts_is_refused() {
        for list in ["2-1", "0,x", "1-", "-1", "n", "0-3:1", "1:1/2", "0-3:3/2", "0-3:1/0", "9000"]
        {
            assert_eq!(cpus((6, 1), list), "refused", "{list}");
        }
    }

    #[test]
    fn a_cpu_list_that_depends_on_the_mask_width_is_unknown() {
        for list in ["N", "0-9", "9", "9-N", "0-3:1/N"] {
            assert_eq!(cpus((6, 1), list), "unknown", "{list}");
        }
        let nobody = ListReader { release: None, possible: Some(&set("0-3")) };
        assert!(matches!(nobody.read("1-N"), BootList::Unknown(_)));
        assert_eq!(nobody.read("1-2"), BootList::Cpus(set("1-2")));
        let nowhere = ListReader { release: Some((6, 1)), possible: None };
        assert!(matches!(nowhere.read("1-2"), BootList::Unknown(_)));
        // Only possible CPUs are included.
        assert_eq!(read((6, 1), "0,2-3", "0-2"), BootList::Cpus(set("0,2")));
    }

    proptest! {
        #[test]
        fn no_list_panics(list in "[-0-9Nal:/, ]{0,20}|\\PC{0,20}", last in 0usize..70) {
            read((6, 1), &format!("0-{last}"), &list);
        }
        #[test]
        fn plain_lists_are_read_as_everywhere(cpus in prop::collection::vec(0usize..64, 0..20)) {
            let cpus: CpuSet = cpus.into_iter().collect();
            prop_assert_eq!(read((5, 10), "0-63", &cpus.to_string()), BootList::Cpus(cpus));
        }
    }
}
