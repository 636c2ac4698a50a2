//! The shared libraries that a program needs, found as the dynamic linker would (ld.so(8)).
//!
//! Libraries that a program opens by name at run time (dlopen: locales, name services, plugins) are
//! not in its file and not found; sharing the host's file system with the guest serves such
//! programs.

use crate::{Arch, LabError};
use elf::ElfBytes;
use elf::abi::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, PT_INTERP, PT_LOAD};
use elf::endian::AnyEndian;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The linker's default directories on Debian's multiarch layout and elsewhere, after those of
/// /etc/ld.so.conf.
const DEFAULT_DIRS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// The maximum depth of `include` lines in ld.so.conf.
const INCLUDE_DEPTH_MAX: u8 = 4;

/// The dependencies of one ELF file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Linkage {
    /// `e_machine`.
    pub machine: u16,
    /// The dynamic linker's path; none in a static program or a library.
    pub interpreter: Option<String>,
    needed: Vec<String>,
    search: Vec<String>,
}

impl Linkage {
    /// Reads the linkage of an ELF file; `None` for other files (a script).
    pub fn read(path: &Path) -> Result<Option<Linkage>, LabError> {
        let data = fs::read(path).map_err(LabError::io("read", path))?;
        if !data.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        Linkage::parse(&data)
            .map(Some)
            .map_err(|why| LabError::malformed(path, format!("a broken ELF file: {why}")))
    }

    fn parse(data: &[u8]) -> Result<Linkage, String> {
        let text = |error: elf::ParseError| error.to_string();
        let file = ElfBytes::<AnyEndian>::minimal_parse(data).map_err(text)?;
        let mut linkage = Linkage { machine: file.ehdr.e_machine, ..Linkage::default() };
        let segments: Vec<_> = file.segments().into_iter().flatten().collect();
        if let Some(interpreter) = segments.iter().find(|segment| segment.p_type == PT_INTERP) {
            let bytes = file.segment_data(interpreter).map_err(text)?;
            linkage.interpreter =
                Some(String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned());
        }
        let entries: Vec<_> = file.dynamic().map_err(text)?.into_iter().flatten().collect();
        let value =
            |tag| entries.iter().find(|entry| entry.d_tag == tag).map(|entry| entry.d_val());
        let (Some(address), Some(size)) = (value(DT_STRTAB), value(DT_STRSZ)) else {
            return Ok(linkage);
        };
        // DT_STRTAB is a virtual address; the loaded segment around it gives the place in the file.
        let holds = |s: &&elf::segment::ProgramHeader| {
            s.p_type == PT_LOAD
                && address.checked_sub(s.p_vaddr).is_some_and(|offset| offset < s.p_filesz)
        };
        let segment =
            segments.iter().find(holds).ok_or("the dynamic strings are outside of all segments")?;
        let start = segment.p_offset.checked_add(address - segment.p_vaddr);
        let range = start.and_then(|start| {
            Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(size)?).ok()?)
        });
        let strings = range
            .and_then(|range| data.get(range))
            .ok_or("the dynamic strings are outside of the file")?;
        let string = |offset: u64| -> Result<String, String> {
            let tail = usize::try_from(offset).ok().and_then(|offset| strings.get(offset..));
            let tail = tail.ok_or("a dynamic string outside of the table")?;
            let end = tail.iter().position(|byte| *byte == 0).unwrap_or(tail.len());
            Ok(String::from_utf8_lossy(&tail[..end]).into_owned())
        };
        for entry in &entries {
            match entry.d_tag {
                DT_NEEDED => linkage.needed.push(string(entry.d_val())?),
                DT_RUNPATH | DT_RPATH => {
                    linkage.search.extend(string(entry.d_val())?.split(':').map(str::to_owned))
                }
                _ => {}
            }
        }
        Ok(linkage)
    }
}

/// Finds libraries on this machine.
pub struct Libraries {
    dirs: Vec<PathBuf>,
}

impl Libraries {
    /// The directories of this machine's /etc/ld.so.conf and the linker's own.
    pub(crate) fn of_the_system() -> Libraries {
        let mut dirs = Vec::new();
        conf_dirs(Path::new("/etc/ld.so.conf"), INCLUDE_DEPTH_MAX, &mut dirs);
        dirs.extend(DEFAULT_DIRS.iter().map(PathBuf::from));
        Libraries { dirs }
    }

    /// The directories of the system after those of `LD_LIBRARY_PATH`: as for a program that is
    /// started from here.
    pub fn of_the_environment() -> Libraries {
        let own_dirs = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> =
            std::env::split_paths(&own_dirs).filter(|dir| dir.is_absolute()).collect();
        dirs.extend(Libraries::of_the_system().dirs);
        Libraries { dirs }
    }

