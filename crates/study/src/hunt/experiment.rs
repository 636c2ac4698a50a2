//! The experiment of an input: run by a trial, and repeatable by any user.

use super::space::{Input, Space};
use super::spec::HuntSpec;
use punctual_core::{Nanos, hex};
use punctual_session::exit::Failure;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

/// An input's name (its loads, and a unique checksum) and its text.
pub fn of(
    spec: &HuntSpec,
    kernel: &str,
    space: &Space,
    input: &Input,
) -> Result<(String, String), Failure> {
    let text = text(spec, kernel, space, input)?;
    let sum = hex(&Sha256::digest(&text)[..4]);
    let loads: Vec<&str> =
        input.parts.iter().map(|part| space.loads[part.load].name.as_str()).collect();
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let mut name: String =
        loads.join("+").chars().map(|c| if c == '+' { c } else { safe(c) }).collect();
    name.truncate(80);
    Ok((format!("{name}.{sum}"), text))
}

fn text(spec: &HuntSpec, kernel: &str, space: &Space, input: &Input) -> Result<String, Failure> {
    let string = |text: &str| Value::String(text.to_owned());
    let mut target = Table::new();
    target.insert("kind".into(), string("vm"));
    target.insert("kernel".into(), string(kernel));
    target.insert("accel".into(), string("virtual-time"));
    target.insert("timeout".into(), string(&spec.timeout));
    if !spec.cmdline.is_empty() {
        target.insert("cmdline".into(), string(&spec.cmdline));
    }
    if let Some(memory) = &spec.memory {
        target.insert("memory".into(), string(memory));
    }
    if !spec.drivers.is_empty() {
        let drivers = spec.drivers.iter().map(|driver| string(driver)).collect();
        target.insert("drivers".into(), Value::Array(drivers));
    }
    let mut measure = spec.measure.clone();
    let mut default = |key: &str, value: Value| {
        measure.entry(key).or_insert(value);
    };
    default("name", string("measured"));
    default("kind", string("timer"));
    if spec.measure.is_empty() {
        default("policy", string("fifo"));
        default("priority", Value::Integer(95));
        default("period", string("1ms"));
    }
    let quarter = Nanos(spec.duration()?.ns() / 4);
    let duration = (quarter * i64::from(input.quarters)).to_string();
    measure.insert("duration".into(), string(&duration));
    let mut loads = Vec::new();
    for (number, part) in input.parts.iter().enumerate() {
        let mut load = Table::new();
        // The names of two loads must differ, and hunt files allow any name.
        load.insert("name".into(), string(&format!("load{}", number + 1)));
        load.insert("command".into(), string(&command(space, input, number)));
        if part.delay_us > 0 {
            load.insert("start_delay".into(), string(&format!("{}us", part.delay_us)));
        }
        // A load that lacks a device or a right ends at once; the others continue.
        load.insert("on_failure".into(), string("ignore"));
        loads.push(Value::Table(load));
    }
    let mut settings = Table::new();
    settings.insert("seed".into(), Value::Integer(input.seed.into()));
    let mut all = Table::new();
    all.insert("experiment".into(), Value::Table(settings));
    all.insert("target".into(), Value::Table(target));
    all.insert("measure".into(), Value::Array(vec![Value::Table(measure)]));
    all.insert("load".into(), Value::Array(loads));
    Ok(all.to_string())
}

/// The command of a load.
pub fn command(space: &Space, input: &Input, place: usize) -> String {
    let part = &input.parts[place];
    let choice = &space.loads[part.load];
    let words = &choice.parameters[part.parameter];
    let gap = if words.is_empty() { "" } else { " " };
    let command = match &choice.command {
        Some(command) => format!("{command}{gap}{words}"),
        None => format!("stress-ng --{} {}{gap}{words} --quiet", choice.name, part.instances),
    };
    match part.lives_ms {
        0 => command,
        ms => {
            let again = format!("while :; do timeout -s KILL 0.{ms:03} {command}; done");
            format!("sh -c {}", shell_words::quote(&again))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stressors;
    use super::*;

    #[test]
    fn an_input_is_an_experiment() {
        let space = Space {
            loads: ["vm", "io-uring"].map(stressors::choice).to_vec(),
            thorough: 0,
            lives_ms: &[0],
            shift_us: 1_000,
        };
        let mut input = Input::simple(0..2, 7);
        input.parts[0].parameter = 1;
        input.parts[0].instances = 2;
        input.parts[1].delay_us = 12;
        input.parts[1].lives_ms = 100;
        let spec = HuntSpec::of_kernel("6.12-rt");
        let (name, text) = of(&spec, "6.12-rt", &space, &input).expect("an experiment");
        assert!(name.starts_with("vm+io-uring."), "{name}");
        for part in [
            "stress-ng --vm 2 --vm-bytes 16m --quiet",
            "sh -c 'while :; do timeout -s KILL 0.100 stress-ng --io-uring 1 --quiet; done'",
            "start_delay = \"12us\"",
            "seed = 7",
            "duration = \"250ms\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let path = std::path::Path::new("trial.toml");
        let read =
            punctual_plan::load(path, text.as_bytes(), &punctual_plan::LoadOptions::default());
        assert!(read.is_ok(), "{text}");
        let again = of(&spec, "6.12-rt", &space, &Input { seed: 8, ..input }).expect("one");
        assert_ne!(again.0, name);
    }
}
