//! `heap`: malloc, first touch, free.

use crate::form::{
    bytes_form, count_form, duration_form, flag_form, optional_form, path_form, word_form,
};
use crate::kind::{
    HistogramPlan, Kind, KindFacts, ParameterProblems, SampledBy, parameters, words,
};
use crate::limits::{MAX_PERIOD, MIN_PERIOD};
use punctual_core::event::Group;
use punctual_core::{Bytes, Nanos};
use std::path::PathBuf;

words! {
    /// The requested sizes.
    Sizes {
        /// Always `size`.
        Fixed = "fixed",
        /// Random, from `size` to `size_max`.
        Random = "random",
        /// A linked list of `nodes` blocks of random sizes, its nodes visited in random order.
        List = "list",
        /// A linked list of a random total from `size` to `size_max`, in nodes of `size`, visited
        /// in random order.
        RandomList = "random-list",
    }
}

parameters! {
    /// Blocks from the heap.
    HeapPlan, HeapSpec {
        /// Which sizes: `fixed`: `size`; `random`: from `size` to `size_max`; `list`: a linked list
        /// of `nodes` blocks of random sizes, visited in random order; `random-list`: one of a
        /// random total from `size` to `size_max`, in nodes of `size`.
        sizes: Sizes = Sizes::Fixed, word_form("a choice of sizes");
        /// The size, or the least.
        size: Bytes = Bytes::kib(1), bytes_form(Bytes(1), Bytes(1 << 30));
        /// The largest of random sizes.
        size_max: Bytes = Bytes::mib(4), bytes_form(Bytes(1), Bytes(1 << 30));
        /// Blocks of a list.
        nodes: u32 = 100, count_form(1, 1_000_000);
        /// How many random lists; 0: as many as fit into the measure's length.
        lists: u64 = 0, count_form(0, 1_000_000_000);
        /// Whether every page is written.
        touch: bool = true, flag_form();
        /// Whether the process that allocates locks its memory.
        mlockall: bool = false, flag_form();
        /// Whether each block, or list, is in a new process that has allocated nothing before.
        fresh: bool = false, flag_form();
        /// The shared library of an allocator to be preloaded, or `built-in`, that of punctual
        /// itself; without it that of the machine's C library.
        allocator: Option<PathBuf> = None, optional_form(path_form());
        /// The time from one block to the next; without it the blocks are back to back.
        period: Option<Nanos> = None, optional_form(duration_form(MIN_PERIOD, MAX_PERIOD));
    }
}

impl Sizes {
    /// Whether blocks are allocated together, and visited in random order.
    pub fn is_list(self) -> bool {
        matches!(self, Sizes::List | Sizes::RandomList)
    }
}

impl HeapPlan {
    /// The number of nodes of the longest list; 1 if blocks are single.
    pub fn most_nodes(&self) -> u64 {
        match self.sizes {
            Sizes::List => self.nodes.into(),
            Sizes::RandomList => (self.size_max.get() / self.size.get().max(1)).max(1),
            Sizes::Fixed | Sizes::Random => 1,
        }
    }
}

/// The maximum number of nodes of a list.
const MOST_NODES: u64 = 1_000_000;
/// The maximum memory of a list.
const MOST_MEMORY: u64 = 4 << 30;

impl HeapPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        sampled_by: SampledBy::Helpers,
        validated_by: "pages, faults and calls by tracepoint",
        explained_by: &[Group::Page, Group::Lock, Group::Block],
        ..KindFacts::new("heap", "malloc, first touch, free")
    };
}

impl Kind for HeapPlan {
    fn series_parts(&self) -> Vec<String> {
        let touch = self.touch.then_some("touch");
        ["malloc"].into_iter().chain(touch).chain(["free"]).map(str::to_owned).collect()
    }
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::from_millis(10), resolution: Nanos(100) }
    }
    fn sample_period(&self) -> Option<Nanos> {
        self.period
    }
    fn is_spinning(&self) -> bool {
        self.period.is_none()
    }
}

impl HeapSpec {
    pub(crate) fn check_conflicts(&self, plan: &HeapPlan, problems: &mut ParameterProblems) {
        let usual = HeapPlan::default();
        if problems.threads != 1 {
            problems.report_conflict(
                &self.size,
                "one thread allocates",
                "leave `threads` out, or write several measures",
            );
        }
        if plan.sizes == Sizes::Fixed {
            problems.report_unused(
                "size_max",
                &self.size_max,
                &usual.size_max,
                "the size is fixed",
            );
        } else if plan.size > plan.size_max {
            let message = format!(
                "the least size ({}) is larger than the largest ({})",
                plan.size, plan.size_max
            );
            problems.report_conflict(&self.size, message, "exchange them");
        }
        if plan.sizes != Sizes::List {
            problems.report_unused(
                "nodes",
                &self.nodes,
                &usual.nodes,
                "only `sizes = \"list\"` has a number of nodes",
            );
        } else if plan.size_max.get().saturating_mul(plan.nodes.into()) > MOST_MEMORY {
            let message = format!(
                "{} blocks of up to {} may need more than 4 GiB",
                plan.nodes, plan.size_max
            );
            problems.report_conflict(&self.nodes, message, "choose fewer nodes or smaller blocks");
        }
        if plan.sizes != Sizes::RandomList {
            problems.report_unused(
                "lists",
                &self.lists,
                &usual.lists,
                "only random lists are counted",
            );
        } else if plan.most_nodes() > MOST_NODES {
            let message = format!(
                "a list of {} has more than {MOST_NODES} nodes of {}",
                plan.size_max, plan.size
            );
            problems.report_conflict(
                &self.size,
                message,
                "choose larger nodes or a smaller `size_max`",
            );
        }
    }
}
