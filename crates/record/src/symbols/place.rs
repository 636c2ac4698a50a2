//! Resolves addresses in a process to its functions.

use super::perf_map::PerfMap;
use super::{ElfObject, Function, lines, object};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The beginning of the name that a program gave to memory of no file (PR_SET_VMA_ANON_NAME).
const ANONYMOUS: &str = "[anon";

/// The mapped code of a process.
#[derive(Clone, Default, Debug)]
pub struct Mappings {
    all: Vec<ProcessMapping>,
}

/// Code that is mapped.
#[derive(Clone, Debug)]
pub(crate) struct ProcessMapping {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The offset in the file.
    pub(crate) offset: u64,
    /// Empty for code outside of any file.
    file: Arc<Path>,
    identity: FileIdentity,
}

/// The identity of the mapped file: its path may now belong to another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FileIdentity {
    /// The stat(2) data of the mapped file itself.
    Known(Stat),
    /// It no longer has a path.
    Deleted,
    /// It is inaccessible: only its path is known.
    Unknown,
}

/// The properties of a file that distinguish it from later versions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stat {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stat {
    fn from_metadata(found: &Metadata) -> Stat {
        Stat {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

impl FileIdentity {
    fn is_at(self, path: &Path) -> bool {
        match self {
            FileIdentity::Known(stat) => {
                std::fs::metadata(path).is_ok_and(|found| Stat::from_metadata(&found) == stat)
            }
            FileIdentity::Deleted => false,
            FileIdentity::Unknown => true,
        }
    }
}

/// An address in a process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SymbolPlace {
    /// The file, `[vdso]`, or empty for code outside of any file.
    pub file: Arc<Path>,
    pub offset: u64,
    identity: FileIdentity,
    range: (u64, u64),
}

impl SymbolPlace {
    /// Whether it is in a shared library, or in the kernel's.
    pub fn is_in_library(&self) -> bool {
        let file = self.file.to_string_lossy();
        (file.starts_with('[') && !file.starts_with(ANONYMOUS)) || file.contains(".so")
    }
}

impl Mappings {
    /// Reads the mappings of this thread's process (proc_pid_maps(5)); `None` if it has ended.
    pub fn read(tid: u32) -> Option<Mappings> {
        let text = std::fs::read_to_string(format!("/proc/{tid}/maps")).ok()?;
        let mut mappings = Mappings::parse(&text);
        for mapping in mappings.all.iter_mut().filter(|one| one.file.has_root()) {
            // The link leads to the mapped file itself, whichever file now has its path.
            if let Ok(found) = std::fs::metadata(mapped_file(tid, (mapping.begin, mapping.end))) {
                mapping.identity = FileIdentity::Known(Stat::from_metadata(&found));
            }
        }
        Some(mappings).filter(|mappings| !mappings.all.is_empty())
    }

    /// `7f0c8000-7f0ca000 r-xp 00001000 fe:01 131 /usr/lib/libm.so.6`.
    fn parse(text: &str) -> Mappings {
        let line = |line: &str| {
            let mut words = line.splitn(6, ' ');
            let (begin, end) = words.next()?.split_once('-')?;
            let hex = |text: &str| u64::from_str_radix(text, 16).ok();
            let (begin, end) = (hex(begin)?, hex(end)?);
            words.next().filter(|rights| rights.contains('x'))?;
            let offset = hex(words.next()?)?;
            let name = words.nth(2).unwrap_or_default().trim();
            let deleted = name.strip_suffix(" (deleted)");
            let identity = deleted.map_or(FileIdentity::Unknown, |_| FileIdentity::Deleted);
            let file = Path::new(deleted.unwrap_or(name)).into();
            Some(ProcessMapping { begin, end, offset, file, identity })
        };
        Mappings { all: text.lines().filter_map(line).collect() }
    }

    #[cfg(feature = "lines")]
    pub(crate) fn all_mappings(&self) -> &[ProcessMapping] {
        &self.all
    }

    pub fn place_of(&self, address: u64) -> Option<SymbolPlace> {
        let mapping = self.all.iter().find(|of| (of.begin..of.end).contains(&address))?;
        Some(SymbolPlace {
            file: mapping.file.clone(),
            offset: mapping.offset + (address - mapping.begin),
            identity: mapping.identity,
            range: (mapping.begin, mapping.end),
        })
    }
}

/// The path of a mapping in proc_pid_map_files(5).
fn mapped_file(tid: u32, (begin, end): (u64, u64)) -> PathBuf {
    PathBuf::from(format!("/proc/{tid}/map_files/{begin:x}-{end:x}"))
}

#[cfg(feature = "lines")]
impl ProcessMapping {
    /// Identifies the mapped file.
    pub(crate) fn file_key(&self) -> (Arc<Path>, FileIdentity) {
        (self.file.clone(), self.identity)
    }

    /// The content of the file, as this process sees it; the vDSO's from its memory.
    pub(crate) fn read(&self, pid: u32) -> Option<Vec<u8>> {
        if !self.file.has_root() {
            let mut bytes = vec![0; usize::try_from(self.end - self.begin).ok()?];
            let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
            std::os::unix::fs::FileExt::read_exact_at(&memory, &mut bytes, self.begin).ok()?;
            return Some(bytes);
        }
        let mut file_paths =
            files_of(&self.file, self.identity, (self.begin, self.end), pid).into_iter();
        file_paths.find_map(|path| object::read(&path).ok())
    }
}

/// A function of a stack.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceFrame {
    /// Demangled, without parameters.
    pub function: String,
    /// The source file, and the line in it; `None` where the debug information has none.
    pub line: Option<(String, u32)>,
}

