//! One system call as the tree of the functions that it ran.

use serde::{Deserialize, Serialize};

/// The format of a [`CallPath`] as JSON.
const PATH_SCHEMA: &str = "punctual-path/1";

/// Where on the path of a system call a function stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathStage {
    /// The program's function that makes the call.
    Wrapper,
    /// The kernel's first instructions.
    Entry,
    /// The look-up of the call by its number.
    Dispatcher,
    /// The call itself.
    Call,
    /// The layer over all file systems.
    Vfs,
    /// On the way back to user mode.
    Return,
}

impl PathStage {
    pub fn as_str(self) -> &'static str {
        match self {
            PathStage::Wrapper => "wrapper",
            PathStage::Entry => "entry",
            PathStage::Dispatcher => "dispatcher",
            PathStage::Call => "call",
            PathStage::Vfs => "VFS",
            PathStage::Return => "return",
        }
    }
}

/// A function of the path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CalledFunction {
    pub stage: Option<PathStage>,
    /// Untrusted: escape it for output.
    pub function: String,
    /// The number of functions around it.
    pub depth: u32,
    /// From its begin to its end, in ns.
    pub ns: i64,
    /// The same without the functions that it called, interrupts among them.
    pub own_ns: i64,
}

/// A call of a system call, or the median of several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallPath {
    pub schema: String,
    /// Its name without prefix: `read`.
    pub call: String,
    /// `exact` (virtual time, every instruction) or `function_graph`, whose own cost is in each
    /// function.
    pub source: String,
    /// Calls of which this is the median; 1 where it is the only one.
    pub calls: u64,
    /// In the order in which they began; the first is around all others.
    pub functions: Vec<CalledFunction>,
}

/// The kernel's prefixes of the name of a system call (include/linux/syscalls.h,
/// arch/*/include/asm/syscall_wrapper.h); what is called by the number comes first.
const PREFIXES: [&str; 9] = [
    "__x64_sys_",
    "__arm64_sys_",
    "__riscv_sys_",
    "__ia32_sys_",
    "__se_sys_",
    "__do_sys_",
    "ksys_",
    "SyS_",
    "sys_",
];
/// The first code in the kernel (entry_64.S, entry-common.c of arm64, entry.S of riscv and arm).
const ENTRIES: [&str; 5] = ["entry_", "el0", "handle_exception", "ret_fast_syscall", "vector_swi"];

/// The system call that a function of the kernel implements.
pub fn system_call_of(function: &str) -> Option<&str> {
    PREFIXES.iter().find_map(|prefix| function.strip_prefix(prefix))
}

fn is_entry(function: &str) -> bool {
    ENTRIES.iter().any(|entry| function.starts_with(entry))
}

