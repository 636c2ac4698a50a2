//! The directory of a lab.
//!
//! ```text
//! lab.json                        what was run and what came out (see punctual_bundle::lab)
//! lab.toml                        the lab file as last run
//! report.html
//! cells/6.1_rt_idle/s7.toml       the cell's experiment with the seed 7 (cell.toml: with its own)
//! cells/6.1_rt_idle/s7-r1/        the bundle of its first repetition (r1: without seeds)
//! cells/6.1_rt_idle/s7-r1.log     what that run said
//! ```
//!
//! A run writes into a directory of another name (`.s7-r1.PID`), which gets its own when the run is
//! over: a bundle that is there is whole, whenever the lab was killed. In it `lab-run.json` says of
//! which inputs it is; of others it is made anew.

use super::jobs::{Job, Planned};
use crate::exit::Failure;
use punctual_bundle::{Bundle, Completeness, Member, Outcome, lab};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Says in a run's bundle what it is a run of.
const STAMP: &str = "lab-run.json";
const LOCK: &str = "lab.lock";

/// A lab's directory, held by this process alone.
pub struct Directory {
    path: PathBuf,
    _lock: File,
    /// A sum of this program: another one is another timeline in a guest.
    program: String,
}

/// [`STAMP`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The sum of the inputs.
    pub inputs: String,
    /// How long it took by this machine's clock, in ns.
    pub took: i64,
    /// The exit code of the run.
    pub exit_code: i32,
}

impl Directory {
    /// Makes it, or takes up one that is there.
    ///
    /// # Errors
    /// It is something else, or another process works in it.
    pub fn open(path: &Path) -> Result<Directory, Failure> {
        let cannot = |what: &str, why: &dyn std::fmt::Display| {
            Failure::refused(format!("cannot {what} the lab's directory {}: {why}", path.display()))
        };
        let holds_something = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if holds_something && !path.join(LOCK).exists() {
            return Err(cannot(
                "use",
                &"it exists already and is not a lab; choose another directory with --output",
            ));
        }
        fs::create_dir_all(path.join("cells")).map_err(|why| cannot("make", &why))?;
        let lock = File::create(path.join(LOCK)).map_err(|why| cannot("use", &why))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| cannot("use", &"another `punctual lab run` is using it"))?;
        let program =
            sum_of_file(Path::new("/proc/self/exe")).map_err(|why| cannot("use", &why))?;
        Ok(Directory { path: path.to_owned(), _lock: lock, program })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The experiment of a cell with a seed, relative to the directory.
    pub fn experiment(planned: &Planned, job: &Job) -> String {
        let name = planned.seeds[job.seed].map_or("cell".to_owned(), |seed| format!("s{seed}"));
        format!("cells/{}/{name}.toml", planned.cells[job.cell].cell.name)
    }

    /// The bundle of a run, relative to the directory.
    pub fn bundle(planned: &Planned, job: &Job) -> String {
        let seed = planned.seeds[job.seed].map_or(String::new(), |seed| format!("s{seed}-"));
        format!("cells/{}/{seed}r{}", planned.cells[job.cell].cell.name, job.repeat + 1)
    }

    /// Where a run writes until it is over.
    pub fn unfinished(&self, planned: &Planned, job: &Job) -> PathBuf {
        let bundle = self.path.join(Directory::bundle(planned, job));
        let name = bundle.file_name().unwrap_or_default().to_string_lossy().into_owned();
        bundle.with_file_name(format!(".{name}.{}", std::process::id()))
    }

    /// What a run says is kept here.
    pub fn log(&self, planned: &Planned, job: &Job) -> PathBuf {
        self.path.join(format!("{}.log", Directory::bundle(planned, job)))
    }

