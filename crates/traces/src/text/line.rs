//! Parses one line: task, CPU, instant and event.
//!
//! The name of a task may contain any characters, including `-1 [000] 1.5: x`, so a line is parsed
//! from its CPU: the first position at which everything around it matches.

/// The event of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TextLine<'a> {
    pub(super) comm: &'a [u8],
    pub(super) tid: u32,
    pub(super) process: Option<u32>,
    pub(super) cpu: u16,
    /// irqs-off, need-resched and so on; empty if the format has none.
    pub(super) flags: &'a [u8],
    /// In nanoseconds.
    pub(super) at: i64,
    /// The resolution of its instant.
    pub(super) step: i64,
    pub(super) text: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) rest: &'a [u8],
}

/// The kind of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parsed<'a> {
    Event(TextLine<'a>),
    /// After `#`.
    Comment(&'a [u8]),
    /// Another line that may have a meaning.
    Other(&'a [u8]),
    /// A function of a stack of the event before, with its offset.
    Frame(&'a [u8]),
    /// Empty, or a line of a stack of another kind.
    Nothing,
}

pub(super) fn parse(line: &[u8]) -> Parsed<'_> {
    let line = without_stamp_of_dmesg(line);
    let trimmed = line.trim_ascii();
    let of_stack = [&b"<stack trace>"[..], b"<user stack trace>"].contains(&trimmed);
    if let Some(function) = trimmed.strip_prefix(b"=> ") {
        return Parsed::Frame(function.trim_ascii());
    }
    if trimmed.is_empty() || of_stack {
        return Parsed::Nothing;
    }
    if is_of_callchain(line) {
        return of_callchain(trimmed).map_or(Parsed::Nothing, Parsed::Frame);
    }
    if let Some(comment) = trimmed.strip_prefix(b"#") {
        // `##### CPU 2 buffer started ####` is more than a comment.
        if comment.starts_with(b"#### CPU") {
            return Parsed::Other(trimmed);
        }
        if !line.starts_with(b" ") {
            return Parsed::Comment(comment.trim_ascii());
        }
    }
    let bracketed = with_brackets(line, COLUMNS).or_else(|| with_brackets(line, 0));
    match bracketed.or_else(|| latency_format(line)) {
        Some(event) => Parsed::Event(event),
        None => Parsed::Other(trimmed),
    }
}

/// A line of the kernel's log, where a dump of ftrace's buffers may be: `[   34.567890] …`, behind
/// `<6>` of its level.
fn without_stamp_of_dmesg(line: &[u8]) -> &[u8] {
    let level =
        line.strip_prefix(b"<").and_then(split_number).and_then(|of| of.1.strip_prefix(b">"));
    let stamp = || {
        let inner = level.unwrap_or(line).strip_prefix(b"[")?.trim_ascii_start();
        let (_, after) = split_number(split_number(inner)?.1.strip_prefix(b".")?)?;
        let after = after.strip_prefix(b"]")?;
        Some(after.strip_prefix(b" ").unwrap_or(after))
    };
    stamp().unwrap_or(line)
}

/// A function of `perf script -g`: `\tffffffff81a0c5d3 schedule+0x2f8 ([kernel.kallsyms])`.
fn is_of_callchain(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_address = digits >= 4 && text.get(digits) == Some(&b' ');
    is_address && line.first().is_some_and(u8::is_ascii_whitespace) && text.ends_with(b")")
}

/// The function of such a line, where it is of the kernel or of one of its modules.
fn of_callchain(text: &[u8]) -> Option<&[u8]> {
    let open = text.iter().rposition(|byte| *byte == b'(')?;
    let place = &text[open + 1..text.len() - 1];
    let of_programs: [&[u8]; 6] =
        [b"[vdso", b"[vsyscall", b"[heap", b"[stack", b"[unknown", b"[anon"];
    let is_of_kernel = place.starts_with(b"[")
        && !of_programs.iter().any(|of| place.starts_with(of))
        || place.ends_with(b".ko");
    let function = text[..open].trim_ascii().split(|byte| *byte == b' ').nth(1)?;
    (is_of_kernel && !function.starts_with(b"[")).then_some(function)
}

/// The longest name shown, without the prefix for a buffer that trace-cmd adds.
const LONGEST_COMM: usize = 15;

/// The width of the name's column in tracefs and trace-cmd, padded on the left: field separators
/// follow it. perf's is narrower.
const COLUMNS: usize = 16;

/// `comm-pid (tgid) [cpu] flags time: name: rest`, and `comm pid [cpu] time: name: rest` of perf.
fn with_brackets(line: &[u8], columns: usize) -> Option<TextLine<'_>> {
    let mut from = columns.min(line.len());
    while let Some(open) = line[from..].iter().position(|byte| *byte == b'[').map(|at| at + from) {
        from = open + 1;
        let (cpu, after) = match split_number(&line[from..]) {
            Some((cpu, after)) if after.starts_with(b"]") => (cpu, &after[1..]),
            _ => continue,
        };
        let Some((comm, tid, process)) = parse_task(&line[..open], columns) else { continue };
        let Some(when) = flags_and_time(after) else { continue };
        let cpu = u16::try_from(cpu).ok()?;
        return Some(TextLine { comm, tid, process, cpu, ..when });
    }
    None
}

/// `comm-123 (  45)`, `comm-123`, `comm 123`, `comm 45/123`.
fn parse_task(before: &[u8], columns: usize) -> Option<(&[u8], u32, Option<u32>)> {
    let mut text = before.trim_ascii_end();
    let mut process = None;
    if let Some(inner) = text.strip_suffix(b")") {
        let open = inner.iter().rposition(|byte| *byte == b'(')?;
        let of_group = inner[open + 1..].trim_ascii();
        process = whole_number(of_group);
        if process.is_none() && !of_group.iter().all(|byte| *byte == b'-') {
            return None;
        }
        text = inner[..open].trim_ascii_end();
    }
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (head, tid) = text.split_at(text.len() - digits);
    let tid = whole_number(tid)?;
    match head.split_last()? {
        (b'-', head) if head.len() >= columns => Some((trim_comm(head), tid, process)),
        (b' ', head) => Some((trim_comm(head), tid, process)),
        (b'/', head) => {
            let digits = head.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            let (head, group) = head.split_at(head.len() - digits);
            Some((trim_comm(head.strip_suffix(b" ")?), tid, whole_number(group)))
        }
        _ => None,
    }
}

/// A name without surrounding spaces and without the name of a buffer.
fn trim_comm(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    if text.len() <= LONGEST_COMM {
        return text;
    }
    // `buffer:      comm` of trace-cmd.
    let comm_part = text.windows(2).rposition(|pair| pair == b"  ").map(|at| &text[at + 2..]);
    comm_part.unwrap_or(text)
}

/// The longest flags: six columns; the preemption depth may have several digits.
const LONGEST_FLAGS: usize = 12;

/// ` d..2.  12.345678: name: rest`
fn flags_and_time(text: &[u8]) -> Option<TextLine<'_>> {
    let text = text.trim_ascii_start();
    let word = first_word(text);
    match parse_time(text) {
        Some(line) => Some(line),
        None if (1..=LONGEST_FLAGS).contains(&word.len()) && is_flags(word) => {
            let line = parse_time(text[word.len()..].trim_ascii_start())?;
            Some(TextLine { flags: word, ..line })
        }
        None => None,
    }
}

