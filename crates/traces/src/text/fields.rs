//! The fields after an event's name, as printed by the kernel's print formats and trace-cmd's
//! plugins (include/trace/events/, plugins of libtraceevent).

use super::line::split_number;
use crate::decoder::{COMM, Decoder};
use crate::meaning::{FieldEncoding, Meaning, Values};
use crate::task_state;

/// Reads the fields of the meaning; missing ones stay absent.
pub(super) fn read<'a>(meaning: Meaning, rest: &'a [u8], decoder: &mut Decoder) -> Values<'a> {
    let special = match meaning {
        Meaning::Switch if !rest.starts_with(b"prev_comm=") => switch_of_plugin(rest),
        Meaning::Waking | Meaning::Wakeup | Meaning::WakeupNew if !rest.starts_with(b"comm=") => {
            wakeup_of_plugin(rest)
        }
        Meaning::SyscallEnter | Meaning::SyscallExit => raw_call(rest),
        Meaning::ContentionBegin | Meaning::ContentionEnd => parse_contention(meaning, rest),
        Meaning::BlockIssue | Meaning::BlockComplete => parse_block(meaning, rest),
        Meaning::JournalStart | Meaning::JournalEnd => parse_journal(rest),
        Meaning::WorkStart | Meaning::WorkEnd => parse_work(rest, decoder),
        Meaning::NapiPoll => parse_napi(rest),
        Meaning::IrqExit => Some(irq_exit(rest)),
        Meaning::Print => {
            let mut values = Values::default();
            values.texts[0] = rest;
            Some(values)
        }
        of_osnoise if of_osnoise.is_of_osnoise() => parse_noise(of_osnoise, rest),
        _ => Some(by_keys(meaning, rest, decoder)),
    };
    special.unwrap_or_default()
}

/// Reads each as `key=value`.
fn by_keys<'a>(meaning: Meaning, rest: &'a [u8], decoder: &mut Decoder) -> Values<'a> {
    let mut values = Values::default();
    // Names of tasks may look like other fields: a field after one is searched behind it.
    let mut from = 0;
    for (place, slot) in meaning.slots().iter().enumerate() {
        let found = slot.names.split('|').find_map(|key| value_start(rest, from, key));
        let Some(at) = found else { continue };
        let text = &rest[at..];
        match slot.form {
            FieldEncoding::Comm => {
                let end = end_of_comm(text, name_ends(slot.names)).unwrap_or(0);
                values.texts[place] = &text[..end];
                from = at + end;
            }
            FieldEncoding::Text => values.texts[place] = text,
            FieldEncoding::State => {
                let end = text.iter().position(|byte| byte.is_ascii_whitespace());
                values.state = Some(task_state::of_text(&text[..end.unwrap_or(text.len())]));
            }
            FieldEncoding::Number | FieldEncoding::Device => {
                values.numbers[place] = parse_signed(text)
            }
            FieldEncoding::Pointer => values.numbers[place] = parse_pointer(text, decoder),
        }
    }
    values
}

/// The function named by an event as its origin; 0: none.
pub(super) fn call_site(rest: &[u8], decoder: &mut Decoder) -> u64 {
    let found = ["call_site", "caller"].iter().find_map(|key| value_start(rest, 0, key));
    found.and_then(|at| parse_pointer(&rest[at..], decoder)).unwrap_or_default() as u64
}

/// The start of the value of `key=`.
fn value_start(rest: &[u8], from: usize, key: &str) -> Option<usize> {
    let key = key.as_bytes();
    let mut at = from;
    loop {
        let text = rest.get(at..)?;
        let equals = at + text.iter().position(|byte| *byte == b'=')?;
        let begin = equals.checked_sub(key.len());
        let whole = |begin: &usize| match begin.checked_sub(1).map(|before| rest[before]) {
            Some(before) => !before.is_ascii_alphanumeric() && before != b'_',
            None => true,
        };
        if let Some(begin) = begin.filter(|begin| *begin >= from).filter(whole)
            && rest[begin..equals] == *key
        {
            return Some(equals + 1);
        }
        at = equals + 1;
    }
}

/// The text after a task's name.
fn name_ends(names: &str) -> &'static [&'static [u8]] {
    match names {
        "prev_comm" => &[b" prev_pid="],
        "next_comm" => &[b" next_pid="],
        "child_comm" => &[b" child_pid="],
        "newcomm" => &[b" oom_score_adj="],
        _ => &[b" pid=", b" clone_flags="],
    }
}

/// The end of a name of at most 15 bytes: the last match within them, as the name may contain the
/// same text.
fn end_of_comm(text: &[u8], ends: &[&[u8]]) -> Option<usize> {
    let fits = |end: &usize| ends.iter().any(|with| text[*end..].starts_with(with));
    (0..COMM.min(text.len())).rev().find(fits)
}

