//! From the file that the user named to a plan for this system.

use crate::cli::colored;
use crate::commands::run::Common;
use crate::exit::{Exit, Failure};
use crate::output;
use punctual_core::CpuSet;
use punctual_host::files::{Files, Root};
use punctual_plan::{
    Experiment, LoadOptions, MAX_FILE_BYTES, Plan, Problems, ResolveContext, SourceFormat,
    TargetPlan,
};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An experiment with its file.
pub struct Loaded {
    /// What it says.
    pub experiment: Experiment,
    /// The file, byte for byte.
    pub bytes: Vec<u8>,
}

impl Loaded {
    /// The name under which a bundle keeps the file.
    pub fn kept_as(&self) -> &'static str {
        match self.experiment.format {
            SourceFormat::Toml => "experiment.toml",
            SourceFormat::Systress => "experiment.cfg",
        }
    }
}

/// Problems as they are shown to a person: on standard error.
pub fn rendered(problems: &Problems) -> Failure {
    // Harmless already, and coloured.
    Failure { exit: Exit::Refused, message: problems.render(colored(&io::stderr())) }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
        true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        false => Ok(file),
    });
    // One byte more than is allowed: enough to know that there are too many.
    let limit = MAX_FILE_BYTES as u64 + 1;
    let read = file.and_then(|file| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|why| Failure::refused(format!("cannot read {}: {why}", shown(path))))?;
    Ok(bytes)
}

/// A path as it may stand in a message.
pub fn shown(path: &Path) -> String {
    punctual_report::format::plain(&path.to_string_lossy())
}

/// Reads an experiment file without asking the system anything.
pub fn load(path: &Path, allow_unknown: bool) -> Result<Loaded, Failure> {
    let bytes = read(path)?;
    let experiment = punctual_plan::load(path, &bytes, &LoadOptions { allow_unknown })
        .map_err(|p| rendered(&p))?;
    Ok(Loaded { experiment, bytes })
}

/// An experiment as it was asked for: read, not yet understood.
pub struct Asked {
    /// The file, or what stands for one in messages.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Unknown sections and keys are warnings.
    pub allow_unknown: bool,
    /// When it was asked for, as it stands in the default name of a bundle.
    pub stamp: String,
    force: bool,
    target: Option<String>,
}

impl Asked {
    /// An experiment of a file.
    pub fn of_file(path: &Path, allow_unknown: bool, common: &Common) -> Result<Asked, Failure> {
        Ok(Asked { allow_unknown, ..Asked::of_text(path, read(path)?, common) })
    }

    /// An experiment that is no file; `path` stands for its path in messages.
    pub fn of_text(path: &Path, bytes: Vec<u8>, common: &Common) -> Asked {
        let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
        let (force, target) = (common.force, common.target.clone());
        Asked { path: path.to_owned(), bytes, allow_unknown: false, stamp, force, target }
    }

    /// An experiment that is no file, as it stands.
    pub fn of_plain_text(path: &Path, bytes: Vec<u8>) -> Asked {
        let (path, stamp) = (path.to_owned(), String::new());
        Asked { path, bytes, allow_unknown: false, stamp, force: false, target: None }
    }

    fn options(&self) -> LoadOptions {
        LoadOptions { allow_unknown: self.allow_unknown }
    }

    /// Where it is to run.
    pub fn target(&self) -> Result<TargetPlan, Failure> {
        let target =
            punctual_plan::target(&self.path, &self.bytes, &self.options(), self.target.as_deref());
        target.map_err(|problems| rendered(&problems))
    }

    /// Reads it without asking any system.
    pub fn load(&self) -> Result<Loaded, Failure> {
        let read = punctual_plan::load(&self.path, &self.bytes, &self.options());
        Ok(Loaded {
            experiment: read.map_err(|problems| rendered(&problems))?,
            bytes: self.bytes.clone(),
        })
    }

    /// Resolves it for this system; warnings are shown, errors end it.
    pub fn resolve(&self) -> Result<(Loaded, Plan), Failure> {
        let files = Root::system();
        let (online, present) = (cpus(&files, "online")?, cpus(&files, "present")?);
        self.resolve_for(online, present, memory(&files)?)
    }

    /// Resolves it for a system with these CPUs and so many bytes of memory, and with the programs
    /// of this one.
    pub fn resolve_for(
        &self,
        online: CpuSet,
        present: CpuSet,
        memory_bytes: u64,
    ) -> Result<(Loaded, Plan), Failure> {
        let stamp = self.stamp.clone();
        let context = ResolveContext {
            online,
            present,
            memory_bytes,
            find_program: &find_program,
            stamp,
            force: self.force,
        };
        let read =
            punctual_plan::load_and_resolve(&self.path, &self.bytes, &self.options(), &context);
        let (experiment, mut resolved) = read.map_err(|problems| rendered(&problems))?;
        if !resolved.warnings.is_empty() {
            output::say(&resolved.warnings.render(colored(&io::stderr())));
        }
        resolved.plan.target = self.target()?;
        Ok((Loaded { experiment, bytes: self.bytes.clone() }, resolved.plan))
    }
}

/// The CPUs that are online.
pub fn online_cpus() -> Result<CpuSet, Failure> {
    cpus(&Root::system(), "online")
}

fn cpus(files: &dyn Files, which: &str) -> Result<CpuSet, Failure> {
    let path = format!("/sys/devices/system/cpu/{which}");
    let text = files.read_trimmed(&path).map_err(Failure::failed)?;
    text.parse().map_err(|why| Failure::failed(format!("{path}: {why}")))
}

fn memory(files: &dyn Files) -> Result<u64, Failure> {
    let text = files.read("/proc/meminfo").map_err(Failure::failed)?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| Failure::failed("/proc/meminfo has no MemTotal"))
}

/// Finds a program as execvp(3) does: a name with a slash is a path, any other is looked for in
/// $PATH.
pub fn find_program(name: &str) -> Result<PathBuf, String> {
    let runnable = |path: &Path| -> Result<(), String> {
        let meta = path.metadata().map_err(|why| why.to_string())?;
        match meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
            true => Ok(()),
            false => Err("it is not an executable file".to_owned()),
        }
    };
    if name.contains('/') {
        return runnable(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|path| runnable(path).is_ok());
    found.ok_or_else(|| "there is no such program in $PATH".to_owned())
}
