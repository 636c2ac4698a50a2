//! The meaning of single values, in every language of experiment files.

use crate::escape::{clip_text, is_unprintable};
use crate::limits::{
    MAX_BUFFER, MAX_CMDLINE_BYTES, MAX_COMMAND_BYTES, MAX_NAME_CHARS, MAX_PATH_BYTES,
    MAX_REMARK_CHARS, MAX_TEMPERATURE, MAX_VM_MEMORY, MIN_BUFFER, MIN_RECORDING, MIN_VM_MEMORY,
};
use crate::notes::{Read, Wrong};
use crate::words::{
    ByteSize, CpuChoice, DmaLatency, Frequency, LoadOutput, Nice, RecordedEvents, SshAddress,
    Temperature, Word, split_address,
};
use punctual_core::event::Group;
use punctual_core::words::nearest_word;
use punctual_core::{
    Clock, CpuSet, Equivalence, Limit, Nanos, PerfEvent, Policy, Priority, PublishedShape,
    Requirement, SeriesRequirement, ShapeError, Term,
};

/// A duration within inclusive bounds.
pub(crate) fn parse_duration(text: &str, shortest: Nanos, longest: Nanos) -> Read<Nanos> {
    let span: Nanos = text
        .parse()
        .map_err(|why: punctual_core::units::DurationError| Wrong::new(why.to_string()))?;
    if span < shortest {
        return Err(Wrong::new(format!("`{}` is too short: at least {shortest}", clip_text(text))));
    }
    if span > longest {
        return Err(Wrong::new(format!("`{}` is too long: at most {longest}", clip_text(text))));
    }
    Ok(span)
}

/// A bound on /dev/cpu_dma_latency, or `leave`.
pub(crate) fn dma_latency(text: &str) -> Read<DmaLatency> {
    if text == "leave" {
        return Ok(DmaLatency(None));
    }
    let bound =
        parse_duration(text, Nanos::ZERO, crate::limits::MAX_DMA_LATENCY).map_err(|wrong| {
            match wrong.help {
                None => wrong.with_help("`leave` does not touch /dev/cpu_dma_latency"),
                Some(_) => wrong,
            }
        })?;
    if bound.ns() % Nanos::MICRO.ns() != 0 {
        return Err(Wrong::new("/dev/cpu_dma_latency takes whole microseconds"));
    }
    Ok(DmaLatency(Some(bound)))
}

/// A command for sh(1).
pub(crate) fn shell_command(text: &str) -> Read<String> {
    match text.trim().is_empty() || text.contains('\0') {
        true => Err(Wrong::new("this is not a command for sh(1)")
            .with_help("write one as for a shell, as `\"logger \\\"$PUNCTUAL_SERIES\\\"\"`")),
        false => Ok(text.to_owned()),
    }
}

/// A list of CPUs that is not empty.
pub(crate) fn parse_cpus(text: &str) -> Read<CpuSet> {
    let set = text
        .parse::<CpuSet>()
        .map_err(|why| Wrong::new(why.to_string()).with_help("write a list like `0-2,4`"))?;
    if set.is_empty() {
        return Err(Wrong::new("this list of CPUs is empty").with_help("write a list like `0-2,4`"));
    }
    Ok(set)
}

/// A list of CPUs, or `all`.
pub(crate) fn cpu_choice(text: &str) -> Read<CpuChoice> {
    match text.trim() {
        "all" => Ok(CpuChoice::All),
        list => parse_cpus(list)
            .map(CpuChoice::Listed)
            .map_err(|wrong| wrong.with_help("write a list like `0-2,4`, or `all`")),
    }
}

/// A group of kernel events.
pub(crate) fn parse_group(text: &str) -> Read<Group> {
    let words = Group::ALL.iter().map(|group| group.word());
    Group::from_word(text).ok_or_else(|| not_a_word(text, "a group of kernel events", words))
}

/// A group of kernel events, or a tracepoint by name.
pub(crate) fn recorded_events(text: &str) -> Read<RecordedEvents> {
    match text.contains(':') {
        true => text.parse().map(RecordedEvents::Tracepoint).map_err(Wrong::new),
        false => parse_group(text).map(RecordedEvents::Group),
    }
}

