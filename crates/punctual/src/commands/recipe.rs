//! `punctual recipe`: how other tools record what `punctual explain` needs.

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use clap::ValueEnum;
use punctual_core::Nanos;
use punctual_core::event::Group;
use punctual_record::names_of_tracepoints;

/// Print how another tool records what `punctual explain` needs
///
/// The line runs unchanged on the machine to be examined: only there is that tool
/// needed, and punctual is not. What it writes is read by `punctual explain FILE`, anywhere.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual recipe trace-cmd\n  punctual recipe perf --duration \
                        1min\n  ssh board \"$(punctual recipe tracefs --machine arm64)\" && scp \
                        board:/tmp/trace.txt . && punctual explain trace.txt\n\nWithout system \
                        calls (--no-syscalls) far less is recorded: cycles then lie between \
                        sleeps, and what a thread waits for is not known. --for wakeup records \
                        the scheduler alone: how long each thread was ready, and who ran \
                        meanwhile; --for function every function of the kernel, too: much, and \
                        it slows the machine down."
)]
pub struct RecipeArgs {
    /// The tool
    #[arg(value_enum)]
    tool: RecordingTool,
    /// The question that the trace is to answer
    #[arg(long = "for", value_enum, value_name = "QUESTION", default_value_t = Question::Cause)]
    question: Question,
    /// How long to record
    #[arg(long, short, value_name = "DURATION", default_value = "10s")]
    duration: Nanos,
    /// The processor of the machine that records: interrupt vectors have events on x86 alone
    #[arg(long, value_enum, default_value_t = RecipeMachine::HERE)]
    machine: RecipeMachine,
    /// Leave out system calls
    #[arg(long)]
    no_syscalls: bool,
}

/// A recording tool.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RecordingTool {
    /// trace-cmd record
    TraceCmd,
    /// perf record
    Perf,
    /// lttng
    Lttng,
    /// perfetto
    Perfetto,
    /// The kernel's files alone, with a shell
    Tracefs,
}

/// The question about the trace.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Question {
    /// How late threads were after their wake-ups
    Wakeup,
    /// What delayed the cycles of a thread
    Cause,
    /// The same, with each function of the kernel that ran
    Function,
}

/// A processor.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RecipeMachine {
    /// 64-bit or 32-bit x86
    X86,
    /// 64-bit Arm
    Arm64,
    /// 32-bit Arm
    Arm,
    /// 64-bit RISC-V
    Riscv64,
}

impl RecipeMachine {
    const HERE: RecipeMachine = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        RecipeMachine::X86
    } else if cfg!(target_arch = "aarch64") {
        RecipeMachine::Arm64
    } else if cfg!(target_arch = "riscv64") {
        RecipeMachine::Riscv64
    } else {
        RecipeMachine::Arm
    };
}

/// Groups that cycles and causes are derived from; the cost of a further one is weighed against
/// what it explains.
const GROUPS: [Group; 8] = [
    Group::Sched,
    Group::Irq,
    Group::Softirq,
    Group::Hrtimer,
    Group::Block,
    Group::Idle,
    Group::Syscall,
    Group::Fault,
];

/// Frequent events that no explanation needs.
const NOT_NEEDED: [&str; 2] = ["softirq_raise", "hrtimer_cancel"];

/// Prints the command.
pub fn run(args: RecipeArgs) -> Ending {
    output::print_stdout(&command_line(&args)?)?;
    Ok(Exit::Done)
}

/// The tracepoints as system and name; for the vectors of an x86 processor all, by the system
/// alone.
fn wanted_tracepoints(args: &RecipeArgs) -> Vec<(&'static str, &'static str)> {
    let is_wanted = |group: &Group| match group {
        Group::Sched => true,
        _ if args.question == Question::Wakeup => false,
        Group::Syscall => !args.no_syscalls,
        // Tracepoints of page faults are those of x86 until Linux 6.x.
        Group::Fault => args.machine == RecipeMachine::X86,
        _ => true,
    };
    let groups: Vec<Group> = GROUPS.into_iter().filter(is_wanted).collect();
    let mut events: Vec<_> =
        names_of_tracepoints(&groups).filter(|(_, name)| !NOT_NEEDED.contains(name)).collect();
    events.dedup();
    events
}

