//! Packages of a Debian suite, fetched and verified by this machine's apt, independent of the
//! machine's own suite.
//!
//! apt uses a private configuration here (sources, lists and archives in the cache), with the
//! mirror of the system's own sources and the keyring of Debian's archive. The system's apt state
//! is not touched.

use crate::cache::PackageCache;
use crate::{Arch, LabError, private, tools};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Debian's keys, from the package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The system's hooks around an update (clearing its archives, refreshing its software catalogue)
/// do not apply here.
const NO_HOOKS: &str = "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear \
                        APT::Update::Post-Invoke-Success;\n";
/// The age at which package lists are fetched again.
const LISTS_KEEP: Duration = Duration::from_secs(24 * 3600);

/// A package of one exact version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    /// The dependencies on an exact version, and the build programs of a kernel's headers, which
    /// have a minimum version: siblings from the same source.
    siblings: Vec<String>,
}

/// One suite for one architecture.
pub struct Suite<'a> {
    cache: &'a PackageCache,
    name: &'a str,
    arch: Arch,
    apt_get: PathBuf,
    apt_cache: PathBuf,
    dpkg_deb: PathBuf,
}

impl<'a> Suite<'a> {
    /// Opens a suite (`bookworm`, `trixie-backports`), fetching its package lists if they are
    /// missing or too old.
    pub fn open(cache: &'a PackageCache, name: &'a str, arch: Arch) -> Result<Suite<'a>, LabError> {
        let suite = Suite {
            cache,
            name,
            arch,
            apt_get: tools::find_program("apt-get", "apt")?,
            apt_cache: tools::find_program("apt-cache", "apt")?,
            dpkg_deb: tools::find_program("dpkg-deb", "dpkg")?,
        };
        let _lock = cache.lock()?;
        let age = fs::metadata(suite.stamp_path()).and_then(|meta| meta.modified()).ok();
        let age = age.and_then(|written| SystemTime::now().duration_since(written).ok());
        if age.is_none_or(|age| age > LISTS_KEEP) {
            match suite.fetch_lists() {
                // Old lists still name packages in the cache; their version is shown on each use.
                Err(LabError::Missing(_)) if age.is_some() => {}
                updated => updated?,
            }
        }
        Ok(suite)
    }

    fn suite_dir(&self) -> PathBuf {
        self.cache.dir().join("apt").join(format!("{}-{}", self.name, self.arch.debian_name()))
    }

    /// A file as old as the lists; apt's own files have the mirror's times.
    fn stamp_path(&self) -> PathBuf {
        self.suite_dir().join("updated")
    }

    fn apt_options(&self) -> Vec<OsString> {
        let dir = self.suite_dir();
        let at = |key: &str, path: PathBuf| {
            let mut option = OsString::from(format!("{key}="));
            option.push(path);
            [OsString::from("-o"), option]
        };
        let nothing = PathBuf::from("/dev/null");
        let paths = [
            at("Dir::Etc::sourcelist", dir.join("sources.list")),
            at("Dir::Etc::sourceparts", nothing.clone()),
            at("Dir::Etc::preferences", nothing.clone()),
            at("Dir::Etc::preferencesparts", nothing.clone()),
            at("Dir::State", dir.join("state")),
            at("Dir::State::status", nothing),
            at("Dir::Cache", dir.join("cache")),
        ];
        // Container images disable apt's index, which makes each query cost a second.
        let words = [
            "Dir::Cache::pkgcache=pkgcache.bin",
            "Dir::Cache::srcpkgcache=srcpkgcache.bin",
            "Acquire::Languages=none",
        ];
        let words = words
            .into_iter()
            .map(str::to_owned)
            .chain([format!("APT::Architecture={}", self.arch.debian_name())]);
        let words = words.flat_map(|word| [OsString::from("-o"), OsString::from(word)]);
        let no_hooks = [OsString::from("-c"), dir.join("no-hooks.conf").into_os_string()];
        no_hooks.into_iter().chain(paths.into_iter().flatten()).chain(words).collect()
    }

    /// Runs apt-get or apt-cache on the private configuration.
    fn run_apt(&self, program: &Path, args: &[&str], dir: &Path) -> Result<String, LabError> {
        let all_arguments = self.apt_options().into_iter().chain(args.iter().map(OsString::from));
        tools::run_program(program, all_arguments, dir).map_err(|output| {
            let (asked, suite) = (args.join(" "), self.name);
            let what = format!("an answer of apt about Debian's {suite} ({asked}): {output}");
            LabError::missing(
                what,
                "apt-get update; check the network and the mirror in the system's apt sources",
            )
        })
    }

    fn fetch_lists(&self) -> Result<(), LabError> {
        if !Path::new(KEYRING).exists() {
            return Err(LabError::missing(
                format!("Debian's keys, {KEYRING}"),
                "apt-get install debian-archive-keyring",
            ));
        }
        let mirrors = Mirrors::of_the_system(&self.apt_get)?;
        let dir = self.suite_dir();
        for sub in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(dir.join(sub)).map_err(LabError::io("create", dir.join(sub)))?;
        }
        let write = |name: &str, text: &str| {
            fs::write(dir.join(name), text).map_err(LabError::io("write", dir.join(name)))
        };
        write("no-hooks.conf", NO_HOOKS)?;
        let lines = mirrors.source_lines(self.name, self.arch);
        let fetch = |lines: &str| {
            write("sources.list", lines)?;
            // Without Error-Mode=any a failed update is a warning and the old lists stay.
            self.run_apt(&self.apt_get, &["-o", "APT::Update::Error-Mode=any", "update"], &dir)
        };
        // Not every suite has security updates (sid), and not every mirror has those of every
        // architecture.
        fetch(&lines).or_else(|why| match lines.lines().next() {
            Some(archive) if lines.lines().count() > 1 => fetch(&format!("{archive}\n")),
            _ => Err(why),
        })?;
        fs::write(self.stamp_path(), "").map_err(LabError::io("write", self.stamp_path()))
    }

    /// The newest version of a package in the suite. The answer is cached until the lists are
    /// fetched again: every guest asks several times, and apt reads the whole index each time,
    /// while others wait.
    pub(crate) fn find_candidate(&self, name: &str) -> Result<Package, LabError> {
        let kept = self.suite_dir().join("candidates").join(name);
        let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
        if time(&kept) > time(&self.stamp_path())
            && let Some(package) =
                fs::read_to_string(&kept).ok().as_deref().and_then(Package::from_stanza)
        {
            return Ok(package);
        }
        // Another process may be replacing the lists, or the index that apt makes of them.
        let _lock = self.cache.lock()?;
        let stanza =
            self.run_apt(&self.apt_cache, &["show", "--no-all-versions", name], self.cache.dir())?;
        let package = Package::from_stanza(&stanza).ok_or_else(|| {
            LabError::missing(
                format!("the package {name} in Debian's {}", self.name),
                "apt-get update",
            )
        })?;
        // Readers hold no lock: the file must appear whole.
        let (dir, part) =
            (self.suite_dir().join("candidates"), self.suite_dir().join("candidate.part"));
        fs::create_dir_all(&dir).map_err(LabError::io("create", &dir))?;
        fs::write(&part, stanza).map_err(LabError::io("write", &part))?;
        fs::rename(&part, &kept).map_err(LabError::io("rename to", &kept))?;
        Ok(package)
    }

    /// The newest version of a package and, transitively, the siblings that it needs in an exact
    /// version: the packages behind a kernel's metapackage.
    pub(crate) fn find_family(&self, name: &str) -> Result<Vec<Package>, LabError> {
        let mut family = vec![self.find_candidate(name)?];
        let mut next = 0;
        while let Some(package) = family.get(next) {
            let unknown = |sibling: &&String| family.iter().all(|known| known.name != **sibling);
            let unknown: Vec<String> = package.siblings.iter().filter(unknown).cloned().collect();
            for sibling in unknown {
                family.push(self.find_candidate(&sibling)?);
            }
            next += 1;
        }
        Ok(family)
    }

    /// The directory with packages and all their dependencies unpacked into one tree: a program of
    /// another release runs there on the libraries that it was built for, and nothing is installed.
    /// Fetched if not in the cache.
    pub(crate) fn unpacked_with_dependencies(&self, names: &[&str]) -> Result<PathBuf, LabError> {
        let found_packages: Result<Vec<Package>, LabError> =
            names.iter().map(|name| self.find_candidate(name)).collect();
        let packages = found_packages?;
        let versions: Vec<&str> = packages.iter().map(|package| &*package.version).collect();
        let package =
            Package { name: names.join("+"), version: versions.join("+"), siblings: Vec::new() };
        let target = self.unpacked_place(&package, "with-dependencies_");
        if target.exists() {
            return Ok(target);
        }
        // The private configuration has no installed packages, so all of them count as missing.
        let exact: Vec<String> = packages
            .iter()
            .map(|package| format!("{}={}", package.name, package.version))
            .collect();
        let mut words = vec!["--download-only", "--yes", "--no-install-recommends", "install"];
        words.extend(exact.iter().map(String::as_str));
        let archives = self.suite_dir().join("cache/archives");
        self.unpack_fetched(&package, "with-dependencies_", |suite, _| {
            suite.run_apt(&suite.apt_get, &words, suite.cache.dir())?;
            Ok(archives.clone())
        })?;
        // The packed file is not needed after unpacking.
        let _lock = self.cache.lock()?;
        self.run_apt(&self.apt_get, &["clean"], self.cache.dir())?;
        Ok(target)
    }

    /// The directory with a family of packages unpacked into one tree, named after the first;
    /// fetched if not in the cache.
    pub(crate) fn unpack_family(&self, family: &[Package]) -> Result<PathBuf, LabError> {
        let Some(first) = family.first() else {
            return Err(LabError::Request("no package to unpack".to_owned()));
        };
        let wanted = family.iter().map(|package| format!("{}={}", package.name, package.version));
        let words: Vec<String> = ["download".to_owned()].into_iter().chain(wanted).collect();
        self.unpack_fetched(first, "", |suite, work| {
            let debs = work.join("debs");
            fs::create_dir(&debs).map_err(LabError::io("create", &debs))?;
            suite.run_apt(
                &suite.apt_get,
                &words.iter().map(String::as_str).collect::<Vec<_>>(),
                &debs,
            )?;
            Ok(debs)
        })
    }

    fn unpacked_place(&self, package: &Package, prefix: &str) -> PathBuf {
        let name =
            format!("{prefix}{}_{}_{}", package.name, package.version, self.arch.debian_name());
        self.cache.dir().join("packages").join(name.replace(':', "%3a"))
    }

    /// Unpacks all packages in the directory that `fetch` returns, unless done before.
    fn unpack_fetched(
        &self,
        package: &Package,
        prefix: &str,
        fetch: impl FnOnce(&Self, &Path) -> Result<PathBuf, LabError>,
    ) -> Result<PathBuf, LabError> {
        let target = self.unpacked_place(package, prefix);
        let _lock = self.cache.lock()?;
        if target.exists() {
            return Ok(target);
        }
        let packages = self.cache.dir().join("packages");
        fs::create_dir_all(&packages).map_err(LabError::io("create", &packages))?;
        let work = tempfile::tempdir_in(&packages)
            .map_err(LabError::io("create a directory in", &packages))?;
        let tree = work.path().join("tree");
        let debs = fetch(self, work.path())?;
        let debs = fs::read_dir(&debs).map_err(LabError::io("list", &debs))?.filter_map(Result::ok);
        for deb in debs
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|is| is == "deb"))
        {
            tools::run_program(&self.dpkg_deb, [Path::new("-x"), &deb, &tree], work.path())
                .map_err(|output| LabError::malformed(&deb, output))?;
        }
        private::strip_set_id(&tree)?;
        // Only a complete tree ever gets the final name.
        fs::rename(&tree, &target).map_err(LabError::io("rename to", &target))?;
        Ok(target)
    }
}

