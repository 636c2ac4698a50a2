//! Starts programs with points, and keeps the points that a collector reads.

use punctual_core::event::{Event, EventKind};
use punctual_points::{Collected, Collector, Options, PointSource};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// A number for a test: `small` in ordinary runs, the value of the environment in a full one.
pub fn amount(variable: &str, small: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(small)
}

/// The language of a program with points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// `roles.rs`, with the crate.
    Rust,
    /// `roles.c`, with the C source file copied beside it.
    C,
}

/// Tests of programs, once for each library that writes points.
macro_rules! in_each_language {
    ($($test:ident),+ $(,)?) => {
        mod in_rust {
            $(#[test]
            fn $test() {
                super::$test(crate::points::support::Language::Rust);
            })+
        }
        mod in_c {
            $(#[test]
            fn $test() {
                if crate::points::support::c_roles().is_none() {
                    return println!("SKIPPED: a program in C with points lacks a C compiler (cc)");
                }
                super::$test(crate::points::support::Language::C);
            })+
        }
    };
}
pub(crate) use in_each_language;

/// `roles.c`, compiled with the header and the source file that users copy; `None` without `cc`.
pub fn c_roles() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compile = || {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = here.join("../testpoint/c/punctual");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("points-roles");
        let unfinished = program.with_extension(std::process::id().to_string());
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-I"]);
        command.arg(&library).arg(here.join("tests/points/roles.c"));
        command.arg(library.join("testpoint.c")).arg("-o").arg(&unfinished);
        let output = command.output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::rename(&unfinished, &program).expect("our own file");
        Some(program)
    };
    PROGRAM.get_or_init(compile).as_deref()
}

/// A program with the role `role` (see `roles.rs`), with its points in `directory`.
pub fn program(
    language: Language,
    directory: &Path,
    role: &str,
    settings: &[(&str, String)],
) -> Command {
    let mut command = match language {
        Language::Rust => Command::new(std::env::current_exe().expect("this test")),
        Language::C => Command::new(c_roles().expect("a C compiler")),
    };
    if language == Language::Rust {
        let only =
            ["--exact", "points::roles::play", "--ignored", "--nocapture", "--test-threads=1"];
        command.args(only);
    }
    command
        .env("POINTS_ROLE", role)
        .env("PUNCTUAL_POINTS_DIR", directory)
        .stdout(Stdio::null())
        .stdin(Stdio::null());
    command.envs(settings.iter().map(|(name, value)| (name, value.as_str())));
    command
}

/// A program that ends with its test.
pub struct Running(pub Child);

impl Running {
    pub fn start(mut command: Command) -> Running {
        Running(command.spawn().expect("this test"))
    }
    pub fn end(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The events of a collector, by source.
#[derive(Default)]
pub struct Kept {
    pub events: Vec<Vec<Event>>,
}

impl Kept {
    pub fn take(&mut self, source: usize, events: &[Event]) {
        self.events.resize_with(self.events.len().max(source + 1), Vec::new);
        self.events[source].extend_from_slice(events);
    }
    /// The values of points of this name, by source.
    pub fn values(&self, collected: &Collected, name: &str) -> Vec<Vec<[i64; 2]>> {
        let is = |point: usize| collected.names.get(point).is_some_and(|known| known == name);
        let value = |event: &Event| match event.what {
            EventKind::Point { point, values, .. } if is(point.0 as usize) => Some(values),
            _ => None,
        };
        self.events.iter().map(|events| events.iter().filter_map(value).collect()).collect()
    }
}

/// Collects until the programs end, every `pause`.
pub fn collect(
    mut collector: Collector,
    programs: &mut [Running],
    pause: Duration,
) -> (Collected, Kept) {
    let mut kept = Kept::default();
    while !programs.iter_mut().all(|program| program.0.try_wait().expect("a child").is_some()) {
        collector.poll_points(&mut |source, events| kept.take(source, events));
        std::thread::sleep(pause);
    }
    for program in programs {
        assert!(program.0.wait().expect("a child").success());
    }
    let collected = collector.finish(&mut |source, events| kept.take(source, events));
    (collected, kept)
}

/// The points of dead programs, read and removed.
pub fn harvest(directory: &Path) -> (Collected, Kept) {
    let mut kept = Kept::default();
    let collector = Collector::start(Options::for_harvest().remove(true).in_directory(directory))
        .expect("a private directory");
    let collected = collector.finish(&mut |source, events| kept.take(source, events));
    (collected, kept)
}

/// All points that a source accounts for.
pub fn passed(source: &PointSource) -> u64 {
    source.recorded + source.dropped + source.overwritten + source.torn
}

pub fn files(directory: &Path) -> usize {
    let points =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".points");
    std::fs::read_dir(directory).expect("a directory").flatten().filter(points).count()
}

/// A private directory.
pub fn private() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir()
        .expect("a directory")
}
