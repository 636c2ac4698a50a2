//! Emulated boards with a disk of their own (bench/boards).

use crate::common::{HANG, Place, has_program, punctual, text};
use punctual_lab::{Arch, BootKernel};
use punctual_testing::{self as testing, or_skip};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Its boot loader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BoardKind {
    /// An x86 PC with a BIOS.
    Grub,
    /// An x86 PC with UEFI.
    SystemdBoot,
    /// An arm64 board.
    UBoot,
}

impl BoardKind {
    fn script(self) -> &'static str {
        match self {
            BoardKind::Grub => "grub.sh",
            BoardKind::SystemdBoot => "systemd-boot.sh",
            BoardKind::UBoot => "u-boot.sh",
        }
    }

    fn arch(self) -> Arch {
        match self {
            BoardKind::Grub | BoardKind::SystemdBoot => Arch::Amd64,
            BoardKind::UBoot => Arch::Arm64,
        }
    }

    /// The programs of this machine that are needed, each with its package.
    fn programs(self) -> [(&'static str, &'static str); 3] {
        let pc = ("qemu-system-x86_64", "qemu-system-x86");
        let (mtools, python) = (("mformat", "mtools"), ("python3", "python3"));
        match self {
            BoardKind::Grub => [pc, ("grub-mkimage", "grub-common"), ("mkfs.ext4", "e2fsprogs")],
            BoardKind::SystemdBoot => [pc, mtools, python],
            BoardKind::UBoot => [("qemu-system-aarch64", "qemu-system-arm"), mtools, python],
        }
    }

    fn packages(self) -> &'static [&'static str] {
        match self {
            BoardKind::Grub => &["dropbear-bin", "busybox-static", "grub-pc-bin"],
            BoardKind::SystemdBoot => &["dropbear-bin", "busybox-static", "systemd-boot", "ovmf"],
            BoardKind::UBoot => &["dropbear-bin", "busybox-static", "u-boot-qemu"],
        }
    }

    /// The directory of a trial.
    pub fn place(self) -> &'static str {
        match self {
            BoardKind::Grub => "/boot/grub/punctual",
            BoardKind::SystemdBoot | BoardKind::UBoot => "/boot/punctual",
        }
    }

    fn qemu(self, file: impl Fn(&str) -> String) -> Command {
        let mut command = Command::new(self.programs()[0].0);
        let disk = format!("file={},format=raw", file("disk"));
        let mut flash = |unit: &str, name: &str| {
            let drive = format!("if=pflash,format=raw,unit={unit},file={}", file(name));
            command.args(["-drive", &drive]);
        };
        match self {
            BoardKind::Grub => {}
            BoardKind::SystemdBoot => {
                flash("0,readonly=on", "firmware");
                flash("1", "variables");
            }
            BoardKind::UBoot => flash("1", "environment"),
        }
        match self {
            BoardKind::Grub | BoardKind::SystemdBoot => {
                command.args(["-M", "q35", "-m", "768", "-drive", &format!("{disk},if=virtio")]);
            }
            BoardKind::UBoot => {
                command.args(["-M", "virt", "-cpu", "cortex-a72", "-m", "512", "-bios"]);
                command.args([&file("u-boot.bin"), "-drive", &format!("{disk},if=none,id=d0")]);
                command.args(["-device", "virtio-blk-pci,drive=d0"]);
            }
        }
        command
    }
}

/// Gives commands to the monitor of QEMU, one in each argument.
const MONITOR: &str = "import socket, sys
monitor = socket.socket(socket.AF_UNIX)
monitor.connect(sys.argv[1])
answer = b''
for command in sys.argv[2:]:
    while not answer.endswith(b'(qemu) '):
        answer += monitor.recv(4096)
    answer = b''
    monitor.sendall(command.encode() + b'\\n')
while not answer.endswith(b'(qemu) '):
    answer += monitor.recv(4096)
";

/// An emulated board.
pub struct EmulatedBoard {
    pub kind: BoardKind,
    pub place: Place,
    pub port: u16,
    /// The releases of its kernels, the usual one first.
    pub releases: Vec<String>,
    /// More options of QEMU.
    pub more: &'static [&'static str],
    /// More keys of its `[target]`.
    pub keys: String,
    qemu: Option<Child>,
}

impl EmulatedBoard {
    /// A board that is off; `None`, with the missing prerequisite printed, if impossible.
    pub fn make(kind: BoardKind, kernels: &[&str]) -> Option<EmulatedBoard> {
        if !kind.programs().iter().all(|(program, package)| has_program(program, package)) {
            return None;
        }
        let packages = or_skip(punctual_lab::debian_tree(kind.arch(), kind.packages()))?;
        let kernels: Option<Vec<BootKernel>> =
            kernels.iter().map(|name| or_skip(BootKernel::by_name(name, kind.arch()))).collect();
        let kernels = kernels?;
        let place = Place::with("");
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(place.path().join("user"));
        assert!(keygen.status().expect("ssh-keygen").success());
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/boards");
        let mut make = Command::new(directory.join(kind.script()));
        make.args([place.path(), &place.path().join("user.pub"), &packages]);
        // …/lib/modules/RELEASE
        let tree =
            |kernel: &BootKernel| Some(kernel.modules.as_ref()?.ancestors().nth(3)?.to_owned());
        make.args(kernels.iter().filter_map(tree)).stdin(Stdio::null());
        let made = make.output().expect("bash");
        assert!(made.status.success(), "{}", text(&made));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = fs::read_to_string(place.path().join("host.pub")).unwrap();
        let hosts = format!("[127.0.0.1]:{port} {host}[localhost]:{port} {host}");
        place.write("known", hosts.as_bytes());
        let releases = kernels.iter().filter_map(BootKernel::kernel_release).collect();
        Some(EmulatedBoard {
            kind,
            place,
            port,
            releases,
            qemu: None,
            more: &[],
            keys: String::new(),
        })
    }

