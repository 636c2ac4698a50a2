//! A guest in virtual time once more, from the files it was made of, with a plugin in QEMU that
//! sees every block of instructions (exact/plugin.c). Virtual time counts the guest's instructions,
//! and the plugin adds none: the samples are the same.

mod offsets;

use crate::accel::Accel;
use crate::artefacts::Artefacts;
use crate::contents;
use crate::emulator::Emulator;
use crate::initramfs::{Source, Tree};
use crate::progress::{Control, Progress};
use crate::qemu::{self, Limits, Machine, Start};
use crate::saved;
use crate::ssh::digest_of;
use crate::{Arch, Board, GuestResult, LabError, Outcome};
use punctual_core::MadeOf;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The compiled plugin, packed; empty where it could not be compiled.
const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/exact.so.z"));
const PLUGIN_FILE: &str = "exact.so";
/// What the plugin writes.
const DUMP: &str = "exact.bin";
/// How long it may take at most, in time that this system gave it.
const TIMEOUT: Duration = Duration::from_secs(3600);
const SILENCE: Duration = Duration::from_secs(300);

/// What may be added to QEMU's arguments: what comes with a bundle may be hostile.
const DEVICES: [&[&str]; 1] = [&["-device", "edu"]];
const MEMORY_MB_MAX: u32 = 64 << 10;

/// The names of a kernel, and where its tasks have theirs.
#[derive(Clone, Debug)]
pub struct Symbols {
    /// The text of /proc/kallsyms, as root reads it.
    pub kallsyms: String,
    /// The offsets in bytes of `comm` and `pid` in its `struct task_struct`, where it has type
    /// information.
    pub task: Option<(u32, u32)>,
}

/// Which samples are kept.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// So many of the worst.
    pub worst: u32,
    /// So many ordinary ones to compare with.
    pub ordinary: u32,
    /// Of what part of the run sections are looked for.
    pub part: Part,
}

/// A part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// From the first sample to the last.
    Samples,
    /// From a byte that is written to [`MARK_PORT`] to the next one.
    Marked,
    /// From the first instruction to the last.
    Whole,
}

/// An I/O port of the machine that nothing answers at.
pub const MARK_PORT: u16 = 0x5e0;

/// A run that can be repeated.
pub struct Replay {
    limit: Duration,
    made_of: MadeOf,
    kernel: PathBuf,
    initramfs: PathBuf,
    job: Option<PathBuf>,
}

impl Replay {
    /// Of what is kept of a run.
    ///
    /// # Errors
    /// [`LabError::Request`] with the file that is gone.
    pub fn of(made_of: MadeOf) -> Result<Replay, LabError> {
        if let Some(other) = made_of.qemu_arguments.chunks(2).find(|pair| !is_known(pair)) {
            return Err(LabError::Request(format!(
                "a run with the QEMU arguments `{}` is not replayed",
                other.join(" ")
            )));
        }
        if made_of.memory_mb > MEMORY_MB_MAX {
            return Err(LabError::Request(format!(
                "a run with {} MiB of memory is not replayed",
                made_of.memory_mb
            )));
        }
        let here = Emulator::find(Arch::Amd64)?.version;
        if here != made_of.emulator {
            return Err(LabError::Request(format!(
                "the run took QEMU {}, this machine has {here}: another timeline",
                made_of.emulator
            )));
        }
        let store = Artefacts::open()?;
        let find = |name: &str, what: &str| {
            store.find(name).ok_or_else(|| {
                LabError::Request(format!(
                    "the {what} of this run (SHA-256 {name}) is not kept on this machine: run it \
                     again here"
                ))
            })
        };
        let kernel = find(&made_of.kernel, "kernel")?;
        let initramfs = find(&made_of.initramfs, "file system")?;
        let job = made_of.job.as_ref().map(|job| find(job, "job")).transpose()?;
        Ok(Replay { limit: TIMEOUT, made_of, kernel, initramfs, job })
    }

    /// The same with another limit of its time, in time that this system gave it.
    pub fn within(self, limit: Duration) -> Replay {
        Replay { limit, ..self }
    }

