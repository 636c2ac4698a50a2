//! Kernels to boot: Debian's by name, any by path.

use crate::apt::{Package, Suite};
use crate::cache::PackageCache;
use crate::{Arch, LabError, image};
use std::fs;
use std::path::{Path, PathBuf};

/// The kernel series of Debian's releases, each with the suite that keeps it.
const RELEASED: [(&str, &str); 3] = [("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie")];
/// The suites with newer series, in search order. Each has one series at a time, and moves to the
/// next within weeks.
const MOVING: [&str; 3] = ["trixie-backports", "forky", "sid"];

/// The suite for busybox if the kernel is given by path.
const ANY_SUITE: &str = "bookworm";

/// A kernel on this machine's disk, ready to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootKernel {
    /// The requested name: `debian:6.1-rt`, or the image's path.
    pub name: String,
    pub arch: Arch,
    /// The bzImage, Image or ELF file that QEMU boots.
    pub image: PathBuf,
    /// The directory with `kernel/` and `modules.builtin`; none if everything is built in.
    pub modules: Option<PathBuf>,
    /// The text of its .config; copied to /boot/config-RELEASE in the guest.
    pub config: Option<PathBuf>,
    /// The package's version, for a kernel from a package.
    pub version: Option<String>,
    /// The suite it came from.
    suite: Option<&'static str>,
}

/// The parts of a name: `debian:6.1-rt`.
#[derive(Debug, PartialEq, Eq)]
struct DebianName {
    /// `6.1`: a number, a point and a number.
    series: String,
    realtime: bool,
}

impl DebianName {
    fn parse(name: &str) -> Result<DebianName, LabError> {
        let flavoured = name.strip_prefix("debian:").unwrap_or(name);
        let (series, realtime) = match flavoured.strip_suffix("-rt") {
            Some(series) => (series, true),
            None => (flavoured, false),
        };
        let is_number = |text: &str| {
            matches!(text.len(), 1..=3) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !series
            .split_once('.')
            .is_some_and(|(major, minor)| is_number(major) && is_number(minor))
        {
            return Err(LabError::Request(format!(
                "`{name}` is not the name of a kernel: use {}",
                describe_available()
            )));
        }
        Ok(DebianName { series: series.to_owned(), realtime })
    }

    /// The suites that may have it.
    fn candidate_suites(&self) -> Vec<&'static str> {
        match RELEASED.iter().find(|(series, _)| *series == self.series) {
            Some((_, suite)) => vec![suite],
            None => MOVING.to_vec(),
        }
    }

    fn is_version(&self, version: &str) -> bool {
        version.strip_prefix(&self.series).is_some_and(|rest| rest.starts_with('.'))
    }

    /// The suite that has it now, with the packages.
    fn find_packages<'c>(
        &self,
        cache: &'c PackageCache,
        arch: Arch,
    ) -> Result<(&'static str, Suite<'c>, Vec<Package>), LabError> {
        let (mut seen, mut refused) = (Vec::new(), None);
        for name in self.candidate_suites() {
            let opened_suite = Suite::open(cache, name, arch);
            let suite_family = opened_suite
                .and_then(|suite| Ok((suite.find_family(&self.metapackage_name(arch))?, suite)));
            match suite_family {
                Ok((family, suite)) if self.is_version(&family[0].version) => {
                    return Ok((name, suite, family));
                }
                Ok((family, _)) => seen.push(format!("{name} has {}", family[0].version)),
                // Not every suite has every architecture, nor has every mirror.
                Err(why @ LabError::Missing(_)) => refused = refused.or(Some(why)),
                Err(why) => return Err(why),
            }
        }
        if let (Some(why), true) = (refused, seen.is_empty()) {
            return Err(why);
        }
        Err(LabError::missing(
            format!("the kernel series {} (Debian's {})", self.series, seen.join(", ")),
            format!("use one of those, or {}", describe_available()),
        ))
    }

    fn metapackage_name(&self, arch: Arch) -> String {
        format!("linux-image-{}{}", if self.realtime { "rt-" } else { "" }, arch.kernel_flavour())
    }
}

/// The available kernels, in words.
fn describe_available() -> String {
    let released: Vec<&str> = RELEASED.iter().map(|(series, _)| *series).collect();
    format!(
        "Debian's {} (with -rt, as 6.1-rt: PREEMPT_RT), the series that {} has now, or your own \
         image by its path, with a `/` in it (vm:./bzImage)",
        released.join(", "),
        MOVING.join(" or "),
    )
}

impl BootKernel {
    /// Debian's newest kernel of a series: `debian:6.1` (standard) or `debian:6.1-rt` (PREEMPT_RT),
    /// fetched and verified by apt into the cache. The prefix is optional.
    ///
    /// # Errors
    /// [`LabError::Missing`] if apt, the mirror or the series is unavailable, [`LabError::Request`]
    /// for other names.
    pub fn by_name(name: &str, arch: Arch) -> Result<BootKernel, LabError> {
        let debian = DebianName::parse(name)?;
        let cache = PackageCache::open()?;
        let (from, suite, family) = debian.find_packages(&cache, arch)?;
        let version = family[0].version.clone();
        let tree = suite.unpack_family(&family)?;
        let mut kernel = BootKernel::in_tree(&tree)
            .ok_or_else(|| LabError::malformed(&tree, "no kernel image in it"))?;
        (kernel.name, kernel.arch) = (name.to_owned(), arch);
        (kernel.version, kernel.suite) = (Some(version), Some(from));
        kernel.image = unpacked_image(&cache, kernel.image)?;
        Ok(kernel)
    }

