//! System calls: by number where records have it, by name where only that is there.

use std::collections::{BTreeMap, HashMap};

/// A system call that has tracepoints of its own: `syscalls:sys_enter_futex`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) enter: bool,
}

impl Call {
    pub(crate) fn of_tracepoint(name: &str) -> Option<Call> {
        let of = |name: &str, enter| Some(Call { name: name.to_owned(), enter });
        match (name.strip_prefix("sys_enter_"), name.strip_prefix("sys_exit_")) {
            (Some(name), _) if !name.is_empty() => of(name, true),
            (_, Some(name)) if !name.is_empty() => of(name, false),
            _ => None,
        }
    }
}

/// Which number is which call.
#[derive(Default, Debug)]
pub(crate) struct NumberedCalls {
    by_name: HashMap<String, u32>,
    names: BTreeMap<u32, String>,
    futex: Vec<u32>,
}

/// Numbers of calls that only have a name: no kernel has as many calls.
const UNNUMBERED: u32 = 1 << 30;
const MOST_CALLS: usize = 1 << 12;

impl NumberedCalls {
    /// The futex call of an architecture, as uname(2) names it (arch/*/entry/syscalls).
    pub(crate) fn set_machine(&mut self, machine: &str) {
        let futex = match machine {
            "x86_64" => 202,
            "i386" | "i486" | "i586" | "i686" => 240,
            "ppc" | "ppc64" | "ppc64le" => 221,
            "s390" | "s390x" => 238,
            "aarch64" | "riscv64" | "riscv32" | "loongarch64" => 98,
            arm if arm.starts_with("arm") => 240,
            _ => return,
        };
        self.name(futex, "futex");
    }

    /// What the file says that a number is.
    pub(crate) fn name(&mut self, number: u32, name: &str) {
        if self.names.contains_key(&number) || self.names.len() >= MOST_CALLS {
            return;
        }
        self.names.insert(number, name.to_owned());
        self.by_name.entry(name.to_owned()).or_insert(number);
        if matches!(name, "futex" | "futex_time64") {
            self.futex.push(number);
        }
    }

    /// A number for this name.
    pub(crate) fn number_of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = UNNUMBERED + self.by_name.len() as u32;
        self.name(number, name);
        number
    }

    pub(crate) fn is_futex(&self, number: u32) -> bool {
        self.futex.contains(&number)
    }
    pub(crate) fn knows_futex(&self) -> bool {
        !self.futex.is_empty()
    }
    pub(crate) fn names(&self) -> BTreeMap<u32, String> {
        self.names.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_number_get_one_that_no_kernel_has() {
        let mut calls = NumberedCalls::default();
        calls.set_machine("x86_64");
        let number = calls.number_of("clock_nanosleep");
        assert!(number >= UNNUMBERED);
        assert_eq!(calls.number_of("clock_nanosleep"), number);
        assert!(calls.is_futex(202) && !calls.is_futex(98));
        assert_eq!(calls.number_of("futex"), 202);
        assert_eq!(calls.names()[&number], "clock_nanosleep");
    }
}