/// The size limit of a recording.
pub(crate) fn recording_size(text: &str) -> Read<ByteSize> {
    let size: ByteSize = text.parse().map_err(Wrong::new)?;
    let min_size = ByteSize(MIN_RECORDING);
    if size < min_size {
        Err(Wrong::new(format!("`{}` is too small: at least {min_size}", clip_text(text))))
    } else {
        Ok(size)
    }
}

/// The size of the buffer of each CPU's newest events.
pub(crate) fn buffer_size(text: &str) -> Read<ByteSize> {
    let size: ByteSize = text.parse().map_err(Wrong::new)?;
    let (least, most) = (ByteSize(MIN_BUFFER), ByteSize(MAX_BUFFER));
    match size {
        _ if size < least => {
            Err(Wrong::new(format!("`{}` is too small: at least {least}", clip_text(text))))
        }
        _ if size > most => {
            Err(Wrong::new(format!("`{}` is too large: at most {most}", clip_text(text))))
        }
        _ => Ok(size),
    }
}

/// The memory of a virtual machine.
pub(crate) fn vm_memory(text: &str) -> Read<ByteSize> {
    let size: ByteSize = text.parse().map_err(Wrong::new)?;
    if !(MIN_VM_MEMORY..=MAX_VM_MEMORY).contains(&size.0) {
        let (least, most) = (ByteSize(MIN_VM_MEMORY), ByteSize(MAX_VM_MEMORY));
        return Err(Wrong::new(format!(
            "`{}` is out of bounds: {least} to {most}",
            clip_text(text)
        )));
    }
    match size.0.is_multiple_of(1 << 20) {
        true => Ok(size),
        false => Err(Wrong::new("a virtual machine takes whole MiB")),
    }
}

/// Words of the kernel's command line: one line of ASCII.
pub(crate) fn kernel_words(text: &str) -> Read<String> {
    if text.len() > MAX_CMDLINE_BYTES {
        return Err(Wrong::new(format!(
            "the kernel command line is limited to {MAX_CMDLINE_BYTES} bytes"
        )));
    }
    match text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        true => Ok(text.trim().to_owned()),
        false => Err(Wrong::new("a kernel's command line is one line of printable ASCII")),
    }
}

/// A host or user for ssh(1): nothing that ssh would read as an option or as two words.
pub(crate) fn remote_name(text: &str) -> Read<String> {
    let wrong = |why: &str| {
        Err(Wrong::new(format!("`{}` cannot be a host or a user: {why}", clip_text(text))))
    };
    if text.is_empty() || text.len() > 255 {
        return wrong("it is empty or has more than 255 bytes");
    }
    if text.starts_with('-') {
        return wrong("it begins with `-`, which ssh would take for an option");
    }
    match text.chars().any(|c| {
        c.is_whitespace() || is_unprintable(c) || matches!(c, '@' | '/' | '\\' | '\'' | '"')
    }) {
        true => wrong(
            "it contains a blank, a quote, `@`, `/` or a character that is not \
                       printable",
        ),
        false => Ok(text.to_owned()),
    }
}

/// A board for ssh(1): `[USER@]HOST[:PORT]`.
pub(crate) fn remote_address(text: &str) -> Read<SshAddress> {
    let (user, host, port) = split_address(text);
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(Wrong::new(format!("`{}` is not a port", clip_text(port)))),
    });
    let user = user.map(remote_name).transpose()?;
    Ok(SshAddress { user, host: remote_name(host)?, port: port.transpose()? })
}

/// The maximum length of an interval of a recording. The recording defines its endpoints.
pub(crate) fn design_limit(text: &str) -> Read<String> {
    Limit::parse_with_subject(text)
        .map(|_| text.to_owned())
        .map_err(|why| Wrong::new(why.to_string()))
}

/// A temperature that a machine can have while it works.
pub(crate) fn parse_temperature(text: &str) -> Read<Temperature> {
    let value: Temperature = text.parse().map_err(Wrong::new)?;
    match value > Temperature(0) && value < Temperature(MAX_TEMPERATURE) {
        true => Ok(value),
        false => Err(Wrong::new(format!(
            "`{value}` is out of bounds: between 0C and {}",
            Temperature(MAX_TEMPERATURE)
        ))),
    }
}

/// A frequency of a CPU.
pub(crate) fn parse_frequency(text: &str) -> Read<Frequency> {
    let value: Frequency = text.parse().map_err(Wrong::new)?;
    match (Frequency(1_000)..=Frequency(20_000_000)).contains(&value) {
        true => Ok(value),
        false => Err(Wrong::new(format!("`{value}` is out of bounds: between 1MHz and 20GHz"))),
    }
}