/// irqs-off, need-resched (also lazy), hardirq or softirq, depths of preemption and migration
/// (`trace_print_lat_fmt`).
fn is_flags(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphanumeric() || b".#-".contains(byte))
}

/// `12.345678: name: rest`, `(+5)` of trace-cmd and the period of perf between.
fn parse_time(text: &[u8]) -> Option<TextLine<'_>> {
    let (at, step, after) = parse_instant(text)?;
    let after = after.strip_prefix(b":")?;
    behind_time(at, step, after)
}

fn behind_time(at: i64, step: i64, after: &[u8]) -> Option<TextLine<'_>> {
    let mut text = after.trim_ascii_start();
    if text.starts_with(b"(+") {
        let end = text.iter().position(|byte| *byte == b')')?;
        text = text[end + 1..].trim_ascii_start();
    }
    if let Some((_, after)) = split_number(text).filter(|(_, after)| after.starts_with(b" ")) {
        text = after.trim_ascii_start();
    }
    let (name, rest) = split_name(text);
    let (comm, tid, process, cpu, flags) = (&[][..], 0, None, 0, &[][..]);
    Some(TextLine { comm, tid, process, cpu, flags, at, step, text, name, rest })
}

/// `sched_switch: …`, `sched:sched_switch: …`, `sys_futex(…)`, `function <-parent`.
fn split_name(text: &[u8]) -> (&[u8], &[u8]) {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:-.$".contains(byte);
    let mut end = text.iter().position(|byte| !is_name(byte)).unwrap_or(text.len());
    if text[..end].ends_with(b":") {
        end -= 1;
    }
    let rest = &text[end..];
    (&text[..end], rest.strip_prefix(b":").unwrap_or(rest).trim_ascii())
}

