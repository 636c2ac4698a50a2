//! Boards that boot for themselves: `punctual boot` and labs over ssh on emulated boards with real
//! boot loaders.

mod emulated;

use crate::common::{eventually, punctual, text};
use emulated::{BoardKind, EmulatedBoard};
use punctual_host::boot::kept::KeptFiles;
use punctual_host::boot::{BootFiles, Loader, Trial};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A kernel that starts no program.
const PANICS: &str = "rdinit=/nowhere root=/dev/none init=/nowhere panic=1";

/// The files of a trial are written here, as they would be there.
#[test]
fn u_boot_obeys_a_trial_once_and_boots_as_usual_after_a_panic() {
    let Some(mut board) = EmulatedBoard::make(BoardKind::UBoot, &["6.1"]) else { return };
    let usual = "boot/extlinux/extlinux.conf";
    let tree = tempfile::tempdir().unwrap();
    let at = tree.path().join("boot");
    fs::create_dir_all(at.join("boot/extlinux")).unwrap();
    let image = format!("{}@@1M", board.path("disk").display());
    let mtools = |program: &str, words: &[&str]| {
        let done = Command::new(program).args(["-i", &image]).args(words).output().expect("mtools");
        done.status.success()
    };
    let path = |name: &str| at.join(name).display().to_string();
    assert!(mtools("mcopy", &[&format!("::{usual}"), &path(usual)]));
    let request = |words: &str| {
        fs::create_dir_all(at.join("punctual")).unwrap();
        let kept = KeptFiles::new(tree.path(), &at.join("punctual"));
        let (directory, configuration) = ("boot".into(), usual.into());
        let loader = Loader::UBoot { directory, configuration, environment: false };
        let files = BootFiles::new(tree.path(), kept, loader, Box::new(|_| Ok(())));
        files.request_trial(&Trial { add: words.to_owned(), ..Trial::default() }).unwrap();
        assert!(mtools("mcopy", &["-o", "-s", &path("punctual"), "::"]));
        assert!(mtools("mcopy", &["-o", &path("boot.scr"), "::"]));
        assert!(mtools("mtype", &["::punctual/once"]));
        files.revert_trial().unwrap();
    };
    request("threadirqs");
    board.start();
    board.until("the trial", || board.boots().len() == 1);
    board.stop();
    assert!(!mtools("mtype", &["::punctual/once"]), "the request stays");
    request(PANICS);
    board.start();
    board.until("the usual boot", || board.boots().len() == 2);
    assert_eq!(board.boots(), ["console=ttyAMA0 quiet threadirqs", "console=ttyAMA0 quiet"]);
    let console = board.console();
    assert_eq!(console.matches("Starting kernel").count(), 3, "{console}");
    assert!(console.contains("Kernel panic - not syncing"), "{console}");
}

#[test]
fn a_lab_boots_a_board_with_grub_and_restores_it() {
    if let Some(board) = EmulatedBoard::make(BoardKind::Grub, &["6.1"]) {
        let words = "cmdline = [\"threadirqs\", \"nosoftlockup\"]";
        labs_boot(board, words, ["threadirqs", "nosoftlockup"]);
    }
}

#[test]
fn a_lab_boots_a_board_with_systemd_boot_and_restores_it() {
    if let Some(board) = EmulatedBoard::make(BoardKind::SystemdBoot, &["6.1", "6.1-rt"]) {
        let releases = board.releases.clone();
        labs_boot(board, &format!("kernel = {releases:?}"), [&*releases[0], &*releases[1]]);
    }
}

#[test]
fn a_lab_boots_a_board_with_u_boot_and_restores_it() {
    if let Some(board) = EmulatedBoard::make(BoardKind::UBoot, &["6.1", "6.1-rt"]) {
        let releases = board.releases.clone();
        labs_boot(board, &format!("kernel = {releases:?}"), [&*releases[0], &*releases[1]]);
    }
}

fn labs_boot(mut board: EmulatedBoard, axis: &str, values: [&str; 2]) {
    if board.program().is_none() {
        return;
    }
    board.start();
    board.is_up();
    let before = board.files();
    cells_share_boots(&board, axis, values, &before);
    a_panic_falls_back(&board, &before);
    a_killed_lab_is_restored(&board, &before);
}

/// Two boots and two isolations, which need no boot: two trials and the way back.
fn cells_share_boots(board: &EmulatedBoard, axis: &str, values: [&str; 2], before: &str) {
    board.lab(&format!("{axis}\nisolation = [\"none\", \"cpuset\"]"));
    let ran = board.lab_command().output().expect("punctual");
    assert_eq!(ran.status.code(), Some(0), "{}{}", text(&ran), board.console());
    let cells = board.cells();
    assert_eq!(cells.len(), 4, "{cells:?}");
    for (name, environment) in &cells {
        let value = values.iter().find(|value| name.starts_with(*value)).expect("a value");
        assert!(environment.contains(value), "{name}: {environment}");
    }
    let boots = board.boots();
    // A kernel with PREEMPT_RT shows no EFI variables: after it, the usual boot requests the next.
    let between = if board.kind == BoardKind::SystemdBoot { 0..=1 } else { 0..=0 };
    let is_trial = |line: &&String| line.contains("panic=10 punctual.boot=");
    assert_eq!(boots.iter().filter(is_trial).count(), 2, "each trial once: {boots:?}");
    assert!(boots.len() >= 4 && between.contains(&(boots.len() - 4)), "{boots:?}");
    assert!(boots.first() == boots.last() && !is_trial(&&boots[0]), "{boots:?}");
    assert_eq!(board.files(), before);
}