    /// Cuts its power, if it has any, and gives it power.
    pub fn start(&mut self) {
        self.stop();
        let file = |name: &str| self.path(name).display().to_string();
        let mut command = self.kind.qemu(file);
        command
            .args(["-smp", "2", "-display", "none", "-netdev"])
            .arg(format!("user,id=n0,hostfwd=tcp:127.0.0.1:{}-:22", self.port))
            .args(["-device", "virtio-net-pci,netdev=n0,romfile=", "-chardev"])
            .arg(format!("file,id=c0,append=on,path={}", file("console")))
            .args(["-serial", "chardev:c0", "-monitor"])
            .arg(format!("unix:{},server=on,wait=off", file("monitor")))
            .args(self.more);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.qemu = Some(command.spawn().expect("QEMU"));
    }

    /// Keys of `[target]` for a switch of its power: it stands still, and is reset.
    pub fn power_keys(&self) -> String {
        self.place.write("power", MONITOR.as_bytes());
        let switch = format!("python3 {:?} {:?}", self.path("power"), self.path("monitor"));
        format!("power_off = '{switch} stop'\npower_on = '{switch} system_reset cont'\n")
    }

    /// Cuts its power.
    pub fn stop(&mut self) {
        if let Some(mut qemu) = self.qemu.take() {
            let _ = qemu.kill();
            let _ = qemu.wait();
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path("console")).unwrap_or_default()).into_owned()
    }

    /// The command lines of all boots that reached a login.
    pub fn boots(&self) -> Vec<String> {
        let console = self.console();
        // GRUB names its image first.
        let words = |line: &str| {
            let words = line.split_whitespace().filter(|word| !word.starts_with("BOOT_IMAGE="));
            words.collect::<Vec<_>>().join(" ")
        };
        console.lines().filter_map(|line| line.split("READY ").nth(1)).map(words).collect()
    }

    /// Waits for a login.
    pub fn is_up(&self) {
        self.until("a login", || self.ssh("true").status.code() == Some(0));
    }

    /// Waits for something that the board does.
    pub fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + HANG;
        while !is_so() {
            assert!(Instant::now() < until, "{what}: {}", self.console());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn ssh(&self, command: &str) -> Output {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o"])
            .arg(format!("UserKnownHostsFile={}", self.path("known").display()))
            .arg("-i")
            .arg(self.path("user"))
            .args(["-p", &self.port.to_string(), "root@127.0.0.1", command]);
        ssh.stdin(Stdio::null()).output().expect("ssh")
    }

    /// The files of /boot with their modes, owners and sums.
    pub fn files(&self) -> String {
        let list = "cd /boot && find . -type f -exec sha256sum {} + | sort -k 2 && find . \
                    -exec stat -c '%n %a %u %g' {} + | sort";
        let listed = self.ssh(list);
        assert!(listed.status.success(), "{}", text(&listed));
        text(&listed)
    }

    /// punctual for it; `None`, with how to get it printed, if it was not built.
    pub fn program(&self) -> Option<PathBuf> {
        match self.kind {
            BoardKind::Grub | BoardKind::SystemdBoot => {
                Some(testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual"))))
            }
            BoardKind::UBoot => crate::target_vm::arm64_program(),
        }
    }

    /// Writes a lab of these axes on this board.
    pub fn lab(&self, axes: &str) {
        let lab = format!(
            "[lab]\nname = \"board\"\nisolated = \"1\"\n[axes]\n{axes}\n[[measure]]\nkind = \
             \"timer\"\ncpus = \"1\"\nperiod = \"1ms\"\nsamples = 50\n{}",
            self.target()
        );
        self.place.write("lab.toml", lab.as_bytes());
    }

    /// The section of a file that names this board.
    pub fn target(&self) -> String {
        format!(
            "[target]\nkind = \"ssh\"\nhost = \"127.0.0.1\"\nuser = \"root\"\nport = \
             {}\nidentity = {:?}\nknown_hosts = {:?}\nbinary = {:?}\n{}",
            self.port,
            self.path("user"),
            self.path("known"),
            self.program().expect("a program, as before"),
            self.keys
        )
    }

    /// `punctual lab run` of that lab.
    pub fn lab_command(&self) -> Command {
        let mut command = punctual();
        command.args(["lab", "run", "lab.toml", "-o", "out", "--quiet"]);
        command.current_dir(self.place.path()).stdin(Stdio::null());
        command
    }

    /// The number of cells with a bundle.
    pub fn whole_cells(&self) -> usize {
        self.cells().iter().filter(|(_, there)| !there.is_empty()).count()
    }

    /// The cells, each with the environment in its bundle; empty if it has none.
    pub fn cells(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.path("out/lab.json")).unwrap();
        let lab: serde_json::Value = serde_json::from_str(&text).unwrap();
        let environment = |name: &str| {
            let bundle = self.path("out/cells").join(name).join("r1");
            fs::read_to_string(bundle.join("environment.json")).unwrap_or_default()
        };
        let names = lab["cells"].as_array().unwrap().iter().map(|cell| cell["name"].as_str());
        names.map(|name| (name.unwrap().to_owned(), environment(name.unwrap()))).collect()
    }
}

impl Drop for EmulatedBoard {
    fn drop(&mut self) {
        self.stop();
    }
}
