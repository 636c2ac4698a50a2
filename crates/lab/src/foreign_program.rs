//! Programs for guests from Debian packages that this machine lacks.

use crate::apt::Suite;
use crate::cache::PackageCache;
use crate::{Arch, GuestFile, LabError};
use std::path::PathBuf;

/// A program of a Debian package (of the release with the 6.12 kernels), with the libraries that it
/// was built for: the files for a guest, and the command that starts it there. Its paths do not
/// collide with this machine's programs and libraries.
pub fn debian_program(package: &str, program: &str) -> Result<(Vec<GuestFile>, String), LabError> {
    let (cache, arch) = (PackageCache::open()?, Arch::Amd64);
    let suite = Suite::open(&cache, "trixie", arch)?;
    let tree = suite.unpacked_with_dependencies(&[package])?;
    let place = format!("/opt/{package}");
    let loader =
        GuestFile::from_host_file(tree.join(arch.loader_path()), format!("{place}/ld.so"))?;
    let mut files =
        vec![loader, GuestFile::from_host_file(tree.join(program), format!("{place}/{package}"))?];
    let libraries = tree.join("usr/lib").join(arch.multiarch_dir());
    let listed = std::fs::read_dir(&libraries).map_err(LabError::io("list", &libraries))?;
    for path in listed.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(".so") {
            files.push(GuestFile::from_host_file(path, format!("{place}/lib/{name}"))?);
        }
    }
    Ok((files, format!("{place}/ld.so --library-path {place}/lib {place}/{package}")))
}

/// The directory into which Debian packages of the release with the 6.1 kernels are unpacked, with
/// all their dependencies.
///
/// # Errors
/// [`LabError::Missing`] if apt or the mirror is unavailable.
pub fn debian_tree(arch: Arch, packages: &[&str]) -> Result<PathBuf, LabError> {
    let cache = PackageCache::open()?;
    Suite::open(&cache, "bookworm", arch)?.unpacked_with_dependencies(packages)
}
