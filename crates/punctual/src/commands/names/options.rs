//! cyclictest's options, read as getopt_long(3) does: rt-tests 2.4, src/cyclictest/cyclictest.c.

use punctual_core::{CpuSet, Nanos};

/// How an option takes its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    /// Only one that is attached, or a number that follows.
    Perhaps,
}

use Takes::{Nothing, Perhaps, Value};

/// The options that are known: a letter, or a space, and the long name.
const KNOWN: [(char, &str, Takes); 28] = [
    ('a', "affinity", Perhaps),
    ('b', "breaktrace", Value),
    ('c', "clock", Value),
    ('d', "distance", Value),
    ('D', "duration", Value),
    ('h', "histogram", Value),
    ('H', "histofall", Value),
    ('i', "interval", Value),
    ('l', "loops", Value),
    ('m', "mlockall", Nothing),
    ('M', "refresh_on_max", Nothing),
    ('N', "nsecs", Nothing),
    ('p', "priority", Value),
    ('q', "quiet", Nothing),
    ('r', "relative", Nothing),
    ('S', "smp", Nothing),
    ('t', "threads", Perhaps),
    ('u', "unbuffered", Nothing),
    ('v', "verbose", Nothing),
    ('x', "posix_timers", Nothing),
    (' ', "default-system", Nothing),
    (' ', "histfile", Value),
    (' ', "json", Value),
    (' ', "laptop", Nothing),
    (' ', "latency", Value),
    (' ', "mainaffinity", Value),
    (' ', "policy", Value),
    (' ', "priospread", Nothing),
];

/// Those of cyclictest that are refused as if they did not exist.
const REFUSED: [&str; 13] = [
    "aligned",
    "dbg_cyclictest",
    "fifo",
    "help",
    "oscope",
    "resolution",
    "secaligned",
    "smi",
    "spike",
    "spike-nodes",
    "system",
    "tracemark",
    "numa",
];

/// Where the CPUs of the threads are from.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Pinned {
    /// Not pinned.
    #[default]
    No,
    /// Thread N on CPU N.
    Each,
    /// In turn on these.
    In(CpuSet),
}

/// The request.
#[derive(Clone, PartialEq, Debug)]
pub struct CyclictestOptions {
    pub pinned: Pinned,
    /// `None`: one for each CPU.
    pub threads: Option<usize>,
    pub priority: u8,
    pub policy: Option<String>,
    pub spread: bool,
    pub interval: u64,
    pub distance: Option<u64>,
    pub loops: u64,
    pub duration: Option<Nanos>,
    pub histogram: Option<u64>,
    /// Whether the histogram has a column of all threads.
    pub of_all: bool,
    pub histogram_file: Option<String>,
    pub json: Option<String>,
    pub break_above: Option<u64>,
    pub realtime_clock: bool,
    pub relative: bool,
    pub posix_timer: bool,
    pub nanoseconds: bool,
    pub lock_memory: bool,
    /// The bound on the latency of idle states, in µs; `None`: as the system has it.
    pub dma_latency: Option<u64>,
    pub main_cpus: Option<CpuSet>,
    pub quiet: bool,
    pub verbose: bool,
}

impl Default for CyclictestOptions {
    fn default() -> CyclictestOptions {
        CyclictestOptions {
            pinned: Pinned::No,
            threads: Some(1),
            priority: 0,
            policy: None,
            spread: false,
            interval: 1_000,
            distance: None,
            loops: 0,
            duration: None,
            histogram: None,
            of_all: false,
            histogram_file: None,
            json: None,
            break_above: None,
            realtime_clock: false,
            relative: false,
            posix_timer: false,
            nanoseconds: false,
            lock_memory: false,
            dma_latency: Some(0),
            main_cpus: None,
            quiet: false,
            verbose: false,
        }
    }
}

/// Why the options are not carried out. cyclictest prints its help for both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// getopt's message: an option that does not exist, or lacks its value. cyclictest ends with 0.
    Unknown(String),
    /// A value that makes no sense: it ends with 1.
    Wrong(String),
}

