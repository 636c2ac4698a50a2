//! System calls: by number if records have it, else by name.

use std::collections::{BTreeMap, HashMap};

/// A system call with its own tracepoints: `syscalls:sys_enter_futex`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TracedSyscall {
    pub(crate) name: String,
    pub(crate) enter: bool,
}

impl TracedSyscall {
    pub(crate) fn of_tracepoint(name: &str) -> Option<TracedSyscall> {
        let traced_call = |name: &str, enter| Some(TracedSyscall { name: name.to_owned(), enter });
        match (name.strip_prefix("sys_enter_"), name.strip_prefix("sys_exit_")) {
            (Some(name), _) if !name.is_empty() => traced_call(name, true),
            (_, Some(name)) if !name.is_empty() => traced_call(name, false),
            _ => None,
        }
    }
}

/// The names of system call numbers.
#[derive(Default, Debug)]
pub(crate) struct NumberedCalls {
    by_name: HashMap<String, u32>,
    names: BTreeMap<u32, String>,
    futex: Vec<u32>,
}

/// The first number for calls known only by name, beyond those of any kernel.
const UNNUMBERED: u32 = 1 << 30;
const MOST_CALLS: usize = 1 << 12;

impl NumberedCalls {
    /// Sets the calls of an architecture, as named by uname(2).
    pub(crate) fn set_machine(&mut self, machine: &str) {
        for (number, name) in calls_of(machine) {
            self.set_name(number, name);
        }
    }

    /// Sets the name that the file states for a number.
    pub(crate) fn set_name(&mut self, number: u32, name: &str) {
        if self.names.contains_key(&number) || self.names.len() >= MOST_CALLS {
            return;
        }
        self.names.insert(number, name.to_owned());
        self.by_name.entry(name.to_owned()).or_insert(number);
        if matches!(name, "futex" | "futex_time64") {
            self.futex.push(number);
        }
    }

    pub(crate) fn number_of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = UNNUMBERED + self.by_name.len() as u32;
        self.set_name(number, name);
        number
    }

    pub(crate) fn is_futex(&self, number: u32) -> bool {
        self.futex.contains(&number)
    }
    pub(crate) fn knows_futex(&self) -> bool {
        !self.futex.is_empty()
    }
    /// Whether the names of numbers are known.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }
    pub(crate) fn call_names(&self) -> BTreeMap<u32, String> {
        self.names.clone()
    }
}

/// The numbers and names of an architecture's calls; empty if it is unknown.
fn calls_of(machine: &str) -> Vec<(u32, &'static str)> {
    macro_rules! all {
        ($architecture:ident) => {
            syscalls::$architecture::Sysno::iter()
                .filter_map(|call| Some((u32::try_from(call.id()).ok()?, call.name())))
                .collect()
        };
    }
    match machine {
        "x86_64" => all!(x86_64),
        "i386" | "i486" | "i586" | "i686" => all!(x86),
        "aarch64" | "arm64" => all!(aarch64),
        "riscv32" => all!(riscv32),
        "riscv64" => all!(riscv64),
        "loongarch64" => all!(loongarch64),
        "ppc" => all!(powerpc),
        "ppc64" | "ppc64le" => all!(powerpc64),
        "s390" | "s390x" => all!(s390x),
        arm if arm.starts_with("arm") => all!(arm),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_without_a_number_get_an_unused_one() {
        let mut calls = NumberedCalls::default();
        calls.set_machine("x86_64");
        assert_eq!(calls.number_of("clock_nanosleep"), 230);
        let number = calls.number_of("call_of_tomorrow");
        assert!(number >= UNNUMBERED);
        assert_eq!(calls.number_of("call_of_tomorrow"), number);
        assert!(calls.is_futex(202) && !calls.is_futex(98));
        assert_eq!(calls.number_of("futex"), 202);
        assert_eq!(calls.call_names()[&number], "call_of_tomorrow");
    }

    #[test]
    fn each_architecture_has_its_own_system_call_numbers() {
        let of = |machine: &str, name: &str| {
            let found = calls_of(machine).into_iter().find(|(_, other)| *other == name);
            found.map(|(number, _)| number)
        };
        // arch/*/kernel/syscalls/syscall.tbl and include/uapi/asm-generic/unistd.h.
        assert_eq!(of("x86_64", "futex"), Some(202));
        assert_eq!(of("i686", "futex"), Some(240));
        assert_eq!(of("armv7l", "futex"), Some(240));
        assert_eq!(of("aarch64", "futex"), Some(98));
        assert_eq!(of("aarch64", "clock_nanosleep"), Some(115));
        assert_eq!(of("ppc64le", "futex"), Some(221));
        assert_eq!(of("s390x", "futex"), Some(238));
        assert_eq!(of("riscv64", "ppoll"), Some(73));
        assert_eq!(of("vax", "futex"), None);
    }
}
