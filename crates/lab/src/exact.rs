//! Repeats a guest in virtual time, from its files, with a QEMU plugin that sees every block of
//! instructions (exact/plugin.c). Virtual time counts the guest's instructions, and the plugin adds
//! none: the samples are the same.

mod offsets;
mod programs;

pub use programs::{GuestProgram, list_programs};

use crate::accel::Accel;
use crate::artefacts::Artefacts;
use crate::contents;
use crate::emulator::Emulator;
use crate::initramfs::{FileSource, InitramfsTree};
use crate::progress::{GuestControl, GuestProgress};
use crate::qemu::{self, Limits, QemuMachine, Start};
use crate::saved_boot;
use crate::ssh::digest_of;
use crate::{Arch, GuestBoard, GuestOutcome, GuestResult, LabError};
use punctual_core::MadeOf;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The compiled plugin, packed; empty if it could not be compiled.
const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/exact.so.z"));
const PLUGIN_FILE: &str = "exact.so";
const DUMP: &str = "exact.bin";
/// The time limit, in time that this system gave it.
const TIMEOUT: Duration = Duration::from_secs(3600);
const SILENCE: Duration = Duration::from_secs(300);

/// Devices that may be added to QEMU's arguments: a bundle's arguments may be hostile.
const DEVICES: [&[&str]; 2] = [&["-device", "edu"], &PARPORT];
/// A parallel port whose output is discarded.
pub const PARPORT: [&str; 4] =
    ["-chardev", "null,id=parport", "-device", "isa-parallel,chardev=parport"];
const MEMORY_MB_MAX: u32 = 64 << 10;

/// The symbols of a kernel, and the offsets of task names.
#[derive(Clone, Debug)]
pub struct Symbols {
    /// The text of /proc/kallsyms, read as root.
    pub kallsyms: String,
    /// The byte offsets of `comm` and `pid` in `struct task_struct`, if the kernel has type
    /// information.
    pub task: Option<(u32, u32)>,
    /// On arm64 the offset of a task's own `preempt_count`, which is in its thread_info.
    pub count: Option<u32>,
    /// The image of its vDSO (vdso(7)), which it maps into each program; empty if unreadable.
    pub vdso: Vec<u8>,
}

/// The samples to keep.
#[derive(Clone, Copy, Debug)]
pub struct WantedSamples {
    /// The number of worst samples.
    pub worst: u32,
    /// The number of ordinary samples for comparison.
    pub ordinary: u32,
    /// The part of the run to search for sections.
    pub part: ExactRunPart,
}

/// A part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExactRunPart {
    /// From the first sample to the last.
    Samples,
    /// From one [`mark_command`] to the next.
    Marked,
    /// From the first instruction to the last.
    Whole,
}

/// An unused I/O port of the machine.
const MARK_PORT: u64 = 0x5e0;
/// An impossible process id: above PID_MAX_LIMIT (include/linux/threads.h).
const MARK_PROCESS: u64 = 0x7fff_05e0;

/// The guest's shell command that marks the begin and the end of the observed part.
pub fn mark_command(arch: Arch) -> String {
    match arch {
        Arch::Amd64 => {
            format!("printf x | dd of=/dev/port bs=1 seek={MARK_PORT} conv=notrunc 2>/dev/null")
        }
        Arch::Arm64 | Arch::Armhf | Arch::Riscv64 => {
            format!("kill -0 {MARK_PROCESS} 2>/dev/null")
        }
    }
}

/// The architecture of a run.
fn arch_of(made_of: &MadeOf) -> Result<Arch, LabError> {
    let replayable_archs = [Arch::Amd64, Arch::Arm64];
    let name = made_of.arch.as_deref().unwrap_or(Arch::Amd64.debian_name());
    replayable_archs.into_iter().find(|arch| arch.debian_name() == name).ok_or_else(|| {
        LabError::Request(format!("a run on the architecture `{name}` is not replayed"))
    })
}

/// A repeatable run.
pub struct Replay {
    limit: Duration,
    arch: Arch,
    made_of: MadeOf,
    kernel: PathBuf,
    initramfs: PathBuf,
    job: Option<PathBuf>,
}

impl Replay {
    /// Creates the replay from the stored files of a run.
    ///
    /// # Errors
    /// [`LabError::Request`] with the missing file.
    pub fn from_stored(made_of: MadeOf) -> Result<Replay, LabError> {
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
        let arch = arch_of(&made_of)?;
        let host_version = Emulator::find(arch)?.version;
        if host_version != made_of.emulator {
            return Err(LabError::Request(format!(
                "the run took QEMU {}, this machine has {host_version}: another timeline",
                made_of.emulator
            )));
        }
        let store = Artefacts::open()?;
        let find = |name: &str, what: &str| {
            store.find_by_digest(name)?.ok_or_else(|| {
                LabError::Request(format!(
                    "the {what} of this run (SHA-256 {name}) is not kept on this machine: run it \
                     again here"
                ))
            })
        };
        let kernel = find(&made_of.kernel, "kernel")?;
        let initramfs = find(&made_of.initramfs, "file system")?;
        let job = made_of.job.as_ref().map(|job| find(job, "job")).transpose()?;
        Ok(Replay { limit: TIMEOUT, arch, made_of, kernel, initramfs, job })
    }

