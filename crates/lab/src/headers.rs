//! Kernel modules for guests: built on this machine from source, with Debian's headers of the
//! kernel.

use crate::apt::Suite;
use crate::cache::PackageCache;
use crate::toolchain::{self, Toolchain};
use crate::{BootKernel, LabError, tools};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

impl BootKernel {
    /// Builds the modules of a directory, as listed in its Makefile, and returns the one of this
    /// name, without the suffix. The directory is not changed. If this machine lacks the compiler
    /// of the kernel, that of the kernel's suite is fetched.
    ///
    /// # Errors
    /// The kernel is not from a package, its headers cannot be fetched, or a build tool is missing.
    pub fn build_module(&self, source: &Path, name: &str) -> Result<Vec<u8>, LabError> {
        let make = tools::find_program("make", "make")?;
        let cache = PackageCache::open()?;
        let (Some(release), Some(suite)) = (self.kernel_release(), self.package_suite()) else {
            return Err(LabError::Request(format!(
                "the kernel {} is of no Debian package: its headers are not known",
                self.name
            )));
        };
        let suite = Suite::open(&cache, suite, self.arch)?;
        // Headers of the architecture, those of all architectures, and the programs that build
        // modules.
        let family = suite.find_family(&format!("linux-headers-{release}"))?;
        let headers = suite.unpack_family(&family)?;
        let sources = headers.join("usr/src");
        let of_arch = sources.join(format!("linux-headers-{release}"));
        // The Makefile there includes the common one by its path on an installed system.
        let version = release.rsplit_once('-').map_or(release.as_str(), |(version, _)| version);
        let common = match version.strip_suffix("-rt") {
            Some(version) => [
                format!("linux-headers-{version}-common-rt"),
                format!("linux-headers-{version}-common"),
            ],
            None => [
                format!("linux-headers-{version}-common"),
                format!("linux-headers-{version}-common"),
            ],
        };
        let common =
            common.iter().map(|name| sources.join(name)).find(|path| path.is_dir()).ok_or_else(
                || {
                    LabError::missing(
                        format!("the common headers of Linux {release} in {}", sources.display()),
                        "apt-get update",
                    )
                },
            )?;
        let work = tempfile::tempdir()
            .map_err(LabError::io("create a directory in", std::env::temp_dir()))?;
        let entries = fs::read_dir(source).map_err(LabError::io("list", source))?;
        // Directories, such as that of a version control system, are not sources of a module.
        for entry in entries.filter_map(Result::ok).filter(|entry| entry.path().is_file()) {
            fs::copy(entry.path(), work.path().join(entry.file_name()))
                .map_err(LabError::io("copy", entry.path()))?;
        }
        let assigned = |key: &str, path: &Path| {
            let mut word = OsString::from(key);
            word.push(path);
            word
        };
        let words = [
            OsString::from("-C"),
            common.clone().into(),
            assigned("O=", &of_arch),
            assigned("M=", work.path()),
            "modules".into(),
        ];
        let compiler = toolchain::compiler_name(&of_arch).unwrap_or_else(|| "gcc".to_owned());
        let built = match tools::find_program(&compiler, &compiler) {
            Ok(_) => tools::run_program(&make, words, work.path()),
            // The programs of the headers need the libraries of that suite, too.
            Err(_) => {
                let kbuild = family.iter().find(|of| of.name.starts_with("linux-kbuild-"));
                let packages = kbuild.map(|kbuild| kbuild.name.as_str()).into_iter();
                let packages: Vec<&str> = packages.chain([compiler.as_str()]).collect();
                let tools = Toolchain::from_packages(&suite, &packages)?;
                tools.run_tool("make", &words, work.path())
            }
        };
        built.map_err(|said| LabError::malformed(source, said))?;
        let module = work.path().join(format!("{name}.ko"));
        fs::read(&module).map_err(LabError::io("read", &module))
    }
}