/// One of a closed list of words.
pub(crate) fn parse_word<W: Word>(text: &str, what: &str) -> Read<W> {
    let found = W::WORDS.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| not_a_word(text, what, W::WORDS.iter().map(|(word, _)| *word)))
}

/// A scheduling policy, in any usual spelling.
pub(crate) fn parse_policy(text: &str) -> Read<Policy> {
    let words = Policy::WORDS.iter().map(|(word, _)| *word);
    Policy::from_word(text).ok_or_else(|| not_a_word(text, "a scheduling policy", words))
}

/// A clock, in any usual spelling.
pub(crate) fn parse_clock(text: &str) -> Read<Clock> {
    let words = Clock::WORDS.iter().map(|(word, _)| *word);
    Clock::from_word(text)
        .ok_or_else(|| not_a_word(text, "a clock that timers can be armed on", words))
}

fn not_a_word(text: &str, what: &str, words: impl Iterator<Item = &'static str> + Clone) -> Wrong {
    let quoted_words: Vec<String> = words.clone().map(|word| format!("`{word}`")).collect();
    let help = match nearest_word(text, words) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of {}", quoted_words.join(", ")),
    };
    Wrong::new(format!("`{}` is not {what}", clip_text(text))).with_help(help)
}

/// A fixed priority.
pub(crate) fn check_priority(number: i64) -> Read<Priority> {
    let wrong = || {
        Wrong::new(format!("{number} is not a priority")).with_help("1 (lowest) to 99 (highest)")
    };
    u8::try_from(number).ok().and_then(Priority::new).ok_or_else(wrong)
}

/// A nice value.
pub(crate) fn check_nice(number: i64) -> Read<Nice> {
    let wrong = || {
        Wrong::new(format!("{number} is not a nice value"))
            .with_help("-20 (highest) to 19 (lowest)")
    };
    i8::try_from(number).ok().and_then(Nice::new).ok_or_else(wrong)
}

/// A whole number from 0 or more, within bounds.
pub(crate) fn check_count(number: i64, least: u64, most: u64) -> Read<u64> {
    match u64::try_from(number) {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(Wrong::new(format!("{number} is out of bounds: {least} to {most}"))),
    }
}

/// A name that is valid in file names, tables and terminals.
pub(crate) fn check_name(text: &str) -> Read<String> {
    let wrong =
        |why: &str| Err(Wrong::new(format!("`{}` cannot be a name: {why}", clip_text(text))));
    if text.trim().is_empty() {
        return wrong("it is empty");
    }
    if text.chars().count() > MAX_NAME_CHARS {
        return wrong(&format!("it has more than {MAX_NAME_CHARS} characters"));
    }
    if text.contains('/') {
        return wrong("a `/` separates directories");
    }
    if text == "." || text == ".." {
        return wrong("it is a directory's");
    }
    if text.chars().any(is_unprintable) {
        return wrong("it contains a character that is not printable");
    }
    if text.trim() != text {
        return wrong("it begins or ends with a blank");
    }
    Ok(text.to_owned())
}

/// A path that the kernel accepts.
pub(crate) fn check_path(text: &str) -> Read<String> {
    if text.is_empty() {
        return Err(Wrong::new("a path cannot be empty"));
    }
    if text.len() > MAX_PATH_BYTES {
        return Err(Wrong::new(format!("this path has more than {MAX_PATH_BYTES} bytes")));
    }
    if text.contains('\0') {
        return Err(Wrong::new("a path cannot hold a NUL character"));
    }
    Ok(text.to_owned())
}

/// The destination of a load's output: a path, or `null`.
pub(crate) fn parse_output(text: &str) -> Read<LoadOutput> {
    match text {
        "null" => Ok(LoadOutput::Null),
        file => check_path(file).map(|path| LoadOutput::File(path.into())),
    }
}

/// A command line, split like a shell does, but without expansion: `#`, `;`, `$`, `*` are ordinary
/// characters.
pub(crate) fn split_command(text: &str) -> Read<Vec<String>> {
    // shell_words treats ` #` as a comment and would silently drop the rest of the line.
    let stand_in = ('\u{e000}'..='\u{f8ff}').find(|c| !text.contains(*c)).unwrap_or('\u{f8ff}');
    let split = shell_words::split(&text.replace('#', &stand_in.to_string()));
    let words = split.map_err(|_| Wrong::new("a quote is never closed"))?;
    check_arguments(words.into_iter().map(|word| word.replace(stand_in, "#")).collect())
}

