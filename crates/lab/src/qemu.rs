//! QEMU: its command line, and supervision until it ends or must be killed.

use crate::accel::Accel;
use crate::card;
use crate::emulator::Emulator;
use crate::monitor::Monitor;
use crate::own_time::OwnTime;
use crate::ports::{self, InitStatus, STATUS_MAX};
use crate::progress::{GuestControl, GuestPhase, GuestProgress};
use crate::rights::QemuRights;
use crate::{Arch, GuestBoard, LabError, tools};
use punctual_core::CpuSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The virtio ports, all from the guest to this machine; each is a file in the run's directory.
const PORTS: [&str; 4] = ["status", "stdout", "stderr", "results"];
/// The pipe that carries the request to end into the guest, also the port's name.
const CONTROL: &str = "control";
/// The pipe that closes with the process that runs the guest.
const ALIVE: &str = "alive";
/// The file of the guest's console.
pub(crate) const CONSOLE: &str = "console";
/// The file with the messages of QEMU itself.
pub(crate) const QEMU_STDERR: &str = "qemu-stderr";
/// The archive of the guest's first file system.
pub(crate) const INITRAMFS: &str = "initramfs";

/// The input of a guest that resumes from its saved boot.
pub const JOB: &str = "job";
/// The image with a guest's saved boot, and its name in the image.
pub(crate) const SAVED: &str = "saved";
const SAVED_AS: &str = "boot";

/// The maximum output of a guest in total: its memory bounds the results, but not the console.
const OUTPUT_BYTES_MAX: u64 = 1 << 30;
/// The time between two polls of the guest, and between two checks of its limits.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// In virtual time QEMU records the run, to /dev/null, for the lock that recording takes: it
/// prevents QEMU's main loop from finding the virtual CPU idle, and skipping to the next timer,
/// after a `hlt` and before the preceding instructions are counted (icount_start_warp_timer against
/// icount_process_data). Without it they are counted in addition whenever the main loop intervenes,
/// and the run diverges from its repeats (docs/reference/guests.md).
const RECORDED: &str = ",rr=record,rrfile=/dev/null";

/// Kernel parameters that make virtual time repeatable, beside QEMU's own options: no address
/// randomisation, no calibration against the emulated hardware, no randomness from it, no random
/// stack offsets (they cost a random number of instructions), and no self-tests that continue into
/// the measurement.
const VIRTUAL_TIME_KERNEL: &str = "nokaslr lpj=4000000 tsc=reliable random.trust_cpu=off \
                                   randomize_kstack_offset=off cryptomgr.notests";

/// Kernel parameters of an emulated PC in the host's time. A busy host runs it so slowly that the
/// kernel sees no timer interrupt within ten ticks, for example, and panics (`check_timer` in
/// arch/x86/kernel/apic/io_apic.c): it does not check them.
const EMULATED_PC_KERNEL: &str = "no_timer_check";

/// The end of QEMU, and the time until then.
pub struct QemuEnd {
    pub how: QemuEnding,
    pub elapsed: Duration,
    pub saved: bool,
    pub emulator: String,
}

/// How QEMU ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QemuEnding {
    Exited {
        success: bool,
        description: String,
    },
    /// QEMU was killed at its time limit.
    TimedOut {
        after: Duration,
    },
    /// QEMU was killed because a booting kernel printed nothing.
    Silent {
        after: Duration,
    },
    /// The watcher requested to kill it.
    Killed,
    /// QEMU was killed for too much output.
    TooMuchOutput {
        limit: u64,
    },
}

/// The limits of a guest, in time that this system gave it ([`OwnTime`]).
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The total.
    pub total: Duration,
    /// The time without console output, until its job starts.
    pub boot_silence: Duration,
}

/// Enforces the limits of a guest.
struct Watchdog {
    limits: Limits,
    own: OwnTime,
    checked: Instant,
    /// The output at the last check, and the guest's own time when that grew.
    written: u64,
    sign: Duration,
}

impl Watchdog {
    fn new(limits: Limits, own: OwnTime) -> Watchdog {
        Watchdog { limits, own, checked: Instant::now(), written: 0, sign: Duration::ZERO }
    }

    /// Why QEMU must end, if so.
    fn check_limits(&mut self, phase: GuestPhase, written: u64) -> Option<QemuEnding> {
        if self.checked.elapsed() < CHECK_EVERY {
            return None;
        }
        self.checked = Instant::now();
        let (now, Limits { total, boot_silence }) = (self.own.elapsed(), self.limits);
        if written != self.written {
            (self.written, self.sign) = (written, now);
        }
        if now >= total {
            return Some(QemuEnding::TimedOut { after: total });
        }
        let silent = phase == GuestPhase::Booting && now.saturating_sub(self.sign) >= boot_silence;
        silent.then_some(QemuEnding::Silent { after: boot_silence })
    }
}