    /// The libraries of packages unpacked into a tree.
    pub(crate) fn of_tree(tree: &Path, arch: Arch) -> Libraries {
        let library = tree.join("usr/lib");
        Libraries { dirs: vec![library.join(arch.multiarch_dir()), library] }
    }

    /// All libraries of a program, transitively: the path of each in the guest (the same as here),
    /// and none for a static program or a script.
    ///
    /// # Errors
    /// A library is not found; the error has its user and the searched directories.
    pub fn library_closure(&self, program: &Path) -> Result<Vec<PathBuf>, LabError> {
        let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut pending = vec![program.to_owned()];
        while let Some(object) = pending.pop() {
            let Some(linkage) = Linkage::read(&object)? else { continue };
            if let Some(interpreter) = &linkage.interpreter {
                found.insert(interpreter.clone(), PathBuf::from(interpreter));
            }
            for name in &linkage.needed {
                if !found.contains_key(name) {
                    let library = self.find_library(name, &linkage, &object)?;
                    found.insert(name.clone(), library.clone());
                    pending.push(library);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    fn find_library(
        &self,
        name: &str,
        linkage: &Linkage,
        object: &Path,
    ) -> Result<PathBuf, LabError> {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let origin = object.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        let own_search_dirs = linkage.search.iter().map(|dir| {
            PathBuf::from(dir.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
        });
        let fits = |path: &PathBuf| {
            path.is_file()
                && Linkage::read(path)
                    .is_ok_and(|library| library.is_some_and(|l| l.machine == linkage.machine))
        };
        own_search_dirs
            .chain(self.dirs.iter().cloned())
            .map(|dir| dir.join(name))
            .find(fits)
            .ok_or_else(|| {
                LabError::malformed(
                    object,
                    format!("its library {name} is in none of the directories that ld.so searches"),
                )
            })
    }
}

/// Adds the directories of an ld.so.conf (ldconfig(8)), following its `include` lines; an
/// unreadable file adds none.
fn conf_dirs(conf: &Path, depth: u8, dirs: &mut Vec<PathBuf>) {
    let text = fs::read_to_string(conf).unwrap_or_default();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth > 0 => expand_include(conf, pattern.trim())
                .iter()
                .for_each(|file| conf_dirs(file, depth - 1, dirs)),
            None if line.starts_with('/') => dirs.push(PathBuf::from(line)),
            _ => {}
        }
    }
}

/// The files of an include pattern; only the last part of the path may have a `*`, as in
/// `ld.so.conf.d/*.conf`.
fn expand_include(conf: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = conf.parent().unwrap_or(Path::new("/")).join(pattern);
    let name = pattern.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((prefix, suffix)) = name.split_once('*') else { return vec![pattern] };
    let entries = pattern
        .parent()
        .and_then(|dir| dir.read_dir().ok())
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let matching = |name: &str| {
        name.len() >= prefix.len() + suffix.len()
            && name.starts_with(prefix)
            && name.ends_with(suffix)
    };
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| matching(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_a_program_include_libc_and_the_dynamic_linker() {
        let libraries =
            Libraries::of_the_system().library_closure(&std::env::current_exe().unwrap()).unwrap();
        let has = |part: &str| libraries.iter().any(|path| path.to_string_lossy().contains(part));
        assert!(has("libc.so.6") && has("/ld-linux"), "{libraries:?}");
        assert!(libraries.iter().all(|path| path.is_absolute() && path.exists()));
    }

    #[test]
    fn a_script_has_no_libraries_and_a_truncated_program_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert_eq!(
            Libraries::of_the_system().library_closure(&path).unwrap(),
            Vec::<PathBuf>::new()
        );
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        fs::write(&path, &own[..300]).unwrap();
        assert!(matches!(
            Libraries::of_the_system().library_closure(&path),
            Err(LabError::Malformed { .. })
        ));
    }

    #[test]
    fn directories_are_read_from_ld_so_conf_and_its_includes() {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("ld.so.conf");
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(&conf, "# none\n/opt/a\ninclude d/*.conf\ninclude ld.so.conf\n").unwrap();
        fs::write(dir.path().join("d/x.conf"), "/opt/b # here\nrelative\n").unwrap();
        fs::write(dir.path().join("d/y.txt"), "/opt/c\n").unwrap();
        let mut dirs = Vec::new();
        conf_dirs(&conf, 1, &mut dirs);
        dirs.dedup();
        assert_eq!(dirs[..2], [PathBuf::from("/opt/a"), PathBuf::from("/opt/b")]);
        assert!(!dirs.contains(&PathBuf::from("/opt/c")));
    }

    proptest::proptest! {
        #[test]
        fn no_file_panics(place in 0usize..4096, value: u8) {
            let mut own = fs::read("/proc/self/exe").unwrap();
            own[place] = value;
            let _ = Linkage::parse(&own);
        }
    }
}
