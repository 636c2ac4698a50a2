//! Isolation that lasts: files of systemd that make the partition at each boot, and words for the
//! kernel's command line.
//!
//! The files are punctual's alone. Each carries the digest of its text, so that it can be removed
//! without a journal (those end with the boot), after kill -9 at any moment, and never after
//! somebody else has changed it.

use super::Refusal;
use super::cpusets::Cpusets;
use crate::files::Files;
use punctual_core::{CpuSet, encode_hex};
use sha2::{Digest, Sha256};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// The service, below the root.
pub const SERVICE: &str = "etc/systemd/system/punctual-isolate.service";
/// The link that starts it at each boot.
const SERVICE_LINK: &str = "etc/systemd/system/basic.target.wants/punctual-isolate.service";
const LINK_TARGET: &str = "/etc/systemd/system/punctual-isolate.service";
/// The slices whose services are kept off the CPUs from their start on (systemd.special(7)).
const SLICES: [&str; 3] = ["machine.slice", "system.slice", "user.slice"];
/// The first systemd with `AllowedCPUs=` (systemd.resource-control(5)).
const ALLOWED_CPUS: u32 = 244;
/// The first with `CPUSetPartition=`.
const CPUSET_PARTITION: u32 = 261;
/// The first line of each file, before the digest.
const MARK: &str = "# Written by `punctual isolate unit`, which removes it (--remove): ";

/// A request for isolation at each boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastingRequest {
    pub cpus: CpuSet,
    /// Options of `isolate create`.
    pub options: Vec<String>,
    /// This program.
    pub program: PathBuf,
}

/// What makes isolation last on a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastingIsolation {
    /// Each file below the root, with its text.
    pub files: Vec<(String, String)>,
    /// Words for the boot loader, each with its effect.
    pub kernel: Vec<(String, &'static str)>,
    /// A remark about this machine's systemd.
    pub remark: String,
}

/// The file of the drop-in of a slice.
fn drop_in(slice: &str) -> String {
    format!("etc/systemd/system/{slice}.d/punctual-isolate.conf")
}

/// Every file that may be there, the first one first.
fn all_files() -> impl Iterator<Item = String> {
    std::iter::once(SERVICE.to_owned()).chain(SLICES.into_iter().map(drop_in))
}

/// Works out the files and words.
pub fn plan_lasting(
    files: &dyn Files,
    request: &LastingRequest,
) -> Result<LastingIsolation, Refusal> {
    let online = files.read_trimmed("/sys/devices/system/cpu/online")?;
    let online: CpuSet = online.parse().map_err(|why| Refusal::Unreadable {
        path: "/sys/devices/system/cpu/online".to_owned(),
        why: format!("{why}"),
    })?;
    let cpus = &request.cpus;
    let rest = online.difference(cpus);
    if cpus.is_empty() {
        return Err(Refusal::NoCpus);
    }
    if rest.is_empty() {
        return Err(Refusal::NoHousekeeping { online });
    }
    let mut unit_files = vec![(SERVICE.to_owned(), prepend_mark(&service_unit(request)))];
    let version = systemd_version(files);
    let is_v2 = Cpusets::find_controller(files).is_ok_and(|cpusets| !cpusets.is_v1());
    let restricts = is_v2 && version.is_some_and(|version| version >= ALLOWED_CPUS);
    if restricts {
        let text = prepend_mark(&format!("[Slice]\nAllowedCPUs={rest}\n"));
        unit_files.extend(SLICES.into_iter().map(|slice| (drop_in(slice), text.clone())));
    }
    let remark = match version {
        None => {
            "the version of systemd is not known: AllowedCPUs= of its slices is left out".into()
        }
        Some(_) if !is_v2 => {
            "cgroups of version 1: AllowedCPUs= has no effect, and is left out".to_owned()
        }
        Some(old) if !restricts => {
            format!("systemd {old} has no AllowedCPUs= (it came with {ALLOWED_CPUS})")
        }
        Some(version) if version >= CPUSET_PARTITION => format!(
            "systemd {version} has CPUSetPartition=: a slice with AllowedCPUs={cpus} and \
             CPUSetPartition=isolated would be such a partition without punctual's tweaks, \
             instead of the service"
        ),
        Some(version) => format!(
            "systemd {version} has AllowedCPUs=, and no CPUSetPartition= (it came with \
             {CPUSET_PARTITION}): the service makes the partition"
        ),
    };
    let kernel = vec![
        (format!("irqaffinity={rest}"), "interrupts stay on the other CPUs from the first one on"),
        (
            format!("isolcpus=managed_irq,domain,{cpus}"),
            "no load balancing there, and managed interrupts elsewhere, before user space starts",
        ),
        (format!("nohz_full={cpus}"), "no tick while one task runs (CONFIG_NO_HZ_FULL)"),
        (format!("rcu_nocbs={cpus}"), "callbacks of RCU run elsewhere (CONFIG_RCU_NOCB_CPU)"),
    ];
    Ok(LastingIsolation { files: unit_files, kernel, remark })
}

