//! Lines of the function_graph tracer (kernel/trace/trace_functions_graph.c).

use super::line::split_number;
use crate::decoder::{Decoder, Head};
use crate::graph::{GraphCall, GraphLine};
use punctual_core::event::Tid;

/// Bytes of a function's name.
const NAME: usize = 128;

/// Takes a line; false where it is none of this tracer.
pub(super) fn decode_line(text: &[u8], decoder: &mut Decoder) -> bool {
    let Some(line) = std::str::from_utf8(text).ok().and_then(parse) else { return false };
    let Some(tracepoint) = decoder.intern_tracepoint(None, "function_graph") else { return false };
    if !decoder.graph.on_line(&line) {
        return false;
    }
    if let Some((comm, tid)) = line.task {
        decoder.set_comm(Tid(tid), comm.trim().as_bytes());
    }
    let at = line.at.unwrap_or(0);
    decoder.count_record(tracepoint, Head { at, cpu: line.cpu, ..Head::default() });
    true
}

/// Takes a record as `trace-cmd report` prints it, after `funcgraph_entry:` or `funcgraph_exit:`.
pub(super) fn take_report(rest: &[u8], head: Head, comm: &[u8], decoder: &mut Decoder) {
    let line = format!("{}) {}", head.cpu, String::from_utf8_lossy(rest));
    let comm = String::from_utf8_lossy(comm);
    let task = head.tid.map(|tid| (&*comm, tid.0));
    if let Some(line) = parse(&line) {
        decoder.graph.on_line(&GraphLine { at: Some(head.at), task, ..line });
    }
}

/// ` 0)   1.382 us    |          __might_sleep();`
fn parse(text: &str) -> Option<GraphLine<'_>> {
    let (mut at, mut cpu, mut task, mut took) = (None, None, None, None);
    let mut columns: Vec<&str> = text.splitn(8, '|').collect();
    if columns.len() == 1 {
        let (cpu, rest) = cpu_of(text)?;
        let (_, next) = rest.split_once("=>")?;
        let task = task_of(next.trim())?;
        return Some(GraphLine { at, cpu, task: Some(task), took, what: GraphCall::Switch });
    }
    let function = columns.pop()?.trim();
    for column in columns.into_iter().map(str::trim) {
        let rest = match (cpu, cpu_of(column)) {
            (None, Some((number, rest))) => {
                cpu = Some(number);
                rest
            }
            (None, None) => {
                let relative =
                    column.strip_suffix("us").map(|us| parse_decimal(us.trim_end(), 1_000));
                // Clocks other than those of seconds are printed as they are.
                let absolute = || match column.contains('.') {
                    true => parse_decimal(column, 1_000_000_000),
                    false => column.parse().ok(),
                };
                at = Some(relative.unwrap_or_else(absolute)?);
                continue;
            }
            _ => column,
        };
        let duration = rest.trim_start_matches(['+', '!', '#', '*', '@', '$', ' ']);
        let duration = duration.strip_suffix("us").map(str::trim_end);
        match duration.and_then(|us| parse_decimal(us, 1_000)) {
            Some(ns) => took = Some(ns),
            None => task = task_of(rest).or(task),
        }
    }
    let name = function.split('(').next().unwrap_or_default();
    let is_name =
        |name: &str| (1..=NAME).contains(&name.len()) && !name.contains(char::is_whitespace);
    let what = match function {
        _ if function.starts_with('}') => GraphCall::Leave,
        _ if function.ends_with('{') && is_name(name) => GraphCall::Enter(name),
        _ if function.ends_with(';') && is_name(name) => GraphCall::Leaf(name),
        _ => GraphCall::Other,
    };
    Some(GraphLine { at, cpu: cpu?, task, took, what })
}

/// Whether a line is the beginning or the end of a function.
pub(super) fn is_of_graph(line: &[u8]) -> bool {
    let of_graph = std::str::from_utf8(line).ok().and_then(parse);
    of_graph.is_some_and(|line| !matches!(line.what, GraphCall::Other | GraphCall::Switch))
}

/// ` 3) rest`
fn cpu_of(text: &str) -> Option<(u16, &str)> {
    let (cpu, rest) = split_number(text.trim_start().as_bytes())?;
    let rest = &text[text.len() - rest.len()..];
    Some((u16::try_from(cpu).ok()?, rest.strip_prefix(')')?.trim()))
}

fn task_of(text: &str) -> Option<(&str, u32)> {
    let (comm, tid) = text.rsplit_once('-')?;
    Some((comm, tid.parse().ok()?))
}