/// How a machine starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The guest boots, and runs its job.
    Boot,
    /// The guest boots, and is saved on its own request, before it has a job.
    Save,
    /// The guest resumes from its saved boot, with a job.
    Resume,
}

/// The machine to build.
#[derive(Clone)]
pub(crate) struct QemuMachine<'a> {
    pub arch: Arch,
    pub board: GuestBoard,
    /// The device tree, if QEMU does not make it itself.
    pub device_tree: Option<PathBuf>,
    pub accel: Accel,
    pub cpus: u32,
    pub memory_mb: u32,
    pub kernel: &'a Path,
    pub cmdline_extra: &'a str,
    pub share_host: bool,
    pub start: Start,
    pub extra_args: &'a [String],
}

impl QemuMachine<'_> {
    /// The kernel's command line.
    ///
    /// # Errors
    /// The line is longer than the kernel's limit, which would silently truncate it.
    pub fn command_line(&self) -> Result<String, LabError> {
        // panic=-1 reboots at once, and QEMU ends instead of rebooting.
        let mut line = format!("console={} panic=-1", self.board.console_device(self.arch));
        let timekeeping = match self.accel {
            Accel::VirtualTime => Some(VIRTUAL_TIME_KERNEL),
            Accel::Tcg if self.arch == Arch::Amd64 => Some(EMULATED_PC_KERNEL),
            Accel::Tcg | Accel::Kvm => None,
        };
        let board = self.board.kernel_words(self.cpus);
        let words =
            timekeeping.into_iter().chain(board.as_deref()).chain([self.cmdline_extra.trim()]);
        for more in words.filter(|more| !more.is_empty()) {
            line = format!("{line} {more}");
        }
        let limit = self.arch.command_line_size() - 1;
        if line.len() > limit || line.contains(['\0', '\n']) {
            return Err(LabError::Request(format!(
                "the kernel takes one line of at most {limit} bytes, not `{line}`"
            )));
        }
        Ok(line)
    }

    /// Whether recording keeps its virtual time repeatable: not on a Pi, which has four CPUs, on or
    /// off, as QEMU records only one.
    fn is_recorded(&self) -> bool {
        self.board == GuestBoard::Usual
    }

    /// QEMU's arguments. All files but the kernel are in QEMU's working directory, so that no path
    /// needs quoting in its options.
    pub(crate) fn to_args(&self) -> Result<Vec<OsString>, LabError> {
        let mut args: Vec<String> = Vec::new();
        let mut add = |words: &str| args.extend(words.split(' ').map(str::to_owned));
        // A name for `ps`: a fetched QEMU is started by a dynamic linker and would have its name.
        add("-name punctual,process=qemu-punctual");
        add("-nodefaults -no-user-config -display none -monitor none -nic none -no-reboot");
        // A single thread: QEMU 7.2 has a race with a guest that patches its kernel on several CPUs
        // (docs/reference/guests.md).
        add(match self.accel {
            Accel::Tcg => "-accel tcg,thread=single",
            Accel::Kvm => "-accel kvm",
            Accel::VirtualTime => "-accel tcg,thread=single -rtc clock=vm,base=2026-01-01",
        });
        if self.accel == Accel::VirtualTime {
            add(&format!(
                "-icount shift=3,sleep=off{}",
                if self.is_recorded() { RECORDED } else { "" }
            ));
        }
        add(&self.board.machine_options(self.arch, self.cpus, self.memory_mb));
        match self.board {
            GuestBoard::Usual => self.add_usual_board(&mut add),
            GuestBoard::Raspi3b => self.add_raspi_board(&mut add),
        }
        if self.share_host {
            add("-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,\
                 multidevs=remap");
        }
        if self.start != Start::Boot {
            self.add_saved_boot(&mut add);
        }
        args.extend(self.extra_args.iter().cloned());
        args.extend([
            "-append".to_owned(),
            self.command_line()?,
            "-initrd".to_owned(),
            INITRAMFS.to_owned(),
        ]);
        let kernel = ["-kernel".into(), self.kernel.as_os_str().to_owned()];
        let tree =
            self.device_tree.iter().flat_map(|tree| ["-dtb".into(), tree.as_os_str().to_owned()]);
        Ok(args.into_iter().map(OsString::from).chain(kernel).chain(tree).collect())
    }

    /// The CPU, the console, and the virtio ports of a usual board.
    fn add_usual_board(&self, add: &mut dyn FnMut(&str)) {
        add(&match self.accel {
            Accel::Tcg => format!("-cpu {}", self.arch.qemu_cpu()),
            Accel::Kvm => "-cpu host".to_owned(),
            Accel::VirtualTime => format!("-cpu {}", self.arch.repeatable_cpu()),
        });
        // A resumed one appends to its earlier output.
        let append = if self.start == Start::Resume { ",append=on" } else { "" };
        add(&format!(
            "-chardev file,id={CONSOLE},path={CONSOLE}{append} -serial chardev:{CONSOLE}"
        ));
        // Without ioeventfd the port is served at once in the virtual CPU's own thread, independent
        // of the host's timing.
        add("-device virtio-serial-pci,ioeventfd=off");
        for port in PORTS {
            add(&format!(
                "-chardev file,id={port},path={port} -device \
                 virtserialport,chardev={port},name=punctual.{port}"
            ));
        }
        // The only input: one word, when the run should end early.
        add(&format!("-chardev file,id={CONTROL},path={CONTROL}.out,input-path={CONTROL}"));
        add(&format!("-device virtserialport,chardev={CONTROL},name=punctual.{CONTROL}"));
    }

    /// The image with the saved boot, the job, and the device through which the guest asks to be
    /// saved: its write ends the instruction, so that each boot is saved at the same one.
    fn add_saved_boot(&self, add: &mut dyn FnMut(&str)) {
        add("-device pvpanic");
        add(&format!("-drive if=none,id={SAVED},driver=qcow2,file={SAVED}"));
        add(&format!("-fw_cfg name=opt/punctual/job,file={JOB}"));
        add(&match self.start {
            Start::Resume => format!("-loadvm {SAVED_AS}"),
            _ => "-action panic=pause -qmp stdio".to_owned(),
        });
    }

    /// The memory card of a Raspberry Pi and its console, on the second serial line, which is also
    /// the input for the one word. The card's address is a random number, which the kernel prints:
    /// a seed makes it reproducible.
    fn add_raspi_board(&self, add: &mut dyn FnMut(&str)) {
        if self.accel == Accel::VirtualTime {
            add("-seed 1");
        }
        add(&format!("-drive if=sd,format=raw,file={}", card::CARD));
        add(&format!("-chardev file,id={CONSOLE},path={CONSOLE},input-path={CONTROL}"));
        add(&format!("-serial null -serial chardev:{CONSOLE}"));
    }
}

