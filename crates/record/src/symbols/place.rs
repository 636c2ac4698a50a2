//! From addresses in a process to its functions.

use super::{Function, Object};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The code that a process has mapped.
#[derive(Clone, Default, Debug)]
pub struct Mappings {
    all: Vec<Mapping>,
}

#[derive(Clone, Debug)]
struct Mapping {
    begin: u64,
    end: u64,
    offset: u64,
    /// Empty where the code is in no file.
    file: Arc<Path>,
}

/// An address in a process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The file, `[vdso]`, or empty where the code is in none.
    pub file: Arc<Path>,
    /// The offset in it.
    pub offset: u64,
}

impl Place {
    /// Whether it is in a shared library, or in the kernel's.
    pub fn is_in_library(&self) -> bool {
        let file = self.file.to_string_lossy();
        file.starts_with('[') || file.contains(".so")
    }
}

impl Mappings {
    /// Those of the process of this thread (proc_pid_maps(5)); `None` where it has ended.
    pub fn read(tid: u32) -> Option<Mappings> {
        let text = std::fs::read_to_string(format!("/proc/{tid}/maps")).ok()?;
        Some(Mappings::parse(&text)).filter(|mappings| !mappings.all.is_empty())
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
            let file = words.nth(2).unwrap_or_default().trim().trim_end_matches(" (deleted)");
            Some(Mapping { begin, end, offset, file: Path::new(file).into() })
        };
        Mappings { all: text.lines().filter_map(line).collect() }
    }

    /// Where this address is.
    pub fn place(&self, address: u64) -> Option<Place> {
        let of = self.all.iter().find(|of| (of.begin..of.end).contains(&address))?;
        Some(Place { file: of.file.clone(), offset: of.offset + (address - of.begin) })
    }
}

/// The functions of files that were asked for.
#[derive(Default)]
pub struct FunctionNames {
    files: BTreeMap<PathBuf, Vec<Function>>,
}

impl FunctionNames {
    /// The function at a place, without its parameters; the file and the offset where the file does
    /// not name it. `tid`: a thread that sees the file, which may have a root of its own.
    pub fn name(&mut self, place: &Place, tid: u32) -> String {
        let file = place.file.to_string_lossy();
        if !file.starts_with('/') {
            let is_named = !file.is_empty();
            return if is_named { file.into_owned() } else { "code in no file".to_owned() };
        }
        let functions = self.files.entry(place.file.to_path_buf()).or_insert_with(|| {
            let seen_by_it = PathBuf::from(format!("/proc/{tid}/root{file}"));
            let object = Object::read(&seen_by_it).or_else(|_| Object::read(&place.file));
            object.map(|object| object.functions).unwrap_or_default()
        });
        match function_at(functions, place.offset) {
            Some(function) => function.bare.clone(),
            None => {
                let name = place.file.file_name().unwrap_or_default().to_string_lossy();
                format!("{name}+{:#x}", place.offset)
            }
        }
    }
}

/// The function that holds this offset. They are in the order of their offsets, the plainest of
/// several names first.
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
            let place = mappings.place(address)?;
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
        let (place, mut names) = (mappings.place(address + 1).unwrap(), FunctionNames::default());
        let name = names.name(&place, std::process::id());
        assert!(name.ends_with("place::tests::a_function_here"), "{name}");
        let vdso = Place { file: Path::new("[vdso]").into(), offset: 7 };
        assert_eq!(names.name(&vdso, 1), "[vdso]");
        let nowhere = Place { file: Path::new("/nowhere/lib.so").into(), offset: 0x17 };
        assert_eq!(names.name(&nowhere, 1), "lib.so+0x17");
        assert!(vdso.is_in_library() && nowhere.is_in_library() && !place.is_in_library());
    }
}
