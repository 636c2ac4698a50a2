//! Converts a plan to a guest of the lab, and describes it afterwards.

use super::super::remote::RemoteRun;
use super::super::timebase_of_accel;
use super::{devices, programs};
use crate::exact;
use punctual_bundle::{KernelEvidence, RanOn};
use punctual_core::Nanos;
use punctual_host::environment::{Environment, PreemptionModel};
use punctual_lab::{
    Accel, Arch, BootKernel, FileSource, Guest, GuestControl, GuestFile, GuestResult, Job, LabError,
};
use punctual_plan::{
    Acceleration, Architecture, Board, KernelChoice, Plan, TargetPlan, VmPlan, Word,
};
use punctual_session::exit::Failure;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The path of the experiment in the guest.
const EXPERIMENT: &str = "/experiment";
/// The time allowed for a machine besides the run itself.
const TIMEOUT_BASE: Duration = Duration::from_secs(600);
/// How long a kernel on the host's processor may boot without output: seconds, if it works at all.
const KVM_SILENCE: Duration = Duration::from_secs(60);
/// The factor by which it may be slower than planned.
const TIMEOUT_FACTOR: u32 = 20;

/// The limit of an emulated Raspberry Pi's figures.
const RASPI: &str =
    "QEMU's Raspberry Pi 3: the board's devices and device tree, not its speed (docs/targets.md)";

/// A machine ready to run.
pub struct ReadyMachine {
    guest: Guest,
    accel: Acceleration,
    title: String,
    facts: Vec<(String, String)>,
}

impl ReadyMachine {
    /// The machine of a plan, with all its contents. Files needed at run time are put into `place`.
    pub fn from_plan(
        vm: &VmPlan,
        plan: &Plan,
        remote: &RemoteRun,
        place: &Path,
    ) -> Result<ReadyMachine, Failure> {
        let arch = match vm.arch {
            Architecture::X86_64 => Arch::Amd64,
            Architecture::Aarch64 => Arch::Arm64,
        };
        let (kernel, title) = find_kernel(vm, arch).map_err(|why| Failure::of_lab(&why))?;
        let binary = programs::find_punctual(vm)?;
        let loads: Vec<PathBuf> = programs::of_plan(plan).into_iter().collect();
        let directories =
            loads.iter().filter_map(|program| program.parent()).map(Path::to_string_lossy);
        let mut path: Vec<String> = directories.map(|dir| dir.into_owned()).collect();
        path.sort();
        path.dedup();
        let mut guest = Guest::new(kernel, Job::Script(String::new()));
        guest.links = vec![("/usr/bin/punctual".into(), binary.to_string_lossy().into_owned())];
        guest.programs = [binary].into_iter().chain(loads).collect();
        guest.files = vec![GuestFile {
            path: format!("{EXPERIMENT}/{}", remote.file_name()),
            source: FileSource::Bytes(remote.asked.bytes.clone()),
            mode: 0o644,
        }];
        guest.drivers =
            load_drivers(&vm.drivers, &guest.kernel).map_err(|why| Failure::of_lab(&why))?;
        let devices = devices::add(vm, place, &mut guest).map_err(|why| Failure::of_lab(&why))?;
        guest.job = Job::Script(guest_script(remote, &path, &devices));
        guest.cmdline_extra = vm.cmdline.clone();
        guest.board = match vm.machine {
            Board::Raspi3b => punctual_lab::GuestBoard::Raspi3b,
            Board::Pc | Board::Virt => punctual_lab::GuestBoard::Usual,
        };
        guest.cpus = vm.cpus;
        guest.memory_mb = u32::try_from(vm.memory.0 >> 20).unwrap_or(u32::MAX);
        guest.accel = match vm.accel {
            Acceleration::VirtualTime => Accel::VirtualTime,
            Acceleration::Tcg => Accel::Tcg,
            Acceleration::Kvm => Accel::Kvm,
        };
        if vm.accel == Acceleration::Kvm {
            guest.boot_silence = KVM_SILENCE;
        }
        guest.timeout = match (vm.timeout, plan.estimated_time()) {
            (Some(timeout), _) => timeout.to_std(),
            (None, estimated) => {
                TIMEOUT_BASE + estimated.map_or(Duration::ZERO, Nanos::to_std) * TIMEOUT_FACTOR
            }
        };
        guest.keep = vm.accel == Acceleration::VirtualTime
            && arch == Arch::Amd64
            && guest.board == punctual_lab::GuestBoard::Usual;
        let facts = vec![
            ("machine".to_owned(), format!("{} ({})", vm.machine.word(), vm.arch.word())),
            ("CPUs".to_owned(), vm.cpus.to_string()),
            ("memory".to_owned(), vm.memory.to_string()),
        ];
        let devices = vm.devices.iter().map(|device| {
            ("device".to_owned(), devices::device_title(*device, vm.accel).to_owned())
        });
        let drivers = guest.drivers.iter().map(|(name, _)| ("driver".to_owned(), name.clone()));
        let facts = facts.into_iter().chain(devices).chain(drivers).collect();
        Ok(ReadyMachine { guest, accel: vm.accel, title, facts })
    }