/// The functions of the queried files.
#[derive(Default)]
pub struct FunctionNames {
    /// `None`: the path now belongs to another file.
    files: BTreeMap<(PathBuf, FileIdentity), Option<Vec<Function>>>,
    /// The functions with lines of the places that were looked up.
    lines: BTreeMap<SymbolPlace, Vec<SourceFrame>>,
    /// Those that runtimes compiled, by a thread of the process.
    compiled: BTreeMap<u32, PerfMap>,
}

impl FunctionNames {
    /// Looks up the source lines of these places, each file's at once: its debug information may be
    /// large.
    pub fn find_lines(&mut self, places: impl IntoIterator<Item = SymbolPlace>, tid: u32) {
        let mut of_files: BTreeMap<_, BTreeSet<SymbolPlace>> = BTreeMap::new();
        for place in places.into_iter().filter(|place| !self.lines.contains_key(place)) {
            of_files.entry((place.file.clone(), place.identity)).or_default().insert(place);
        }
        for ((file, identity), places) in of_files {
            let Some(first) = places.first().filter(|place| place.file.has_root()) else {
                continue;
            };
            let file_paths = files_of(&file, identity, first.range, tid);
            let read = file_paths.iter().find_map(|path| Some((path, object::read(path).ok()?)));
            let Some((path, data)) = read else { continue };
            let offsets: Vec<u64> = places.iter().map(|place| place.offset).collect();
            let found = lines::frames_at(path, &data, &offsets).unwrap_or_default();
            for place in places {
                let frames = found.get(&place.offset).cloned().unwrap_or_default();
                self.lines.insert(place, frames);
            }
        }
    }

    /// The functions at a place: what is inlined there first, with lines where they were found.
    pub fn frames_at(&mut self, place: &SymbolPlace, tid: u32) -> Vec<SourceFrame> {
        match self.lines.get(place) {
            Some(frames) if !frames.is_empty() => frames.clone(),
            _ => vec![SourceFrame { function: self.function_name(place, tid), line: None }],
        }
    }

    /// The function at a place, without its parameters; the file and the offset if the file does
    /// not name it, or no longer exists. `tid`: a thread that sees the file, as it may have its own
    /// root.
    pub fn function_name(&mut self, place: &SymbolPlace, tid: u32) -> String {
        let file = place.file.to_string_lossy();
        if !file.starts_with('/') {
            // The kernel names mappings with a purpose in brackets; runtimes may name theirs.
            if file.is_empty() || file.starts_with(ANONYMOUS) {
                let address = place.range.0.wrapping_add(place.offset);
                let map = self.compiled.entry(tid).or_insert_with(|| PerfMap::read_of_thread(tid));
                return map.function_name(address).unwrap_or("code in no file").to_owned();
            }
            return file.into_owned();
        }
        let key = (place.file.to_path_buf(), place.identity);
        let functions = self.files.entry(key).or_insert_with(|| functions_of(place, tid));
        let (name, offset) = (place.file.file_name().unwrap_or_default(), place.offset);
        let name = name.to_string_lossy();
        match functions.as_deref().map(|functions| function_at(functions, offset)) {
            Some(Some(function)) => function.bare.clone(),
            Some(None) => format!("{name}+{offset:#x}"),
            None => format!("{name} (replaced)+{offset:#x}"),
        }
    }
}

/// The functions of the mapped file as the thread sees it: by its path or, if another file has
/// that, as long as the thread exists.
fn functions_of(place: &SymbolPlace, tid: u32) -> Option<Vec<Function>> {
    let file_paths = files_of(&place.file, place.identity, place.range, tid);
    file_paths.first()?;
    let read = file_paths.iter().find_map(|path| ElfObject::read(path).ok());
    Some(read.map(|object| object.functions).unwrap_or_default())
}

/// The paths at which this thread's process finds that very file.
fn files_of(file: &Path, identity: FileIdentity, range: (u64, u64), tid: u32) -> Vec<PathBuf> {
    let seen_by_it = PathBuf::from(format!("/proc/{tid}/root{}", file.display()));
    let by_path = [seen_by_it, file.to_path_buf()];
    let mut file_paths: Vec<PathBuf> =
        by_path.into_iter().filter(|path| identity.is_at(path)).collect();
    let mapped = mapped_file(tid, range);
    let is_mapped = matches!(identity, FileIdentity::Known(_)) && identity.is_at(&mapped);
    file_paths.extend(is_mapped.then_some(mapped));
    file_paths
}