/// The unit: early, before services start (bootup(7)), and undone where it is stopped by hand.
fn service_unit(request: &LastingRequest) -> String {
    let program = unit_word(&request.program, &['%', '$']);
    let options: String = request.options.iter().map(|option| format!(" {option}")).collect();
    format!(
        "[Unit]\n\
         Description=CPU {cpus} for real-time tasks alone\n\
         DefaultDependencies=no\n\
         After=local-fs.target\n\
         Before=basic.target\n\
         RequiresMountsFor={mounts}\n\n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={program} isolate create {cpus}{options}\n\
         ExecStop={program} isolate undo\n\n\
         [Install]\n\
         WantedBy=basic.target\n",
        cpus = request.cpus,
        mounts = unit_word(&request.program, &['%']),
    )
}

/// A path as a word of a unit, with these characters doubled: `%` begins a specifier, and in
/// ExecStart= `$` a variable (systemd.service(5)).
fn unit_word(path: &Path, doubled: &[char]) -> String {
    let mut text = String::from("\"");
    for c in path.display().to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if doubled.contains(&c) => text.extend([c, c]),
            c => text.push(c),
        }
    }
    text + "\""
}

fn prepend_mark(text: &str) -> String {
    format!("{MARK}{}\n{text}", encode_hex(&Sha256::digest(text)))
}

/// Whether a text is one of ours, as it was written.
fn is_ours(text: &str) -> bool {
    let rest = text.strip_prefix(MARK).and_then(|rest| rest.split_once('\n'));
    rest.is_some_and(|(digest, rest)| digest == encode_hex(&Sha256::digest(rest)))
}