/// `comm-123    0d..2.   15us+: name: rest`: the latency tracers, and the option `latency-format`.
fn latency_format(line: &[u8]) -> Option<TextLine<'_>> {
    let mut from = 0;
    while let Some(dash) = line[from..].iter().position(|byte| *byte == b'-').map(|at| at + from) {
        from = dash + 1;
        let Some((tid, after)) = split_number(&line[from..]) else { continue };
        let spaced = after.trim_ascii_start();
        if spaced.len() == after.len() {
            continue;
        }
        let Some((cpu, flags)) = split_number(spaced) else { continue };
        let flagged = first_word(flags);
        if !(3..=LONGEST_FLAGS).contains(&flagged.len()) || !is_flags(flagged) {
            continue;
        }
        let text = flags[flagged.len()..].trim_ascii_start();
        let Some(when) = parse_time(text).or_else(|| relative_time(text)) else { continue };
        let (tid, cpu) = (u32::try_from(tid).ok()?, u16::try_from(cpu).ok()?);
        return Some(TextLine { comm: trim_comm(&line[..dash]), tid, cpu, flags: flagged, ..when });
    }
    None
}

/// `15us+: …`, `15.250us : …`
fn relative_time(text: &[u8]) -> Option<TextLine<'_>> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (whole, after) = split_number(text)?;
    let (fraction, digits, after) = match after.strip_prefix(b".") {
        Some(after) => {
            let (fraction, behind) = split_number(after)?;
            (fraction, after.len() - behind.len(), behind)
        }
        None => (0, 0, after),
    };
    let step = 1_000 / 10i64.checked_pow(u32::try_from(digits).ok()?).filter(|n| *n <= 1_000)?;
    let at = whole.checked_mul(1_000)?.checked_add(fraction.checked_mul(step)?)?;
    let after = after.strip_prefix(b"us")?;
    let colon = after.iter().take(3).position(|byte| *byte == b':')?;
    // Marks of delays: `+`, `!`, `#`, `*`, `@`, `$`.
    let marked = after[..colon].iter().all(|byte| b" +!#*@$".contains(byte));
    marked.then(|| behind_time(if negative { -at } else { at }, step, &after[colon + 1..]))?
}

/// Seconds with a fraction. Numbers without one are nanoseconds of `trace-cmd report -R`, or ticks,
/// which are not times.
fn parse_instant(text: &[u8]) -> Option<(i64, i64, &[u8])> {
    let (seconds, after) = split_number(text)?;
    let after = after.strip_prefix(b".")?;
    let (fraction, behind) = split_number(after)?;
    let digits = u32::try_from(after.len() - behind.len()).ok()?;
    let step = 1_000_000_000 / 10i64.checked_pow(digits).filter(|n| *n <= 1_000_000_000)?;
    let at = seconds.checked_mul(1_000_000_000)?.checked_add(fraction.checked_mul(step)?)?;
    Some((at, step, behind))
}

fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(text.len());
    &text[..end]
}

/// The leading digits of a text, and the rest.
pub(super) fn split_number(text: &[u8]) -> Option<(i64, &[u8])> {
    let digits = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    if !(1..=18).contains(&digits) {
        return None;
    }
    let number =
        text[..digits].iter().fold(0i64, |number, digit| number * 10 + i64::from(digit - b'0'));
    Some((number, &text[digits..]))
}

/// A function without its offset and size: `shrink_inactive_list+0xee/0x3e0 [module]`.
pub(super) fn function_name(text: &[u8]) -> &[u8] {
    let text = &text[..text.len().min(LONGEST_FUNCTION)];
    let end = text.iter().position(|byte| *byte == b'+' || byte.is_ascii_whitespace());
    &text[..end.unwrap_or(text.len())]
}

/// The kernel's names have 511 bytes at most (KSYM_NAME_LEN); nearly all are far shorter.
const LONGEST_FUNCTION: usize = 128;

