//! The compiler of a kernel, if this machine's release has another one: taken from the kernel's own
//! suite, with its libraries, and run in a mount namespace that overlays them on this machine's
//! /usr. Nothing is installed, and nothing is left behind.

use crate::apt::Suite;
use crate::{LabError, tools};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// $1: the overlaid directories, the highest first; then the command. The mount ends with the
/// namespace. Running processes keep their libraries.
const SCRIPT: &str = r#"mount -t overlay overlay -o "lowerdir=$1" /usr || exit
shift
exec "$@""#;

/// The compiler named in `.kernelvariables` of a kernel's headers: `gcc-14`.
pub(crate) fn compiler_name(headers: &Path) -> Option<String> {
    let text = fs::read_to_string(headers.join(".kernelvariables")).ok()?;
    let line = text.lines().find(|line| line.starts_with("CC = "))?;
    let start = line.rfind("gcc-")?;
    let version: String =
        line[start + 4..].chars().take_while(|digit| digit.is_ascii_digit()).collect();
    (!version.is_empty()).then(|| format!("gcc-{version}"))
}

/// Programs of a suite, overlaid on this machine's.
pub(crate) struct Toolchain {
    unshare: PathBuf,
    directories: OsString,
}

impl Toolchain {
    /// Creates a toolchain of these packages and their dependencies, fetched if not in the cache.
    ///
    /// # Errors
    /// Those of [`Suite`], or a mount prerequisite is missing.
    pub(crate) fn from_packages(suite: &Suite, packages: &[&str]) -> Result<Toolchain, LabError> {
        let mut directories = OsString::new();
        for package in packages {
            let tree = suite.unpacked_with_dependencies(&[package])?;
            directories.push(tree.join("usr"));
            directories.push(":");
        }
        directories.push("/usr");
        Ok(Toolchain { unshare: tools::find_program("unshare", "util-linux")?, directories })
    }

    /// Runs a program of it. `Err` has its output after a failure.
    pub(crate) fn run_tool(
        &self,
        program: &str,
        arguments: &[OsString],
        directory: &Path,
    ) -> Result<String, String> {
        let mut words: Vec<OsString> = vec!["--mount".into()];
        // Without root the mounts are in a user namespace.
        if !rustix::process::geteuid().is_root() {
            words.push("--map-root-user".into());
        }
        words.extend(["sh", "-c", SCRIPT, "sh"].map(From::from));
        words.push(self.directories.clone());
        words.push(program.into());
        words.extend_from_slice(arguments);
        tools::run_program(&self.unshare, words, directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_name_their_compiler() {
        let headers = tempfile::tempdir().unwrap();
        let file = headers.path().join(".kernelvariables");
        let first = "override ARCH = x86\nCC = $(if $(X),$(CCACHE)) $(CROSS_COMPILE)gcc-14\n";
        for (text, compiler_) in [(first, Some("gcc-14")), ("CC = clang\n", None), ("", None)] {
            fs::write(&file, text).unwrap();
            assert_eq!(compiler_name(headers.path()).as_deref(), compiler_, "{text}");
        }
    }
}