/// Arguments that the kernel accepts, the program first.
pub(crate) fn check_arguments(argv: Vec<String>) -> Read<Vec<String>> {
    match argv.first() {
        None => return Err(Wrong::new("a command needs a program")),
        Some(program) if program.is_empty() => {
            return Err(Wrong::new("the program's name is empty"));
        }
        Some(_) => {}
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(Wrong::new("an argument cannot hold a NUL character"));
    }
    if argv.iter().map(String::len).sum::<usize>() > MAX_COMMAND_BYTES {
        let wrong = Wrong::new(format!("this command has more than {MAX_COMMAND_BYTES} bytes"));
        return Err(wrong.with_help("put it into a script and run that"));
    }
    Ok(argv)
}

/// A remark on one line.
pub(crate) fn check_remark(text: &str) -> Read<String> {
    if text.trim().is_empty() {
        return Err(Wrong::new("it is empty"));
    }
    if text.chars().count() > MAX_REMARK_CHARS {
        return Err(Wrong::new(format!("it has more than {MAX_REMARK_CHARS} characters")));
    }
    if text.chars().any(is_unprintable) {
        return Err(Wrong::new("it contains a character that is not printable"));
    }
    Ok(text.to_owned())
}

/// A network interface (dev_valid_name() of the kernel).
pub(crate) fn check_interface(text: &str) -> Read<String> {
    let is_odd = |c: char| c.is_whitespace() || is_unprintable(c) || c == '/' || c == ':';
    if matches!(text, "" | "." | "..") || text.len() > 15 || text.contains(is_odd) {
        return Err(Wrong::new("an interface has 1 to 15 characters, no space, / or :"));
    }
    Ok(text.to_owned())
}

/// An IPv4 address and a port.
pub(crate) fn ipv4_port(text: &str) -> Read<String> {
    let read: Result<std::net::SocketAddrV4, _> = text.parse();
    read.map(|_| text.to_owned())
        .map_err(|_| Wrong::new("not an IPv4 address and a port, as 192.0.2.1:7000"))
}

/// A figure of the run.
pub(crate) fn parse_term(text: &str) -> Read<Term> {
    text.parse().map_err(|why: ShapeError| Wrong::new(why.to_string()))
}

/// A relation between figures of the run.
pub(crate) fn check_shape(text: &str) -> Read<String> {
    let read: Result<Vec<PublishedShape>, ShapeError> = PublishedShape::parse_chain(text);
    read.map(|_| text.to_owned()).map_err(|why| Wrong::new(why.to_string()))
}

/// A requirement on a series.
pub(crate) fn parse_requirement(text: &str) -> Read<Requirement> {
    text.parse()
        .map_err(|why: punctual_core::requirement::RequirementError| Wrong::new(why.to_string()))
}

/// A requirement; for a program, with the series that it applies to.
pub(crate) fn series_requirement(text: &str) -> Read<SeriesRequirement> {
    text.parse()
        .map_err(|why: punctual_core::requirement::RequirementError| Wrong::new(why.to_string()))
}

/// An event of perf-list(1).
pub(crate) fn perf_event(text: &str) -> Read<PerfEvent> {
    text.parse().map_err(|why: punctual_core::perf_event::UnknownEvent| Wrong::new(why.to_string()))
}