/// A kernel that panics before any program: the board is back by itself, and the lab says so.
fn a_panic_falls_back(board: &EmulatedBoard, before: &str) {
    board.lab(&format!("cmdline = [{PANICS:?}]"));
    fs::remove_dir_all(board.path("out")).unwrap();
    let booted = board.boots().len();
    let ran = board.lab_command().output().expect("punctual");
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("fell back"), "{}", text(&ran));
    assert!(board.console().contains("Kernel panic"), "{}", board.console());
    let boots = board.boots();
    assert_eq!((boots.len(), boots.first()), (booted + 1, boots.last()), "{boots:?}");
    assert_eq!(board.files(), before);
}

/// Killed as soon as the board is changed, with its processes.
fn a_killed_lab_is_restored(board: &EmulatedBoard, before: &str) {
    board.lab("cmdline = [\"threadirqs\"]");
    fs::remove_dir_all(board.path("out")).unwrap();
    let mut command = board.lab_command();
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let mut lab = command.spawn().expect("punctual");
    let changed = format!("test -e {}", board.kind.place());
    eventually("a trial is requested", || board.ssh(&changed).status.success());
    let group = format!("-{}", lab.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().expect("kill").success());
    lab.wait().unwrap();
    // Its restart may have been asked for.
    std::thread::sleep(std::time::Duration::from_secs(15));
    board.is_up();
    assert_ne!(board.files(), before);
    let mut restore = punctual();
    restore.args(["lab", "restore", "lab.toml"]).current_dir(board.place.path());
    let restored = restore.output().expect("punctual");
    assert!(restored.status.success(), "{}", text(&restored));
    assert_eq!(board.files(), before);
    assert!(!text(&board.ssh("cat /proc/cmdline")).contains("punctual.boot="));
}

const WATCHDOG: &[&str] = &["-device", "i6300esb", "-action", "watchdog=reset"];

/// Each trial once: the first hangs in its first boot.
#[test]
fn a_board_that_hangs_is_reset_by_its_watchdog_or_by_hand_and_the_lab_goes_on() {
    for watchdog in [WATCHDOG, &[]] {
        let Some(mut board) = board_that_is_up(watchdog) else { return };
        let before = board.files();
        assert!(board.ssh("touch /boot/hang && sync").status.success());
        board.keys = "boot_time = \"90s\"\n".to_owned();
        board.lab("cmdline = [\"threadirqs\", \"nosoftlockup\"]");
        let ran = board.lab_command().output().expect("punctual");
        assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
        assert!(board.console().contains("HANGS"), "{}", board.console());
        if watchdog.is_empty() {
            assert!(text(&ran).contains("not reached since"), "{}", text(&ran));
            assert_eq!(board.whole_cells(), 0);
            board.start();
            board.is_up();
        } else {
            assert!(text(&ran).contains("fell back"), "{}", text(&ran));
            assert_eq!(board.whole_cells(), 1);
        }
        let ran = board.lab_command().output().expect("punctual");
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
        assert_eq!((board.whole_cells(), board.files()), (2, before));
    }
}

/// It runs, and nobody reaches it: the usual boot follows its power switch.
#[test]
fn a_board_whose_network_stays_down_is_switched_off_and_on_and_the_lab_goes_on() {
    let Some(mut board) = board_that_is_up(&[]) else { return };
    let before = board.files();
    board.keys = board.power_keys() + "boot_time = \"60s\"\n";
    board.lab("cmdline = [\"network.down\", \"threadirqs\"]");
    let ran = board.lab_command().output().expect("punctual");
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("fell back"), "{}", text(&ran));
    let down = board.boots().iter().filter(|line| line.contains("network.down")).count();
    assert_eq!((down, board.whole_cells(), board.files()), (1, 1, before), "{}", text(&ran));
}

/// A board that is up.
fn board_that_is_up(more: &'static [&'static str]) -> Option<EmulatedBoard> {
    let mut board = EmulatedBoard::make(BoardKind::UBoot, &["6.1"])?;
    board.program()?;
    board.more = more;
    board.start();
    board.is_up();
    Some(board)
}

/// The publication's experiment with 20,000 samples a cell: as it stands, on a board with GRUB; and
/// with kernels in the place of models, where those are kernels of their own.
#[test]
fn the_example_of_isolcpus_against_cpusets_runs_on_boards() {
    let example = include_str!("../../../examples/p4-board.toml");
    let with = |pairs: &[(&str, &str)]| {
        pairs.iter().fold(example.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        })
    };
    for kind in [BoardKind::UBoot, BoardKind::Grub] {
        let kernels: &[&str] = if kind == BoardKind::UBoot { &["6.1", "6.1-rt"] } else { &["6.1"] };
        let Some(mut board) = EmulatedBoard::make(kind, kernels) else { return };
        if board.program().is_none() {
            return;
        }
        board.more = &["-smp", "4"];
        board.start();
        board.is_up();
        let before = board.files();
        let target = "[target]\nkind = \"ssh\"\nhost = \"board.local\"\nuser = \"root\"\n";
        let models = "preemption = [\"none\", \"voluntary\", \"full\"]";
        let kernels = format!("kernel = {:?}", board.releases);
        let axis = if kind == BoardKind::UBoot { &kernels } else { models };
        let own = board.target();
        let lab = with(&[(target, &own), ("600_000", "20_000"), (models, axis)]);
        board.place.write("lab.toml", lab.as_bytes());
        let ran = board.lab_command().output().expect("punctual");
        assert_eq!(ran.status.code(), Some(0), "{}{}", text(&ran), board.console());
        println!("{}", text(&board.place.punctual(&["show", "out"])));
        let cells = if kind == BoardKind::UBoot { 8 } else { 12 };
        assert_eq!((board.whole_cells(), board.files()), (cells, before));
    }
}