    /// A kernel by path: its bzImage or Image, and the directory of its modules
    /// (`…/lib/modules/RELEASE`) if it has any.
    pub fn from_image(
        image: impl Into<PathBuf>,
        modules: Option<PathBuf>,
        arch: Arch,
    ) -> BootKernel {
        let image = image.into();
        let name = image.to_string_lossy().into_owned();
        BootKernel { name, arch, image, modules, config: None, version: None, suite: None }
    }

    /// The release (`uname -r`), from the name of its modules' directory.
    pub fn kernel_release(&self) -> Option<String> {
        Some(self.modules.as_ref()?.file_name()?.to_string_lossy().into_owned())
    }

    /// The suite that its package came from.
    pub(crate) fn package_suite(&self) -> Option<&'static str> {
        self.suite
    }

    /// The suite to take a guest's other programs from: backports have few.
    pub(crate) fn guest_suite(&self) -> &'static str {
        self.suite.map_or(ANY_SUITE, |suite| suite.trim_end_matches("-backports"))
    }

    /// Finds image, modules and configuration in the unpacked packages. Until 6.x the image is in
    /// /boot and the modules are in /lib; since 7.x all is in /usr/lib/modules/RELEASE.
    fn in_tree(tree: &Path) -> Option<BootKernel> {
        let mut roots = ["lib/modules", "usr/lib/modules"].into_iter();
        let modules = roots.find_map(|root| only_entry(&tree.join(root), ""))?;
        let part = |prefix, name| {
            only_entry(&tree.join("boot"), prefix)
                .or_else(|| Some(modules.join(name)).filter(|file| file.is_file()))
        };
        let mut kernel = BootKernel::from_image(part("vmlinu", "vmlinuz")?, None, Arch::Amd64);
        kernel.config = part("config-", "config");
        kernel.modules = Some(modules);
        Some(kernel)
    }
}

/// The image of a cached package, without its own decompressor if that is slow; stored beside it.
fn unpacked_image(cache: &PackageCache, image: PathBuf) -> Result<PathBuf, LabError> {
    let elf_path = image.with_file_name("elf");
    let _lock = cache.lock()?;
    if elf_path.exists() {
        return Ok(elf_path);
    }
    let Some(elf) = image::elf_of(&fs::read(&image).map_err(LabError::io("read", &image))?) else {
        return Ok(image);
    };
    let part = image.with_file_name("elf.part");
    fs::write(&part, elf).map_err(LabError::io("write", &part))?;
    fs::rename(&part, &elf_path).map_err(LabError::io("rename to", &elf_path))?;
    Ok(elf_path)
}

/// The first entry of a directory with this prefix.
fn only_entry(dir: &Path, prefix: &str) -> Option<PathBuf> {
    let mut entries = dir.read_dir().ok()?.filter_map(Result::ok);
    entries
        .find(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_names_are_parsed_into_series_and_flavour() {
        let rt = DebianName::parse("debian:6.1-rt").unwrap();
        assert_eq!(rt, DebianName { series: "6.1".into(), realtime: true });
        assert_eq!(
            (rt.metapackage_name(Arch::Arm64).as_str(), rt.candidate_suites()),
            ("linux-image-rt-arm64", vec!["bookworm"])
        );
        let newer = DebianName::parse("debian:7.2").unwrap();
        assert_eq!(newer.metapackage_name(Arch::Amd64), "linux-image-amd64");
        assert!(
            newer.candidate_suites().len() > 1
                && newer.is_version("7.2.12-1")
                && !newer.is_version("7.20.1-1")
        );
        assert_eq!(DebianName::parse("6.1-rt").unwrap(), rt);
        for wrong in [
            "",
            "debian:",
            "debian:6",
            "debian:6.1-rt-rt",
            "debian:../etc",
            "6.1.5",
            "6.",
            ".1",
            "6.1 ",
        ] {
            let Err(LabError::Request(output)) = DebianName::parse(wrong) else {
                panic!("{wrong}")
            };
            assert!(output.contains("5.10, 6.1, 6.12 (with -rt, as 6.1-rt"), "{output}");
            assert!(output.contains("your own image") && output.contains("vm:./"), "{output}");
        }
    }

    #[test]
    fn both_package_layouts_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let make = |path: &&str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        ["old/boot/vmlinuz-6.1", "old/boot/config-6.1", "old/lib/modules/6.1/kernel/x.ko"]
            .iter()
            .for_each(make);
        ["new/usr/lib/modules/7.2/vmlinuz", "none/usr/lib/modules/7.2/config"]
            .iter()
            .for_each(make);
        let tree = |name: &str| dir.path().join(name);
        let old = BootKernel::in_tree(&tree("old")).unwrap();
        assert_eq!(
            (old.kernel_release().unwrap().as_str(), old.image),
            ("6.1", tree("old/boot/vmlinuz-6.1"))
        );
        assert_eq!(old.config, Some(tree("old/boot/config-6.1")));
        let new = BootKernel::in_tree(&tree("new")).unwrap();
        assert_eq!((new.image, new.config), (tree("new/usr/lib/modules/7.2/vmlinuz"), None));
        assert_eq!(BootKernel::in_tree(&tree("none")), None);
    }
}