    /// Runs the guest; its results are put below `place`, with `exact` also the plugin's output.
    pub fn run_guest(
        &self,
        place: &Path,
        exact: bool,
        watch: &mut dyn FnMut(punctual_lab::GuestProgress) -> GuestControl,
    ) -> Result<GuestResult, LabError> {
        if exact {
            return exact::run_under_plugin(&self.guest, place, watch);
        }
        let guest = Guest { results_to: Some(place.to_owned()), ..self.guest.clone() };
        guest.run_watched(watch)
    }

    /// The evidence that the requested kernel ran.
    fn kernel_evidence(
        &self,
        result: &GuestResult,
        environment: Option<&Environment>,
    ) -> KernelEvidence {
        let preemption =
            environment.and_then(|environment| environment.kernel.preemption.known_value());
        KernelEvidence {
            // A kernel given by its path has no requested version.
            release: self
                .guest
                .kernel
                .kernel_release()
                .filter(|_| self.guest.kernel.version.is_some()),
            booted: result.release.clone(),
            preemption: asked_preemption(&self.guest.cmdline_extra).map(str::to_owned),
            preemption_in_force: preemption.map(|known| preemption_word(known.model)),
        }
    }

    /// The place of a run, for its bundle.
    pub fn ran_on(
        &self,
        result: &GuestResult,
        started: jiff::Timestamp,
        elapsed: Nanos,
        environment: Option<&Environment>,
    ) -> RanOn {
        let version = self
            .guest
            .kernel
            .version
            .as_ref()
            .map(|version| format!(", package {version}"))
            .unwrap_or_default();
        let release = result
            .release
            .clone()
            .unwrap_or_else(|| "unknown: it ended before it reported this".to_owned());
        let mut facts = vec![("kernel".to_owned(), format!("{release}{version}"))];
        let preemption =
            environment.and_then(|environment| environment.kernel.preemption.known_value());
        facts.extend(preemption.map(|known| {
            ("preemption".to_owned(), format!("{} ({})", known.model, known.evidence))
        }));
        facts.push(("command line".to_owned(), result.cmdline.clone()));
        facts.extend(self.facts.iter().cloned());
        facts.push(("QEMU".to_owned(), result.emulator.clone()));
        let time = match self.accel {
            Acceleration::VirtualTime => "virtual: 1 instruction = 8 ns (icount shift=3)",
            Acceleration::Tcg => "the host's, translated (tcg)",
            Acceleration::Kvm => "the host's, on its processor (kvm)",
        };
        facts.push(("time".to_owned(), time.to_owned()));
        let board = (self.guest.board == punctual_lab::GuestBoard::Raspi3b).then_some(RASPI);
        let limits = timebase_of_accel(self.accel)
            .full_meaning()
            .into_iter()
            .chain(board)
            .map(str::to_owned)
            .collect();
        RanOn {
            kind: "vm".to_owned(),
            name: self.title.clone(),
            started,
            elapsed: Some(elapsed),
            facts,
            kernel: Some(self.kernel_evidence(result, environment)),
            repeats: Vec::new(),
            limits,
            made_of: result.made_of.clone(),
            failed: None,
        }
    }
}

