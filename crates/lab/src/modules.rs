//! Kernel modules: the files that a module needs, in loading order.
//!
//! Packages carry no modules.dep (depmod makes it at installation), so each module's own `.modinfo`
//! section is read: `depends=` and `softdep=pre:` (include/linux/module.h).

use crate::LabError;
use elf::ElfBytes;
use elf::endian::AnyEndian;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The maximum size of a decompressed module; guards against endless decompression.
const MODULE_BYTES_MAX: u64 = 256 << 20;

/// The modules of one kernel.
pub struct Modules {
    dir: PathBuf,
    files: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
}

/// A decompressed module for the kernel.
pub struct Module {
    pub name: String,
    pub data: Vec<u8>,
}

/// The kernel treats `-` and `_` in names as equal (scripts/Makefile.lib); file names have either.
fn canonical_name(name: &str) -> String {
    name.replace('-', "_")
}

/// The module in a file name: `virtio-rng.ko.xz` is `virtio_rng`.
fn name_of(file: &str) -> Option<String> {
    let (name, suffix) = file.split_once(".ko")?;
    ["", ".xz", ".zst", ".gz"].contains(&suffix).then(|| canonical_name(name))
}

impl Modules {
    /// Indexes `…/lib/modules/RELEASE`.
    pub fn open(dir: &Path) -> Result<Modules, LabError> {
        let mut files = BTreeMap::new();
        let mut pending = vec![dir.join("kernel")];
        while let Some(next) = pending.pop() {
            for entry in fs::read_dir(&next).map_err(LabError::io("list the modules in", &next))? {
                let entry = entry.map_err(LabError::io("list the modules in", &next))?;
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(entry.path());
                } else if let Some(name) = entry.file_name().to_str().and_then(name_of) {
                    files.insert(name, entry.path());
                }
            }
        }
        let list = dir.join("modules.builtin");
        let builtin = fs::read_to_string(&list).map_err(LabError::io("read", &list))?;
        let builtin =
            builtin.lines().filter_map(|line| name_of(line.rsplit('/').next()?)).collect();
        Ok(Modules { dir: dir.to_owned(), files, builtin })
    }

    /// The requested modules with all dependencies, each after its own ones, without built-in
    /// modules.
    pub(crate) fn module_closure<'n>(
        &self,
        wanted: impl IntoIterator<Item = &'n str>,
    ) -> Result<Vec<Module>, LabError> {
        let mut ordered = Vec::new();
        let mut seen_names = BTreeSet::new();
        wanted.into_iter().try_for_each(|name| self.add(name, &mut seen_names, &mut ordered))?;
        Ok(ordered)
    }

    /// The module of a soft dependency. A dependency on an algorithm of the kernel's crypto (ext4's
    /// on `crypto-crc32c`) is an alias, and the portable implementation is named `…_generic`
    /// (crypto/).
    fn find_soft_dependency(&self, name: &str) -> Option<String> {
        let name = canonical_name(name);
        let algorithm = name.strip_prefix("crypto_").unwrap_or(&name);
        [format!("{algorithm}_generic"), name.clone()]
            .into_iter()
            .find(|name| self.files.contains_key(name))
    }

    fn add(
        &self,
        name: &str,
        seen: &mut BTreeSet<String>,
        ordered: &mut Vec<Module>,
    ) -> Result<(), LabError> {
        let name = canonical_name(name);
        if self.builtin.contains(&name) || !seen.insert(name.clone()) {
            return Ok(());
        }
        let file = self.files.get(&name).ok_or_else(|| {
            LabError::Request(format!(
                "the kernel in {} has no module `{name}`",
                self.dir.display()
            ))
        })?;
        let data = read_decompressed(file)?;
        let needs = Needs::read(&data).map_err(|why| LabError::malformed(file, why))?;
        // A soft dependency that this kernel lacks is not an error (modprobe.d(5)).
        for soft in needs.soft.iter().filter_map(|soft| self.find_soft_dependency(soft)) {
            self.add(&soft, seen, ordered)?;
        }
        needs.hard.iter().try_for_each(|hard| self.add(hard, seen, ordered))?;
        ordered.push(Module { name, data });
        Ok(())
    }
}

