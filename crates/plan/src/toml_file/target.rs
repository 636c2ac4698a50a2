//! `[target]`: the keys of all kinds, and the short form of the command line.

use crate::context::LoadOptions;
use crate::limits::{MAX_CMDLINE_BYTES, MAX_DURATION, MAX_VM_CPUS};
use crate::notes::{Notes, Read, Wrong};
use crate::problem::Problems;
use crate::table::{Table, integer, span, text};
use crate::target::TargetSpec;
use crate::text::{SourceText, quoted};
use crate::values;
use punctual_core::Nanos;
use toml::de::DeTable;

pub(super) fn target(notes: &mut Notes, mut t: Table) -> TargetSpec {
    let target = TargetSpec {
        span: t.span,
        kind: t.take(notes, "kind", |v| values::word(text(v)?, "a kind of target")),
        kernel: t.take(notes, "kernel", |v| values::path(text(v)?)),
        modules: t.take(notes, "modules", |v| values::path(text(v)?)),
        cmdline: t.take(notes, "cmdline", |v| cmdline(text(v)?)),
        cpus: t.take(notes, "cpus", |v| {
            values::count(integer(v)?, 1, MAX_VM_CPUS).map(|cpus| cpus as u32)
        }),
        memory: t.take(notes, "memory", |v| values::vm_memory(text(v)?)),
        accel: t.take(notes, "accel", |v| values::word(text(v)?, "an acceleration")),
        arch: t.take(notes, "arch", |v| values::word(text(v)?, "an architecture")),
        machine: t.take(notes, "machine", |v| values::word(text(v)?, "a machine")),
        devices: t.take_list(notes, "devices", |word| values::word(word, "a device")),
        timeout: t
            .take(notes, "timeout", |v| values::duration(span(v)?, Nanos::SECOND, MAX_DURATION)),
        binary: t.take(notes, "binary", |v| values::path(text(v)?)),
        host: t.take(notes, "host", |v| values::remote_name(text(v)?)),
        user: t.take(notes, "user", |v| values::remote_name(text(v)?)),
        port: t.take(notes, "port", |v| {
            values::count(integer(v)?, 1, u64::from(u16::MAX)).map(|port| port as u16)
        }),
        identity: t.take(notes, "identity", |v| values::path(text(v)?)),
        known_hosts: t.take(notes, "known_hosts", |v| values::path(text(v)?)),
    };
    if !t.has("kind") {
        notes.missing(
            t.span,
            "this target has no kind",
            "write `kind = \"vm\"`, `\"ssh\"` or `\"host\"`",
        );
    }
    t.finish(notes);
    target
}

/// Words for the kernel: one line of ASCII.
fn cmdline(text: &str) -> Read<String> {
    if text.len() > MAX_CMDLINE_BYTES {
        return Err(Wrong::new(format!(
            "more than {MAX_CMDLINE_BYTES} bytes are too many for a kernel's command line"
        )));
    }
    match text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        true => Ok(text.trim().to_owned()),
        false => Err(Wrong::new("a kernel's command line is one line of printable ASCII")),
    }
}

/// The keys whose values stand in quotes in a file are the others.
const BARE: [&str; 2] = ["cpus", "port"];
/// What the short form may set after its comma.
const KEYS: [&str; 16] = [
    "kernel",
    "modules",
    "cmdline",
    "cpus",
    "memory",
    "accel",
    "arch",
    "machine",
    "devices",
    "timeout",
    "binary",
    "host",
    "user",
    "port",
    "identity",
    "known_hosts",
];

/// A target in the short form of the command line: `host`, `vm:6.1-rt`, `vm:6.1,cpus=2,accel=tcg`,
/// `ssh:user@board:2222`. It is read as the section that it stands for; problems show that section.
pub(crate) fn short(form: &str) -> Result<TargetSpec, Problems> {
    let (kind, rest) = form.split_once(':').unwrap_or((form, ""));
    let mut lines = format!("[target]\nkind = {}\n", quoted(kind));
    let parts = parts(rest);
    let (first, settings) =
        parts.split_first().map_or(("", &[][..]), |(first, settings)| (first.as_str(), settings));
    let (first, settings) = match first.split_once('=').is_some_and(|(key, _)| KEYS.contains(&key))
    {
        true => ("", parts.as_slice()),
        false => (first, settings),
    };
    if !first.is_empty() {
        lines +=
            &if kind == "ssh" { address(first) } else { format!("kernel = {}\n", quoted(first)) };
    }
    for setting in settings {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let whole = !value.is_empty()
            && value.len() < 10
            && value.bytes().all(|byte| byte.is_ascii_digit());
        let value = match key {
            "devices" => {
                format!("[{}]", value.split('+').map(quoted).collect::<Vec<_>>().join(", "))
            }
            key if BARE.contains(&key) && whole => value.to_owned(),
            _ => quoted(value),
        };
        lines += &format!("{key} = {value}\n");
    }
    read(lines)
}

fn read(lines: String) -> Result<TargetSpec, Problems> {
    let source = SourceText::shared("--target", lines);
    let mut notes = Notes::new(source.clone(), &LoadOptions::default());
    let (document, _) = DeTable::parse_recoverable(&source.text);
    let mut file = Table::new(document.get_ref(), Default::default(), "a target");
    let spec =
        file.take_table(&mut notes, "target", "`[target]`").map(|table| target(&mut notes, table));
    match notes.problems.errors() {
        0 => Ok(spec.unwrap_or_default()),
        _ => Err(notes.problems),
    }
}

/// Split at the commas that a key comes after: the others belong to a value (`isolcpus=1,2`).
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for piece in text.split(',').filter(|_| !text.is_empty()) {
        let key = piece.split_once('=').is_some_and(|(key, _)| KEYS.contains(&key));
        match parts.last_mut().filter(|_| !key) {
            Some(last) => *last += &format!(",{piece}"),
            None => parts.push(piece.to_owned()),
        }
    }
    parts
}

/// `[user@]host[:port]`; an IPv6 address with a port stands in brackets.
fn address(text: &str) -> String {
    let (user, host) =
        text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None if host.matches(':').count() == 1 => {
            host.split_once(':').map_or((host, None), |(h, p)| (h, Some(p)))
        }
        None => (host, None),
    };
    let user = user.map(|user| format!("user = {}\n", quoted(user))).unwrap_or_default();
    let bare = |port: &str| {
        !port.is_empty() && port.len() < 10 && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let port = port.map(|port| {
        format!("port = {}\n", if bare(port) { port.to_owned() } else { quoted(port) })
    });
    format!("host = {}\n{user}{}", quoted(host), port.unwrap_or_default())
}