impl CyclictestOptions {
    /// Reads the words after the name of the program.
    pub fn read(words: &[String]) -> Result<CyclictestOptions, Refusal> {
        let mut options = CyclictestOptions::default();
        let (mut words, mut smp) = (words.iter().peekable(), false);
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                let (name, attached) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let (letter, name, takes) = named(name, word)?;
                let value = match (takes, attached) {
                    (Nothing, Some(_)) => {
                        let why = format!("option '--{name}' doesn't allow an argument");
                        return Err(Refusal::Unknown(why));
                    }
                    (Value, None) => Some(words.next().cloned().ok_or_else(|| {
                        Refusal::Unknown(format!("option '--{name}' requires an argument"))
                    })?),
                    (Perhaps, None) => words.next_if(|word| is_place(word)).cloned(),
                    (_, attached) => attached,
                };
                options.set(letter, name, value, &mut smp)?;
                continue;
            }
            // Arguments that are no options have no meaning, as there.
            let Some(letters) = word.strip_prefix('-').filter(|of| !of.is_empty()) else {
                continue;
            };
            let mut rest = letters.chars();
            while let Some(letter) = rest.next() {
                let found = KNOWN.iter().find(|(known, ..)| *known == letter && letter != ' ');
                let (_, name, takes) = found
                    .ok_or_else(|| Refusal::Unknown(format!("invalid option -- '{letter}'")))?;
                let attached = Some(rest.as_str().to_owned()).filter(|text| !text.is_empty());
                let value = match (takes, attached) {
                    (Nothing, _) => None,
                    (Value, None) => Some(words.next().cloned().ok_or_else(|| {
                        Refusal::Unknown(format!("option requires an argument -- '{letter}'"))
                    })?),
                    (Perhaps, None) => words.next_if(|word| is_place(word)).cloned(),
                    (_, attached) => attached,
                };
                options.set(letter, name, value, &mut smp)?;
                if *takes != Nothing {
                    break;
                }
            }
        }
        if smp {
            options.threads = None;
            options.pinned = Pinned::Each;
        }
        Ok(options)
    }

    /// Makes priority and policy fit, as rt-tests' process_options does; returns the messages.
    pub fn reconcile(&mut self, cpus: usize) -> Vec<String> {
        let highest = self.threads.unwrap_or(cpus).saturating_add(1).min(99) as u8;
        let is_real_time = matches!(self.policy.as_deref(), Some("fifo" | "rr"));
        let mut said = Vec::new();
        if self.priority == 0 && (self.spread || is_real_time) {
            self.priority = highest;
            said.push(format!("defaulting realtime priority to {highest}\n"));
        }
        if self.priority > 0 && !is_real_time {
            if self.policy.is_some() {
                let why = "policy and priority don't match: setting policy to SCHED_FIFO\n";
                said.push(why.to_owned());
            }
            self.policy = Some("fifo".to_owned());
        }
        said
    }

    fn set(
        &mut self,
        letter: char,
        name: &str,
        value: Option<String>,
        smp: &mut bool,
    ) -> Result<(), Refusal> {
        let text = value.as_deref().unwrap_or_default().trim().to_owned();
        let number = || leading_number(&text);
        match (letter, name) {
            ('a', _) if text.is_empty() => self.pinned = Pinned::Each,
            ('a', _) => self.pinned = Pinned::In(cpus(&text)?),
            ('b', _) => self.break_above = Some(number()).filter(|us| *us > 0),
            ('c', _) => self.realtime_clock = number() == 1,
            ('d', _) => self.distance = Some(number()),
            ('D', _) => self.duration = duration(&text),
            ('h', _) | ('H', _) => {
                (self.histogram, self.of_all) =
                    (Some(number()).filter(|us| *us > 0), letter == 'H');
            }
            ('i', _) => self.interval = number(),
            ('l', _) => self.loops = number(),
            ('m', _) => self.lock_memory = true,
            ('N', _) => self.nanoseconds = true,
            ('p', _) => {
                let outside = || Refusal::Wrong("the priority is not 0 to 99".to_owned());
                self.priority =
                    u8::try_from(number()).ok().filter(|of| *of <= 99).ok_or_else(outside)?;
            }
            ('q', _) => self.quiet = true,
            ('r', _) => self.relative = true,
            ('S', _) => *smp = true,
            ('t', _) if text.is_empty() => self.threads = None,
            ('t', _) => {
                let none = || Refusal::Wrong("there must be a thread".to_owned());
                self.threads = Some(number() as usize).filter(|of| *of > 0);
                self.threads.ok_or_else(none)?;
            }
            ('v', _) => self.verbose = true,
            ('x', _) => self.posix_timer = true,
            (_, "default-system" | "laptop") => self.dma_latency = None,
            (_, "histfile") => self.histogram_file = Some(text),
            (_, "json") => self.json = Some(text),
            (_, "latency") => self.dma_latency = Some(number()),
            (_, "mainaffinity") => self.main_cpus = Some(cpus(&text)?),
            (_, "policy") => self.policy = Some(policy(&text)),
            (_, "priospread") => self.spread = true,
            // -M and -u change how the live table is drawn.
            _ => {}
        }
        Ok(())
    }
}