    /// Writes the lab file and all experiments, and removes what killed runs have left.
    pub fn prepare(&self, planned: &Planned) -> Result<(), Failure> {
        self.replace("lab.toml", planned.lab.source.text.as_bytes())?;
        for (number, cell) in planned.cells.iter().enumerate() {
            let place = self.path.join("cells").join(&cell.cell.name);
            fs::create_dir_all(&place).map_err(|why| cannot_write(&place, &why))?;
            for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with('.') {
                    // A run of a killed lab may still be ending there: then the next time removes
                    // it.
                    let _ = fs::remove_dir_all(entry.path());
                }
            }
            for seed in 0..planned.seeds.len() {
                let name = Directory::experiment(planned, &Job { cell: number, seed, repeat: 0 });
                self.replace(&name, cell.cell.experiment(planned.seeds[seed]).as_bytes())?;
            }
        }
        Ok(())
    }

    /// The sum of everything that a run depends on and that is known before it: the experiment,
    /// this program, a kernel by path.
    pub fn inputs(&self, planned: &Planned, job: &Job) -> String {
        let text = planned.cells[job.cell].cell.experiment(planned.seeds[job.seed]);
        let mut sum = Sha256::new();
        for part in [text.as_str(), &self.program] {
            sum.update(part.as_bytes());
            sum.update([0]);
        }
        // Of a run that was not seen instruction by instruction the bundle lacks what is wanted.
        if planned.exact {
            sum.update(b"exact");
        }
        for path in paths(&text) {
            sum.update(sum_of_file(&path).unwrap_or_else(|why| why.to_string()));
        }
        hex(&sum.finalize())
    }

    /// The stamp of a run that is over, if its bundle is whole and of these inputs.
    pub fn finished(&self, planned: &Planned, job: &Job, inputs: &str) -> Option<Stamp> {
        let bundle = self.path.join(Directory::bundle(planned, job));
        let stamp: Stamp = Member::root(&bundle).join(STAMP).read_json().ok()?;
        (stamp.inputs == inputs && is_whole(&bundle)).then_some(stamp)
    }

    /// Gives a bundle that is whole its name.
    pub fn finish(&self, planned: &Planned, job: &Job, stamp: &Stamp) -> Result<(), Failure> {
        let from = self.unfinished(planned, job);
        let to = self.path.join(Directory::bundle(planned, job));
        let failed = |why: &dyn std::fmt::Display| cannot_write(&to, why);
        Member::root(&from).join(STAMP).replace_json(stamp).map_err(Failure::failed)?;
        match fs::remove_dir_all(&to) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(failed(&why)),
            _ => {}
        }
        fs::rename(&from, &to).map_err(|why| failed(&why))
    }

    /// Puts a whole file in the place of what was there.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let write = |out: &mut io::BufWriter<File>| {
            out.write_all(bytes)?;
            out.flush()?;
            out.get_ref().sync_all()
        };
        Member::root(&self.path).join(name).replace_with(write).map_err(Failure::failed)
    }

    /// Writes `lab.json`.
    pub fn write(&self, document: &lab::LabDocument) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).map_err(Failure::failed)?;
        self.replace(lab::FILE, text.as_bytes())
    }
}

/// Whether a run came to its end, whatever the end was but an interruption or a failure.
pub fn is_whole(bundle: &Path) -> bool {
    Bundle::open(bundle).is_ok_and(|bundle| {
        let outcome = bundle.manifest.ending.as_ref().map(|ending| &ending.outcome);
        bundle.completeness == Completeness::Whole
            && !matches!(outcome, Some(Outcome::Interrupted | Outcome::Failed { .. }) | None)
    })
}

fn cannot_write(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot write {}: {why}", path.display()))
}

/// The files that the experiment's target names by path.
fn paths(experiment: &str) -> Vec<PathBuf> {
    let keys = ["kernel", "binary"];
    let target = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (keys.contains(&key.trim()) && value.contains('/')).then(|| PathBuf::from(value))
    };
    experiment.lines().filter_map(target).collect()
}

fn sum_of_file(path: &Path) -> io::Result<String> {
    let mut sum = Sha256::new();
    io::copy(&mut File::open(path)?, &mut Summing(&mut sum))?;
    Ok(hex(&sum.finalize()))
}

struct Summing<'a>(&'a mut Sha256);

impl Write for Summing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// In lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
