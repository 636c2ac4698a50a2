//! Runs the real binary in a separate directory.

#![allow(dead_code)] // each test file uses its share

pub mod disk;
pub mod measured;
pub mod quota;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The binary under test.
pub fn punctual() -> Command {
    Command::new(env!("CARGO_BIN_EXE_punctual"))
}

/// A separate directory with an experiment in it.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// Creates a place with this text as `experiment.toml`.
    pub fn with(experiment: &str) -> Place {
        let place = Place { directory: tempfile::tempdir().expect("a temporary directory") };
        place.write("experiment.toml", experiment.as_bytes());
        place
    }
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
    pub fn bundle(&self) -> PathBuf {
        self.path().join("bundle")
    }
    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path().join(name), bytes).expect("a file in it");
    }
    /// Runs `punctual ARGS…` with this as the current directory.
    pub fn punctual(&self, arguments: &[&str]) -> Output {
        punctual()
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::null())
            .output()
            .expect("punctual starts")
    }
    /// Runs `punctual LINE`, as typed in a shell.
    pub fn line(&self, line: &str) -> Output {
        let words = words(line);
        self.punctual(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
    /// Runs `punctual run --quiet` of the experiment into `bundle`.
    pub fn run(&self) -> Output {
        self.punctual(&["run", "--quiet", "experiment.toml", "--output", "bundle"])
    }
    /// Starts `punctual run` in the background, with SIGHUP enabled even if the tests themselves
    /// run under `nohup`: an ignored signal stays ignored through exec, and punctual keeps it so.
    pub fn start(&self) -> Child {
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_punctual")])
            .args(["run", "--quiet", "experiment.toml", "--output", "bundle"])
            .current_dir(self.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("punctual starts")
    }
    /// The output of `punctual show --json bundle`.
    pub fn summary(&self) -> serde_json::Value {
        let shown = self.punctual(&["show", "--json", "bundle"]);
        serde_json::from_slice(&shown.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&shown)))
    }
}

/// The words of a command as typed in a shell.
pub fn words(line: &str) -> Vec<String> {
    shell_words::split(line).expect("its quotes are closed")
}

/// The whole output of a command, for messages and checks.
pub fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Asserts a refusal before anything started: exit code 2, no bundle, and the measure named once.
pub fn assert_refused(output: &Output, bundle: &Path) {
    let said = text(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!bundle.exists(), "{} is left behind: {said}", bundle.display());
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(
        !words.windows(2).any(|two| two[0] == two[1] && two[0].ends_with(':')),
        "a name twice: {said}"
    );
}

/// A timeout against hangs, far above the need of a busy machine: waiting tests measure no time.
pub const HANG: Duration = Duration::from_secs(600);

/// Waits until a condition holds; the timeout is against hangs, not a measurement.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + HANG;
    while !is_so() {
        assert!(Instant::now() < until, "never came: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes with this word in their command line.
pub fn processes_with(word: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    let with_word = all.filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    });
    with_word.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// All processes with this working directory, under any name.
pub fn processes_in(directory: &std::path::Path) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    let there = all.filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory)
    });
    there.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether this test runs as root; prints the missing prerequisite if not.
pub fn is_root(test: &str) -> bool {
    let root = std::fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if !root {
        println!("SKIPPED: {test} lacks root");
    }
    root
}

/// Whether a program is on the PATH; prints the missing package if not.
pub fn has_program(name: &str, package: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join(name).exists());
    if !found {
        println!("SKIPPED: lacks the program {name} (Debian package {package})");
    }
    found
}

/// Sends a signal by number.
pub fn kill(pid: u32, signal: &str) {
    let killed = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status()
        .expect("kill");
    assert!(killed.success(), "kill -{signal} {pid}");
}

/// The image and the modules of a Debian kernel as ordinary files: the bzImage of the package, not
/// the ELF file that the lab extracts from it.
pub fn kernel_files(name: &str) -> Option<(PathBuf, PathBuf)> {
    let kernel = punctual_testing::or_skip(punctual_lab::BootKernel::by_name(
        name,
        punctual_lab::Arch::Amd64,
    ))?;
    let boot = std::fs::read_dir(kernel.image.parent()?).expect("the kernel's directory").flatten();
    let is_image = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    };
    let image = boot.map(|entry| entry.path()).find(is_image).expect("an image in the package");
    Some((image, kernel.modules.expect("modules in the package")))
}

/// Does `work` while the program at `path`, a load that never ends, is replaced by another version
/// 20 times a second: two runs, seconds apart, get different programs.
pub fn with_changing_load<T>(path: &Path, work: impl FnOnce() -> T) -> T {
    let replace = |size: u32| {
        let beside = path.with_extension("new");
        // Constant length: a reader that gets the length before the bytes sees a consistent file.
        let text = format!(
            "#!/bin/sh\nwhile :; do dd if=/dev/zero of=/dev/null bs={size:07} count=1; done\n"
        );
        std::fs::write(&beside, text).expect("a new version");
        std::fs::set_permissions(&beside, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("its mode");
        std::fs::rename(&beside, path).expect("in the place of the old one");
    };
    replace(1_000_000);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                replace(1_000_000 + version * 100);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