/// A figure and its allowed difference between two measurements.
pub(crate) fn parse_equivalence(text: &str) -> Read<Equivalence> {
    text.parse()
        .map_err(|why: punctual_core::equivalence::EquivalenceError| Wrong::new(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message<T>(read: Read<T>) -> String {
        read.err()
            .map(|wrong| format!("{} ({})", wrong.message, wrong.help.unwrap_or_default()))
            .unwrap_or_default()
    }

    #[test]
    fn command_lines_are_split_without_expansion() {
        let split = |text: &str| split_command(text).unwrap();
        assert_eq!(split("stress-ng --fork 2"), ["stress-ng", "--fork", "2"]);
        assert_eq!(
            split(r#"sh -c 'a; b' ; #x "y # z" $HOME *"#),
            ["sh", "-c", "a; b", ";", "#x", "y # z", "$HOME", "*"]
        );
        assert_eq!(split("a \u{e000} #"), ["a", "\u{e000}", "#"]);
        assert!(message(split_command("a 'b")).contains("never closed"));
        assert!(message(split_command("  ")).contains("needs a program"));
        assert!(message(split_command("'' a")).contains("is empty"));
        assert!(message(check_arguments(vec!["a".into(), "b\0".into()])).contains("NUL"));
        assert!(
            message(check_arguments(vec!["a".into(), "b".repeat(200_000)])).contains("32768 bytes")
        );
    }

    #[test]
    fn values_out_of_bounds_are_refused_with_the_bound() {
        let period = |text: &str| message(parse_duration(text, Nanos::MICRO, Nanos::SECOND));
        assert_eq!(period("999ns"), "`999ns` is too short: at least 1us ()");
        assert_eq!(period("0"), "`0` is too short: at least 1us ()");
        assert_eq!(period("2s"), "`2s` is too long: at most 1s ()");
        assert!(period("nan").contains("not a number"));
        assert!(period("-1ms").contains("negative"));
        assert_eq!(
            message(check_priority(100)),
            "100 is not a priority (1 (lowest) to 99 (highest))"
        );
        assert_eq!(
            message(check_priority(-1)),
            "-1 is not a priority (1 (lowest) to 99 (highest))"
        );
        assert_eq!(
            message(check_nice(20)),
            "20 is not a nice value (-20 (highest) to 19 (lowest))"
        );
        assert!(message(check_count(0, 1, 5)).contains("1 to 5"));
        assert!(message(dma_latency("1500ns")).contains("whole microseconds"));
        assert!(message(dma_latency("leaf")).contains("leave"));
        assert_eq!(
            message(parse_temperature("200C")),
            "`200C` is out of bounds: between 0C and 150C ()"
        );
        assert!(message(parse_temperature("60")).contains("like `60C`"));
        let read = ["1.5GHz", "600 MHz", "1800000kHz", "1.234567GHz"].map(parse_frequency);
        let read = read.map(|of| of.map(|of| (of.0, of.to_string())).expect("a frequency"));
        let expected = [
            (1_500_000, "1.5GHz"),
            (600_000, "600MHz"),
            (1_800_000, "1.8GHz"),
            (1_234_567, "1234.567MHz"),
        ];
        assert_eq!(read, expected.map(|(khz, text)| (khz, text.to_owned())));
        for bad in ["1.5", "GHz", "-1GHz", "1..5GHz", "99999999GHz", "1GHz", "25GHz", "0.0001kHz"] {
            assert_eq!(parse_frequency(bad).is_err(), bad != "1GHz", "{bad}");
        }
        let read = ["60C", "59.5 °C", "7.125C"].map(|text| parse_temperature(text).map(|of| of.0));
        assert_eq!(read, [Ok(60_000), Ok(59_500), Ok(7_125)]);
    }

    #[test]
    fn names_that_could_do_harm_are_refused() {
        for bad in ["", " ", "a/b", "..", "a\nb", "a\u{202e}b", " a", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert_eq!(check_name("größe 1").as_deref(), Ok("größe 1"));
    }

    #[test]
    fn the_nearest_word_is_named() {
        assert!(
            message(parse_word::<crate::TimerMethod>("timerfs", "a method"))
                .contains("did you mean `timerfd`")
        );
        assert!(message(parse_policy("banana")).contains("`fifo`, `rr`"));
        assert!(message(parse_cpus("")).contains("empty"));
        assert!(message(cpu_choice("al")).contains("`all`"));
    }

    proptest! {
        #[test]
        fn quoting_preserves_arguments(argv in proptest::collection::vec("[^\\x00]{0,12}", 0..6)) {
            let argv: Vec<String> = ["x".to_owned()].into_iter().chain(argv).collect();
            prop_assert_eq!(split_command(&shell_words::join(&argv)), Ok(argv));
        }
        #[test]
        fn no_text_panics(text in "(?s).{0,60}") {
            let _ = (
                split_command(&text),
                check_name(&text),
                cpu_choice(&text),
                parse_duration(&text, Nanos::ZERO, Nanos::SECOND),
            );
            let _ = (
                dma_latency(&text),
                parse_requirement(&text),
                check_path(&text),
                parse_word::<crate::OnExit>(&text, "x"),
            );
        }
    }
}
