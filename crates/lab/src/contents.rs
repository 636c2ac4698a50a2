//! The contents of a guest before it boots: the lab's own files, modules, the job, the given files.

use crate::apt::Suite;
use crate::cache::PackageCache;
use crate::foreign;
use crate::guest::{Guest, GuestFile, to_absolute};
use crate::initramfs::{FileSource, InitramfsTree};
use crate::libraries::{Libraries, Linkage};
use crate::modules::Modules;
use crate::{BootKernel, LabError};
use std::path::{Path, PathBuf};

/// The directory of the lab's own files in the guest, without the leading slash.
const OWN_DIRECTORY: &str = "punctual";
pub const JOB: &str = "/punctual/job";
/// The job's files while the host's are shared: a layer above those.
const PAYLOAD: &str = "punctual/payload/";
/// The module with which a guest that resumes from its saved boot reads its job
/// (drivers/firmware/qemu_fw_cfg.c), and its path in the guest.
const JOB_MODULE: &str = "qemu_fw_cfg";
const JOB_MODULE_FILE: &str = "/punctual/qemu_fw_cfg.ko";
/// Larger files of the job are in the base when the guest boots: the module reads four thousand
/// bytes at a time, each time from the start.
const JOB_BYTES_MAX: usize = 64 << 10;
/// The modules of the shared file system and of the writable layer above it.
const SHARE_MODULES: [&str; 3] = ["9pnet_virtio", "9p", "overlay"];
/// Files that programs expect of any system, and that a shared host has.
const GROUND_FILES: [(&str, &str); 2] =
    [("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("/etc/group", "root:x:0:\n")];

/// The contents of a guest.
pub(crate) struct Contents {
    /// The contents at boot.
    pub base: InitramfsTree,
    /// The contents that differ between jobs.
    pub job: InitramfsTree,
    /// Whether the base can read the job after booting.
    pub resumes: bool,
}

impl Contents {
    /// The complete contents.
    pub(crate) fn from_guest(guest: &Guest) -> Result<Contents, LabError> {
        let mut base = build_tree(guest)?;
        let resumes = guest.can_resume() && add_job_module(guest, &mut base)?;
        let small = |file: &&GuestFile| matches!(file.source, FileSource::Bytes(_));
        let bytes = |file: &GuestFile| match &file.source {
            FileSource::Bytes(bytes) => bytes.len(),
            FileSource::Host(_) => 0,
        };
        let mut late = vec![JOB.to_owned()];
        if guest.files.iter().map(bytes).sum::<usize>() <= JOB_BYTES_MAX && !guest.share_host {
            late.extend(guest.files.iter().filter(small).map(|file| file.path.clone()));
        }
        let layer = if guest.share_host { format!("/{PAYLOAD}") } else { String::new() };
        let late: Vec<String> = late.into_iter().map(|path| format!("{layer}{path}")).collect();
        let job = base.split_off(&late)?;
        Ok(Contents { base, job, resumes })
    }
}

/// Adds the module that reads the job, if the kernel has it as a module.
fn add_job_module(guest: &Guest, tree: &mut InitramfsTree) -> Result<bool, LabError> {
    let Some(dir) = &guest.kernel.modules else { return Ok(false) };
    match Modules::open(dir)?.module_closure([JOB_MODULE]).as_deref() {
        Ok([module]) => {
            let source = FileSource::Bytes(module.data.clone());
            tree.add_file("", JOB_MODULE_FILE, source, 0o644)?;
            Ok(true)
        }
        // Built in, it lists the readable files at boot; or there is none.
        _ => Ok(false),
    }
}

/// The guest's first file system.
fn build_tree(guest: &Guest) -> Result<InitramfsTree, LabError> {
    let mut tree = InitramfsTree::new();
    ["proc", "sys", "dev", "run", "tmp", "root", "results", "punctual/applets"]
        .iter()
        .for_each(|dir| tree.add_directory(dir));
    let script = |text: &str| FileSource::Bytes(text.as_bytes().to_vec());
    GROUND_FILES
        .iter()
        .filter(|_| !guest.share_host)
        .try_for_each(|(path, text)| tree.add_file("", path, script(text), 0o644))?;
    tree.add_file("", "/init", script(include_str!("init.sh")), 0o755)?;
    tree.add_file(
        "",
        &format!("/{OWN_DIRECTORY}/way"),
        script(guest.board.init_functions()),
        0o644,
    )?;
    tree.add_file(
        "",
        &format!("/{OWN_DIRECTORY}/busybox"),
        FileSource::Host(find_busybox(&guest.kernel)?),
        0o755,
    )?;
    if guest.padding > 0 {
        tree.add_file(
            "",
            &format!("/{OWN_DIRECTORY}/padding"),
            FileSource::Bytes(vec![0; guest.padding]),
            0o644,
        )?;
    }
    add_modules(guest, &mut tree)?;

    let layer = if guest.share_host { PAYLOAD } else { "" };
    if guest.share_host {
        tree.add_file("", &format!("/{OWN_DIRECTORY}/share-host"), script(""), 0o644)?;
        tree.add_directory(PAYLOAD);
        if let Some(file) = guest.files.iter().find(|file| file.path.starts_with("/run/")) {
            let reason = "is not visible in a guest that shares the host's files: the guest has \
                       its own /run";
            return Err(LabError::Request(format!("the file {} {reason}", file.path)));
        }
    }
    tree.add_file(layer, JOB, script(&guest.job.to_script()), 0o755)?;
    if let (Some(config), Some(release)) = (&guest.kernel.config, guest.kernel.kernel_release()) {
        tree.add_file(
            layer,
            &format!("/boot/config-{release}"),
            FileSource::Host(config.clone()),
            0o644,
        )?;
    }
    for program in &guest.programs {
        add_program(guest, &mut tree, layer, &to_absolute(program)?)?;
    }
    for file in &guest.files {
        tree.add_file(layer, &file.path, file.source.clone(), file.mode)?;
    }
    for (path, target) in &guest.links {
        tree.link_if_absent(layer, path, target)?;
    }
    if !guest.share_host {
        tree.link_if_absent("", "/bin/sh", &format!("/{OWN_DIRECTORY}/busybox"))?;
    }
    Ok(tree)
}

fn add_modules(guest: &Guest, tree: &mut InitramfsTree) -> Result<(), LabError> {
    for (place, (name, module)) in guest.drivers.iter().enumerate() {
        // The init loads them in the order of their names: these after all others.
        let path = format!("/{OWN_DIRECTORY}/modules/own-{place:03}-{name}.ko");
        tree.add_file("", &path, FileSource::Bytes(module.clone()), 0o644)?;
    }
    let Some(dir) = &guest.kernel.modules else {
        return match guest.modules.first() {
            Some(module) => Err(LabError::Request(format!(
                "the kernel has no modules and cannot load `{module}`: name their directory \
                 (modules = \"…/lib/modules/RELEASE\")"
            ))),
            None => Ok(()),
        };
    };
    let needed_modules = guest
        .board
        .required_modules()
        .iter()
        .chain(SHARE_MODULES.iter().filter(|_| guest.share_host));
    let wanted = needed_modules.copied().chain(guest.modules.iter().map(String::as_str));
    for (place, module) in Modules::open(dir)?.module_closure(wanted)?.into_iter().enumerate() {
        let path = format!("/{OWN_DIRECTORY}/modules/{place:03}-{}.ko", module.name);
        tree.add_file("", &path, FileSource::Bytes(module.data), 0o644)?;
    }
    Ok(())
}

fn add_program(
    guest: &Guest,
    tree: &mut InitramfsTree,
    layer: &str,
    program: &Path,
) -> Result<(), LabError> {
    let arch = guest.kernel.arch;
    if let Some(linkage) = Linkage::read(program)?.filter(|l| l.machine != arch.elf_machine()) {
        let reason = format!(
            "a program for ELF machine {}, not for {}",
            linkage.machine,
            arch.debian_name()
        );
        let files = foreign::find_counterpart(program, arch)?
            .ok_or_else(|| LabError::malformed(program, reason))?;
        return files
            .into_iter()
            .try_for_each(|file| tree.add_file(layer, &file.path, file.source, file.mode));
    }
    // A shared host has the libraries at their paths.
    let libraries = if guest.share_host {
        Vec::new()
    } else {
        Libraries::of_the_system().library_closure(program)?
    };
    for path in libraries.into_iter().chain([program.to_owned()]) {
        let name = path
            .to_str()
            .ok_or_else(|| LabError::malformed(&path, "its name is not UTF-8"))?
            .to_owned();
        let file = GuestFile::from_host_file(&path, name)?;
        tree.add_file(layer, &file.path, file.source, file.mode)?;
    }
    Ok(())
}

/// A static busybox for the guest: this machine's own if it has one for that architecture, else
/// Debian's, fetched.
fn find_busybox(kernel: &BootKernel) -> Result<PathBuf, LabError> {
    let fits = |path: &PathBuf| {
        let linkage = Linkage::read(path).ok().flatten();
        linkage.is_some_and(|l| l.interpreter.is_none() && l.machine == kernel.arch.elf_machine())
    };
    if let Some(own) =
        ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from).into_iter().find(fits)
    {
        return Ok(own);
    }
    let cache = PackageCache::open()?;
    let suite = Suite::open(&cache, kernel.guest_suite(), kernel.arch)?;
    let tree = suite.unpack_family(&[suite.find_candidate("busybox-static")?])?;
    let places = ["bin/busybox", "usr/bin/busybox"].map(|place| tree.join(place));
    places
        .into_iter()
        .find(fits)
        .ok_or_else(|| LabError::malformed(tree, "no static busybox in this package"))
}