/// `-110`, `0x1f`, `003`.
fn parse_signed(text: &[u8]) -> Option<i64> {
    if let Some(digits) = text.strip_prefix(b"0x") {
        return parse_hex(digits);
    }
    match text.strip_prefix(b"-") {
        Some(digits) => split_number(digits).map(|(number, _)| -number),
        None => parse_unsigned(text),
    }
}

/// Also accepts an unsigned number of 64 bits, as of timers that never expire.
fn parse_unsigned(text: &[u8]) -> Option<i64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&text[..digits]).ok()?;
    digits.parse::<u64>().ok().map(|number| number as i64)
}

fn parse_hex(text: &[u8]) -> Option<i64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let digits = std::str::from_utf8(&text[..digits]).ok()?;
    u64::from_str_radix(digits, 16).ok().map(|number| number as i64)
}

/// `0xffff888000001000`, `0000000012345678` of `%p`, or the name of a function.
fn parse_pointer(text: &[u8], decoder: &mut Decoder) -> Option<i64> {
    let end = text.iter().position(|byte| byte.is_ascii_whitespace() || b",)".contains(byte));
    let text = &text[..end.unwrap_or(text.len())];
    let bare = text.len() >= 8 && text.iter().all(u8::is_ascii_hexdigit);
    match text.strip_prefix(b"0x") {
        Some(digits) => parse_hex(digits),
        None if bare => parse_hex(text),
        // Printed before the kernel has enough random numbers for it.
        None if text.is_empty() || text.starts_with(b"(") => None,
        None => decoder.intern_name(text),
    }
}

/// `swapper/0:0 [120] R ==> cyclictest:1234 [19]`
fn switch_of_plugin(rest: &[u8]) -> Option<Values<'_>> {
    let arrow = b" ==> ";
    let places = rest.windows(arrow.len()).enumerate().filter(|(_, window)| window == arrow);
    places.map(|(at, _)| at).find_map(|at| {
        let (left, next) = (&rest[..at], &rest[at + arrow.len()..]);
        let space = left.iter().rposition(|byte| *byte == b' ')?;
        let state = &left[space + 1..];
        let (prev_comm, prev, prev_prio) = parse_task(&left[..space])?;
        let (next_comm, next, next_prio) = parse_task(next)?;
        let empty = &[][..];
        Some(Values {
            numbers: [None, prev, prev_prio, None, None, next, next_prio],
            texts: [prev_comm, empty, empty, empty, next_comm, empty, empty],
            state: Some(task_state::of_text(state)),
        })
    })
}

/// `cyclictest:1234 [19] success=1 CPU:003`
fn wakeup_of_plugin(rest: &[u8]) -> Option<Values<'_>> {
    let cpu = b"CPU:";
    let at = rest.windows(cpu.len()).rposition(|window| window == cpu)?;
    let (target, _) = split_number(&rest[at + cpu.len()..])?;
    let close = rest[..at].iter().rposition(|byte| *byte == b']')?;
    let (comm, pid, prio) = parse_task(&rest[..close + 1])?;
    let mut values = Values::default();
    values.texts[0] = comm;
    values.numbers[1..4].copy_from_slice(&[pid, prio, Some(target)]);
    Some(values)
}

/// `cyclictest:1234 [19]`
fn parse_task(text: &[u8]) -> Option<(&[u8], Option<i64>, Option<i64>)> {
    let text = text.trim_ascii_end().strip_suffix(b"]")?;
    let open = text.iter().rposition(|byte| *byte == b'[')?;
    let prio = parse_signed(&text[open + 1..])?;
    let who = text[..open].trim_ascii_end();
    let colon = who.iter().rposition(|byte| *byte == b':')?;
    let pid = parse_signed(&who[colon + 1..])?;
    (colon < COMM).then_some((&who[..colon], Some(pid), Some(prio)))
}

/// `NR 202 (7f12, 81, 1, 0, 0, 0)`, `NR 202 = -110`
fn raw_call(rest: &[u8]) -> Option<Values<'_>> {
    let (call, after) = split_number(rest.strip_prefix(b"NR ")?)?;
    let after = after.trim_ascii();
    let mut values = Values::default();
    values.numbers[0] = Some(call);
    match after.strip_prefix(b"(") {
        Some(args) => {
            let mut args = args.split(|byte| *byte == b',').map(parse_argument);
            values.numbers[1] = args.next().flatten();
            values.numbers[2] = args.next().flatten();
        }
        None => values.numbers[1] = parse_signed(after.strip_prefix(b"=")?.trim_ascii_start()),
    }
    Some(values)
}

