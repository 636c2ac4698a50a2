//! Reads a tool's command line for its threads. The line is the arguments joined by spaces, without
//! quoting.

use super::Tool;
use punctual_core::Clock;

/// The options found; `None` for missing ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandLineOptions {
    /// `-p`, `--priority`, `--prio`; oslat's `-f`, `--rtprio`.
    pub priority: Option<u8>,
    /// `--policy`
    pub policy: Option<String>,
    /// `-c`, `--clock`
    pub clock: Option<Clock>,
    /// `-h`, `-H`, `--histogram`, `--histofall`: the number of bins; oslat's `-b`,
    /// `--bucket-size`.
    pub range: Option<u64>,
    /// `-b`, `--breaktrace`: the latency above which the run ends, in the unit of the figures.
    pub breaktrace: Option<u64>,
    /// oslat's `-W`, `--bucket-width`, in ns.
    pub width: Option<u64>,
}

/// The options of a tool (the getopt(3) strings of rt-tests 2.x).
struct Syntax {
    /// Short options that take an argument, in the same word or the next.
    with_argument: &'static str,
    /// Short options whose optional argument may, unlike with getopt, also be the next word.
    with_optional: &'static str,
    /// The short options of interest, with their long names.
    kept: &'static [(char, &'static str)],
}

const CYCLICTEST: Syntax = Syntax {
    with_argument: "bcdDFhHiloOp",
    with_optional: "aAt",
    kept: &[
        ('p', "priority"),
        ('c', "clock"),
        ('h', "histogram"),
        ('H', "histogram"),
        ('b', "breaktrace"),
    ],
};
const OSLAT: Syntax = Syntax {
    with_argument: "bcCDfgmTwW",
    with_optional: "",
    kept: &[('f', "priority"), ('b', "histogram"), ('W', "bucket-width")],
};
const OTHERS: Syntax = Syntax {
    with_argument: "bdDilpsT",
    with_optional: "aft",
    kept: &[('p', "priority"), ('b', "breaktrace")],
};

impl Tool {
    fn option_syntax(self) -> &'static Syntax {
        match self {
            Tool::Cyclictest => &CYCLICTEST,
            Tool::Oslat => &OSLAT,
            _ => &OTHERS,
        }
    }
}

/// The program's name without directory; empty without one.
pub fn program_name(cmdline: &str) -> &str {
    let first = cmdline.split_ascii_whitespace().next().unwrap_or("");
    first.rsplit('/').next().unwrap_or("")
}

/// Reads the options of interest and skips all others.
pub fn read(tool: Tool, cmdline: &str) -> CommandLineOptions {
    let syntax = tool.option_syntax();
    let mut options = CommandLineOptions::default();
    let mut words = cmdline.split_ascii_whitespace().skip(1).peekable();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            let name = long_name(name);
            let value = if value.is_empty() && !name.is_empty() {
                words.next().unwrap_or("")
            } else {
                value
            };
            options.set_option(name, value);
        } else if let Some((letter, value)) =
            word.strip_prefix('-').and_then(|cluster| last_of(syntax, cluster))
        {
            let mut next = || words.next_if(|next| !next.starts_with('-'));
            let value = if value.is_empty() { next().unwrap_or("") } else { value };
            let kept = syntax.kept.iter().find(|(kept, _)| *kept == letter);
            options.set_option(kept.map_or("", |(_, name)| name), value);
        }
    }
    options
}

/// A single name for the spellings of the tools; empty for other options.
fn long_name(name: &str) -> &'static str {
    match name {
        "priority" | "prio" | "rtprio" => "priority",
        "policy" => "policy",
        "clock" => "clock",
        "histogram" | "histofall" | "bucket-size" => "histogram",
        "breaktrace" => "breaktrace",
        "bucket-width" => "bucket-width",
        _ => "",
    }
}

/// The option of a cluster (`-mSp95`) that takes an argument, with the part of the argument in the
/// cluster.
fn last_of<'a>(syntax: &Syntax, cluster: &'a str) -> Option<(char, &'a str)> {
    let takes = |c: char| syntax.with_argument.contains(c) || syntax.with_optional.contains(c);
    let (at, letter) = cluster.char_indices().find(|(_, c)| takes(*c))?;
    Some((letter, &cluster[at + letter.len_utf8()..]))
}

impl CommandLineOptions {
    fn set_option(&mut self, name: &str, value: &str) {
        match name {
            "priority" => self.priority = value.parse().ok().filter(|p| *p <= 99),
            "policy" => self.policy = Some(value.to_owned()),
            "clock" => {
                self.clock = match value {
                    "0" => Some(Clock::Monotonic),
                    "1" => Some(Clock::Realtime),
                    _ => None,
                }
            }
            "histogram" => self.range = value.parse().ok(),
            // 0 disables it.
            "breaktrace" => self.breaktrace = value.parse().ok().filter(|limit| *limit > 0),
            "bucket-width" => {
                self.width = value.parse().ok().filter(|width| (1..=1_000_000_000).contains(width))
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cyclictest(line: &str) -> CommandLineOptions {
        read(Tool::Cyclictest, line)
    }

    #[test]
    fn options_are_found_in_every_spelling() {
        let all = |p| CommandLineOptions {
            priority: Some(p),
            range: Some(400),
            clock: Some(Clock::Realtime),
            ..CommandLineOptions::default()
        };
        assert_eq!(cyclictest("cyclictest -mSp95 -h400 -c1"), all(95));
        assert_eq!(cyclictest("cyclictest -a -t 4 --priority=80 --histogram 400 -c 1 -q"), all(80));
        assert_eq!(cyclictest("cyclictest -t -p 80 -H 400 --clock=1"), all(80));
        assert_eq!(cyclictest("cyclictest --policy=rr").policy.as_deref(), Some("rr"));
        assert_eq!(cyclictest("cyclictest -p banana"), CommandLineOptions::default());
        assert_eq!(cyclictest(""), CommandLineOptions::default());
        assert_eq!(cyclictest("cyclictest -qb 50").breaktrace, Some(50));
        assert_eq!(cyclictest("cyclictest --breaktrace=0").breaktrace, None);
    }

    #[test]
    fn option_letters_are_interpreted_per_tool() {
        let oslat = read(Tool::Oslat, "/usr/bin/oslat -b 12 -W200 -f 50 -D 1s -c 1");
        let expected = CommandLineOptions {
            range: Some(12),
            width: Some(200),
            priority: Some(50),
            ..CommandLineOptions::default()
        };
        assert_eq!(oslat, expected);
        assert_eq!(program_name("/usr/bin/oslat -b 12"), "oslat");
        let other = read(Tool::Cyclicdeadline, "cyclicdeadline -a -t 2 -i 500 -b 10 -f");
        assert_eq!((other.breaktrace, other.range), (Some(10), None));
    }
}