/// The function that contains this offset. Functions are ordered by offset, the simplest of several
/// names first.
fn function_at(functions: &[Function], offset: u64) -> Option<&Function> {
    let after = functions.partition_point(|function| function.offset <= offset);
    let last = functions.get(after.checked_sub(1)?)?;
    let first = functions.partition_point(|function| function.offset < last.offset);
    let same = functions.get(first..after)?;
    same.iter().find(|one| offset < one.offset.saturating_add(one.size.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_address_is_that_of_the_file() {
        let text = "00400000-00401000 r--p 00000000 fe:01 131 /bin/a\n\
                    00401000-00402000 r-xp 00001000 fe:01 131 /bin/a\n\
                    00500000-00501000 r-xp 00000000 00:00 0 \n\
                    00600000-00601000 r-xp 00002000 fe:01 7          /bin/with space (deleted)\n\
                    broken\n";
        let mappings = Mappings::parse(text);
        let place = |address| {
            let place = mappings.place_of(address)?;
            Some((place.file.to_string_lossy().into_owned(), place.offset))
        };
        assert_eq!(place(0x40_1234), Some(("/bin/a".to_owned(), 0x1234)));
        assert_eq!(place(0x40_0234), None, "no code");
        assert_eq!(place(0x50_0010), Some((String::new(), 0x10)));
        assert_eq!(place(0x60_0001), Some(("/bin/with space".to_owned(), 0x2001)));
        assert_eq!(place(0x60_1000), None);
    }

    #[inline(never)]
    fn a_function_here(x: u64) -> u64 {
        std::hint::black_box(x) + 1
    }

    #[test]
    fn a_function_of_this_program_is_named() {
        assert_eq!(a_function_here(1), 2);
        let mappings = Mappings::read(std::process::id()).unwrap();
        let address = a_function_here as *const () as u64;
        let (place, mut names) =
            (mappings.place_of(address + 1).unwrap(), FunctionNames::default());
        let name = names.function_name(&place, std::process::id());
        assert!(name.ends_with("place::tests::a_function_here"), "{name}");
        let of = |file: &str, offset, identity| SymbolPlace {
            file: Path::new(file).into(),
            offset,
            identity,
            range: (0, 0),
        };
        let vdso = of("[vdso]", 7, FileIdentity::Unknown);
        assert_eq!(names.function_name(&vdso, 1), "[vdso]");
        let nowhere = of("/nowhere/lib.so", 0x17, FileIdentity::Unknown);
        assert_eq!(names.function_name(&nowhere, 1), "lib.so+0x17");
        assert!(vdso.is_in_library() && nowhere.is_in_library() && !place.is_in_library());
        let deleted = of("/proc/self/exe", 0x17, FileIdentity::Deleted);
        assert_eq!(names.function_name(&deleted, 1), "exe (replaced)+0x17");
    }

    /// A program that was reinstalled while it ran, as in upgrades.
    #[test]
    fn functions_of_a_replaced_program_are_not_named_from_the_new_file() {
        let own = Mappings::read(std::process::id()).unwrap();
        let offset = own.place_of(a_function_here as *const () as u64 + 1).unwrap().offset;
        let place = tempfile::tempdir().unwrap();
        let (program, other) = (place.path().join("program"), place.path().join("other"));
        std::fs::copy("/proc/self/exe", &program).unwrap();
        let length = std::fs::metadata(&program).unwrap().len();
        let file = std::fs::File::open(&program).unwrap();
        let (none, code) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_EXEC);
        // SAFETY: a new mapping, unknown to all other code, and never unmapped.
        let begin = unsafe {
            let (length, fd) = (length as usize, std::os::fd::AsRawFd::as_raw_fd(&file));
            libc::mmap(none, length, code, libc::MAP_PRIVATE, fd, 0)
        };
        assert_ne!(begin, libc::MAP_FAILED);
        let named = |tid: u32| {
            let mappings = Mappings::read(std::process::id()).unwrap();
            let of = mappings.place_of(begin as u64 + offset).unwrap();
            FunctionNames::default().function_name(&of, tid)
        };
        let here = std::process::id();
        assert!(named(here).ends_with("place::tests::a_function_here"), "{}", named(here));
        let before = Mappings::read(here).unwrap().place_of(begin as u64 + offset).unwrap();
        std::fs::copy("/bin/true", &other).unwrap();
        std::fs::rename(&other, &program).unwrap();
        assert!(
            !FunctionNames::default().function_name(&before, 1).contains("main"),
            "of another file"
        );
        // If the links may be followed, the file itself is read as long as the process exists.
        match std::fs::metadata(mapped_file(here, before.range)) {
            Ok(_) => assert!(named(here).ends_with("a_function_here"), "{}", named(here)),
            Err(why) => println!("SKIPPED: links to mapped files need CAP_SYS_ADMIN: {why}"),
        }
        let gone = FunctionNames::default().function_name(&before, u32::MAX);
        assert_eq!(gone, format!("program (replaced)+{offset:#x}"));
    }
}