fn command_line(args: &RecipeArgs) -> Result<String, Failure> {
    let events = wanted_tracepoints(args);
    let has_functions = args.question == Question::Function;
    if has_functions && !matches!(args.tool, RecordingTool::TraceCmd | RecordingTool::Tracefs) {
        return Err(Failure::refused(
            "of these tools only trace-cmd and tracefs record functions: use `punctual recipe \
             tracefs --for function`",
        ));
    }
    let seconds = (args.duration.ns().max(0) as u64).div_ceil(1_000_000_000).max(1);
    let x86 = args.machine == RecipeMachine::X86 && args.question != Question::Wakeup;
    let joined = |form: &dyn Fn(&str, &str) -> String, between: &str| {
        let event_words: Vec<String> =
            events.iter().map(|(system, name)| form(system, name)).collect();
        event_words.join(between)
    };
    Ok(match args.tool {
        RecordingTool::TraceCmd => {
            let tracer = if has_functions { " -p function" } else { "" };
            let vectors = if x86 { " -e irq_vectors" } else { "" };
            let events = joined(&|system, name| format!("-e {system}:{name}"), " ");
            format!(
                "trace-cmd record -o trace.dat -C mono -b 16384{tracer} {events}{vectors} sleep \
                 {seconds}\n"
            )
        }
        RecordingTool::Perf => {
            // perf may not record all of the system: that of irq_work interrupts itself.
            let vectors = match x86 {
                true => ["local_timer", "reschedule", "call_function"]
                    .map(|vector| format!(",irq_vectors:{vector}_*"))
                    .concat(),
                false => String::new(),
            };
            let events = joined(&|system, name| format!("{system}:{name}"), ",");
            format!(
                "perf record -o perf.data -a -k CLOCK_MONOTONIC -m 16M -e '{events}{vectors}' -- \
                 sleep {seconds}\n"
            )
        }
        RecordingTool::Tracefs => {
            let vectors = if x86 { " irq_vectors" } else { "" };
            let events = joined(&|system, name| format!("{system}/{name}"), " ");
            let tracer = if has_functions { "echo function >current_tracer && " } else { "" };
            format!(
                "mkdir /sys/kernel/tracing/instances/punctual && cd \
                 /sys/kernel/tracing/instances/punctual && echo mono >trace_clock && echo 16384 \
                 >buffer_size_kb && {tracer}for event in {events}{vectors}; do echo 1 \
                 >events/$event/enable; done; sleep {seconds}; echo 0 >tracing_on; {{ echo \"# \
                 machine: $(uname -m)\"; cat trace; }} >/tmp/trace.txt; cd / && rmdir \
                 /sys/kernel/tracing/instances/punctual\n"
            )
        }
        RecordingTool::Perfetto => {
            let vectors = if x86 { " ftrace_events: \"irq_vectors/*\"" } else { "" };
            let events = joined(&|system, name| format!("ftrace_events: \"{system}/{name}\""), " ");
            let milliseconds = seconds.saturating_mul(1_000);
            format!(
                "perfetto --txt -o trace.pftrace -c - <<'END'\nbuffers {{ size_kb: 262144 \
                 fill_policy: DISCARD }}\ndata_sources {{ config {{ name: \"linux.ftrace\" \
                 ftrace_config {{ buffer_size_kb: 16384 {events}{vectors} }} }} }}\ndata_sources \
                 {{ config {{ name: \"linux.process_stats\" process_stats_config {{ \
                 scan_all_processes_on_start: true }} }} }}\nduration_ms: {milliseconds}\nEND\n"
            )
        }
        RecordingTool::Lttng => {
            let kernel: Vec<String> =
                events.iter().filter_map(|(system, name)| lttng_name(system, name)).collect();
            let vectors = if x86 { ",x86_irq_vectors_*" } else { "" };
            let calls = match args.no_syscalls || args.question == Question::Wakeup {
                true => "",
                false => "lttng enable-event --kernel --channel=all --syscall --all && ",
            };
            format!(
                "lttng create punctual --output=trace.lttng && lttng enable-channel --kernel \
                 --subbuf-size=4M --num-subbuf=8 all && lttng enable-event --kernel --channel=all \
                 '{}{vectors}' && {calls}lttng add-context --kernel --channel=all --type=tid && \
                 lttng start && sleep {seconds} && lttng stop && lttng destroy\n",
                kernel.join(",")
            )
        }
    })
}

