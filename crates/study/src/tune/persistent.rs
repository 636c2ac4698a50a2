//! The findings as files that a system reads when it starts: pure, texts by path.

use super::directory::TuningSpec;
use super::setting::Setting;
use punctual_bundle::tune::{EffectFactor, TuningDocument};
use punctual_core::format;
use punctual_core::{CpuSet, Nanos};
use punctual_host::journal::record::KernelWrite;

/// The reader of the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingReader {
    /// sysctl.d(5), tmpfiles.d(5), udev(7), systemd.unit(5), and GRUB's configuration.
    System,
    /// TuneD: one profile for everything.
    Tuned,
}

/// A file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Below the root, as `etc/sysctl.d/90-punctual-tune.conf`.
    pub path: &'static str,
    pub text: String,
    /// The command that puts it in force without a reboot, or that it needs one.
    pub then: &'static str,
}

/// The files, and the writes that none of them can repeat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Persistent {
    pub files: Vec<File>,
    /// The settings not in them, with reasons.
    pub not_kept: Vec<String>,
}

const SYSCTL: &str = "etc/sysctl.d/90-punctual-tune.conf";
const TMPFILES: &str = "etc/tmpfiles.d/90-punctual-tune.conf";
const UDEV: &str = "etc/udev/rules.d/90-punctual-tune.rules";
const GRUB: &str = "etc/default/grub.d/90-punctual-tune.cfg";
const IRQBALANCE: &str = "etc/systemd/system/irqbalance.service.d/90-punctual-tune.conf";
const TUNED: &str = "etc/tuned/punctual-tune/tuned.conf";

/// A setting to persist.
enum PersistentSetting {
    /// A name for sysctl(8) and its value.
    Sysctl(String, String),
    /// A file of /sys and its value.
    Sysfs(String, String),
    /// An attribute of a network interface, which may appear later.
    Net { interface: String, attribute: String, value: String },
    /// CPUs that interrupts may use, and those that they must not.
    Interrupts { allowed: CpuSet, kept_free: CpuSet },
    /// Words of the kernel's command line.
    Boot(String),
}