fn whole_number(text: &[u8]) -> Option<u32> {
    split_number(text)
        .filter(|(_, rest)| rest.is_empty())
        .and_then(|(number, _)| number.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(text: &str) -> TextLine<'_> {
        match parse(text.as_bytes()) {
            Parsed::Event(line) => line,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_form_of_a_line_is_read() {
        let forms = [
            // tracefs before 5.14, later, with PREEMPT_RT's columns, and with the process.
            "          <idle>-0     [001] d..2  1234.567890: sched_switch: a=1 b=2",
            "          <idle>-0       [001] d..2.  1234.567890: sched_switch: a=1 b=2",
            "          <idle>-0       [001] dN.h213  1234.567890: sched_switch: a=1 b=2",
            "          <idle>-0       [001] d..h..2.  1234.567890: sched_switch: a=1 b=2",
            "          <idle>-0       (-----) [001] d..2.  1234.567890: sched_switch: a=1 b=2",
            "          <idle>-0       (    0) [001] d..2.  1234.567890: sched_switch: a=1 b=2",
            "          <idle>-0       [001]  1234.567890: sched_switch: a=1 b=2",
            // trace-cmd.
            "          <idle>-0     [001]  1234.567890: sched_switch:         a=1 b=2",
            "          <idle>-0     [001]  1234.567890: (+12)   sched_switch:         a=1 b=2",
            "          <idle>-0       1d..2.   1234.567890: sched_switch:         a=1 b=2",
            "  instance:           <idle>-0     [001]  1234.567890: sched_switch: a=1 b=2",
            // perf.
            "<idle>     0 [001]  1234.567890: sched:sched_switch: a=1 b=2",
            "<idle>     0 [001]  1234.567890:          1 sched:sched_switch: a=1 b=2",
            "<idle>     0/0     [001]  1234.567890: sched:sched_switch: a=1 b=2",
        ];
        for form in forms {
            let line = event(form);
            assert_eq!(line.comm, b"<idle>", "{form}");
            assert_eq!((line.tid, line.cpu, line.at), (0, 1, 1_234_567_890_000), "{form}");
            assert!(line.name.ends_with(b"sched_switch"), "{form}");
            assert_eq!(line.rest, b"a=1 b=2", "{form}");
        }
        assert_eq!(event(forms[5]).process, Some(0));
        assert_eq!(event(forms[4]).process, None);
        assert_eq!(event("a-1 [000] 1.123456789: b: c").step, 1);
        // The kernel's log.
        for stamp in ["[   34.567890] ", "<4>[   34.567890] ", "[34.567890]"] {
            let of_log = format!("{stamp}{}", forms[1]);
            assert_eq!(event(&of_log), event(forms[1]), "{stamp}");
        }
    }

    #[test]
    fn the_latency_format_is_read() {
        let line = event("cyclicte-1234    2dN.h2..   15us+: sched_wakeup: comm=a pid=1");
        assert_eq!((line.comm, line.tid, line.cpu, line.at), (&b"cyclicte"[..], 1234, 2, 15_000));
        let line = event("  <idle>-0       0d..3     0us :      0:120:R   + [001]  5: 98:R a b");
        assert_eq!((line.at, line.name), (0, &b"0:120:R"[..]));
        assert_eq!(event("a-1  0d..2  -3us!: x").at, -3_000);
        assert_eq!(event("a-1  0d..2  3.250us!: x").at, 3_250);
    }

    #[test]
    fn task_names_may_contain_field_separators() {
        let of = |comm: &str| format!("{comm:>16}-77    [003] d..2.    9.000001: x: y=1");
        for comm in ["a b", "-1 [000] 1.5: x", "[1] ", "a-5", "a [2]", "(12) [0]", "tmux: server"] {
            let text = of(comm);
            let line = event(&text);
            assert_eq!((line.tid, line.cpu), (77, 3), "{comm}");
            assert_eq!(line.comm, comm.trim().as_bytes());
        }
    }

    #[test]
    fn names_of_system_call_and_function_lines_are_parsed() {
        let name = |text: &str| {
            let text = format!("a-1 [000] .....  1.000001: {text}");
            let line = event(&text);
            (
                String::from_utf8(line.name.to_vec()).unwrap(),
                String::from_utf8(line.rest.to_vec()).unwrap(),
            )
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(name("sys_futex(uaddr: 1, op: 0)"), pair("sys_futex", "(uaddr: 1, op: 0)"));
        assert_eq!(name("sys_futex -> 0x0"), pair("sys_futex", "-> 0x0"));
        assert_eq!(name("schedule <-do_nanosleep"), pair("schedule", "<-do_nanosleep"));
        assert_eq!(name("sys_enter: NR 202 (1, 2)"), pair("sys_enter", "NR 202 (1, 2)"));
    }

    proptest! {
        #[test]
        fn no_line_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&bytes);
        }
        #[test]
        fn no_nearly_right_line_panics(
            text in "[a-z -]{0,9}-?[0-9]{0,12} {0,3}[\\[(]?[0-9]{0,12}[\\])]? [d.N0-9]{0,9} \
                     -?[0-9.]{0,22}(us)?[+!: ]{0,3}\\(?\\+?[a-z_:0-9]{0,9}",
        ) {
            let _ = parse(text.as_bytes());
        }
    }
}
