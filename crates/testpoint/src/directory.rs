//! The directory of point files, accessible only to their owner.

use crate::layout::{Control, SUFFIX};
use crate::sys::{Fd, Text, environment_variable, open_at, read_file, stat_of};
use std::ffi::CStr;
use std::mem::offset_of;

/// Why a process records nothing. [`crate::status`] formats it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum RecordRefusal {
    NotStarted = 1,
    SwitchedOff = 2,
    NoDirectory = 3,
    NotPrivate = 4,
    NoFile = 5,
    NoSpace = 6,
    PageSize = 7,
    BadSetting = 8,
}

/// Opens the directory of this user's points, created if needed, and writes its path to `path`.
///
/// `$PUNCTUAL_POINTS_DIR`, else /run/punctual/points for root, else
/// `$XDG_RUNTIME_DIR/punctual/points`, else /run/user/UID/punctual/points.
pub fn open_directory(path: &mut Text) -> Result<Fd, RecordRefusal> {
    // SAFETY: no arguments.
    let uid = unsafe { libc::geteuid() };
    if let Some(chosen) =
        environment_variable(c"PUNCTUAL_POINTS_DIR").filter(|value| !value.is_empty())
    {
        path.push(chosen);
        return enter_directory(
            libc::AT_FDCWD,
            path.as_str().ok_or(RecordRefusal::NoDirectory)?,
            uid,
            0o077,
        );
    }
    match environment_variable(c"XDG_RUNTIME_DIR") {
        _ if uid == 0 => path.push(b"/run"),
        Some(directory) if directory.starts_with(b"/") => path.push(directory),
        _ => path.push(b"/run/user/").push_number(u64::from(uid)),
    };
    let base = open_at(
        libc::AT_FDCWD,
        path.as_str().ok_or(RecordRefusal::NoDirectory)?,
        libc::O_PATH | libc::O_DIRECTORY,
    );
    path.push(b"/punctual/points");
    let base = base.ok_or(RecordRefusal::NoDirectory)?;
    enter_directory(enter_directory(base.0, c"punctual", uid, 0o022)?.0, c"points", uid, 0o077)
}

/// Opens a directory that belongs to the user and grants others none of the permissions in
/// `forbidden`. Follows no symbolic link.
fn enter_directory(
    parent: i32,
    name: &CStr,
    uid: u32,
    forbidden: u32,
) -> Result<Fd, RecordRefusal> {
    // SAFETY: a path that ends with 0. An existing directory is fine as well.
    unsafe { libc::mkdirat(parent, name.as_ptr(), 0o700) };
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = open_at(parent, name, flags).ok_or(RecordRefusal::NoDirectory)?;
    let stat = stat_of(&directory).ok_or(RecordRefusal::NoDirectory)?;
    if stat.st_uid != uid || stat.st_mode & forbidden != 0 {
        Err(RecordRefusal::NotPrivate)
    } else {
        Ok(directory)
    }
}

/// Whether a collector records in this directory: it holds a lock, which ends with it.
pub fn has_collector(directory: &Fd) -> bool {
    let file =
        open_at(directory.0, c".collector", libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK);
    file.is_some_and(|file| {
        // SAFETY: no pointers. A lock that was free is released when the file closes.
        let locked = unsafe { libc::flock(file.0, libc::LOCK_SH | libc::LOCK_NB) };
        locked != 0 && crate::sys::errno() == libc::EWOULDBLOCK
    })
}

/// The start time of this process, from field 22 of /proc/PID/stat; `None` if there is no such
/// process, or no /proc.
pub fn start_time(pid: u32) -> Option<u64> {
    let mut path = Text::new();
    path.push(b"/proc/").push_number(u64::from(pid)).push(b"/stat");
    let mut buffer = [0; 1_024];
    let stat = read_file(path.as_str()?, &mut buffer)?;
    // The name, field 2, is in parentheses and may hold anything; field 3 follows the last of them.
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    parse_number(stat[name_end + 1..].split(|&byte| byte == b' ').nth(20)?)
}

fn parse_number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// PID and start time in a file's name.
fn parse_owner(name: &[u8]) -> Option<(u32, u64)> {
    let mut parts = name.strip_suffix(SUFFIX.as_bytes())?.split(|&byte| byte == b'.');
    Some((parse_number(parts.next()?)?.try_into().ok()?, parse_number(parts.next()?)?))
}