/// A running QEMU; killed on drop.
struct RunningQemu(Child);

impl Drop for RunningQemu {
    fn drop(&mut self) {
        // Fails only if it has ended already, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The programs that start QEMU by exec.
///
/// setpriv(1) has the kernel kill it when the calling thread dies in any way (PR_SET_PDEATHSIG),
/// and gives it no more rights than it has.
///
/// In virtual time without recording QEMU's threads share one CPU and do not preempt each other
/// (SCHED_BATCH): then its main loop rarely checks at the wrong moment ([`RECORDED`]).
fn wrapper_words(machine: &QemuMachine, rights: QemuRights) -> Result<Vec<OsString>, LabError> {
    let tool = |name: &str, args: &[&str]| -> Result<Vec<OsString>, LabError> {
        let program = tools::find_program(name, "util-linux")?.into_os_string();
        Ok([program].into_iter().chain(args.iter().map(OsString::from)).collect())
    };
    let mut words = tool("setpriv", &["--pdeathsig", "KILL", "--no-new-privs", "--"])?;
    words.extend(rights.wrapper_command(ALIVE));
    if machine.accel == Accel::VirtualTime && !machine.is_recorded() {
        if let Some(cpu) = next_cpu() {
            words.extend(tool("taskset", &["-c", &cpu.to_string()])?);
        }
        words.extend(tool("chrt", &["--batch", "0"])?);
    }
    Ok(words)
}

/// The CPUs that this process may use, in turn, so that concurrent guests have one each. `None` if
/// /proc does not report them: the guest then runs as well, but diverges more often.
fn next_cpu() -> Option<usize> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let allowed: Vec<usize> = allowed.parse::<CpuSet>().ok()?.iter().collect();
    allowed.get(TURN.fetch_add(1, Ordering::Relaxed) % allowed.len().max(1)).copied()
}

/// Runs QEMU in the run's directory until it ends, reaches a limit, has written too much, or the
/// watcher ends it.
pub(crate) fn run_qemu(
    machine: &QemuMachine,
    dir: &Path,
    limits: Limits,
    watch: &mut dyn FnMut(GuestProgress) -> GuestControl,
) -> Result<QemuEnd, LabError> {
    let qemu = Emulator::find(machine.arch)?;
    let stderr_path = dir.join(QEMU_STDERR);
    let stderr = fs::File::create(&stderr_path).map_err(LabError::io("create", &stderr_path))?;
    let rights = QemuRights::detect(machine.share_host);
    let words = wrapper_words(machine, rights)?.into_iter().chain(qemu.command);
    let mut words = words.chain(rights.to_args()).chain(machine.to_args()?);
    let first = words.next().unwrap_or_default();
    let _alive = open_pipe(dir, ALIVE)?;
    let mut control = ControlPipe::open(dir)?;
    if machine.board == GuestBoard::Raspi3b {
        card::insert(dir)?;
    }
    let mut command = Command::new(&first);
    command.args(words).current_dir(dir).envs(qemu.environment);
    // Not in this terminal's foreground: Ctrl-C is for punctual.
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    if machine.start == Start::Save {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
    }
    let began = Instant::now();
    let mut running = RunningQemu(command.spawn().map_err(LabError::io("start", &first))?);
    let monitor = Monitor::from_child(&mut running.0, SAVED_AS);
    let mut watchdog = Watchdog::new(limits, OwnTime::start(running.0.id()));
    let how = loop {
        if let Some(status) = running.0.try_wait().map_err(LabError::io("wait for", &first))? {
            break QemuEnding::Exited {
                success: status.success(),
                description: status.to_string(),
            };
        }
        let (phase, elapsed, written) =
            (read_phase(machine.board, dir), began.elapsed(), output_size(dir));
        if let Some(how) = watchdog.check_limits(phase, written) {
            break how;
        }
        if file_size(dir, PORTS[0]) > STATUS_MAX {
            break QemuEnding::TooMuchOutput { limit: STATUS_MAX };
        }
        if phase == GuestPhase::Booting && machine.board == GuestBoard::Raspi3b && is_halted(dir) {
            break QemuEnding::Exited { success: true, description: "halted".to_owned() };
        }
        match watch(GuestProgress { phase, elapsed }) {
            // The saved state must not contain the request to end.
            GuestControl::End if machine.start == Start::Save => {}
            GuestControl::GoOn => {}
            GuestControl::End => control.send_end()?,
            GuestControl::Kill => break QemuEnding::Killed,
        }
        if written > OUTPUT_BYTES_MAX {
            break QemuEnding::TooMuchOutput { limit: OUTPUT_BYTES_MAX };
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    drop(running);
    let saved = monitor.is_some_and(Monitor::has_saved);
    Ok(QemuEnd { how, elapsed: began.elapsed(), saved, emulator: qemu.version })
}

/// The phase of the guest, by its status so far.
fn read_phase(board: GuestBoard, dir: &Path) -> GuestPhase {
    let status = match board {
        GuestBoard::Usual => InitStatus::read(&dir.join(PORTS[0])).unwrap_or_default(),
        GuestBoard::Raspi3b => InitStatus::parse(&card::read_status(dir)),
    };
    status.guest_phase()
}

/// Whether a kernel stopped that panicked before it knew how to reset its board (machine_restart in
/// arch/arm64/kernel/process.c): QEMU continues without it.
fn is_halted(dir: &Path) -> bool {
    let console = ports::read_end(&dir.join(CONSOLE), 4 << 10).unwrap_or_default();
    console.trim_ascii_end().ends_with(b"Reboot failed -- System halted")
}

/// Creates a pipe of this name, and opens both ends.
fn open_pipe(dir: &Path, name: &str) -> Result<fs::File, LabError> {
    let path = dir.join(name);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    match rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0) {
        // Left by an earlier boot of the same guest.
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(errno) => return Err(LabError::io("make the pipe", &path)(errno.into())),
    }
    let opened = fs::OpenOptions::new().read(true).write(true).open(&path);
    opened.map_err(LabError::io("open", &path))
}

/// The pipe that carries the request to end into the guest.
struct ControlPipe {
    path: PathBuf,
    pipe: fs::File,
    status: bool,
}

impl ControlPipe {
    /// Creates the pipe and opens both ends, so that QEMU, which opens it next, does not block and
    /// never sees its end.
    fn open(dir: &Path) -> Result<ControlPipe, LabError> {
        Ok(ControlPipe { path: dir.join(CONTROL), pipe: open_pipe(dir, CONTROL)?, status: false })
    }

    fn send_end(&mut self) -> Result<(), LabError> {
        if !self.status {
            self.status = true;
            self.pipe.write_all(b"end\n").map_err(LabError::io("write", &self.path))?;
        }
        Ok(())
    }
}

fn output_size(dir: &Path) -> u64 {
    PORTS.iter().chain(&[CONSOLE, QEMU_STDERR]).map(|file| file_size(dir, file)).sum()
}

fn file_size(dir: &Path, name: &str) -> u64 {
    dir.join(name).metadata().map_or(0, |meta| meta.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(accel: Accel, cmdline_extra: &str) -> QemuMachine<'_> {
        QemuMachine {
            arch: Arch::Amd64,
            board: GuestBoard::Usual,
            device_tree: None,
            accel,
            cpus: 2,
            memory_mb: 512,
            kernel: Path::new("/boot/my kernel,x"),
            cmdline_extra,
            share_host: true,
            start: Start::Boot,
            extra_args: &[],
        }
    }

    #[test]
    fn the_qemu_command_line_matches_the_documentation() {
        let args = machine(Accel::Tcg, " isolcpus=1 ").to_args().unwrap();
        let args: Vec<String> = args.into_iter().map(|arg| arg.into_string().unwrap()).collect();
        insta::assert_snapshot!(args.join(" ").replace(" -", "\n-"), @r"
        -name punctual,process=qemu-punctual
        -nodefaults
        -no-user-config
        -display none
        -monitor none
        -nic none
        -no-reboot
        -accel tcg,thread=single
        -machine pc
        -smp 2
        -m 512
        -cpu max,-la57,-erms,-fsrm,-fzrm,-fsrs,-fsrc
        -chardev file,id=console,path=console
        -serial chardev:console
        -device virtio-serial-pci,ioeventfd=off
        -chardev file,id=status,path=status
        -device virtserialport,chardev=status,name=punctual.status
        -chardev file,id=stdout,path=stdout
        -device virtserialport,chardev=stdout,name=punctual.stdout
        -chardev file,id=stderr,path=stderr
        -device virtserialport,chardev=stderr,name=punctual.stderr
        -chardev file,id=results,path=results
        -device virtserialport,chardev=results,name=punctual.results
        -chardev file,id=control,path=control.out,input-path=control
        -device virtserialport,chardev=control,name=punctual.control
        -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap
        -append console=ttyS0 panic=-1 no_timer_check isolcpus=1
        -initrd initramfs
        -kernel /boot/my kernel,x
        ");
        let args = machine(Accel::VirtualTime, "").to_args().unwrap();
        assert!(args.contains(&"shift=3,sleep=off,rr=record,rrfile=/dev/null".into()), "{args:?}");
        let line = machine(Accel::VirtualTime, "").command_line().unwrap();
        assert!(line.ends_with(VIRTUAL_TIME_KERNEL), "{line}");
    }

    #[test]
    fn a_raspberry_pi_boots_with_a_card_and_the_requested_cpus() {
        let board = QemuMachine {
            arch: Arch::Arm64,
            board: GuestBoard::Raspi3b,
            device_tree: Some("pi.dtb".into()),
            cpus: 1,
            memory_mb: 1024,
            share_host: false,
            ..machine(Accel::VirtualTime, "quiet")
        };
        let args: Vec<String> =
            board.to_args().unwrap().into_iter().map(|arg| arg.into_string().unwrap()).collect();
        let line = args.join(" ").replace(" -", "\n-");
        insta::assert_snapshot!(line.split_once("\n-no-reboot\n").unwrap().1, @r"
        -accel tcg,thread=single
        -rtc clock=vm,base=2026-01-01
        -icount shift=3,sleep=off
        -machine raspi3b
        -smp 4
        -m 1024
        -global bcm2837.enabled-cpus=1
        -seed 1
        -drive if=sd,format=raw,file=card
        -chardev file,id=console,path=console,input-path=control
        -serial null
        -serial chardev:console
        -append console=ttyS1 panic=-1 nokaslr lpj=4000000 tsc=reliable random.trust_cpu=off randomize_kstack_offset=off cryptomgr.notests maxcpus=1 quiet
        -initrd initramfs
        -kernel /boot/my kernel,x
        -dtb pi.dtb
        ");
    }

    #[test]
    fn a_line_too_long_for_the_kernel_is_refused() {
        let long = "x".repeat(2048);
        assert!(matches!(machine(Accel::Tcg, &long).to_args(), Err(LabError::Request(_))));
        assert!(matches!(machine(Accel::Tcg, "a\nb").to_args(), Err(LabError::Request(_))));
    }
}
