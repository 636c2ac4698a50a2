//! Paths of hand-written windows.

use super::dump::{
    BlockEnd, CODE, CodeBlock, CodeSection, Dump, DumpEntry, DumpTask, DumpWindow, SectionKind,
    Stretch,
};
use super::path::{ExecutionContext, Path};
use super::phases::{PartKind, split_path};
use super::programs::{ExecutableBytes, Program, UserFunctions};
use super::sections::collect_sections;
use super::symbols::KernelSymbols;
use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// Functions of 256 bytes each, in this order from the kernel's first address on.
const FUNCTIONS: [&str; 14] = [
    "entry_SYSCALL_64",
    "do_syscall_64",
    "free_pages",
    "asm_sysvec_apic_timer_interrupt",
    "hrtimer_interrupt",
    "resched_curr",
    "irqentry_exit",
    "__schedule",
    "__switch_to_asm",
    "__x86_indirect_thunk_rax",
    "clear_page",
    "_raw_spin_lock",
    "rt_spin_lock",
    "last",
];

fn names() -> FunctionTable {
    let line = |(place, name): (usize, &&str)| format!("{:x} T {name}\n", at(place, 0));
    let kernel = KernelSymbols::parse(&FUNCTIONS.iter().enumerate().map(line).collect::<String>());
    FunctionTable { kernel, user: UserFunctions::default(), lines: HashMap::new() }
}

fn at(function: usize, offset: u64) -> u64 {
    KERNEL + 256 * function as u64 + offset
}

fn place_of(name: &str) -> usize {
    FUNCTIONS.iter().position(|known| *known == name).unwrap()
}

#[derive(Default)]
struct Script {
    dump: Dump,
    entries: Vec<DumpEntry>,
}

impl Script {
    /// A block of ten instructions and 40 bytes.
    fn block(&mut self, pc: u64, kind: BlockEnd) -> &mut Script {
        let entry = pc == at(place_of("asm_sysvec_apic_timer_interrupt"), 0);
        let clock = if pc < KERNEL && kind == BlockEnd::Plain { 10 } else { 0 };
        self.entries.push(DumpEntry::Block(self.dump.blocks.len()));
        let code = [0; CODE];
        self.dump.blocks.push(CodeBlock { pc, bytes: 40, insns: 10, clock, kind, entry, code });
        self
    }
    /// From a text, a block or another entry a line: `free_pages+40 call`, `0x1000 syscall`,
    /// `switch 1`.
    fn parse(text: &str) -> Script {
        let mut script = Script::default();
        for line in text.lines() {
            let (first, last) = line.trim().split_once(' ').unwrap();
            let entry = match (first, last) {
                ("switch", task) => Some(DumpEntry::Switch(task.parse().ok())),
                ("irqs", "off") => Some(DumpEntry::IrqsOff),
                ("irqs", _) => Some(DumpEntry::IrqsOn),
                ("cpu", _) => Some(DumpEntry::Idle),
                _ => None,
            };
            if let Some(entry) = entry {
                script.entries.push(entry);
                continue;
            }
            let kind = match last {
                "call" => BlockEnd::Call,
                "return" => BlockEnd::Return,
                "syscall" => BlockEnd::Syscall,
                "sysret" => BlockEnd::Sysret,
                "iret" => BlockEnd::Iret,
                _ => BlockEnd::Plain,
            };
            let pc = match (first.strip_prefix("0x"), first.split_once('+')) {
                (Some(user), _) => u64::from_str_radix(user, 16).unwrap(),
                (_, Some((name, offset))) => at(place_of(name), offset.parse().unwrap()),
                _ => at(place_of(first), 0),
            };
            script.block(pc, kind);
        }
        script
    }
    /// Takes the sample with a latency of `insns` instructions.
    fn sample(&mut self, insns: i64) -> (Path, DumpWindow) {
        let window = DumpWindow {
            due: 1_000,
            woke: 1_000 + 8 * insns,
            at: 0,
            task: Some(0),
            entries: self.entries.clone(),
        };
        (Path::from_window(&self.dump, &window, &names(), Nanos(8)), window)
    }
}

