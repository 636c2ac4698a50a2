//! Paging, huge pages, nodes.

use super::{Rule, RuleGroup};
use crate::check::context::{Context, require_known};
use crate::check::outcome::*;
use crate::environment::MemorySize;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "swap",
        group: RuleGroup::Memory,
        title: "there is no swap",
        why: "Access to a swapped-out page takes milliseconds, and memory that is not locked can \
              be swapped out.",
        source: "mlockall(2)",
        evaluate: check_swap,
    },
    Rule {
        id: "transparent-hugepages",
        group: RuleGroup::Memory,
        title: "transparent huge pages are never used, or only on madvise(2)",
        why: "Otherwise khugepaged copies pages of running programs, and locks their mappings \
              meanwhile.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        evaluate: transparent_hugepages,
    },
    Rule {
        id: "hugepage-defrag",
        group: RuleGroup::Memory,
        title: "a page fault does not compact memory",
        why: "With `always`, a fault that allocates a huge page may compact memory to make room \
              for it.",
        source: "Documentation/admin-guide/mm/transhuge.rst, defrag",
        evaluate: hugepage_defrag,
    },
    Rule {
        id: "proactive-compaction",
        group: RuleGroup::Memory,
        title: "proactive compaction is disabled",
        why: "kcompactd moves pages in the background, and a task that accesses such a page waits.",
        source: "Documentation/admin-guide/sysctl/vm.rst, compaction_proactiveness",
        evaluate: proactive_compaction,
    },
    Rule {
        id: "locked-page-compaction",
        group: RuleGroup::Memory,
        title: "locked pages are not compacted",
        why: "Compaction moves pages, even those locked with mlock(2), and a task that accesses \
              such a page meanwhile has a page fault.",
        source: "Documentation/admin-guide/sysctl/vm.rst, compact_unevictable_allowed",
        evaluate: locked_page_compaction,
    },
    Rule {
        id: "same-page-merging",
        group: RuleGroup::Memory,
        title: "kernel same-page merging (KSM) is disabled",
        why: "Merging write-protects pages, and the next write to one is a page fault with a copy.",
        source: "Documentation/admin-guide/mm/ksm.rst",
        evaluate: same_page_merging,
    },
    Rule {
        id: "numa-balancing",
        group: RuleGroup::Memory,
        title: "automatic NUMA balancing is disabled",
        why: "NUMA balancing unmaps pages to detect accesses, and this causes page faults in \
              real-time tasks.",
        source: "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing",
        evaluate: numa_balancing,
    },
];

fn check_swap(ctx: &Context) -> Conclusion {
    match require_known(&ctx.environment.memory.swap_total)? {
        MemorySize(0) => ok_outcome("there is no swap", "/proc/meminfo has SwapTotal: 0 kB"),
        size => advice_outcome(
            format!("{size} of swap are in use by the system"),
            format!("/proc/meminfo has SwapTotal: {} kB", size.0 / 1024),
        )
        .with_fix(Fix::by_hand("swapoff -a, and lock the memory of real-time programs (mlockall)")),
    }
    .conclude()
}

fn transparent_hugepages(ctx: &Context) -> Conclusion {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = ctx.setting_of(path, "TRANSPARENT_HUGEPAGE")?;
    match chosen_word(path, &text)? {
        "always" => warning_outcome(
            "transparent huge pages are always enabled",
            format_evidence(path, &text),
        )
        .with_fix(Fix::write(path, "madvise")),
        _ => ok_outcome(
            "only programs that request huge pages get them",
            format_evidence(path, &text),
        ),
    }
    .conclude()
}

fn hugepage_defrag(ctx: &Context) -> Conclusion {
    let path = "/sys/kernel/mm/transparent_hugepage/defrag";
    let text = ctx.setting_of(path, "TRANSPARENT_HUGEPAGE")?;
    match chosen_word(path, &text)? {
        "always" => {
            advice_outcome("any page fault may compact memory", format_evidence(path, &text))
                .with_fix(Fix::write(path, "madvise"))
        }
        _ => ok_outcome(
            "a fault compacts memory only where a program asks",
            format_evidence(path, &text),
        ),
    }
    .conclude()
}

/// The word in brackets of `always [madvise] never`.
fn chosen_word<'a>(path: &str, text: &'a str) -> Result<&'a str, CheckOutcome> {
    let word =
        text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    word.ok_or_else(|| {
        unknown_outcome(format!("{}, without a choice in brackets", format_evidence(path, text)))
    })
}

fn proactive_compaction(ctx: &Context) -> Conclusion {
    let path = "/proc/sys/vm/compaction_proactiveness";
    match ctx.number_of(path, "COMPACTION")? {
        0 => ok_outcome("memory is compacted only on demand", format_evidence(path, 0)),
        on => advice_outcome("memory is compacted in the background", format_evidence(path, on))
            .with_fix(Fix::write(path, "0")),
    }
    .conclude()
}

fn locked_page_compaction(ctx: &Context) -> Conclusion {
    let path = "/proc/sys/vm/compact_unevictable_allowed";
    match ctx.number_of(path, "COMPACTION")? {
        0 => ok_outcome("compaction leaves locked pages alone", format_evidence(path, 0)),
        on => advice_outcome("compaction may move locked pages", format_evidence(path, on))
            .with_fix(Fix::write(path, "0")),
    }
    .conclude()
}

fn same_page_merging(ctx: &Context) -> Conclusion {
    let path = "/sys/kernel/mm/ksm/run";
    match ctx.number_of(path, "KSM")? {
        1 => warning_outcome("KSM merges equal pages", format_evidence(path, 1))
            .with_fix(Fix::write(path, "0")),
        off => ok_outcome("KSM does not run", format_evidence(path, off)),
    }
    .conclude()
}

fn numa_balancing(ctx: &Context) -> Conclusion {
    let path = "/proc/sys/kernel/numa_balancing";
    match ctx.number_of(path, "NUMA_BALANCING")? {
        0 => ok_outcome("automatic NUMA balancing is disabled", format_evidence(path, 0)),
        on => warning_outcome("automatic NUMA balancing is enabled", format_evidence(path, on))
            .with_fix(Fix::write(path, "0")),
    }
    .conclude()
}
