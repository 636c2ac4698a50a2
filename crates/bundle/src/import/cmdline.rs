//! What cyclictest's command line tells of its threads. The line is the arguments joined by spaces, without any quoting.

use punctual_core::Clock;

/// What was found; `None` where the option is not there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `-p`, `--priority`
    pub priority: Option<u8>,
    /// `--policy`
    pub policy: Option<String>,
    /// `-c`, `--clock`
    pub clock: Option<Clock>,
    /// `-h`, `-H`, `--histogram`, `--histofall`: the number of bins.
    pub range: Option<u64>,
}

/// Short options that take an argument, in the same word or the next (getopt(3) string of rt-tests 2.x).
const WITH_ARGUMENT: &str = "bcdDFhHiloOp";
/// Short options whose argument is optional and may, against getopt's custom, be the next word too.
const WITH_OPTIONAL: &str = "aAt";

/// Reads the options that matter; what is not understood is passed over, as it is of no consequence here.
pub fn read(cmdline: &str) -> Options {
    let mut options = Options::default();
    let mut words = cmdline.split_ascii_whitespace().skip(1).peekable();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            let wants = ["priority", "policy", "clock", "histogram", "histofall"].contains(&name);
            let value = if value.is_empty() && wants { words.next().unwrap_or("") } else { value };
            options.set(name, value);
        } else if let Some((letter, value)) = word.strip_prefix('-').and_then(last_of) {
            let mut next = || words.next_if(|next| !next.starts_with('-'));
            let value = if value.is_empty() { next().unwrap_or("") } else { value };
            options.set(letter.encode_utf8(&mut [0; 4]), value);
        }
    }
    options
}

/// The option of a cluster (`-mSp95`) that takes an argument, and what of the argument is in the cluster.
fn last_of(cluster: &str) -> Option<(char, &str)> {
    let (at, letter) =
        cluster.char_indices().find(|(_, c)| WITH_ARGUMENT.contains(*c) || WITH_OPTIONAL.contains(*c))?;
    Some((letter, &cluster[at + letter.len_utf8()..]))
}

impl Options {
    fn set(&mut self, name: &str, value: &str) {
        match name {
            "p" | "priority" => self.priority = value.parse().ok().filter(|p| *p <= 99),
            "policy" => self.policy = Some(value.to_owned()),
            "c" | "clock" => {
                self.clock = match value {
                    "0" => Some(Clock::Monotonic),
                    "1" => Some(Clock::Realtime),
                    _ => None,
                }
            }
            "h" | "H" | "histogram" | "histofall" => self.range = value.parse().ok(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_every_spelling() {
        let all = |p| Options { priority: Some(p), range: Some(400), clock: Some(Clock::Realtime), policy: None };
        assert_eq!(read("cyclictest -mSp95 -h400 -c1"), all(95));
        assert_eq!(read("cyclictest -a -t 4 --priority=80 --histogram 400 -c 1 -q"), all(80));
        assert_eq!(read("cyclictest -t -p 80 -H 400 --clock=1"), all(80));
        assert_eq!(read("cyclictest --policy=rr").policy.as_deref(), Some("rr"));
        assert_eq!(read("cyclictest -p banana"), Options::default());
        assert_eq!(read(""), Options::default());
    }
}