fn parse_argument(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    parse_hex(text.strip_prefix(b"0x").unwrap_or(text))
}

/// `(uaddr: 7f12, op: 81, val: 1)`, `uaddr: 0x7f12, op: 0x81`; `-> 0x0`, `0x0`.
pub(super) fn of_call(enter: bool, rest: &[u8]) -> Values<'_> {
    let mut values = Values::default();
    if enter {
        let args = rest.strip_prefix(b"(").unwrap_or(rest);
        let mut args = args.split(|byte| *byte == b',').map(|arg| {
            let at = arg.iter().position(|byte| *byte == b':')?;
            parse_argument(&arg[at + 1..])
        });
        values.numbers[1] = args.next().flatten();
        values.numbers[2] = args.next().flatten();
    } else {
        let result = rest.strip_prefix(b"->").unwrap_or(rest).trim_ascii();
        values.numbers[1] = parse_signed(result);
    }
    values
}

/// `000000001234 (flags=SPIN|READ)`, `000000001234 (ret=0)`; the fields by name in `perf script`.
fn parse_contention(meaning: Meaning, rest: &[u8]) -> Option<Values<'_>> {
    let mut values = Values::default();
    let lock = rest.strip_prefix(b"0x").unwrap_or(rest);
    values.numbers[0] = parse_hex(lock);
    values.numbers[1] = if meaning == Meaning::ContentionBegin {
        let flags = &rest[value_start(rest, 0, "flags")?..];
        let end = flags.iter().position(|byte| *byte == b')').unwrap_or(flags.len());
        let words = flags[..end].split(|byte| *byte == b'|');
        Some(words.map(lock_flag).sum())
    } else {
        parse_signed(&rest[value_start(rest, 0, "ret")?..])
    };
    Some(values)
}

fn lock_flag(word: &[u8]) -> i64 {
    match word {
        b"SPIN" => 1,
        b"READ" => 2,
        b"WRITE" => 4,
        b"RT" => 8,
        b"PERCPU" => 16,
        b"MUTEX" => 32,
        number => parse_signed(number).unwrap_or(0),
    }
}

/// `irq=24 ret=handled`
fn irq_exit(rest: &[u8]) -> Values<'_> {
    let mut values = Values::default();
    values.numbers[0] = value_start(rest, 0, "irq").and_then(|at| parse_signed(&rest[at..]));
    values.numbers[1] = value_start(rest, 0, "ret").and_then(|at| match &rest[at..] {
        ret if ret.starts_with(b"handled") => Some(1),
        ret if ret.starts_with(b"unhandled") => Some(0),
        ret => parse_signed(ret),
    });
    values
}

/// `8,16 WS 4096 () 123456 + 8 [name]`, `8,16 WS () 123456 + 8 [0]`; newer kernels print a priority
/// before the last bracket.
fn parse_block(meaning: Meaning, rest: &[u8]) -> Option<Values<'_>> {
    let mut values = Values::default();
    let (device, after) = parse_device(rest)?;
    values.numbers[0] = Some(device);
    let after = after.trim_ascii_start();
    let end = after.iter().position(|byte| *byte == b' ')?;
    let (rwbs, after) = (&after[..end], after[end..].trim_ascii_start());
    let close = after.iter().position(|byte| *byte == b')')?;
    let (sector, _) = split_number(after[close + 1..].trim_ascii_start())?;
    values.numbers[1] = Some(sector);
    if meaning == Meaning::BlockIssue {
        values.numbers[2] = split_number(after).map(|(bytes, _)| bytes);
        values.texts[3] = rwbs;
    } else {
        let plus = after.iter().position(|byte| *byte == b'+')?;
        values.numbers[2] =
            split_number(after[plus + 1..].trim_ascii_start()).map(|(count, _)| count);
        let open = after.iter().rposition(|byte| *byte == b'[')?;
        values.numbers[3] = parse_signed(&after[open + 1..]);
    }
    Some(values)
}

/// `8,16` as the kernel's own dev_t (include/linux/kdev_t.h).
fn parse_device(text: &[u8]) -> Option<(i64, &[u8])> {
    let (major, after) = split_number(text)?;
    let (minor, after) = split_number(after.strip_prefix(b",")?)?;
    (major < 1 << 12 && minor < 1 << 20).then_some((major << 20 | minor, after))
}

/// `dev 8,1 transaction 123 sync 0`
fn parse_journal(rest: &[u8]) -> Option<Values<'_>> {
    let mut values = Values::default();
    let (device, after) = parse_device(rest.strip_prefix(b"dev ")?)?;
    let after = after.trim_ascii_start().strip_prefix(b"transaction ")?;
    values.numbers[0] = Some(device);
    values.numbers[1] = split_number(after).map(|(transaction, _)| transaction);
    Some(values)
}