impl Package {
    /// Reads the first stanza that `apt-cache show` prints (deb-control(5)).
    fn from_stanza(text: &str) -> Option<Package> {
        let stanza = text.split("\n\n").next()?;
        let field = |name: &str| {
            let mut lines = stanza.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
        };
        let exact = |part: &str| {
            let (name, version) = part.trim().split_once(" (").unwrap_or((part.trim(), ""));
            (version.starts_with("= ") || name.starts_with("linux-kbuild-"))
                .then(|| name.to_owned())
        };
        let siblings = field("Depends").unwrap_or_default().split(',').filter_map(exact).collect();
        Some(Package {
            name: field("Package")?.to_owned(),
            version: field("Version")?.to_owned(),
            siblings,
        })
    }
}

/// The mirrors in the system's own apt sources.
#[derive(Debug, PartialEq, Eq)]
struct Mirrors {
    archive: String,
    security: Option<String>,
}

impl Mirrors {
    fn of_the_system(apt_get: &Path) -> Result<Mirrors, LabError> {
        let args = [
            "indextargets",
            "--format",
            "$(RELEASE) $(COMPONENT) $(REPO_URI)",
            "Created-By: Packages",
        ];
        let no_mirror_error = |why: String| {
            LabError::missing(
                format!("a Debian mirror in the system's apt sources{why}"),
                "a `deb` line for Debian in /etc/apt/sources.list or sources.list.d",
            )
        };
        let targets = tools::run_program(apt_get, args, Path::new("/"))
            .map_err(|output| no_mirror_error(format!(": {output}")))?;
        Mirrors::from_targets(&targets).ok_or_else(|| no_mirror_error(String::new()))
    }