/// A decimal number of units, in the smallest.
fn parse_decimal(text: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let step = unit / 10i64.checked_pow(u32::try_from(fraction.len()).ok()?)?.max(1);
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if step == 0 || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let fraction: i64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.parse::<i64>().ok()?.checked_mul(unit)?.checked_add(step * fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::Nanos;

    /// The forms of Documentation/trace/ftrace.rst.
    #[test]
    fn every_form_of_a_line_is_read() {
        fn line(text: &str) -> GraphLine<'_> {
            parse(text).unwrap_or_else(|| panic!("{text}"))
        }
        fn of(text: &str) -> (u16, Option<i64>, GraphCall<'_>) {
            (line(text).cpu, line(text).took, line(text).what)
        }
        assert_eq!(
            of(" 0)               |  sys_open() {"),
            (0, None, GraphCall::Enter("sys_open"))
        );
        assert_eq!(of(" 1)   1.382 us    |    fput();"), (1, Some(1_382), GraphCall::Leaf("fput")));
        assert_eq!(of(" 0) ! 100.541 us  |  } /* x */"), (0, Some(100_541), GraphCall::Leave));
        assert_eq!(of(" 3) * 54973 us  |  }"), (3, Some(54_973_000), GraphCall::Leave));
        let whole = line(" 360.774522 |   1)  sh-4802  | d..1 |   0.541 us    |  put();");
        assert_eq!((whole.at, whole.task), (Some(360_774_522_000), Some(("sh", 4_802))));
        assert_eq!((whole.took, whole.what), (Some(541), GraphCall::Leaf("put")));
        // Of irqsoff with the option display-graph.
        let relative = line("  3750 us |   0)   bash-1507    |  d..1 |   0.516 us    |  x();");
        assert_eq!((relative.at, relative.took), (Some(3_750_000), Some(516)));
        let switch = line(" 2)  migration/2-9   =>   a-b-7 ");
        assert_eq!((switch.task, switch.what), (Some(("a-b", 7)), GraphCall::Switch));
        assert_eq!(of(" 0)               |  /* sched_switch: a */").2, GraphCall::Other);
        let counted = "111735834156572 |   0)               |    __x64_sys_fcntl() {";
        assert_eq!(line(counted).at, Some(111_735_834_156_572));
        for other in ["", "x | y", "| | |", " 0) a", ")(|"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_own_time_of_a_function_leaves_those_out_that_it_calls() {
        let mut decoder = Decoder::default();
        let lines = [
            " 0)  kswapd0-88  =>  cat-9",
            " 0)               |  shrink() {",
            " 0)   0.100 us    |    lock();",
            " 0)               |    isolate() {",
            " 0)   5.000 us    |      scan();",
            " 0) ! 900.000 us  |    }",
            " 0) ! 910.100 us  |  }",
        ];
        lines.iter().for_each(|line| assert!(decode_line(line.as_bytes(), &mut decoder)));
        decoder.finish();
        let moments = decoder.marks.sorted_moments();
        let longest = moments.iter().max_by_key(|moment| moment.duration()).expect("one");
        assert_eq!((longest.duration(), longest.tid), (Nanos(895_000), Tid(9)));
        assert!(longest.words.starts_with("isolate ‹ shrink,"), "{}", longest.words);
    }

    #[test]
    fn a_system_call_is_a_tree_from_its_begin_to_its_end() {
        let lines = [
            " 0)   cat-9     |   0.100 us    |        vfs_read();",
            " 0)   cat-9     |   9.000 us    |  }",
            " 0)   cat-9     |               |  do_syscall_64() {",
            " 0)   cat-9     |               |    __x64_sys_read() {",
            " 0)   cat-9     |               |      ksys_read() {",
            " 0)   cat-9     |   0.100 us    |        fdget_pos();",
            " 0)   cat-9     |   0.700 us    |        vfs_read();",
            " 0)   cat-9     |   1.000 us    |      }",
            " 0)   cat-9     |   1.500 us    |    }",
            " 0)   cat-9     |   0.200 us    |    syscall_exit_to_user_mode();",
            " 0)   cat-9     |   2.000 us    |  }",
            // Another task comes before its end.
            " 0)   cat-9     |               |  __x64_sys_read() {",
            " 0)   sh-7      |   0.100 us    |    vfs_read();",
            " 0)   sh-7      |   2.000 us    |  }",
        ];
        let report = |line: &str, decoder: &mut Decoder| {
            let rest = line.split_once('|').map_or("", |(_, rest)| rest);
            let tid = Some(Tid(if line.contains("sh-7") { 7 } else { 9 }));
            let head = Head { at: 5, tid, ..Head::default() };
            take_report(rest.as_bytes(), head, b"cat", decoder);
        };
        let (mut tracefs, mut trace_cmd) = (Decoder::default(), Decoder::default());
        for line in lines {
            assert!(decode_line(line.as_bytes(), &mut tracefs));
            report(line, &mut trace_cmd);
        }
        assert_eq!(tracefs.graph.paths, trace_cmd.graph.paths);
        let [path] = &tracefs.graph.paths[..] else { panic!("{:?}", tracefs.graph.paths) };
        let shown = path.functions.iter().map(|of| {
            let stage = of.stage.map_or("", |stage| stage.as_str());
            format!("{}{} {stage} {}/{}", of.depth, of.function, of.ns, of.own_ns)
        });
        let expected = [
            "0do_syscall_64 dispatcher 2000/300",
            "1__x64_sys_read call 1500/500",
            "2ksys_read call 1000/200",
            "3fdget_pos  100/100",
            "3vfs_read VFS 700/700",
            "1syscall_exit_to_user_mode return 200/200",
        ];
        assert!(shown.eq(expected), "{path:#?}");
        assert_eq!((path.call.as_str(), path.calls), ("read", 1));
    }

    proptest! {
        #[test]
        fn no_line_panics(text in "[ 0-9]{0,4}\\)?[ 0-9.|+us$*(){};a-z=>-]{0,60}") {
            let mut decoder = Decoder::default();
            let _ = decode_line(text.as_bytes(), &mut decoder);
            decoder.finish();
        }
    }
}