    /// The kernel's symbols: from a boot of the same machine whose job reads them, kept for the
    /// next time.
    pub fn symbols(&self, watch: &mut dyn FnMut(Progress) -> Control) -> Result<Symbols, LabError> {
        let kept = format!("{}.symbols", self.symbols_key());
        let path = self.kernel.with_file_name(&kept);
        if let Some(symbols) = fs::read_to_string(&path).ok().as_deref().and_then(parse_symbols) {
            return Ok(symbols);
        }
        let dir = self.directory()?;
        let mut tree = Tree::default();
        tree.file("", contents::JOB, Source::Bytes(READ_SYMBOLS.to_vec()), 0o755)?;
        tree.write(&dir.path().join(qemu::JOB))?;
        if self.job.is_none() {
            saved::append_job(dir.path())?;
        }
        let result = self.boot(dir.path(), &[], watch, None)?;
        let text = |name: &str| result.results.get(name);
        let kallsyms = text("kallsyms").map(|text| String::from_utf8_lossy(text).into_owned());
        let Some(kallsyms) = kallsyms.filter(|_| result.outcome == Outcome::Finished) else {
            return Err(LabError::Request(format!(
                "the kernel's symbols could not be read: {}",
                result.outcome
            )));
        };
        let btf = text("btf").map(Vec::as_slice).unwrap_or_default();
        let task = match offsets::of_members(btf, "task_struct", ["comm", "pid"]) {
            [Some(comm), Some(pid)] => Some((comm, pid)),
            _ => None,
        };
        let symbols = Symbols { kallsyms, task };
        Artefacts::open()?.put(&kept, symbols_text(&symbols).as_bytes())?;
        Ok(symbols)
    }

    /// Runs it with the plugin. What comes back is how it ended, with its results below
    /// `results_to`, and what the plugin wrote.
    pub fn run(
        &self,
        symbols: &Symbols,
        wanted: Wanted,
        results_to: &Path,
        watch: &mut dyn FnMut(Progress) -> Control,
    ) -> Result<(GuestResult, Vec<u8>), LabError> {
        let dir = self.directory()?;
        let mut plugin = Vec::new();
        let unpacked = flate2::read::ZlibDecoder::new(PLUGIN).read_to_end(&mut plugin);
        if unpacked.is_err() || plugin.is_empty() {
            return Err(LabError::Request(
                "this punctual was built without QEMU's plugin: the C compiler of the machine was \
                 missing when it was built"
                    .to_owned(),
            ));
        }
        let path = dir.path().join(PLUGIN_FILE);
        fs::write(&path, plugin).map_err(LabError::io("write", &path))?;
        let arguments = ["-plugin".to_owned(), plugin_option(symbols, wanted)?];
        let result = self.boot(dir.path(), &arguments, watch, Some(results_to))?;
        let dump = dir.path().join(DUMP);
        if !dump.exists() {
            return Err(LabError::Request(format!(
                "QEMU's plugin left nothing ({}); it needs interface version 4, QEMU 9.2 or newer",
                result.outcome
            )));
        }
        let dump = fs::read(&dump).map_err(LabError::io("read", &dump))?;
        Ok((result, dump))
    }

    /// A directory to run in, with the first file system in it.
    fn directory(&self) -> Result<tempfile::TempDir, LabError> {
        let dir = tempfile::Builder::new().prefix("punctual-guest-").tempdir();
        let dir = dir.map_err(LabError::io("create a directory in", std::env::temp_dir()))?;
        let place = |name: &str, from: &Path| {
            fs::copy(from, dir.path().join(name)).map(drop).map_err(LabError::io("copy", from))
        };
        place(qemu::INITRAMFS, &self.initramfs)?;
        self.job.iter().try_for_each(|job| place(qemu::JOB, job))?;
        Ok(dir)
    }

    fn boot(
        &self,
        dir: &Path,
        more: &[String],
        watch: &mut dyn FnMut(Progress) -> Control,
        results_to: Option<&Path>,
    ) -> Result<GuestResult, LabError> {
        let extra: Vec<String> = self.made_of.qemu_arguments.iter().chain(more).cloned().collect();
        let mut machine = Machine {
            arch: Arch::Amd64,
            board: Board::Usual,
            device_tree: None,
            accel: Accel::VirtualTime,
            cpus: 1,
            memory_mb: self.made_of.memory_mb,
            kernel: &self.kernel,
            cmdline_extra: &self.made_of.command_line,
            share_host: false,
            start: Start::Boot,
            extra_args: &self.made_of.qemu_arguments,
        };
        let limits = Limits { total: self.limit, boot_silence: SILENCE };
        let resumes = self.job.is_some();
        let ended = match saved::prepare(&mut machine, dir, resumes, limits, watch)? {
            Some(ended) => ended,
            None => {
                machine.extra_args = &extra;
                qemu::run(&machine, dir, limits, watch)?
            }
        };
        let mut result = GuestResult::collect(dir, ended, 1, results_to)?;
        result.cmdline = machine.command_line()?;
        result.made_of = Some(self.made_of.clone());
        Ok(result)
    }