/// The preemption model that a kernel command line requests.
pub(crate) fn asked_preemption(cmdline: &str) -> Option<&str> {
    cmdline.split_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back()
}

/// A preemption model in the words of the command line.
pub(crate) fn preemption_word(model: PreemptionModel) -> String {
    match model {
        PreemptionModel::RealTime => "real-time".to_owned(),
        other => other.to_string(),
    }
}

/// Modules as given, or built for the kernel from their source.
fn load_drivers(
    paths: &[PathBuf],
    kernel: &BootKernel,
) -> Result<Vec<(String, Vec<u8>)>, LabError> {
    let one = |path: &PathBuf| {
        require_exists(path, path.is_file(), "driver")?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let whole = std::path::absolute(path);
        let failed = |source| LabError::Io { action: "read", path: path.clone(), source };
        let content =
            match (path.extension().and_then(OsStr::to_str), whole.map_err(failed)?.parent()) {
                (Some("c"), Some(directory)) => kernel.build_module(directory, &name)?,
                (Some("ko"), _) => std::fs::read(path).map_err(failed)?,
                _ => {
                    let message = "a driver is a module (.ko) or its source (.c)".to_owned();
                    return Err(LabError::Malformed { path: path.clone(), why: message });
                }
            };
        Ok((name, content))
    };
    paths.iter().map(one).collect()
}

/// The virtual machine of a kernel's name, with the settings of `--target vm:`.
pub(crate) fn plan_for_kernel(kernel: &str) -> Result<VmPlan, Failure> {
    let word = format!("vm:{kernel}");
    let target = punctual_plan::read_target(
        Path::new("--kernel"),
        &[],
        &punctual_plan::LoadOptions::default(),
        Some(&word),
    )?;
    match target {
        TargetPlan::Vm(vm) => Ok(vm),
        _ => Err(Failure::refused("--kernel: no such name of a kernel")),
    }
}

/// The requested kernel, and the machine's name derived from it.
pub(crate) fn find_kernel(vm: &VmPlan, arch: Arch) -> Result<(BootKernel, String), LabError> {
    let (kernel, name) = match &vm.kernel {
        KernelChoice::Named(name) => (BootKernel::by_name(name, arch)?, name.clone()),
        KernelChoice::Image { image, modules } => {
            require_exists(image, image.is_file(), "kernel image")?;
            modules.iter().try_for_each(|dir| {
                require_exists(dir, dir.is_dir(), "directory of kernel modules")
            })?;
            (
                BootKernel::from_image(image, modules.clone(), arch),
                image.to_string_lossy().into_owned(),
            )
        }
    };
    Ok((kernel, format!("the kernel {name}, {}", timebase_of_accel(vm.accel).target_suffix())))
}

fn require_exists(path: &Path, is: bool, what: &str) -> Result<(), LabError> {
    let missing = || LabError::Request(format!("there is no {what} at {}", path.display()));
    is.then_some(()).ok_or_else(missing)
}

fn guest_script(remote: &RemoteRun, path: &[String], devices: &str) -> String {
    let mut words = vec![
        "/usr/bin/punctual".to_owned(),
        "run".to_owned(),
        "--output=/results/bundle".to_owned(),
    ];
    words.extend(remote.arguments.iter().cloned());
    words.push(format!("{EXPERIMENT}/{}", remote.file_name()));
    let path = path.iter().map(|dir| format!("{}:", shell_words::quote(dir))).collect::<String>();
    format!(
        "export PATH={path}$PATH\n{devices}mkdir -p /results/files && cd /results/files || exit \
         1\nexec {}\n",
        shell_words::join(&words)
    )
}
