//! The short options of cyclictest, if they mean the same here: keys of a measure.

use punctual_core::{CpuSet, Nanos};
use punctual_plan::overrides::Override;
use punctual_plan::text::quote_toml;

/// The options; times without a unit are in µs, as there, and `-D` is in seconds.
#[derive(clap::Args, Default)]
#[command(next_help_heading = "Options as of cyclictest")]
pub struct Cyclictest {
    /// The priority (`priority`)
    #[arg(short = 'p', value_name = "PRIO")]
    p: Option<u8>,
    /// The period, in µs without a unit (`period`)
    #[arg(short = 'i', value_name = "INTERVAL", value_parser = parse_micros)]
    i: Option<Nanos>,
    /// Only 0: all threads have the same period
    #[arg(short = 'd', value_name = "DISTANCE", value_parser = parse_distance)]
    d: Option<Nanos>,
    /// How long to measure, in seconds without a unit (`duration`)
    #[arg(short = 'D', value_name = "TIME", value_parser = parse_seconds, conflicts_with = "l")]
    time: Option<Nanos>,
    /// The CPUs to measure on (`cpus`)
    #[arg(short = 'a', value_name = "CPUS", value_parser = parse_cpus)]
    a: Option<String>,
    /// The number of threads; without a number one per CPU (`threads`)
    #[arg(short = 't', value_name = "N", num_args = 0..=1, default_missing_value = "per-cpu",
          value_parser = parse_threads)]
    t: Option<String>,
    /// The number of samples of each thread (`samples`)
    #[arg(short = 'l', value_name = "LOOPS")]
    l: Option<u64>,
    /// A thread on each CPU, as `-a all -t`
    #[arg(short = 'S')]
    smp: bool,
    /// No effect: memory is locked unless the file says `memory_lock = false`
    #[arg(short = 'm')]
    memory_lock: bool,
}

impl Cyclictest {
    /// Whether it sets the length of the measurement.
    pub fn has_length(&self) -> bool {
        self.time.is_some() || self.l.is_some()
    }

    /// The keys of a measure, with their values in TOML.
    pub fn measure_settings(&self) -> Vec<Override> {
        let some_setting = |key: &str, value: Option<String>| Some((key.to_owned(), value?));
        let time = |span: Option<Nanos>| span.map(|span| quote_toml(&span.to_string()));
        let or_all = |given: &Option<String>, all: &str| {
            given.clone().or_else(|| self.smp.then(|| all.to_owned()))
        };
        let cpus = or_all(&self.a, "all");
        let threads = or_all(&self.t, "per-cpu").map(|threads| match threads.parse::<u64>() {
            Ok(number) => number.to_string(),
            Err(_) => quote_toml(&threads),
        });
        [
            some_setting("priority", self.p.map(|priority| priority.to_string())),
            some_setting("period", time(self.i)),
            some_setting("duration", time(self.time)),
            some_setting("cpus", cpus.as_deref().map(quote_toml)),
            some_setting("threads", threads),
            some_setting("samples", self.l.map(|loops| loops.to_string())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn with_unit(text: &str, unit: &str) -> Result<Nanos, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if is_number { format!("{text}{unit}") } else { text.to_owned() };
    text.parse().map_err(|why: punctual_core::units::DurationError| why.to_string())
}

fn parse_micros(text: &str) -> Result<Nanos, String> {
    with_unit(text, "us")
}

fn parse_seconds(text: &str) -> Result<Nanos, String> {
    with_unit(text, "s")
}

fn parse_distance(text: &str) -> Result<Nanos, String> {
    match parse_micros(text)? {
        Nanos::ZERO => Ok(Nanos::ZERO),
        _ => Err("all threads of a measure have the same period, so only -d 0 is supported; for \
                  staggered expiries use --set offset=DURATION, for different periods one \
                  [[measure]] each"
            .to_owned()),
    }
}

fn parse_cpus(text: &str) -> Result<String, String> {
    let is_list = text == "all" || text.parse::<CpuSet>().is_ok();
    is_list.then(|| text.to_owned()).ok_or_else(|| "write a list like 0-2,4, or all".to_owned())
}

fn parse_threads(text: &str) -> Result<String, String> {
    let is_number = text == "per-cpu" || text.parse::<u64>().is_ok();
    is_number.then(|| text.to_owned()).ok_or_else(|| {
        "write a number, or give -t without one after the kind: punctual measure timer -t"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_cyclictest() {
        assert_eq!(parse_micros("1000"), Ok(Nanos::MILLI));
        assert_eq!(parse_micros("2ms"), Ok(Nanos(2_000_000)));
        assert_eq!(parse_seconds("60"), Ok(Nanos::from_secs(60)));
        assert_eq!(parse_seconds("1m"), Ok(Nanos::from_secs(60)));
        assert!(parse_micros("").is_err() && parse_micros("1 parsec").is_err());
        assert_eq!(parse_distance("0"), Ok(Nanos::ZERO));
        assert!(parse_distance("500").unwrap_err().contains("offset"));
    }

    #[test]
    fn each_is_a_key_of_a_measure() {
        let all = Cyclictest {
            p: Some(95),
            i: Some(Nanos::MILLI),
            time: Some(Nanos::from_secs(60)),
            a: Some("0-2".to_owned()),
            t: Some("per-cpu".to_owned()),
            ..Cyclictest::default()
        };
        let written: Vec<String> =
            all.measure_settings().iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let expected = [
            "priority = 95",
            "period = \"1ms\"",
            "duration = \"60s\"",
            "cpus = \"0-2\"",
            "threads = \"per-cpu\"",
        ];
        assert_eq!(written, expected);
        assert!(all.has_length() && !Cyclictest::default().has_length());
        let smp = Cyclictest { smp: true, a: Some("1".to_owned()), ..Cyclictest::default() };
        let written: Vec<String> =
            smp.measure_settings().iter().map(|(key, value)| format!("{key} = {value}")).collect();
        assert_eq!(written, ["cpus = \"1\"", "threads = \"per-cpu\""]);
    }
}