/// `work struct 0000000012345678: function name`
fn parse_work<'a>(rest: &'a [u8], decoder: &mut Decoder) -> Option<Values<'a>> {
    let mut values = Values::default();
    values.numbers[0] = parse_pointer(
        text_behind(rest, b"function ").or_else(|| text_behind(rest, b"function="))?,
        decoder,
    );
    Some(values)
}

/// `napi poll on napi struct 0000 for device eth0 work 1 budget 64`
fn parse_napi(rest: &[u8]) -> Option<Values<'_>> {
    let mut values = Values::default();
    values.numbers[0] = split_number(text_behind(rest, b" work ")?).map(|(work, _)| work);
    values.numbers[1] = split_number(text_behind(rest, b" budget ")?).map(|(budget, _)| budget);
    Some(values)
}

fn text_behind<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(key.len()).position(|window| window == key)?;
    Some(&text[at + key.len()..])
}

/// `0:120:R ==> [001]  1234: 98:R name` and `0:120:R   + [001]  1234: 98:R name`: a switch and a
/// wake-up in the format of the latency tracers, older ones with `-->`.
pub(super) fn of_tracer(text: &[u8]) -> Option<(Meaning, Values<'_>)> {
    let (prev, prev_prio, state, after) = of_context(text)?;
    let (meaning, after) = match after.trim_ascii_start() {
        after if after.starts_with(b"==>") || after.starts_with(b"-->") => {
            (Meaning::Switch, &after[3..])
        }
        after => (Meaning::Wakeup, after.strip_prefix(b"+")?),
    };
    let (cpu, after) = split_number(after.trim_ascii_start().strip_prefix(b"[")?)?;
    let (next, next_prio, _, comm) = of_context(after.strip_prefix(b"]")?)?;
    let mut values = Values::default();
    if meaning == Meaning::Switch {
        values.numbers =
            [None, Some(prev), Some(prev_prio), None, None, Some(next), Some(next_prio)];
        values.state = Some(task_state::of_text(&[state]));
        values.texts[4] = comm.trim_ascii();
    } else {
        // Behind what a wake-up needs: who ran.
        values.numbers[1..6].copy_from_slice(&[
            Some(next),
            Some(next_prio),
            Some(cpu),
            Some(prev),
            Some(prev_prio),
        ]);
        values.texts[0] = comm.trim_ascii();
    }
    Some((meaning, values))
}

/// `dcvsh-irq-7:179 start 3937.898310871 duration 104 ns`, without a name of non-maskable
/// interrupts and of whole samples.
fn parse_noise(meaning: Meaning, rest: &[u8]) -> Option<Values<'_>> {
    let mut values = Values::default();
    let begin = rest.windows(START.len()).rposition(|part| part == START);
    let after = match begin {
        Some(at) => {
            let colon = rest[..at].iter().rposition(|byte| *byte == b':')?;
            let (name, number) = (rest[..colon].trim_ascii(), parse_unsigned(&rest[colon + 1..at]));
            let (of_name, of_number) = match meaning {
                Meaning::IrqNoise => (1, 0),
                _ => (0, usize::from(meaning == Meaning::ThreadNoise)),
            };
            (values.texts[of_name], values.numbers[of_number]) = (name, number);
            &rest[at + START.len()..]
        }
        None => rest.strip_prefix(&START[1..])?,
    };
    let (seconds, after) = split_number(after)?;
    let (fraction, after) = split_number(after.strip_prefix(b".")?)?;
    let start = seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    let duration =
        split_number(after.trim_ascii_start().strip_prefix(b"duration")?.trim_ascii_start())?;
    let first = match meaning {
        Meaning::IrqNoise | Meaning::ThreadNoise => 2,
        Meaning::SoftirqNoise => 1,
        _ => 0,
    };
    (values.numbers[first], values.numbers[first + 1]) = (Some(start), Some(duration.0));
    Some(values)
}

const START: &[u8] = b" start ";

/// ` 1234: 98:R`
fn of_context(text: &[u8]) -> Option<(i64, i64, u8, &[u8])> {
    let (pid, after) = split_number(text.trim_ascii_start())?;
    let after = after.strip_prefix(b":")?.trim_ascii_start();
    let (negative, after) = match after.strip_prefix(b"-") {
        Some(after) => (true, after),
        None => (false, after),
    };
    let (prio, after) = split_number(after)?;
    let (state, after) = after.strip_prefix(b":")?.split_first()?;
    Some((pid, if negative { -prio } else { prio }, *state, after))
}

#[cfg(test)]
#[path = "fields/tests.rs"]
mod tests;