/// The version of systemd, by the name of its library: it is there without running a program.
fn systemd_version(files: &dyn Files) -> Option<u32> {
    let places = ["/usr/lib/systemd", "/lib/systemd", "/usr/lib64/systemd"].map(str::to_owned);
    let by_machine = files.list("/usr/lib").unwrap_or_default().into_iter();
    let by_machine = by_machine
        .filter(|name| name.contains("-linux-"))
        .map(|name| format!("/usr/lib/{name}/systemd"));
    let version = |directory: String| {
        let names = files.list(&directory).ok()?;
        names.iter().find_map(|name| {
            let rest = name.strip_prefix("libsystemd-shared-")?;
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
    };
    places.into_iter().chain(by_machine).find_map(version)
}

/// Why files are not installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum LastingError {
    /// A file of that name exists.
    #[error("/{0} is there already: `punctual isolate unit --remove` removes one of punctual")]
    Exists(String),
    #[error("cannot {action} /{path}: {source}")]
    File { action: &'static str, path: String, source: io::Error },
}

fn file_error(action: &'static str, path: &str) -> impl FnOnce(io::Error) -> LastingError {
    let path = path.to_owned();
    move |source| LastingError::File { action, path, source }
}

/// Writes the files below a root, and the link that starts the service. Killed at any moment,
/// [`remove_lasting`] removes what is there.
pub fn install_lasting(root: &Path, files: &[(String, String)]) -> Result<(), LastingError> {
    let is_there = |path: &str| root.join(path).symlink_metadata().is_ok();
    let existing_path =
        files.iter().map(|(path, _)| path.as_str()).chain([SERVICE_LINK]).find(|p| is_there(p));
    if let Some(path) = existing_path {
        return Err(LastingError::Exists(path.to_owned()));
    }
    for (path, text) in files {
        replace_file(root, path, |beside| {
            let mut file = fs::File::create(beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .map_err(file_error("write", path))?;
    }
    replace_file(root, SERVICE_LINK, |beside| std::os::unix::fs::symlink(LINK_TARGET, beside))
        .map_err(file_error("write", SERVICE_LINK))
}

/// Makes a file beside its place, and renames it: at any instant it is whole or absent.
fn replace_file(
    root: &Path,
    path: &str,
    make: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let (target, beside) = (root.join(path), root.join(temporary_name(path)));
    let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(parent)?;
    if beside.symlink_metadata().is_ok() {
        fs::remove_file(&beside)?;
    }
    make(&beside)?;
    fs::rename(&beside, &target)?;
    fs::File::open(parent)?.sync_all()
}

/// A name that systemd does not read.
fn temporary_name(path: &str) -> String {
    format!("{path}.punctual-new")
}

/// The result of a removal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RemovedLasting {
    pub removed: Vec<String>,
    /// Files that somebody else has changed or written: they stay.
    pub kept: Vec<String>,
}

/// Removes what [`install_lasting`] wrote below a root.
pub fn remove_lasting(root: &Path) -> Result<RemovedLasting, LastingError> {
    let mut done = RemovedLasting::default();
    let links = [SERVICE_LINK.to_owned()].into_iter();
    for path in links.chain(all_files()) {
        let target = root.join(&path);
        let leftover = root.join(temporary_name(&path));
        if leftover.symlink_metadata().is_ok() {
            fs::remove_file(&leftover).map_err(file_error("remove", &path))?;
        }
        let ours = match fs::read_link(&target) {
            Ok(to) => path == SERVICE_LINK && to == Path::new(LINK_TARGET),
            Err(_) => match fs::read_to_string(&target) {
                Ok(text) => is_ours(&text),
                Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => false,
            },
        };
        if !ours {
            done.kept.push(format!("/{path}"));
            continue;
        }
        fs::remove_file(&target).map_err(file_error("remove", &path))?;
        done.removed.push(format!("/{path}"));
        if let Some(parent) = target.parent().filter(|_| path != SERVICE) {
            // One that others use stays.
            let _ = fs::remove_dir(parent);
        }
    }
    Ok(done)
}

/// How isolation will be made at the next boot, for `check`: the service with its link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LastingState {
    /// No service of punctual.
    None,
    /// It is there, and will not be started.
    NotStarted,
    /// It makes a partition of these CPUs at each boot.
    Started(CpuSet),
}

/// Reads the service.
pub(crate) fn lasting_state(files: &dyn Files) -> LastingState {
    let Ok(text) = files.read(&format!("/{SERVICE}")) else { return LastingState::None };
    let command = text.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let cpus = command.and_then(|line| {
        let rest = line.split_once(" isolate create ")?.1;
        rest.split_whitespace().next()?.parse().ok()
    });
    match cpus {
        Some(cpus) if files.exists(&format!("/{SERVICE_LINK}")) => LastingState::Started(cpus),
        _ => LastingState::NotStarted,
    }
}

impl fmt::Display for LastingIsolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, text) in &self.files {
            writeln!(f, "# /{path}\n{text}")?;
        }
        writeln!(f, "# {}\n", self.remark)?;
        writeln!(f, "# Words for the kernel's command line, which nothing here changes:")?;
        for (word, effect) in &self.kernel {
            writeln!(f, "#   {word:<40} {effect}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;

    fn request(cpus: &str) -> LastingRequest {
        LastingRequest {
            cpus: cpus.parse().expect("a list of CPUs"),
            options: vec!["--no-replug".to_owned()],
            program: "/usr/bin/punctual".into(),
        }
    }

    fn tree(systemd: u32, v2: bool) -> FakeFiles {
        let files =
            FakeFiles::new().with_file("/sys/devices/system/cpu/online", "0-3\n").with_file(
                &format!("/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-{systemd}.so"),
                "",
            );
        match v2 {
            true => files
                .with_file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
                .with_file("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
            false => files
                .with_file("/proc/mounts", "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"),
        }
    }

    fn text(files: &FakeFiles) -> String {
        plan_lasting(files, &request("2-3")).expect("it is possible").to_string()
    }

    #[test]
    fn the_service_calls_create_early_and_slices_keep_services_off() {
        let text = text(&tree(252, true));
        let digest = |text: &str| {
            let lines = text.lines().map(|line| match line.starts_with(MARK) {
                true => "# Written by …".to_owned(),
                false => line.trim_end().to_owned(),
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(digest(&text));
    }

    #[test]
    fn what_a_systemd_lacks_is_left_out_and_said() {
        for (systemd, v2, said) in
            [(241, true, "systemd 241 has no AllowedCPUs="), (252, false, "cgroups of version 1")]
        {
            let text = text(&tree(systemd, v2));
            assert!(text.contains(said) && !text.contains("[Slice]"), "{text}");
        }
        assert!(text(&tree(261, true)).contains("systemd 261 has CPUSetPartition="));
        let unknown = tree(252, true).without_path("/usr/lib/x86_64-linux-gnu");
        assert!(text(&unknown).contains("the version of systemd is not known"));
    }

    #[test]
    fn some_cpu_must_remain() {
        let files = tree(252, true);
        let refused = |cpus| plan_lasting(&files, &request(cpus)).map_err(|why| why.to_string());
        assert!(refused("0-3").is_err_and(|why| why.starts_with("no CPU would be left")));
    }

    #[test]
    fn a_program_with_special_characters_is_quoted() {
        assert_eq!(
            unit_word(Path::new("/opt/a \"b\" 50%/$x"), &['%', '$']),
            "\"/opt/a \\\"b\\\" 50%%/$$x\""
        );
    }

    #[test]
    fn everything_installed_is_removed_and_nothing_of_others() {
        let root = std::env::temp_dir().join(format!("punctual-lasting-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let others = root.join("etc/systemd/system/system.slice.d");
        fs::create_dir_all(&others).expect("a directory");
        fs::write(others.join("own.conf"), "[Slice]\n").expect("a file");
        let planned = plan_lasting(&tree(252, true), &request("2-3")).expect("it is possible");
        install_lasting(&root, &planned.files).expect("it is installed");
        let again = install_lasting(&root, &planned.files).map_err(|why| why.to_string());
        assert!(again.is_err_and(|why| why.contains("is there already")));
        let installed = crate::files::Root::from_base(&root);
        assert_eq!(
            lasting_state(&installed),
            LastingState::Started("2-3".parse().expect("a list"))
        );
        // Somebody changes one, and a kill leaves half of another.
        let user = root.join(drop_in("user.slice"));
        fs::write(&user, "[Slice]\nAllowedCPUs=0\n").expect("a file");
        fs::write(root.join(temporary_name(SERVICE)), "half").expect("a file");
        let done = remove_lasting(&root).expect("it is removed");
        assert_eq!(done.kept, [format!("/{}", drop_in("user.slice"))]);
        assert_eq!(done.removed.len(), planned.files.len());
        let mut left: Vec<PathBuf> = Vec::new();
        let mut look = vec![root.clone()];
        while let Some(directory) = look.pop() {
            for entry in fs::read_dir(directory).expect("a directory").flatten() {
                match entry.path().is_dir() {
                    true => look.push(entry.path()),
                    false => left.push(entry.path()),
                }
            }
        }
        left.sort();
        assert_eq!(left, [others.join("own.conf"), user]);
        assert_eq!(lasting_state(&installed), LastingState::None);
        fs::remove_dir_all(&root).expect("it is removed");
    }
}
