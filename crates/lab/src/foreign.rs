//! Programs for a guest of another architecture: the same programs, from Debian's packages for it.

use crate::apt::Suite;
use crate::cache::PackageCache;
use crate::libraries::Libraries;
use crate::{Arch, GuestFile, LabError, tools};
use std::path::{Path, PathBuf};

/// The suite of the packages, one for every kernel: kernels are compared under the same load.
const SUITE: &str = "trixie";
/// The directories of programs in packages.
const PLACES: [&str; 4] = ["usr/bin", "bin", "usr/sbin", "sbin"];

/// The counterpart of this machine's program at this path for `arch`: the program at the same path,
/// and its libraries in the search path of the guest's dynamic linker. `None` if this machine's
/// dpkg knows no package for it.
///
/// # Errors
/// [`LabError::Missing`] if the package or the program in it is unavailable for `arch`.
pub(crate) fn find_counterpart(
    path: &Path,
    arch: Arch,
) -> Result<Option<Vec<GuestFile>>, LabError> {
    let real = path.canonicalize().map_err(LabError::io("find", path))?;
    let Some(package) = owning_package(path).or_else(|| owning_package(&real)) else {
        return Ok(None);
    };
    let cache = PackageCache::open()?;
    let suite = Suite::open(&cache, SUITE, arch)?;
    let tree = suite.unpacked_with_dependencies(&[&package])?;
    // The resolved name: /bin/sh is dash's, and awk an alternative of this system.
    let name = real.file_name().unwrap_or_default();
    let program =
        PLACES.iter().map(|place| tree.join(place).join(name)).find(|path| path.is_file());
    let program = program.ok_or_else(|| {
        let what = format!(
            "{} in Debian's package {package} for {}",
            name.to_string_lossy(),
            arch.debian_name()
        );
        LabError::missing(
            what,
            format!("a load whose program Debian's {SUITE} has for that architecture"),
        )
    })?;
    let mut files = vec![GuestFile::from_host_file(&program, path.to_string_lossy())?];
    for library in Libraries::of_tree(&tree, arch).library_closure(&program)? {
        // The dynamic linker is found by its path in the guest, a library by its path here.
        files.push(match library.strip_prefix(&tree) {
            Ok(inside) => {
                GuestFile::from_host_file(&library, Path::new("/").join(inside).to_string_lossy())?
            }
            Err(_) => {
                GuestFile::from_host_file(tree.join(arch.loader_path()), library.to_string_lossy())?
            }
        });
    }
    Ok(Some(files))
}

/// The package of a file of this machine. Packages may list it with or without /usr.
fn owning_package(path: &Path) -> Option<String> {
    let query = tools::find_program("dpkg-query", "dpkg").ok()?;
    let other_path = match path.strip_prefix("/usr") {
        Ok(below) => Path::new("/").join(below),
        Err(_) => Path::new("/usr").join(path.strip_prefix("/").ok()?),
    };
    let query_owner =
        |path: &PathBuf| tools::run_program(&query, [Path::new("-S"), path], Path::new("/")).ok();
    [path.to_owned(), other_path]
        .iter()
        .filter_map(query_owner)
        .find_map(|output| of_answer(&output))
}

/// Parses lines `package: path` and `package:arch, other: path`, with possible lines about
/// diversions in between (dpkg-query(1)).
fn of_answer(output: &str) -> Option<String> {
    let line = output.lines().find(|line| !line.starts_with("diversion by "))?;
    let (packages, _) = line.split_once(": ")?;
    let first = packages.split(',').next()?;
    Some(first.split(':').next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_file_is_parsed_from_dpkg_output() {
        let diverted = "diversion by dash from: /bin/sh\ndiversion by dash to: \
                        /bin/sh.distrib\ndash: /bin/sh\n";
        assert_eq!(of_answer(diverted).as_deref(), Some("dash"));
        assert_eq!(of_answer("libc6:amd64, libc6:i386: /usr/lib/x\n").as_deref(), Some("libc6"));
        assert_eq!(of_answer(""), None);
    }
}