/// The dependencies in a module's information.
#[derive(Debug, PartialEq, Eq, Default)]
struct Needs {
    hard: Vec<String>,
    soft: Vec<String>,
}

impl Needs {
    fn read(module: &[u8]) -> Result<Needs, String> {
        let file = ElfBytes::<AnyEndian>::minimal_parse(module)
            .map_err(|why| format!("not an ELF file: {why}"))?;
        let section = file.section_header_by_name(".modinfo").map_err(|why| why.to_string())?;
        let section = section.ok_or("a module without a .modinfo section")?;
        let (data, _) = file.section_data(&section).map_err(|why| why.to_string())?;
        Ok(Needs::from_modinfo(&String::from_utf8_lossy(data)))
    }

    /// Parses `key=value` texts ended by NUL.
    fn from_modinfo(text: &str) -> Needs {
        let mut needs = Needs::default();
        for (key, value) in text.split('\0').filter_map(|entry| entry.split_once('=')) {
            match key {
                "depends" => needs
                    .hard
                    .extend(value.split(',').filter(|name| !name.is_empty()).map(str::to_owned)),
                "softdep" => {
                    let words = value.split_whitespace().skip_while(|word| *word != "pre:").skip(1);
                    needs.soft.extend(words.take_while(|word| *word != "post:").map(str::to_owned));
                }
                _ => {}
            }
        }
        needs
    }
}

fn read_decompressed(path: &Path) -> Result<Vec<u8>, LabError> {
    let file = fs::File::open(path).map_err(LabError::io("open", path))?;
    let reader: Box<dyn Read> = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("ko") => Box::new(file),
        Some("xz") => Box::new(lzma_rust2::XzReader::new(std::io::BufReader::new(file), true)),
        _ => {
            return Err(LabError::malformed(
                path,
                "this compression of modules is not supported (plain and xz are)",
            ));
        }
    };
    let mut data = Vec::new();
    reader.take(MODULE_BYTES_MAX).read_to_end(&mut data).map_err(LabError::io("read", path))?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_and_soft_dependencies_are_read_from_modinfo() {
        let text =
            "license=GPL\0depends=jbd2,mbcache\0softdep=pre: crc32c post: x\0depends=\0garbage";
        let needs = Needs::from_modinfo(text);
        assert_eq!(
            needs,
            Needs { hard: vec!["jbd2".into(), "mbcache".into()], soft: vec!["crc32c".into()] }
        );
    }

    #[test]
    fn module_names_are_canonical() {
        assert_eq!(name_of("virtio-rng.ko.xz"), Some("virtio_rng".into()));
        assert_eq!(name_of("9p.ko"), Some("9p".into()));
        assert_eq!(name_of("modules.order"), None);
    }

    #[test]
    fn missing_and_malformed_modules_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("kernel")).unwrap();
        fs::write(dir.path().join("kernel/bad.ko"), "no module").unwrap();
        fs::write(dir.path().join("modules.builtin"), "kernel/fs/ext-four.ko\n").unwrap();
        let modules = Modules::open(dir.path()).unwrap();
        assert!(modules.module_closure(["ext_four"]).unwrap().is_empty());
        assert!(
            modules
                .module_closure(["other"])
                .err()
                .unwrap()
                .to_string()
                .ends_with("has no module `other`")
        );
        assert!(
            modules
                .module_closure(["bad"])
                .err()
                .unwrap()
                .to_string()
                .contains("bad.ko: not an ELF file")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_module_panics(
            data in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            elf: bool,
        ) {
            let magic: &[u8] = if elf { b"\x7fELF\x02\x01\x01" } else { b"" };
            let _ = Needs::read(&[magic, &data].concat());
        }
    }
}