/// The option with this long name, which may be shortened as far as it is the only one.
fn named<'w>(name: &'w str, word: &str) -> Result<(char, &'w str, Takes), Refusal>
where
    'static: 'w,
{
    let unknown = || Refusal::Unknown(format!("unrecognized option '{word}'"));
    if let Some((letter, name, takes)) = KNOWN.iter().find(|(_, known, _)| *known == name) {
        return Ok((*letter, name, *takes));
    }
    let begins = |known: &&str| known.starts_with(name);
    let all: Vec<&str> = KNOWN.iter().map(|(_, known, _)| *known).chain(REFUSED).collect();
    let fits: Vec<&&str> = all.iter().filter(|known| begins(known)).collect();
    match fits.as_slice() {
        [only] => KNOWN
            .iter()
            .find(|(_, known, _)| known == *only)
            .map(|(letter, name, takes)| (*letter, *name, *takes))
            .ok_or_else(unknown),
        [] => Err(unknown()),
        _ => Err(Refusal::Unknown(format!("option '{word}' is ambiguous"))),
    }
}

/// Whether a following word is the value of -a or -t: it begins with a number.
fn is_place(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// The number at the beginning, as atoi(3) reads it; 0 without one.
fn leading_number(text: &str) -> u64 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().unwrap_or_default()
}

fn cpus(text: &str) -> Result<CpuSet, Refusal> {
    text.parse().map_err(|_| Refusal::Wrong(format!("'{text}' is not a list of CPUs")))
}

/// Seconds, or a number of minutes, hours or days.
fn duration(text: &str) -> Option<Nanos> {
    let unit = match text.chars().last() {
        Some('m' | 'M') => 60,
        Some('h' | 'H') => 3_600,
        Some('d') => 86_400,
        _ => 1,
    };
    let seconds = leading_number(text).saturating_mul(unit).min(u64::from(u32::MAX));
    (seconds > 0).then(|| Nanos::from_secs(seconds as i64))
}

/// Another word is SCHED_OTHER.
fn policy(text: &str) -> String {
    let known = ["batch", "idle", "fifo", "rr"];
    let word = known.iter().find(|word| text.to_lowercase().starts_with(*word));
    (*word.unwrap_or(&"other")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CyclictestOptions, Refusal> {
        CyclictestOptions::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn letters_may_be_joined_and_values_attached() {
        let of = read("-S -m -p95 -i1000 -D10 -h400 -q").expect("valid");
        assert_eq!((of.pinned.clone(), of.threads), (Pinned::Each, None));
        assert_eq!((of.priority, of.interval, of.histogram), (95, 1_000, Some(400)));
        assert!(of.lock_memory && of.quiet && of.duration == Some(Nanos::from_secs(10)));
        // rteval's line.
        let of = read("-i100 -qmu -h3500 -p95 -t2 -a0-1 -b50").expect("valid");
        assert_eq!((of.threads, of.break_above), (Some(2), Some(50)));
        assert_eq!(of.pinned, Pinned::In("0-1".parse().expect("a list")));
        // Of Linaro's test definitions.
        let line = "-q -p 98 -i 1000 -t 1 -a 0 -D 1m -m --json=/tmp/x.json";
        let of = read(line).expect("valid");
        assert_eq!((of.threads, of.json.as_deref()), (Some(1), Some("/tmp/x.json")));
        assert_eq!(of.duration, Some(Nanos::from_secs(60)));
        let of = read("--priority=80 --interval 200 --dist=0 --threads --affinity=1,3 -l5")
            .expect("valid");
        assert_eq!((of.threads, of.distance, of.loops), (None, Some(0), 5));
        assert_eq!((of.priority, of.interval), (80, 200));
    }

    #[test]
    fn what_cannot_be_done_is_refused_like_an_unknown_option() {
        let unknown = |line: &str| match read(line) {
            Err(Refusal::Unknown(why)) => why,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(unknown("--bogus"), "unrecognized option '--bogus'");
        assert_eq!(unknown("--smi"), "unrecognized option '--smi'");
        assert_eq!(unknown("-h"), "option requires an argument -- 'h'");
        assert_eq!(unknown("-qR"), "invalid option -- 'R'");
        assert_eq!(unknown("--quiet=1"), "option '--quiet' doesn't allow an argument");
        assert!(unknown("--s").contains("ambiguous"));
        assert!(matches!(read("-p 200"), Err(Refusal::Wrong(_))));
        assert!(matches!(read("-t 0"), Err(Refusal::Wrong(_))));
    }

    /// Every option of the real program is known or refused, and each of ours is one of it.
    #[test]
    fn the_options_are_those_of_cyclictest() {
        let Ok(help) = std::process::Command::new("cyclictest").arg("--help").output() else {
            println!("SKIPPED: cyclictest is not installed");
            return;
        };
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let names: Vec<String> = help
            .lines()
            .filter_map(|line| line.split("--").nth(1))
            .map(|rest| {
                rest.chars().take_while(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
            })
            .filter(|name: &String| !name.is_empty())
            .collect();
        assert!(names.len() > 30, "{help}");
        for name in &names {
            let is_known = KNOWN.iter().any(|(_, known, _)| known == name);
            assert!(is_known || REFUSED.contains(&name.as_str()), "{name}");
        }
        for (_, name, _) in KNOWN {
            assert!(names.iter().any(|of| of == name), "{name}");
        }
    }
}