    /// Sets another time limit, in time that this system gave it.
    pub fn with_limit(self, limit: Duration) -> Replay {
        Replay { limit, ..self }
    }

    /// The kernel's symbols, stored: from a boot of the same machine whose job reads them.
    pub fn read_symbols(
        &self,
        watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
    ) -> Result<Symbols, LabError> {
        let key = self.symbols_key();
        let (kept, kept_vdso) = (format!("{key}.symbols"), format!("{key}.vdso"));
        let store = Artefacts::open()?;
        let read = |name: &str| {
            Ok::<_, LabError>(store.find_by_name(name)?.and_then(|at| fs::read(at).ok()))
        };
        let text = read(&kept)?.and_then(|text| String::from_utf8(text).ok());
        let symbols = text.as_deref().and_then(parse_symbols);
        if let (Some(symbols), Some(vdso)) = (symbols, read(&kept_vdso)?) {
            return Ok(Symbols { vdso, ..symbols });
        }
        let dir = self.make_directory()?;
        let mut tree = InitramfsTree::default();
        tree.add_file("", contents::JOB, FileSource::Bytes(READ_SYMBOLS.to_vec()), 0o755)?;
        tree.write(&dir.path().join(qemu::JOB))?;
        if self.job.is_none() {
            saved_boot::append_job(dir.path())?;
        }
        let result = self.boot_machine(dir.path(), &[], watch, None)?;
        let text = |name: &str| result.results.get(name);
        let kallsyms = text("kallsyms").map(|text| String::from_utf8_lossy(text).into_owned());
        let Some(kallsyms) = kallsyms.filter(|_| result.outcome == GuestOutcome::Finished) else {
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
        // The one unnamed member is the union with the count
        // (arch/arm64/include/asm/thread_info.h), at the start of the task.
        let [count] = offsets::of_members(btf, "thread_info", [""]);
        let count = count.filter(|_| self.arch == Arch::Arm64);
        let vdso = text("vdso").cloned().unwrap_or_default();
        let symbols = Symbols { kallsyms, task, count, vdso };
        store.store_result(&kept_vdso, &symbols.vdso)?;
        store.store_result(&kept, symbols_text(&symbols).as_bytes())?;
        Ok(symbols)
    }

    /// Runs the guest with the plugin. Returns how it ended, with its results below `results_to`,
    /// and the plugin's output: nothing if the guest had to be killed.
    pub fn run(
        &self,
        symbols: &Symbols,
        wanted: WantedSamples,
        results_to: &Path,
        watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
    ) -> Result<(GuestResult, Vec<u8>), LabError> {
        let dir = self.make_directory()?;
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
        let arguments = ["-plugin".to_owned(), plugin_option(self.arch, symbols, wanted)?];
        let result = self.boot_machine(dir.path(), &arguments, watch, Some(results_to))?;
        let dump = dir.path().join(DUMP);
        // QEMU was killed, and the plugin writes only when QEMU ends by itself.
        let was_killed = matches!(
            result.outcome,
            GuestOutcome::Hung { .. }
                | GuestOutcome::Silent { .. }
                | GuestOutcome::Killed(_)
                | GuestOutcome::TooMuchOutput { .. }
        );
        let bytes = fs::read(&dump).map_err(LabError::io("read", &dump));
        let is_empty = bytes.as_ref().map_or(true, Vec::is_empty);
        if was_killed && is_empty {
            return Ok((result, Vec::new()));
        }
        if is_empty {
            return Err(LabError::Request(format!(
                "QEMU's plugin left nothing ({}); it needs interface version 4, QEMU 9.2 or newer",
                result.outcome
            )));
        }
        Ok((result, bytes?))
    }

    /// A working directory with the first file system in it.
    fn make_directory(&self) -> Result<tempfile::TempDir, LabError> {
        let dir = tempfile::Builder::new().prefix("punctual-guest-").tempdir();
        let dir = dir.map_err(LabError::io("create a directory in", std::env::temp_dir()))?;
        let place = |name: &str, from: &Path| {
            fs::copy(from, dir.path().join(name)).map(drop).map_err(LabError::io("copy", from))
        };
        place(qemu::INITRAMFS, &self.initramfs)?;
        self.job.iter().try_for_each(|job| place(qemu::JOB, job))?;
        Ok(dir)
    }

    fn boot_machine(
        &self,
        dir: &Path,
        more: &[String],
        watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
        results_to: Option<&Path>,
    ) -> Result<GuestResult, LabError> {
        let extra: Vec<String> = self.made_of.qemu_arguments.iter().chain(more).cloned().collect();
        let mut machine = QemuMachine {
            arch: self.arch,
            board: GuestBoard::Usual,
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
        let ended = match saved_boot::prepare_boot(&mut machine, dir, resumes, limits, watch)? {
            Some(ended) => ended,
            None => {
                machine.extra_args = &extra;
                qemu::run_qemu(&machine, dir, limits, watch)?
            }
        };
        let mut result = GuestResult::from_directory(dir, ended, 1, results_to)?;
        result.cmdline = machine.command_line()?;
        result.made_of = Some(self.made_of.clone());
        Ok(result)
    }

    /// The key of the stored symbols: the same machine loads modules at the same addresses.
    fn symbols_key(&self) -> String {
        let MadeOf { kernel, memory_mb, command_line, qemu_arguments, job, .. } = &self.made_of;
        let (modules, resumes) = (modules_of(&self.initramfs), job.is_some());
        let text =
            format!("{kernel} {memory_mb} {command_line} {qemu_arguments:?} {modules:?} {resumes}");
        // Reading from memory cannot fail.
        digest_of(text.as_bytes()).unwrap_or_default()
    }
}

fn is_known(arguments: &[String]) -> bool {
    DEVICES.iter().any(|known| arguments.iter().eq(known.iter()))
}

/// Stores the files that the run of a machine needs, from its working directory.
pub(crate) fn store_files(
    machine: &QemuMachine,
    dir: &Path,
    resumes: bool,
) -> Result<MadeOf, LabError> {
    let store = Artefacts::open()?;
    let job = dir.join(qemu::JOB);
    Ok(MadeOf {
        kernel: store.store_file(machine.kernel)?,
        initramfs: store.store_file(&dir.join(qemu::INITRAMFS))?,
        job: resumes.then(|| store.store_file(&job)).transpose()?,
        arch: (machine.arch != Arch::Amd64).then(|| machine.arch.debian_name().to_owned()),
        emulator: Emulator::find(machine.arch)?.version,
        memory_mb: machine.memory_mb,
        command_line: machine.cmdline_extra.to_owned(),
        qemu_arguments: machine.extra_args.to_vec(),
    })
}

const READ_SYMBOLS: &[u8] = b"cat /proc/kallsyms >/results/kallsyms\n\
    [ ! -e /sys/kernel/btf/vmlinux ] || cat /sys/kernel/btf/vmlinux >/results/btf\n\
    range=$(sed -n 's/ .*\\[vdso\\]$//p' /proc/$$/maps)\n\
    from=$((0x${range%-*} / 4096)) to=$((0x${range#*-} / 4096))\n\
    dd if=/proc/$$/mem of=/results/vdso bs=4096 skip=$from count=$((to - from)) 2>/dev/null\n";

fn symbols_text(symbols: &Symbols) -> String {
    let task = symbols.task.map_or("-".to_owned(), |(comm, pid)| format!("{comm} {pid}"));
    let count = symbols.count.map(|count| format!(" {count}")).unwrap_or_default();
    format!("{task}{count}\n{}", symbols.kallsyms)
}

fn parse_symbols(text: &str) -> Option<Symbols> {
    let (head, kallsyms) = text.split_once('\n')?;
    let mut words = head.split(' ').map(|word| word.parse().ok()).peekable();
    let task = match words.next_if(|_| head.starts_with('-')) {
        Some(_) => None,
        None => Some((words.next()??, words.next()??)),
    };
    let count = words.next().flatten();
    Some(Symbols { kallsyms: kallsyms.to_owned(), task, count, vdso: Vec::new() })
}

/// The modules that a guest loads, by name and size, in order.
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

/// The offset of a CPU's `preempt_count` in its per-CPU data (arch/x86/include/asm/preempt.h): a
/// separate variable, from 6.2 to 6.14 the second member of another
/// (arch/x86/include/asm/current.h).
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

/// Functions that return once a lock is acquired (kernel/locking), including the compiler's
/// variants.
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

/// The size of an entry of arm64's vector table.
const VECTOR: u64 = 0x80;

/// The number of tables of 16 entries at this symbol of arm64's kernel (arch/arm64/kernel/entry.S):
/// the others are those of mitigations.
fn vector_table_count(symbol: &str) -> u64 {
    match symbol {
        "vectors" => 1,
        "__bp_harden_el1_vectors" => 3,
        "tramp_vectors" => 4,
        _ => 0,
    }
}

/// The plugin's options: the addresses at which interrupts and exceptions enter the kernel and
/// tasks are switched, and the offset of a task's name.
fn plugin_option(arch: Arch, symbols: &Symbols, wanted: WantedSamples) -> Result<String, LabError> {
    let mut option = format!("./{PLUGIN_FILE},out={DUMP}");
    option += &format!(",keep={},ordinary={}", wanted.worst, wanted.ordinary);
    match wanted.part {
        ExactRunPart::Samples => {}
        ExactRunPart::Marked if arch == Arch::Arm64 => option += &format!(",port={MARK_PROCESS}"),
        ExactRunPart::Marked => option += &format!(",port={MARK_PORT}"),
        ExactRunPart::Whole => option += ",all=1",
    }
    let count = match arch {
        Arch::Amd64 => preempt_count(&symbols.kallsyms),
        Arch::Arm64 => symbols.count.map(u64::from),
        // Runs of these architectures are not replayed.
        Arch::Armhf | Arch::Riscv64 => None,
    };
    if let Some(address) = count {
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
            "__switch_to_asm" | "cpu_switch_to" => {
                switch = true;
                "switch"
            }
            _ if arch == Arch::Arm64 && vector_table_count(name) > 0 => {
                let Ok(begin) = u64::from_str_radix(address, 16) else { continue };
                let places = (0..16 * vector_table_count(name)).map(|place| begin + VECTOR * place);
                places.for_each(|place| option += &format!(",entry={place:#x}"));
                continue;
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
            "the kernel's symbols do not name __switch_to_asm or cpu_switch_to: without them \
             nothing can be explained"
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

    fn symbols(task: Option<(u32, u32)>) -> Symbols {
        Symbols { kallsyms: KALLSYMS.into(), task, count: None, vdso: Vec::new() }
    }

    #[test]
    fn the_plugin_receives_the_entry_points_of_the_kernel() {
        let symbols = symbols(Some((2960, 2404)));
        let wanted = WantedSamples { worst: 20, ordinary: 8, part: ExactRunPart::Samples };
        insta::assert_snapshot!(plugin_option(Arch::Amd64, &symbols, wanted).unwrap(), @"./exact.so,out=exact.bin,keep=20,ordinary=8,comm=2960,pid=2404,switch=0xffffffff81003270,entries_begin=0xffffffff81c00290,entries_end=0xffffffff81c00990,entry=0xffffffff81c00990,entry=0xffffffff81c00ef0");
        let none = Symbols { kallsyms: "0 T _text".into(), ..symbols };
        assert!(plugin_option(Arch::Amd64, &none, wanted).is_err());
    }

    #[test]
    fn the_preempt_count_is_found_by_itself_or_in_pcpu_hot() {
        let own = "000000000001fb40 A __preempt_count\n000000000001fb80 A pcpu_hot\n";
        assert_eq!(preempt_count(own), Some(0x1fb40));
        assert_eq!(preempt_count("0000000000035480 A pcpu_hot\n"), Some(0x35488));
        assert_eq!(preempt_count(KALLSYMS), None);
        let symbols = Symbols { kallsyms: format!("{KALLSYMS}{own}"), ..symbols(None) };
        let wanted = WantedSamples { worst: 0, ordinary: 0, part: ExactRunPart::Marked };
        let option = plugin_option(Arch::Amd64, &symbols, wanted).unwrap();
        assert!(option.contains(",port=1504,preempt_count=0x1fb40,"), "{option}");
    }

    #[test]
    fn arm64_entries_are_vectors_and_its_preempt_count_is_per_task() {
        let kallsyms = "ffff800080010800 T vectors\nffff800080020000 T cpu_switch_to\n\
                        ffff800080030000 t __schedule\n";
        let symbols = Symbols { kallsyms: kallsyms.into(), count: Some(16), ..symbols(None) };
        let wanted = WantedSamples { worst: 0, ordinary: 0, part: ExactRunPart::Marked };
        let option = plugin_option(Arch::Arm64, &symbols, wanted).unwrap();
        assert!(option.contains(",port=2147419616,preempt_count=0x10,"), "{option}");
        assert_eq!(option.matches(",entry=0x").count(), 16, "{option}");
        assert!(option.contains(",entry=0xffff800080010f80,"), "{option}");
        assert!(option.contains(",switch=0xffff800080020000,"), "{option}");
    }

    #[test]
    fn symbols_are_restored_from_their_text() {
        for (task, count) in [(None, None), (Some((8, 16)), None), (Some((8, 16)), Some(24))] {
            let symbols = Symbols { count, ..symbols(task) };
            let again = parse_symbols(&symbols_text(&symbols)).unwrap();
            assert_eq!((again.kallsyms, again.task), (symbols.kallsyms, symbols.task));
            assert_eq!(again.count, symbols.count);
        }
        assert!(parse_symbols("12\n").is_none());
    }
}
