//! Boards that boot for themselves: `punctual boot` and labs over ssh on an emulated PC with a real
//! GRUB (bench/boards/grub.sh).

use crate::common::{Place, eventually, has_program, punctual, text};
use punctual_testing as testing;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// An emulated PC with a disk of its own.
struct EmulatedBoard {
    place: Place,
    port: u16,
    qemu: Child,
}

impl EmulatedBoard {
    /// A board that is up; `None`, with the missing prerequisite printed, if impossible.
    fn start(test: &str) -> Option<EmulatedBoard> {
        let needs = [("qemu-system-x86_64", "qemu-system-x86"), ("mkfs.ext4", "e2fsprogs")];
        if !needs.iter().all(|(program, package)| has_program(program, package)) {
            return None;
        }
        let place = Place::with("");
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(place.path().join("user"));
        assert!(keygen.status().expect("ssh-keygen").success());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/boards/grub.sh");
        let mut make = Command::new(script);
        make.arg(place.path()).arg(place.path().join("user.pub")).stdin(Stdio::null());
        let made = make.output().expect("bash");
        if !made.status.success() {
            println!("SKIPPED: {test} lacks packages for a board with GRUB: {}", text(&made));
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = fs::read_to_string(place.path().join("host.pub")).unwrap();
        place.write("known", format!("[127.0.0.1]:{port} {host}").as_bytes());
        let qemu = qemu(&place, port);
        let board = EmulatedBoard { place, port, qemu };
        board.is_up();
        Some(board)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path("console")).unwrap_or_default()).into_owned()
    }

    /// The command lines of all boots that reached a login.
    fn boots(&self) -> Vec<String> {
        let console = self.console();
        let lines = console.lines().filter_map(|line| line.split("READY ").nth(1));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    fn is_up(&self) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(300);
        while self.ssh("true").status.code() != Some(0) {
            assert!(std::time::Instant::now() < until, "{}", self.console());
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
    }

    fn ssh(&self, command: &str) -> Output {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o"])
            .arg(format!("UserKnownHostsFile={}", self.path("known").display()))
            .arg("-i")
            .arg(self.path("user"))
            .args(["-p", &self.port.to_string(), "root@127.0.0.1", command]);
        ssh.stdin(Stdio::null()).output().expect("ssh")
    }

    /// The files of /boot with their modes, owners and sums.
    fn files(&self) -> String {
        let list = "cd /boot && find . -type f -exec sha256sum {} + | sort -k 2 && find . \
                    -exec stat -c '%n %a %u %g' {} + | sort";
        let listed = self.ssh(list);
        assert!(listed.status.success(), "{}", text(&listed));
        text(&listed)
    }

    fn lab(&self, axes: &str) {
        let program = testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual")));
        let lab = format!(
            "[lab]\nname = \"board\"\nisolated = \"1\"\n[axes]\n{axes}\n[[measure]]\nkind = \
             \"timer\"\ncpus = \"1\"\nperiod = \"1ms\"\nsamples = 50\n[target]\nkind = \
             \"ssh\"\nhost = \"127.0.0.1\"\nuser = \"root\"\nport = {}\nidentity = \
             {:?}\nknown_hosts = {:?}\nbinary = {:?}\n",
            self.port,
            self.path("user"),
            self.path("known"),
            program
        );
        self.place.write("lab.toml", lab.as_bytes());
    }

    fn run_lab(&self) -> Output {
        let mut command = punctual();
        command.args(["lab", "run", "lab.toml", "-o", "out", "--quiet"]);
        command.current_dir(self.place.path()).stdin(Stdio::null()).output().expect("punctual")
    }

    fn cells(&self) -> Vec<(String, bool)> {
        let text = fs::read_to_string(self.path("out/lab.json")).unwrap();
        let lab: serde_json::Value = serde_json::from_str(&text).unwrap();
        let cells = lab["cells"].as_array().unwrap().iter();
        let bundle = |name: &str| self.path("out/cells").join(name).join("r1/bundle.json");
        cells
            .map(|cell| {
                let name = cell["name"].as_str().unwrap().to_owned();
                let is_there = bundle(&name).exists();
                (name, is_there)
            })
            .collect()
    }
}

