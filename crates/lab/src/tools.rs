//! Finds and runs the programs of this machine that the lab needs.

use crate::LabError;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The directories searched after PATH: a service's PATH often lacks the system directories.
const SYSTEM_DIRS: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/// Finds a program; the error names its Debian package.
pub fn find_program(program: &str, package: &str) -> Result<PathBuf, LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(SYSTEM_DIRS.iter().map(PathBuf::from));
    let mut candidates = dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join(program));
    candidates.find(|candidate| is_executable(candidate)).ok_or_else(|| {
        LabError::missing(format!("the program {program}"), format!("apt-get install {package}"))
    })
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Runs a program to its end, in the C locale and without input. `Err`: its output after a failure.
pub fn run_program<I, S>(program: &Path, args: I, dir: &Path) -> Result<String, String>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).env("LC_ALL", "C").stdin(Stdio::null());
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match command.output() {
        Ok(Output { status, stdout, .. }) if status.success() => {
            Ok(String::from_utf8_lossy(&stdout).into_owned())
        }
        Ok(Output { status, stderr, .. }) => {
            Err(format!("{name}: {status}: {}", last_lines(&stderr)))
        }
        Err(why) => Err(format!("{name}: {why}")),
    }
}

/// Three lines of a program's output, joined into one: a compiler's errors, or else the last lines.
fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.iter().any(|line| line.contains(": error: ")) {
        lines.retain(|line| line.contains(": error: "));
    }
    lines[lines.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let Err(LabError::Missing(missing)) = find_program("no-such-program", "some-package")
        else {
            panic!()
        };
        assert_eq!(
            missing.to_string(),
            "the program no-such-program (to fix: apt-get install some-package)"
        );
    }

    #[test]
    fn a_failed_program_is_reported_with_the_end_of_its_stderr() {
        let sh = find_program("sh", "dash").unwrap();
        let output = run_program(
            &sh,
            ["-c", "for i in 1 2 3 4; do echo $i >&2; done; exit 3"],
            Path::new("/"),
        )
        .unwrap_err();
        assert_eq!(output, "sh: exit status: 3: 2; 3; 4");
        assert_eq!(run_program(&sh, ["-c", "echo $LC_ALL"], Path::new("/")).unwrap(), "C\n");
    }
}