/// Files of ended processes that are kept for readers.
const KEPT_FILES: usize = 16;
/// Files that one sweep examines.
const LOOKED_AT: usize = 64;

/// Removes files of dead processes: those without any point, and the oldest of more than
/// [`KEPT_FILES`] with points. Without this, a program that forks and executes all day would fill
/// /run.
/// `namespace` protects processes that only seem dead in this one's PID namespace.
pub fn remove_dead_files(directory: &Fd, namespace: u64) {
    let mut entries = [0_u64; 512];
    let mut looked_at = 0;
    let mut kept = 0;
    let mut oldest: Option<(i64, Text)> = None;
    // SAFETY: no pointers. A second pass begins where the first did.
    unsafe { libc::lseek(directory.0, 0, libc::SEEK_SET) };
    loop {
        let size = size_of_val(&entries);
        // SAFETY: the kernel writes at most `size` bytes.
        let filled =
            unsafe { libc::syscall(libc::SYS_getdents64, directory.0, entries.as_mut_ptr(), size) };
        let Ok(filled @ 1..) = usize::try_from(filled) else { break };
        // SAFETY: this many bytes were written.
        let mut rest =
            unsafe { std::slice::from_raw_parts(entries.as_ptr().cast::<u8>(), filled.min(size)) };
        while let Some((name, more)) = next_entry(rest) {
            rest = more;
            let Some((pid, start)) = parse_owner(name) else { continue };
            looked_at += 1;
            if looked_at > LOOKED_AT {
                break;
            }
            let mut text = Text::new();
            let Some(path) = text.push(name).as_str() else { continue };
            if start == 0 || start_time(pid) == Some(start) {
                continue;
            }
            match left_by_the_dead(directory, path, namespace) {
                LeftBehind::Foreign => {}
                LeftBehind::Nothing => remove(directory, path),
                LeftBehind::Points(since) => {
                    kept += 1;
                    if oldest.as_ref().is_none_or(|(before, _)| since < *before) {
                        oldest = Some((since, text));
                    }
                }
            }
        }
        if looked_at > LOOKED_AT {
            break;
        }
    }
    if let Some((_, name)) = oldest.filter(|_| kept > KEPT_FILES) {
        name.as_str().into_iter().for_each(|name| remove(directory, name));
    }
}

enum LeftBehind {
    /// Of another PID namespace: cannot be judged.
    Foreign,
    Nothing,
    /// Points, with the time of the file's last change.
    Points(i64),
}

fn left_by_the_dead(directory: &Fd, name: &CStr, namespace: u64) -> LeftBehind {
    let mut head = [0_u8; size_of::<Control>()];
    let Some(file) =
        open_at(directory.0, name, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK)
    else {
        return LeftBehind::Foreign;
    };
    let Some(stat) = stat_of(&file) else { return LeftBehind::Foreign };
    // SAFETY: `head` has room for this many bytes.
    if unsafe { libc::pread(file.0, head.as_mut_ptr().cast(), head.len(), 0) }
        != head.len() as isize
    {
        return LeftBehind::Foreign;
    }
    let eight = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
    let four = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    if eight(offset_of!(Control, namespace)) != namespace {
        LeftBehind::Foreign
    } else if four(offset_of!(Control, rings_used)) == 0 {
        LeftBehind::Nothing
    } else {
        // 32 bits on some systems.
        LeftBehind::Points(stat.st_mtime as _)
    }
}

fn remove(directory: &Fd, name: &CStr) {
    // SAFETY: a path that ends with 0. If it fails, another process was faster.
    unsafe { libc::unlinkat(directory.0, name.as_ptr(), 0) };
}

/// The name in the first of these entries (struct linux_dirent64, getdents(2)), and the rest.
fn next_entry(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    const NAME_AT: usize = 19;
    let length = usize::from(u16::from_ne_bytes(entries.get(16..18)?.try_into().ok()?));
    let name = CStr::from_bytes_until_nul(entries.get(NAME_AT..length)?).ok()?;
    Some((name.to_bytes(), entries.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_distinguished_from_its_successor() {
        assert!(start_time(std::process::id()).is_some_and(|start| start > 0));
        assert_eq!(start_time(u32::MAX), None);
        assert_eq!(parse_owner(b"12.345.0.points"), Some((12, 345)));
        for name in
            [&b"12.345.0"[..], b".points", b"12.points", b"x.1.points", b"99999999999.1.0.points"]
        {
            assert_eq!(parse_owner(name), None, "{name:?}");
        }
    }
}