/// The files of the recommended settings.
pub fn files(document: &TuningDocument, spec: &TuningSpec, reader: SettingReader) -> Persistent {
    let mut all = Persistent::default();
    let mut texts: Vec<(&'static str, String)> = Vec::new();
    for name in &document.recommended {
        let Some(setting) = spec.settings.iter().find(|setting| setting.name == *name) else {
            all.not_kept.push(format!("{name}: the tuning's request does not have it"));
            continue;
        };
        let evidence = evidence(document, setting);
        for kept in kept(setting, &mut all.not_kept) {
            let lines = match reader {
                SettingReader::System => for_system(&kept),
                SettingReader::Tuned => for_tuned(&kept),
            };
            for (path, line) in lines {
                add(&mut texts, path, &evidence, &line);
            }
        }
    }
    let head = head(document);
    all.files = match reader {
        SettingReader::System => {
            texts.into_iter().map(|(path, text)| of_system(path, &head, &text)).collect()
        }
        SettingReader::Tuned if texts.is_empty() => Vec::new(),
        SettingReader::Tuned => vec![profile(&head, &texts)],
    };
    all
}

/// Adds a line once, with the evidence above the first of its setting.
fn add(texts: &mut Vec<(&'static str, String)>, path: &'static str, evidence: &str, line: &str) {
    let place = texts.iter().position(|(known, _)| *known == path).unwrap_or_else(|| {
        texts.push((path, String::new()));
        texts.len() - 1
    });
    let text = &mut texts[place].1;
    if !text.contains(evidence) {
        *text += evidence;
    }
    if !text.lines().any(|known| known == line) {
        *text += line;
        text.push('\n');
    }
}

fn kept(setting: &Setting, not_kept: &mut Vec<String>) -> Vec<PersistentSetting> {
    let mut all = Vec::new();
    match is_plain_words(&setting.boot) {
        true if setting.boot.is_empty() => {}
        true => all.push(PersistentSetting::Boot(setting.boot.clone())),
        false => not_kept.push(format!("{}: {NOT_PLAIN}", setting.name)),
    }
    for write in &setting.writes {
        match kept_write(write) {
            Ok(kept) => all.push(kept),
            Err(why) => not_kept.push(format!("{}: {}: {why}", setting.name, write.path)),
        }
    }
    all
}

const NOT_PLAIN: &str = "its name or value cannot be written to such a file";

/// Whether these words have no special meaning in any of these files.
fn is_plain_words(text: &str) -> bool {
    text.chars().all(|c| c == ' ' || (c.is_ascii_graphic() && !"\"'\\$`#".contains(c)))
}

fn kept_write(write: &KernelWrite) -> Result<PersistentSetting, String> {
    let (path, value) = (write.path.as_str(), write.new.clone());
    if !is_plain_words(path) || path.contains(' ') || !is_plain_words(&value) {
        return Err(NOT_PLAIN.to_owned());
    }
    if let Some(name) = path.strip_prefix("/proc/sys/") {
        // Dots separate in one notation, slashes in the other (sysctl.d(5)).
        let name = if name.contains('.') { name.to_owned() } else { name.replace('/', ".") };
        return Ok(PersistentSetting::Sysctl(name, value));
    }
    if path.starts_with("/proc/irq/") {
        let set = |text: &str| -> Result<CpuSet, String> {
            let is_list = path.ends_with("_list");
            let set = if is_list { text.parse() } else { CpuSet::from_mask(text) };
            set.map_err(|why| why.to_string())
        };
        let (old, allowed) = (set(&write.old)?, set(&value)?);
        return Ok(PersistentSetting::Interrupts { kept_free: old.difference(&allowed), allowed });
    }
    if let Some((interface, attribute)) =
        path.strip_prefix("/sys/class/net/").and_then(|rest| rest.split_once('/'))
    {
        let (interface, attribute) = (interface.to_owned(), attribute.to_owned());
        return Ok(PersistentSetting::Net { interface, attribute, value });
    }
    match path.starts_with("/sys/kernel/debug/") {
        true => Err("files of debugfs are not there when a system starts".to_owned()),
        false if path.starts_with("/sys/") => Ok(PersistentSetting::Sysfs(path.to_owned(), value)),
        false => Err("no configuration of a system has such a file".to_owned()),
    }
}

fn for_system(kept: &PersistentSetting) -> Vec<(&'static str, String)> {
    match kept {
        PersistentSetting::Sysctl(name, value) => vec![(SYSCTL, format!("{name} = {value}"))],
        PersistentSetting::Sysfs(path, value) => {
            vec![(TMPFILES, format!("w {path} - - - - {value}"))]
        }
        PersistentSetting::Net { interface, attribute, value } => vec![(
            UDEV,
            format!(
                "ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"{interface}\", \
                 ATTR{{{attribute}}}=\"{value}\""
            ),
        )],
        PersistentSetting::Boot(words) => vec![(GRUB, command_line(words))],
        PersistentSetting::Interrupts { allowed, kept_free } => vec![
            (GRUB, command_line(&format!("irqaffinity={allowed}"))),
            (IRQBALANCE, format!("Environment=IRQBALANCE_BANNED_CPULIST={kept_free}")),
        ],
    }
}

fn command_line(words: &str) -> String {
    format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {words}\"")
}

/// The sections of a profile and the lines in them.
fn for_tuned(kept: &PersistentSetting) -> Vec<(&'static str, String)> {
    match kept {
        PersistentSetting::Sysctl(name, value) => vec![("[sysctl]", format!("{name} = {value}"))],
        PersistentSetting::Sysfs(path, value) => vec![("[sysfs]", format!("{path} = {value}"))],
        PersistentSetting::Net { interface, attribute, value } => {
            vec![("[sysfs]", format!("/sys/class/net/{interface}/{attribute} = {value}"))]
        }
        PersistentSetting::Boot(words) => vec![("[bootloader]", tuned_words(words))],
        PersistentSetting::Interrupts { allowed, kept_free } => vec![
            ("[bootloader]", tuned_words(&format!("irqaffinity={allowed}"))),
            ("[irqbalance]", format!("banned_cpus = {kept_free}")),
        ],
    }
}

/// TuneD joins the values of all options whose names begin with `cmdline` (its plugin bootloader):
/// each needs a unique name.
fn tuned_words(words: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let parameter: String = words.split('=').next().unwrap_or_default().chars().map(fit).collect();
    format!("cmdline_punctual_{parameter} = +{words}")
}

fn of_system(path: &'static str, head: &str, body: &str) -> File {
    let section = if path == IRQBALANCE { "[Service]\n" } else { "" };
    let then = match path {
        SYSCTL => "sysctl --system",
        TMPFILES => "systemd-tmpfiles --create",
        UDEV => "udevadm control --reload && udevadm trigger --action=add --subsystem-match=net",
        IRQBALANCE => "systemctl daemon-reload && systemctl try-restart irqbalance",
        _ => "update-grub, and reboot",
    };
    File { path, text: format!("{head}{section}{body}"), then }
}

fn profile(head: &str, texts: &[(&'static str, String)]) -> File {
    let mut text = format!("{head}[main]\nsummary = what punctual tune found for this machine\n");
    for (section, body) in texts {
        text += &format!("\n{section}\n{body}");
    }
    File { path: TUNED, text, then: "tuned-adm profile punctual-tune" }
}

fn head(document: &TuningDocument) -> String {
    let set = document.set.as_ref();
    let micros = |ns: Option<f64>| {
        ns.map_or_else(|| "not known".to_owned(), |ns| format!("{} µs", format::micros_f64(ns)))
    };
    let (untouched, with_set) =
        (micros(set.and_then(|set| set.untouched)), micros(set.and_then(|set| set.with_set)));
    let ratio = set.and_then(|set| set.effect).map_or_else(String::new, |of| ratio(&of));
    format!(
        "# Written by `punctual tune apply`; `punctual tune apply DIR --undo` removes it.\n# {} of \
         {} on Linux {}: {untouched} untouched, {with_set} with all of these{ratio}.\n# {} blocks \
         in {}; at most {} of such tunings name a setting that does not help.\n",
        format::plain(&document.metric),
        format::plain(&document.experiment),
        format::plain(document.kernel.as_deref().unwrap_or("(release not known)")),
        document.blocks,
        format::duration(Nanos(document.elapsed.ns())),
        format::percent(document.error_rate),
    )
}

fn evidence(document: &TuningDocument, setting: &Setting) -> String {
    let tuned = document.settings.iter().find(|tuned| tuned.name == setting.name);
    let effect = tuned.and_then(|tuned| tuned.effect);
    let effect = effect.map_or_else(String::new, |of| ratio(&of));
    format!("# {}{effect}\n", format::plain(&setting.name))
}

fn ratio(of: &EffectFactor) -> String {
    let [low, high] = of.interval;
    format!(": ×{:.2} (95 %: {low:.2} to {high:.2})", of.ratio)
}