/// LTTng's own name of a tracepoint; system calls are enabled separately.
fn lttng_name(system: &str, name: &str) -> Option<String> {
    match system {
        "raw_syscalls" => None,
        "sched" | "block" | "power" => Some(match name {
            "cpu_idle" | "cpu_frequency" => format!("power_{name}"),
            _ => name.to_owned(),
        }),
        "irq" if name.starts_with("softirq") => Some(format!("irq_{name}")),
        "timer" => Some(format!("timer_{name}")),
        "exceptions" => Some(format!("x86_exceptions_{name}")),
        _ => Some(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(tool: RecordingTool, machine: RecipeMachine, no_syscalls: bool) -> RecipeArgs {
        let question = Question::Cause;
        RecipeArgs { tool, question, duration: Nanos::from_secs(3), machine, no_syscalls }
    }

    #[test]
    fn every_tool_records_the_events_that_cycles_need() {
        let tools = [
            RecordingTool::TraceCmd,
            RecordingTool::Perf,
            RecordingTool::Lttng,
            RecordingTool::Perfetto,
            RecordingTool::Tracefs,
        ];
        for tool in tools {
            let text = command_line(&args(tool, RecipeMachine::X86, false)).unwrap();
            let needed = ["sched_switch", "sched_waking", "hrtimer_expire_entry", "irq_vectors"];
            for name in needed {
                assert!(text.contains(name), "{name}: {text}");
            }
            assert!(text.contains('3') && text.ends_with('\n'), "{text}");
            assert!(!text.contains("irq_vectors:*"), "perf may not record these: {text}");
            let arm = command_line(&args(tool, RecipeMachine::Arm64, true)).unwrap();
            assert!(!arm.contains("irq_vectors") && !arm.contains("sys_enter"), "{arm}");
            assert!(!arm.contains("--syscall"), "{arm}");
        }
    }

    #[test]
    fn each_question_selects_its_events_for_every_capable_tool() {
        for tool in [
            RecordingTool::TraceCmd,
            RecordingTool::Perf,
            RecordingTool::Lttng,
            RecordingTool::Perfetto,
            RecordingTool::Tracefs,
        ] {
            let of = |question| {
                command_line(&RecipeArgs { question, ..args(tool, RecipeMachine::X86, false) })
                    .map_err(|why| format!("{:?}", why.parts))
            };
            let wakeup = of(Question::Wakeup).unwrap();
            assert!(wakeup.contains("sched_switch") && wakeup.contains("sched_waking"), "{wakeup}");
            for more in ["hrtimer", "irq", "sys_enter", "--syscall", "current_tracer"] {
                assert!(!wakeup.contains(more), "{more}: {wakeup}");
            }
            let cause = of(Question::Cause).unwrap();
            assert!(!cause.contains("-p function") && !cause.contains("current_tracer"));
            match (tool, of(Question::Function)) {
                (RecordingTool::TraceCmd, Ok(line)) => assert!(line.contains(" -p function ")),
                (RecordingTool::Tracefs, Ok(line)) => {
                    assert!(line.contains("echo function >current_tracer &&"));
                    assert!(line.contains("sched_switch") && line.contains("irq_vectors"));
                }
                (_, refused) => assert!(refused.unwrap_err().contains("trace-cmd and tracefs")),
            }
        }
    }

    #[test]
    fn recorded_text_states_its_machine_for_system_call_numbers() {
        let text = command_line(&args(RecordingTool::Tracefs, RecipeMachine::X86, false)).unwrap();
        let before = "{ echo \"# machine: $(uname -m)\"; cat trace; } >/tmp/trace.txt;";
        assert!(text.contains(before), "{text}");
    }

    #[test]
    fn names_of_lttng_are_its_own() {
        assert_eq!(lttng_name("irq", "softirq_entry").as_deref(), Some("irq_softirq_entry"));
        assert_eq!(lttng_name("timer", "hrtimer_start").as_deref(), Some("timer_hrtimer_start"));
        assert_eq!(lttng_name("raw_syscalls", "sys_enter"), None);
    }
}