impl CallPath {
    /// The first call of this name (`-` is `_`) among functions with their depth and time in ns, in
    /// the order in which they began. It begins with the program's function around it, if that is
    /// known.
    pub fn find_call(call: &str, source: &str, all: &[(&str, u32, i64)]) -> Option<CallPath> {
        let call = call.replace('-', "_");
        let is_it = |function: &str| system_call_of(function) == Some(&call);
        let at = all.iter().position(|(function, ..)| is_it(function))?;
        // The functions around it, from the inside; beyond the kernel's entry they are a program's.
        let mut around = vec![at];
        for place in (0..at).rev() {
            if all[place].1 < all[around[around.len() - 1]].1 {
                around.push(place);
            }
        }
        let entry = around.iter().rposition(|place| is_entry(all[*place].0));
        let wrapper = entry.and_then(|entry| around.get(entry + 1).copied());
        around.truncate(entry.map_or(around.len(), |entry| entry + 1));
        let root = wrapper.unwrap_or(around[around.len() - 1]);
        let inner_range = |from: usize| {
            let deeper = all[from + 1..].iter().take_while(move |of| of.1 > all[from].1);
            from + 1..from + 1 + deeper.count()
        };
        let whole = inner_range(root);
        // A jump into another function takes the place of the one that jumped.
        let of_call = |place: &usize| is_it(all[*place].0);
        let done = (at..whole.end).rfind(of_call).map_or(at, |last| inner_range(last).end);
        let stage = |place: usize, function: &str| {
            Some(match function {
                _ if wrapper == Some(place) => PathStage::Wrapper,
                _ if place < at && is_entry(function) => PathStage::Entry,
                _ if place < at && around.contains(&place) => PathStage::Dispatcher,
                _ if is_it(function) => PathStage::Call,
                _ if function.starts_with("vfs_") && (at..done).contains(&place) => PathStage::Vfs,
                _ if place >= done && all[place].1 <= all[at].1 => PathStage::Return,
                _ => return None,
            })
        };
        let functions = std::iter::once(root).chain(whole).map(|place| {
            let (function, depth, ns) = all[place];
            let below = all[inner_range(place)].iter().filter(|below| below.1 == depth + 1);
            CalledFunction {
                stage: stage(place, function),
                function: function.to_owned(),
                depth: depth - all[root].1,
                ns,
                own_ns: below.fold(ns, |own, below| own.saturating_sub(below.2)),
            }
        });
        let functions = functions.collect();
        Some(CallPath {
            schema: PATH_SCHEMA.to_owned(),
            call,
            source: source.to_owned(),
            calls: 1,
            functions,
        })
    }

    /// The time of the whole path in ns.
    pub fn total_ns(&self) -> i64 {
        self.functions.first().map_or(0, |root| root.ns)
    }

    /// The one with the median time, with their number.
    pub fn median_path(mut all: Vec<CallPath>) -> Option<CallPath> {
        let calls = all.len() as u64;
        all.sort_by_key(CallPath::total_ns);
        let middle = all.len().checked_sub(1)? / 2;
        Some(CallPath { calls, ..all.swap_remove(middle) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_stages_and_times_of_their_own() {
        let all = [
            ("main", 0, 900),
            ("libc.so.6:read", 1, 500),
            ("entry_SYSCALL_64", 2, 450),
            ("do_syscall_64", 3, 400),
            ("enter_from_user_mode", 4, 10),
            ("__x64_sys_read", 4, 20),
            // A jump: at the same depth.
            ("ksys_read", 4, 200),
            ("vfs_read", 5, 150),
            ("asm_interrupt", 6, 30),
            ("syscall_exit_to_user_mode", 4, 60),
            ("vfs_flush", 5, 5),
            ("libc.so.6:other", 1, 7),
        ];
        let path = CallPath::find_call("read", "exact", &all).unwrap();
        let stages: Vec<_> =
            path.functions.iter().map(|of| of.stage.map(PathStage::as_str)).collect();
        let [wrapper, entry, dispatcher, call] =
            ["wrapper", "entry", "dispatcher", "call"].map(Some);
        let rest = [None, call, call, Some("VFS"), None, Some("return"), None];
        assert_eq!(stages, [&[wrapper, entry, dispatcher][..], &rest].concat());
        let own: Vec<i64> = path.functions.iter().map(|of| of.own_ns).collect();
        assert_eq!(own, [50, 50, 110, 10, 20, 50, 120, 30, 55, 5]);
        // Every instant is some function's own.
        assert_eq!(own.iter().sum::<i64>(), path.total_ns());
        assert_eq!(path.functions.iter().map(|of| of.depth).max(), Some(5));
        assert_eq!(CallPath::find_call("write", "exact", &all), None);
        assert!(CallPath::find_call("clock-gettime", "", &[("sys_clock_gettime", 0, 1)]).is_some());
    }

    #[test]
    fn the_median_call_is_one_of_them() {
        let of = |ns| CallPath::find_call("read", "", &[("sys_read", 0, ns)]).unwrap();
        let middle = CallPath::median_path([5, 900, 7].map(of).into()).unwrap();
        assert_eq!((middle.total_ns(), middle.calls), (7, 3));
        assert_eq!(CallPath::median_path(Vec::new()), None);
    }
}