    /// Under what the symbols are kept: modules lie where the same machine puts them.
    fn symbols_key(&self) -> String {
        let MadeOf { kernel, memory_mb, command_line, qemu_arguments, job, .. } = &self.made_of;
        let (modules, resumes) = (modules_of(&self.initramfs), job.is_some());
        let text =
            format!("{kernel} {memory_mb} {command_line} {qemu_arguments:?} {modules:?} {resumes}");
        // Bytes in memory can always be read.
        digest_of(text.as_bytes()).unwrap_or_default()
    }
}

fn is_known(arguments: &[String]) -> bool {
    DEVICES.iter().any(|known| arguments.iter().eq(known.iter()))
}

/// Keeps what the run of a machine is made of, from the directory that it runs in.
pub(crate) fn keep(machine: &Machine, dir: &Path, resumes: bool) -> Result<MadeOf, LabError> {
    let store = Artefacts::open()?;
    let job = dir.join(qemu::JOB);
    Ok(MadeOf {
        kernel: store.keep(machine.kernel)?,
        initramfs: store.keep(&dir.join(qemu::INITRAMFS))?,
        job: resumes.then(|| store.keep(&job)).transpose()?,
        emulator: Emulator::find(machine.arch)?.version,
        memory_mb: machine.memory_mb,
        command_line: machine.cmdline_extra.to_owned(),
        qemu_arguments: machine.extra_args.to_vec(),
    })
}

const READ_SYMBOLS: &[u8] = b"cat /proc/kallsyms >/results/kallsyms\n\
    [ ! -e /sys/kernel/btf/vmlinux ] || cat /sys/kernel/btf/vmlinux >/results/btf\n";

fn symbols_text(symbols: &Symbols) -> String {
    let task = symbols.task.map_or("-".to_owned(), |(comm, pid)| format!("{comm} {pid}"));
    format!("{task}\n{}", symbols.kallsyms)
}

fn parse_symbols(text: &str) -> Option<Symbols> {
    let (task, kallsyms) = text.split_once('\n')?;
    let task = match task {
        "-" => None,
        task => {
            let (comm, pid) = task.split_once(' ')?;
            Some((comm.parse().ok()?, pid.parse().ok()?))
        }
    };
    Some(Symbols { kallsyms: kallsyms.to_owned(), task })
}

/// The modules that a guest loads, by name and size, in their order.
fn modules_of(initramfs: &Path) -> Vec<(String, u32)> {
    let Ok(file) = fs::File::open(initramfs) else { return Vec::new() };
    let mut rest = io::BufReader::new(file);
    let mut modules = Vec::new();
    loop {
        let Ok(reader) = cpio::newc::Reader::new(rest) else { return modules };
        if reader.entry().is_trailer() {
            return modules;
        }
        let (name, size) = (reader.entry().name().to_owned(), reader.entry().file_size());
        if name.ends_with(".ko") {
            modules.push((name, size));
        }
        match reader.finish() {
            Ok(next) => rest = next,
            Err(_) => return modules,
        }
    }
}

/// Where a CPU's `preempt_count` is among its own data (arch/x86/include/asm/preempt.h): a variable
/// of its own, from 6.2 to 6.14 the second member of another (arch/x86/include/asm/current.h).
fn preempt_count(kallsyms: &str) -> Option<u64> {
    let address = |wanted: &str| {
        kallsyms.lines().find_map(|line| {
            let (address, rest) = line.split_once(' ')?;
            let name = rest.split_once(' ')?.1;
            (name == wanted).then(|| u64::from_str_radix(address, 16).ok())?
        })
    };
    address("__preempt_count").or_else(|| Some(address("pcpu_hot")?.wrapping_add(8)))
}

/// Functions in which a task waits for a lock until they return (kernel/locking), whatever the
/// compiler made of them.
fn waits_for_lock(symbol: &str) -> bool {
    const WAIT: [&str; 7] = [
        "rtlock_slowlock",
        "rt_mutex_slowlock",
        "__rwbase_read_lock",
        "rwbase_write_lock",
        "__mutex_lock",
        "rwsem_down_read_slowpath",
        "rwsem_down_write_slowpath",
    ];
    let (name, rest) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    WAIT.contains(&name) && !rest.contains(".cold")
}