    /// Parses lines `release component uri`: the plain release's mirror has all but the security
    /// suites.
    fn from_targets(targets: &str) -> Option<Mirrors> {
        let fields = |line: &str| -> Option<(String, String)> {
            let mut words = line.split_whitespace();
            let (release, component, uri) = (words.next()?, words.next()?, words.next()?);
            (component == "main").then(|| (release.to_owned(), uri.to_owned()))
        };
        let sources: Vec<(String, String)> = targets.lines().filter_map(fields).collect();
        let find = |test: fn(&str) -> bool| {
            sources.iter().find(|(release, _)| test(release)).map(|(_, uri)| uri.clone())
        };
        let archive = find(|release| !release.contains(['-', '/']))?;
        Some(Mirrors { archive, security: find(|release| release.ends_with("-security")) })
    }

    /// The sources.list of a suite. Only package lists are fetched, no translations or desktop
    /// metadata.
    fn source_lines(&self, suite: &str, arch: Arch) -> String {
        let options = format!("[signed-by={KEYRING} arch={} target=Packages]", arch.debian_name());
        let mut lines = format!("deb {options} {} {suite} main\n", self.archive);
        if let Some(security) = self.security.as_ref().filter(|_| !suite.contains('-')) {
            lines += &format!("deb {options} {security} {suite}-security main\n");
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_read_from_the_apt_sources_of_the_system() {
        let targets = "stable-updates main file:/m/updates\nstable contrib file:/c\nstable main \
                       file:/m\nstable-security main file:/s\n";
        let mirrors = Mirrors::from_targets(targets).unwrap();
        assert_eq!(
            mirrors,
            Mirrors { archive: "file:/m".into(), security: Some("file:/s".into()) }
        );
        insta::assert_snapshot!(mirrors.source_lines("next", Arch::Arm64), @r"
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg arch=arm64 target=Packages] file:/m next main
        deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg arch=arm64 target=Packages] file:/s next-security main
        ");
        assert_eq!(mirrors.source_lines("next-backports", Arch::Amd64).lines().count(), 1);
        assert_eq!(Mirrors::from_targets("a-security main x:y\n/ main"), None);
    }

    #[test]
    fn apt_cache_is_called_once_per_package_until_the_lists_change() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let cache = PackageCache::open_at(place.path()).unwrap();
        let program = place.path().join("apt-cache");
        fs::write(
            &program,
            "#!/bin/sh\necho >>asked\nprintf 'Package: p\\nVersion: '; grep -c '' asked\n",
        )
        .unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let unused = PathBuf::new();
        let suite = Suite {
            cache: &cache,
            name: "s",
            arch: Arch::Amd64,
            apt_get: unused.clone(),
            apt_cache: program,
            dpkg_deb: unused,
        };
        fs::create_dir_all(suite.suite_dir()).unwrap();
        let lists_of = |time: SystemTime| {
            fs::write(suite.stamp_path(), "").unwrap();
            fs::File::options()
                .write(true)
                .open(suite.stamp_path())
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        lists_of(SystemTime::now() - Duration::from_secs(60));
        let version = |name: &str| suite.find_candidate(name).unwrap().version;
        assert_eq!([version("p"), version("p"), version("q"), version("p")], ["1", "1", "2", "1"]);
        lists_of(SystemTime::now() + Duration::from_secs(60));
        assert_eq!(version("p"), "3");
    }

    #[test]
    fn siblings_are_the_exact_dependencies() {
        let stanza = "Package: linux-image-7\nVersion: 7.2-1\nDepends: kmod, dracut | \
                      initramfs-tools (>= 0.12), linux-modules-7 (= 7.2-1)\n\nPackage: \
                      other\nVersion: 1\n";
        let package = Package::from_stanza(stanza).unwrap();
        assert_eq!((package.name.as_str(), package.version.as_str()), ("linux-image-7", "7.2-1"));
        assert_eq!(package.siblings, ["linux-modules-7"]);
        let headers = "Package: h\nVersion: 1\nDepends: h-common (= 1), linux-kbuild-6.1 (>= 1), \
                       linux-compiler-gcc-12-x86\n";
        assert_eq!(
            Package::from_stanza(headers).unwrap().siblings,
            ["h-common", "linux-kbuild-6.1"]
        );
        assert_eq!(Package::from_stanza(""), None);
    }
}
