//! Calls of functions as function_graph shows them: the functions with the longest time of their
//! own, and the trees of system calls.

use punctual_core::call_path::{CallPath, system_call_of};
use punctual_core::event::{MomentSource, Tid, TraceMoment};
use punctual_core::{MonotonicNs, Nanos};
use std::collections::HashMap;

/// Functions that are kept, those with the longest own time.
const KEPT: usize = 16;
const CPUS: usize = 1 << 10;
/// Calls inside one another: the kernel follows 50.
const DEPTH: usize = 64;
/// Functions of one call, and of all system calls that are kept.
const TREE: usize = 1 << 14;
const TREES: usize = 1 << 17;

/// A line or a record of the tracer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GraphLine<'a> {
    pub(crate) at: Option<i64>,
    pub(crate) cpu: u16,
    pub(crate) task: Option<(&'a str, u32)>,
    pub(crate) took: Option<i64>,
    pub(crate) what: GraphCall<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GraphCall<'a> {
    Enter(&'a str),
    Leaf(&'a str),
    Leave,
    /// Another task runs on the CPU: ` 0)  bash-123   =>   idle-0`.
    Switch,
    Other,
}

/// A CPU: the task that was named last, and the functions that it is in, with the time of those
/// that they called.
#[derive(Default, Debug)]
struct GraphCpu {
    task: Option<u32>,
    calls: Vec<(String, i64)>,
    /// All functions since the outermost of `calls` began, with their depth and, once they have
    /// ended, their time.
    tree: Vec<(String, u32, Option<i64>)>,
}

impl GraphCpu {
    fn clear(&mut self) {
        self.calls.clear();
        self.tree.clear();
    }

    /// A function begins, or is over at once. One that is too large is not kept.
    fn add(&mut self, name: &str, took: Option<i64>) {
        if self.tree.len() < TREE {
            self.tree.push((name.to_owned(), self.calls.len() as u32, took));
        }
    }

    /// The function in this depth ended; returns the first system call in the outermost one, once
    /// that has.
    fn on_function_end(&mut self, depth: usize, took: Option<i64>) -> Option<CallPath> {
        let of_depth = |of: &&mut (String, u32, _)| of.1 as usize == depth;
        if let Some(of) = self.tree.iter_mut().rev().find(of_depth) {
            of.2 = took;
        }
        let tree = if depth == 0 { std::mem::take(&mut self.tree) } else { return None };
        let first = tree.iter().find_map(|(function, ..)| system_call_of(function))?;
        let finished_calls: Option<Vec<(&str, u32, i64)>> =
            tree.iter().map(|(name, depth, took)| Some((&**name, *depth, (*took)?))).collect();
        CallPath::find_call(
            first,
            "function_graph",
            &finished_calls.filter(|all| all.len() < TREE)?,
        )
    }
}

/// The calls of each CPU, and the longest ones so far.
#[derive(Default, Debug)]
pub(crate) struct Graph {
    cpus: HashMap<u16, GraphCpu>,
    longest: Vec<TraceMoment>,
    /// System calls from their begin to their end, and the functions in all of them.
    pub(crate) paths: Vec<CallPath>,
    kept: usize,
}

impl Graph {
    /// Takes a line; false beyond the limit of CPUs.
    pub(crate) fn on_line(&mut self, line: &GraphLine<'_>) -> bool {
        if self.cpus.len() >= CPUS && !self.cpus.contains_key(&line.cpu) {
            return false;
        }
        let cpu = self.cpus.entry(line.cpu).or_default();
        if let Some((_, tid)) = line.task {
            // The functions of another task are its own.
            if cpu.task.is_some_and(|before| before != tid) || line.what == GraphCall::Switch {
                cpu.clear();
            }
            cpu.task = Some(tid);
        }
        let tid = cpu.task.map_or(Tid::UNKNOWN, Tid);
        let at = line.at.unwrap_or(0);
        let ended = match line.what {
            GraphCall::Enter(name) if cpu.calls.len() < DEPTH => {
                cpu.add(name, None);
                cpu.calls.push((name.to_owned(), 0));
                None
            }
            GraphCall::Enter(_) => {
                cpu.clear();
                None
            }
            GraphCall::Leaf(name) => {
                if !cpu.calls.is_empty() {
                    cpu.add(name, line.took);
                }
                line.took.map(|took| (name.to_owned(), took, took))
            }
            GraphCall::Leave => {
                let call = cpu.calls.pop();
                let depth = cpu.calls.len();
                if let Some(path) =
                    call.as_ref().and_then(|_| cpu.on_function_end(depth, line.took))
                {
                    self.kept += path.functions.len();
                    self.paths.extend(Some(path).filter(|_| self.kept <= TREES));
                }
                call.zip(line.took).map(|((name, within), took)| (name, took, took - within))
            }
            GraphCall::Switch | GraphCall::Other => None,
        };
        let Some((name, took, own)) = ended else { return true };
        let caller = cpu.calls.last_mut().map(|(caller, within)| {
            *within = within.saturating_add(took);
            format!(" ‹ {caller}")
        });
        let longest = self.longest.get(KEPT - 1).map_or(0, |least| least.duration().ns());
        if own > longest {
            let from = at.max(0);
            let to = MonotonicNs(from.saturating_add(own));
            let until = TraceMoment::from_end(MomentSource::FunctionGraph, to, Nanos(own), tid);
            let words = format!(
                "{name}{}, {own} ns of its own, the tracer's cost of each call included",
                caller.unwrap_or_default()
            );
            let moment = TraceMoment { cpu: Some(line.cpu), words, ..until };
            let place = self.longest.partition_point(|other| other.duration().ns() >= own);
            self.longest.insert(place, moment);
            self.longest.truncate(KEPT);
        }
        true
    }

    /// The longest calls, which are no longer kept here.
    pub(crate) fn take_longest_calls(&mut self) -> Vec<TraceMoment> {
        std::mem::take(&mut self.longest)
    }
}