impl Drop for EmulatedBoard {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

fn qemu(place: &Place, port: u16) -> Child {
    let file = |name: &str| place.path().join(name).display().to_string();
    Command::new("qemu-system-x86_64")
        .args(["-m", "768", "-smp", "2", "-display", "none"])
        .args(["-drive", &format!("file={},format=raw,if=virtio", file("disk"))])
        .args(["-netdev", &format!("user,id=n0,hostfwd=tcp:127.0.0.1:{port}-:22")])
        .args(["-device", "virtio-net-pci,netdev=n0,romfile="])
        .args(["-serial", &format!("file:{}", file("console"))])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("QEMU")
}

#[test]
#[ignore = "boots an emulated PC nine times, which takes minutes; ./x test --all"]
fn a_lab_boots_a_board_with_grub_and_restores_it() {
    let test = "a_lab_boots_a_board_with_grub_and_restores_it";
    let Some(board) = EmulatedBoard::start(test) else { return };
    let before = board.files();
    cells_share_boots(&board, &before);
    a_panic_falls_back(&board, &before);
    a_killed_lab_is_restored(&board, &before);
}

/// Two command lines and two isolations, which need no boot: two trials and the way back.
fn cells_share_boots(board: &EmulatedBoard, before: &str) {
    let words = ["threadirqs", "nosoftlockup"];
    board.lab(&format!("cmdline = {words:?}\nisolation = [\"none\", \"cpuset\"]"));
    let ran = board.run_lab();
    assert_eq!(ran.status.code(), Some(0), "{}{}", text(&ran), board.console());
    let cells = board.cells();
    assert_eq!(cells.len(), 4, "{cells:?}");
    for (name, is_there) in &cells {
        assert!(is_there, "{cells:?}");
        let environment = board.path("out/cells").join(name).join("r1/environment.json");
        let environment = fs::read_to_string(environment).unwrap();
        let word = words.iter().find(|word| name.contains(*word)).unwrap();
        assert!(environment.contains(&format!(" {word}")), "{name}: {environment}");
    }
    let boots = board.boots();
    assert_eq!(boots.len(), 1 + 2 + 1, "the usual one, each trial once, the usual one: {boots:?}");
    assert_eq!(boots[0], boots[3]);
    assert!(boots[1..3].iter().all(|line| line.contains("panic=10 punctual.boot=")), "{boots:?}");
    assert_eq!(board.files(), before);
}

/// A kernel that panics before any program: the board is back by itself, and the lab says so.
fn a_panic_falls_back(board: &EmulatedBoard, before: &str) {
    board.lab("cmdline = [\"rdinit=/nowhere root=/dev/none init=/nowhere panic=1\"]");
    fs::remove_dir_all(board.path("out")).unwrap();
    let ran = board.run_lab();
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("fell back"), "{}", text(&ran));
    assert!(board.console().contains("Kernel panic"), "{}", board.console());
    let boots = board.boots();
    assert_eq!((boots.len(), boots.first()), (5, boots.last()), "{boots:?}");
    assert_eq!(board.files(), before);
}

/// Killed as soon as the board is changed, with its processes.
fn a_killed_lab_is_restored(board: &EmulatedBoard, before: &str) {
    board.lab("cmdline = [\"threadirqs\"]");
    fs::remove_dir_all(board.path("out")).unwrap();
    let mut command = punctual();
    command.args(["lab", "run", "lab.toml", "-o", "out", "--quiet"]);
    command.current_dir(board.place.path()).stdin(Stdio::null()).process_group(0);
    let mut lab = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("punctual");
    eventually("a trial is requested", || {
        board.ssh("test -e /boot/grub/punctual").status.success()
    });
    kill_group(&lab);
    lab.wait().unwrap();
    board.is_up();
    assert_ne!(board.files(), before);
    let mut restore = punctual();
    restore.args(["lab", "restore", "lab.toml"]).current_dir(board.place.path());
    let restored = restore.output().expect("punctual");
    assert!(restored.status.success(), "{}", text(&restored));
    assert_eq!(board.files(), before);
    assert!(!text(&board.ssh("cat /proc/cmdline")).contains("punctual.boot="));
}

fn kill_group(child: &Child) {
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().expect("kill").success());
}
