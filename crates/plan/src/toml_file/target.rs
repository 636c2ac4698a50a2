//! A target in the short form of the command line.

use crate::context::LoadOptions;
use crate::form::ValueType;
use crate::notes::ProblemNotes;
use crate::problem::Problems;
use crate::section::FileSection;
use crate::table::TomlTable;
use crate::target::TargetSpec;
use crate::text::{SourceText, quote_toml};
use crate::words::split_address;
use toml::de::DeTable;

/// A target in the short form of the command line: `host`, `vm:6.1-rt`, `vm:6.1,cpus=2,accel=tcg`,
/// `ssh:user@board:2222`. It is parsed as the equivalent section; problems show that section.
pub(crate) fn parse_short_target(form: &str) -> Result<TargetSpec, Problems> {
    let (kind, rest) = form.split_once(':').unwrap_or((form, ""));
    let mut lines = format!("[target]\nkind = {}\n", quote_toml(kind));
    let parts = split_parts(rest);
    let (first, settings) =
        parts.split_first().map_or(("", &[][..]), |(first, settings)| (first.as_str(), settings));
    let (first, settings) = match first.split_once('=').is_some_and(|(key, _)| is_key(key)) {
        true => ("", parts.as_slice()),
        false => (first, settings),
    };
    if !first.is_empty() {
        lines += &if kind == "ssh" {
            address_keys(first)
        } else {
            format!("kernel = {}\n", quote_toml(first))
        };
    }
    for setting in settings {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let whole = !value.is_empty()
            && value.len() < 10
            && value.bytes().all(|byte| byte.is_ascii_digit());
        let value = match key {
            "devices" | "drivers" | "hosts" => {
                format!("[{}]", value.split('+').map(quote_toml).collect::<Vec<_>>().join(", "))
            }
            key if is_number(key) && whole => value.to_owned(),
            _ => quote_toml(value),
        };
        lines += &format!("{key} = {value}\n");
    }
    read(lines)
}

/// Whether the short form may set it after a comma.
fn is_key(name: &str) -> bool {
    name != "kind" && TargetSpec::section_keys().iter().any(|key| key.name == name)
}

/// Whether its value is written without quotes in a file.
fn is_number(name: &str) -> bool {
    let number = |value: &ValueType| matches!(value, ValueType::Integer { .. });
    TargetSpec::section_keys().iter().any(|key| key.name == name && number(&key.value))
}

fn read(lines: String) -> Result<TargetSpec, Problems> {
    let source = SourceText::new_shared("--target", lines);
    let mut notes = ProblemNotes::new(source.clone(), &LoadOptions::default());
    let (document, _) = DeTable::parse_recoverable(&source.text);
    let mut file = TomlTable::new(document.get_ref(), Default::default(), "a target");
    let spec = file
        .take_table(&mut notes, "target", "`[target]`")
        .map(|table| FileSection::read_whole(&mut notes, table));
    match notes.problems.error_count() {
        0 => Ok(spec.unwrap_or_default()),
        _ => Err(notes.problems),
    }
}

/// Splits at the commas that precede a key: the others belong to a value (`isolcpus=1,2`).
fn split_parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for piece in text.split(',').filter(|_| !text.is_empty()) {
        let key = piece.split_once('=').is_some_and(|(key, _)| is_key(key));
        match parts.last_mut().filter(|_| !key) {
            Some(last) => *last += &format!(",{piece}"),
            None => parts.push(piece.to_owned()),
        }
    }
    parts
}

/// `[user@]host[:port]`, as keys.
fn address_keys(text: &str) -> String {
    let (user, host, port) = split_address(text);
    let user = user.map(|user| format!("user = {}\n", quote_toml(user))).unwrap_or_default();
    let bare = |port: &str| {
        !port.is_empty() && port.len() < 10 && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let port = port.map(|port| {
        format!("port = {}\n", if bare(port) { port.to_owned() } else { quote_toml(port) })
    });
    format!("host = {}\n{user}{}", quote_toml(host), port.unwrap_or_default())
}