/// A load frees pages with interrupts disabled; the timer's interrupt waits, then wakes the thread.
fn late() -> Script {
    let mut script = Script::parse(
        "switch 1
        0x1000 syscall
        entry_SYSCALL_64 call
        do_syscall_64 call
        irqs off
        free_pages call
        clear_page return
        free_pages+40 plain
        irqs on
        irqs off
        asm_sysvec_apic_timer_interrupt call
        hrtimer_interrupt call
        resched_curr return
        hrtimer_interrupt+40 return
        asm_sysvec_apic_timer_interrupt+40 iret
        irqs on
        free_pages+80 return
        do_syscall_64+40 call
        __schedule call
        __switch_to_asm return
        switch 0
        __schedule+40 return
        entry_SYSCALL_64+80 sysret
        0x2000 plain",
    );
    let task = |tid, comm: &str| DumpTask { tid, comm: comm.to_owned() };
    script.dump.tasks = vec![task(7, "timer/cpu0"), task(9, "stress-ng")];
    script
}

#[test]
fn parts_cover_the_path_and_name_their_longest_functions() {
    let (path, window) = late().sample(180);
    assert_eq!((path.insns, path.without), (180, 0));
    let parts = split_path(&path, window.task);
    let of_response = phases::response_instructions(&path, &parts).unwrap();
    assert_eq!(of_response.iter().sum::<u64>(), path.insns);
    assert_eq!(of_response[..3], [0, parts[0].end, 10], "{of_response:?}");
    let shown: Vec<String> = parts
        .iter()
        .map(|part| {
            let functions = part.functions.iter();
            let functions: Vec<String> =
                functions.map(|(name, own)| format!("{name} {own}")).collect();
            format!(
                "{} {}..{}: {} [{}]",
                part.kind.as_str(),
                part.begin,
                part.end,
                functions.join(", "),
                part.stack.join(" > ")
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    irqs-disabled 0..60: free_pages 20, clear_page 10, do_syscall_64 10, entry_SYSCALL_64 10, user mode 10 [user mode > entry_SYSCALL_64 > do_syscall_64 > free_pages]
    interrupt 60..80: asm_sysvec_apic_timer_interrupt 10, hrtimer_interrupt 10 [user mode > entry_SYSCALL_64 > do_syscall_64 > free_pages > asm_sysvec_apic_timer_interrupt]
    not-preempted 80..130: asm_sysvec_apic_timer_interrupt 10, do_syscall_64 10, free_pages 10, hrtimer_interrupt 10, resched_curr 10 [user mode > entry_SYSCALL_64 > do_syscall_64 > free_pages > asm_sysvec_apic_timer_interrupt]
    schedule 130..150: __schedule 10, __switch_to_asm 10 [user mode > entry_SYSCALL_64 > do_syscall_64 > __schedule]
    return 150..180: __schedule 10, entry_SYSCALL_64 10, user mode 10 [__schedule]
    ");
    assert_eq!(parts.iter().map(|part| part.end - part.begin).sum::<u64>(), path.insns);
    assert_eq!(path.function_totals().iter().map(|function| function.own).sum::<u64>(), path.insns);
}

/// Two sections that one function began through a helper, one with its blocks: the first contains
/// the window of [`late`].
fn with_sections() -> Dump {
    let mut script = late();
    let lock = at(place_of("_raw_spin_lock"), 4);
    let caller = at(place_of("free_pages"), 40);
    let section = |kind, pc, caller, count: u64, longest: u64, preempt_count| CodeSection {
        kind,
        pc,
        caller,
        outer: 0,
        callee: 0,
        count,
        total: count * longest,
        longest,
        end_pc: at(place_of("last"), 0),
        end_callers: [0; 3],
        at: 0,
        preempt_count,
    };
    let (irqs, preemption) = (SectionKind::Irqs, SectionKind::Preemption);
    let set = at(place_of("resched_curr"), 8);
    let interrupted = |pc: u64| section(SectionKind::Resched, set, pc & !(1 << 63), 1, pc % 256, 0);
    script.dump.sections = vec![
        section(preemption, lock, caller, 3, 60, 1),
        section(preemption, lock, at(place_of("free_pages"), 80), 2, 20, 1),
        section(preemption, lock, caller, 1, 7, 0x100),
        section(irqs, at(place_of("clear_page"), 0), 0, 1, 9, 0),
        // A lock in a separate function, and one that releases it.
        CodeSection {
            callee: at(place_of("rt_spin_lock"), 16),
            end_pc: at(place_of("_raw_spin_lock"), 40),
            end_callers: [at(place_of("rt_spin_lock"), 80), at(place_of("free_pages"), 9), 0],
            ..section(irqs, lock, at(place_of("do_syscall_64"), 20), 1, 8, 0)
        },
        // The lock function's own section.
        CodeSection {
            outer: at(place_of("clear_page"), 9),
            ..section(irqs, at(place_of("rt_spin_lock"), 4), 0, 1, 5, 0)
        },
        section(SectionKind::Migration, lock, caller, 1, 9, 0),
        CodeSection {
            outer: at(place_of("clear_page"), 9),
            ..section(SectionKind::LockWait, lock, at(place_of("rt_spin_lock"), 4), 1, 9, 0)
        },
        interrupted(at(place_of("clear_page"), 90)),
        interrupted(0x5511_2233_4450),
        section(SectionKind::Resched, set, at(place_of("hrtimer_interrupt"), 5), 1, 70, 0),
    ];
    // From the start of free_pages to the end of the interrupt's handler.
    let all = 180;
    script.dump.longest = vec![Stretch {
        kind: preemption,
        pc: lock,
        caller,
        begin: 1_030,
        end: 1_090,
        at: 1_000 + all,
        entries: script.entries,
    }];
    script.dump
}

#[test]
fn sections_are_of_the_function_that_means_them() {
    let dump = with_sections();
    let shown = |kind| {
        let lines = collect_sections(&dump, &names(), kind).into_iter().map(|one| {
            format!(
                "{} by {:?} ({}): {} times, {}, longest {} to {}; [{}] {:?}",
                one.function,
                one.by,
                one.context,
                one.count,
                one.total,
                one.longest,
                one.ended_in,
                one.stack.join(" > "),
                one.functions
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(shown(SectionKind::Preemption), @r#"
    free_pages by Some("_raw_spin_lock") (preemption-disabled): 5 times, 220, longest 60 to last; [user mode > entry_SYSCALL_64 > do_syscall_64 > free_pages] [("free_pages", 20), ("asm_sysvec_apic_timer_interrupt", 10), ("clear_page", 10), ("hrtimer_interrupt", 10), ("resched_curr", 10)]
    free_pages by Some("_raw_spin_lock") (softirq): 1 times, 7, longest 7 to last; [] []
    "#);
    insta::assert_snapshot!(shown(SectionKind::Irqs), @r#"
    clear_page by None (irqs): 1 times, 9, longest 9 to last; [] []
    do_syscall_64 by Some("rt_spin_lock") (irqs): 1 times, 8, longest 8 to free_pages; [] []
    clear_page by Some("rt_spin_lock") (irqs): 1 times, 5, longest 5 to last; [] []
    "#);
    insta::assert_snapshot!(shown(SectionKind::Resched), @r#"
    clear_page by None (interrupt): 1 times, 90, longest 90 to last; [] []
    user mode by None (interrupt): 1 times, 80, longest 80 to last; [] []
    hrtimer_interrupt by Some("resched_curr") (task): 1 times, 70, longest 70 to last; [] []
    "#);
    insta::assert_snapshot!(shown(SectionKind::Migration), @r#"free_pages by Some("_raw_spin_lock") (task): 1 times, 9, longest 9 to last; [] []"#);
    insta::assert_snapshot!(shown(SectionKind::LockWait), @r#"clear_page by Some("rt_spin_lock") (task): 1 times, 9, longest 9 to last; [] []"#);
}

#[test]
fn an_interrupt_is_nested_in_the_call_that_it_interrupted() {
    let (path, _) = late().sample(180);
    let interrupt = path.calls.iter().find(|call| call.function == "hrtimer_interrupt").unwrap();
    assert_eq!((interrupt.context, interrupt.depth), (ExecutionContext::Interrupt, 5));
    let freed = path.calls.iter().find(|call| call.function == "free_pages").unwrap();
    assert_eq!((freed.context, freed.depth), (ExecutionContext::Task(Some(1)), 3));
    assert!(freed.begin <= interrupt.begin && interrupt.end <= freed.end);
}

#[test]
fn without_disabled_interrupts_the_timer_was_late() {
    let mut script = late();
    script.entries.retain(|entry| !matches!(entry, DumpEntry::IrqsOff | DumpEntry::IrqsOn));
    let (path, window) = script.sample(180);
    assert_eq!(split_path(&path, window.task)[0].kind, PartKind::Timer);
}

#[test]
fn a_retpoline_thunk_adds_no_call_level() {
    let mut script = Script::parse(
        "do_syscall_64 call
        __x86_indirect_thunk_rax call
        __x86_indirect_thunk_rax+40 return
        free_pages return
        do_syscall_64+40 plain
        0x2000 plain",
    );
    let (path, _) = script.sample(50);
    let depth =
        |name: &str| path.calls.iter().find(|call| call.function == name).map(|call| call.depth);
    assert_eq!((depth("do_syscall_64"), depth("free_pages")), (Some(0), Some(1)));
}

/// User code without repetitions of 16 bytes.
fn program_code() -> Vec<u8> {
    (0..0x400_u64).map(|k| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

#[test]
fn user_functions_are_callers_of_their_system_calls() {
    // A jump to 0x1200, as in a stub for a library.
    let mut script = Script::parse(
        "0x1000 call
        0x1100 syscall
        entry_SYSCALL_64 call
        do_syscall_64 sysret
        0x1128 return
        0x1028 call
        0x1200 plain
        0x1100 plain
        0x90000 plain",
    );
    let code = program_code();
    for block in script.dump.blocks.iter_mut().filter(|block| block.pc < 0x9_0000) {
        let at = block.pc as usize - 0x1000;
        block.code = code[at..at + CODE].try_into().unwrap();
    }
    let functions = [(0x100, "loop"), (0, "main"), (0x200, "stub")];
    let mut functions = functions.map(|(at, name)| (at, 0x100, name.to_owned())).to_vec();
    functions.sort();
    let program = Program {
        name: "load".to_owned(),
        code: vec![ExecutableBytes { offset: 0, bytes: code }],
        functions,
    };
    let places: Vec<usize> = (0..script.dump.blocks.len()).collect();
    let user = UserFunctions::find_blocks(&script.dump.blocks, &places, &[program]);
    let (_, window) = script.sample(90);
    let lines = [(0, "load.c:9"), (1, "load.c:3"), (7, "load.c:3")];
    let lines = lines.map(|(place, line)| (place, line.to_owned())).into();
    let path = Path::from_window(
        &script.dump,
        &window,
        &FunctionTable { user, lines, ..names() },
        Nanos(8),
    );
    let shown: Vec<String> = path
        .calls
        .iter()
        .map(|call| {
            format!("{}{} {}..{}", "  ".repeat(call.depth), call.function, call.begin, call.end)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    user mode 0..90
      load:main 0..90
        load:loop 10..50
          entry_SYSCALL_64 20..40
            do_syscall_64 30..40
        load:stub 60..70
        load:loop 70..80
        user mode 80..90
    ");
    let lines: Vec<String> =
        path.lines.iter().map(|(line, function, own)| format!("{line} {function} {own}")).collect();
    assert_eq!(lines, ["load.c:3 load:loop 20", "load.c:9 load:main 10"]);
    assert_eq!(path.function_totals().iter().map(|function| function.own).sum::<u64>(), path.insns);
}

#[test]
fn an_idle_cpu_has_no_instructions_before_the_release() {
    let mut script = Script::parse(
        "do_syscall_64 plain\ncpu idle\nasm_sysvec_apic_timer_interrupt iret\n0x2000 plain",
    );
    let (path, _) = script.sample(25);
    assert_eq!((path.insns, path.without), (20, 5));
}

proptest! {
    /// For any execution: own instructions add up, calls are within the path, parts have no gap.
    #[test]
    fn instructions_of_functions_and_parts_add_up_exactly(
        steps in prop::collection::vec((0..FUNCTIONS.len(), 0..6_u64, 0..7_u8), 1..200),
        latency in 1..3_000_i64,
    ) {
        use BlockEnd::{Call, Iret, Plain, Return, Syscall, Sysret};
        let mut script = late();
        for (function, block, kind) in steps {
            let kinds =
                [Plain, Call, Return, Syscall, Sysret, Iret];
            match kinds.get(usize::from(kind)) {
                Some(kind) => _ = script.block(at(function, 40 * block), *kind),
                None => script.entries.push(DumpEntry::Switch(Some(function % 2))),
            }
        }
        script.block(0x2000, BlockEnd::Plain);
        let (path, window) = script.sample(latency);
        prop_assert_eq!(path.insns + path.without, latency as u64);
        prop_assert_eq!(path.function_totals().iter().map(|f| f.own).sum::<u64>(), path.insns);
        prop_assert!(
            path.calls.iter().all(|call| call.begin <= call.end && call.end <= path.insns)
        );
        let parts = split_path(&path, window.task);
        let mut end = 0;
        for part in &parts {
            prop_assert_eq!(part.begin, end);
            prop_assert!(part.end > part.begin);
            end = part.end;
        }
        prop_assert_eq!(end, path.insns);
    }
}
