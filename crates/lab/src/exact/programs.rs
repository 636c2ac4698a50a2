//! The programs and libraries of a guest, from the archives of its run.

use crate::artefacts::Artefacts;
use punctual_core::MadeOf;
use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The maximum size of a guest's archive.
const BYTES_MAX: u64 = 1 << 30;
const ELF: &[u8] = b"\x7fELF";

/// An ELF file of a guest.
pub struct GuestProgram {
    pub path: String,
    pub bytes: Vec<u8>,
}

/// The programs of the run; none if its archives are no longer stored here.
pub fn list_programs(made_of: &MadeOf) -> Vec<GuestProgram> {
    let Ok(store) = Artefacts::open() else { return Vec::new() };
    let archives = [Some(&made_of.initramfs), made_of.job.as_ref()].into_iter().flatten();
    let paths = archives.filter_map(|name| store.find_by_digest(name).ok().flatten());
    let mut found = Vec::new();
    paths.for_each(|path| read(&path, &mut found));
    found
}

/// Reads an archive up to the first unreadable part.
fn read(path: &Path, found: &mut Vec<GuestProgram>) {
    let Ok(file) = fs::File::open(path) else { return };
    let mut rest = BufReader::new(file);
    let mut left = BYTES_MAX;
    while let Ok(mut reader) = cpio::newc::Reader::new(rest) {
        let name = reader.entry().name().to_owned();
        let size = u64::from(reader.entry().file_size());
        if reader.entry().is_trailer() || size > left {
            return;
        }
        // Modules belong to the kernel, and their functions are among its symbols.
        if !name.ends_with(".ko") && size > ELF.len() as u64 {
            let mut bytes = vec![0; ELF.len()];
            let is_elf = reader.read_exact(&mut bytes).is_ok() && bytes == ELF;
            if is_elf && io::copy(&mut reader, &mut bytes).is_ok() {
                left -= size;
                found.push(GuestProgram { path: name, bytes });
            }
        }
        match reader.finish() {
            Ok(next) => rest = next,
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elf_files_of_an_archive_are_its_programs() {
        let files = [
            ("bin/load", &b"\x7fELFload"[..]),
            ("bin/script", b"#!/bin/sh"),
            ("punctual/modules/a.ko", b"\x7fELFmodule"),
            ("lib/short", b"\x7fE"),
            ("lib/libc.so.6", b"\x7fELFlibc"),
        ];
        let entries = files.map(|(name, bytes)| {
            (cpio::NewcBuilder::new(name).mode(0o100_755), io::Cursor::new(bytes))
        });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("archive");
        cpio::write_cpio(entries.into_iter(), fs::File::create(&path).unwrap()).unwrap();
        let mut found = Vec::new();
        read(&path, &mut found);
        let shown: Vec<(&str, &[u8])> =
            found.iter().map(|one| (one.path.as_str(), &one.bytes[..])).collect();
        assert_eq!(shown, [files[0], files[4]]);
    }
}