/// The plugin's options: where interrupts and exceptions enter the kernel, where it switches tasks,
/// and where a task has its name.
fn plugin_option(symbols: &Symbols, wanted: Wanted) -> Result<String, LabError> {
    let mut option = format!("./{PLUGIN_FILE},out={DUMP}");
    option += &format!(",keep={},ordinary={}", wanted.worst, wanted.ordinary);
    match wanted.part {
        Part::Samples => {}
        Part::Marked => option += &format!(",port={MARK_PORT}"),
        Part::Whole => option += ",all=1",
    }
    if let Some(address) = preempt_count(&symbols.kallsyms) {
        option += &format!(",preempt_count={address:#x}");
    }
    if let Some((comm, pid)) = symbols.task {
        option += &format!(",comm={comm},pid={pid}");
    }
    let mut switch = false;
    for line in symbols.kallsyms.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        // Symbols of modules have a fourth word.
        if !matches!(kind, "T" | "t") || words.next().is_some() {
            continue;
        }
        let key = match name {
            "__switch_to_asm" => {
                switch = true;
                "switch"
            }
            "irq_entries_start" => "entries_begin",
            "asm_exc_divide_error" => {
                option += &format!(",entries_end=0x{address}");
                "entry"
            }
            "__schedule" => "schedule",
            "migrate_disable" => "migrate_disable",
            "migrate_enable" => "migrate_enable",
            _ if waits_for_lock(name) => "lock",
            "asm_common_interrupt" | "asm_spurious_interrupt" => "entry",
            _ if name.starts_with("asm_exc_") || name.starts_with("asm_sysvec_") => "entry",
            _ => continue,
        };
        option += &format!(",{key}=0x{address}");
    }
    if !switch {
        return Err(LabError::Request(
            "the kernel's symbols do not name __switch_to_asm: without them nothing can be \
             explained"
                .to_owned(),
        ));
    }
    Ok(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "0000000000001234 A __per_cpu_start\n\
        ffffffff81003270 T __switch_to_asm\n\
        ffffffff81c00290 T irq_entries_start\n\
        ffffffff81c00990 T asm_exc_divide_error\n\
        ffffffff81c00ef0 T asm_sysvec_apic_timer_interrupt\n\
        ffffffffc0001000 t asm_exc_of_a_module\t[other]\n";

    #[test]
    fn the_plugin_is_given_the_kernels_entries() {
        let symbols = Symbols { kallsyms: KALLSYMS.into(), task: Some((2960, 2404)) };
        let wanted = Wanted { worst: 20, ordinary: 8, part: Part::Samples };
        insta::assert_snapshot!(plugin_option(&symbols, wanted).unwrap(), @"./exact.so,out=exact.bin,keep=20,ordinary=8,comm=2960,pid=2404,switch=0xffffffff81003270,entries_begin=0xffffffff81c00290,entries_end=0xffffffff81c00990,entry=0xffffffff81c00990,entry=0xffffffff81c00ef0");
        let none = Symbols { kallsyms: "0 T _text".into(), task: None };
        assert!(plugin_option(&none, wanted).is_err());
    }

    #[test]
    fn the_preempt_count_is_a_variable_or_in_another() {
        let own = "000000000001fb40 A __preempt_count\n000000000001fb80 A pcpu_hot\n";
        assert_eq!(preempt_count(own), Some(0x1fb40));
        assert_eq!(preempt_count("0000000000035480 A pcpu_hot\n"), Some(0x35488));
        assert_eq!(preempt_count(KALLSYMS), None);
        let symbols = Symbols { kallsyms: format!("{KALLSYMS}{own}"), task: None };
        let wanted = Wanted { worst: 0, ordinary: 0, part: Part::Marked };
        let option = plugin_option(&symbols, wanted).unwrap();
        assert!(option.contains(",port=1504,preempt_count=0x1fb40,"), "{option}");
    }

    #[test]
    fn symbols_are_kept_as_they_are() {
        for task in [None, Some((8, 16))] {
            let symbols = Symbols { kallsyms: KALLSYMS.into(), task };
            let again = parse_symbols(&symbols_text(&symbols)).unwrap();
            assert_eq!((again.kallsyms, again.task), (symbols.kallsyms, symbols.task));
        }
        assert!(parse_symbols("12\n").is_none());
    }
}
