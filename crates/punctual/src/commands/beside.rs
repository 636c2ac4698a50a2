//! Outputs of a measurement beside its bundle: the page, the verdicts for other programs, and its
//! record among those of earlier runs.

use super::bundle_page;
use crate::exit::{Failure, Outputs};
use crate::output;
use punctual_bundle::Bundle;
use punctual_bundle::summary::Summary;
use punctual_report::export::{self, Format};
use punctual_report::html;
use punctual_session::end::EarlierRuns;
use punctual_session::messages::display_path;
use punctual_study::baseline::Baseline;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// The files, and the baseline.
#[derive(clap::Args)]
pub struct FilesBeside {
    /// Also write the HTML report to this file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Also write the verdicts as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write the verdicts as LAVA lines to this file
    #[arg(long, value_name = "FILE")]
    lava: Option<PathBuf>,
    /// Compare the figures with earlier ones of the same experiment or program, machine and kernel,
    /// which this directory keeps: worse than they were is not met (docs/trend.md)
    #[arg(long, value_name = "DIR")]
    baseline: Option<PathBuf>,
    /// The tested commit, for the records of --baseline [default: as the CI names it]
    #[arg(long, value_name = "ID", requires = "baseline")]
    commit: Option<String>,
    /// A run with too few earlier runs to compare with is undecided (exit code 4)
    #[arg(long, requires = "baseline")]
    baseline_required: bool,
}

impl FilesBeside {
    /// Checks, before anything is measured, that all files can be written.
    ///
    /// # Errors
    /// The one that cannot, with the reason.
    pub fn check_files(&self) -> Result<(), Failure> {
        check_report(self.report.as_deref())?;
        self.baseline().map_or(Ok(()), |baseline| baseline.check_directory())?;
        for (option, path) in [("--junit", &self.junit), ("--lava", &self.lava)] {
            if let Some(path) = path {
                check_file_writable(path, option)?;
            }
        }
        Ok(())
    }

    /// Writes the files about a bundle.
    pub fn write(&self, bundle: &Bundle, outputs: &mut Outputs) {
        if let Some(path) = &self.report {
            outputs.add(bundle_page::write(std::slice::from_ref(bundle), path));
        }
        for (path, format) in [(&self.junit, Format::Junit), (&self.lava, Format::Lava)] {
            let Some(path) = path else { continue };
            let mut bytes = Vec::new();
            let export_result =
                export::export_bundle(bundle, format, &mut bytes).map_err(Failure::failed);
            outputs.add(export_result.and_then(|()| output::write_to(Some(path), &bytes)));
        }
    }

    /// Compares a measurement that has ended elsewhere with the baseline: returns the resulting
    /// figures and verdict. `None` without a baseline.
    ///
    /// # Errors
    /// The bundle or the records cannot be read or written.
    pub fn compare_with_baseline(&self, bundle: &Path) -> Result<Option<Summary>, Failure> {
        self.baseline().map(|baseline| baseline.compare_bundle(bundle)).transpose()
    }

    /// The baseline, as the end of a run takes it.
    pub fn earlier_runs(&self) -> Option<Box<dyn EarlierRuns>> {
        self.baseline().map(|baseline| Box::new(baseline) as Box<dyn EarlierRuns>)
    }

    /// The baseline of a measurement.
    pub fn baseline(&self) -> Option<Baseline> {
        let directory = self.baseline.clone()?;
        let required = self.baseline_required;
        Some(Baseline { directory, commit: self.commit.clone(), required })
    }
}

/// Checks the page alone.
pub fn check_report(file: Option<&Path>) -> Result<(), Failure> {
    check_page_support(file)?;
    file.map_or(Ok(()), |path| check_file_writable(path, "--report"))
}

/// Refuses a page if this build makes none.
pub fn check_page_support(file: Option<&Path>) -> Result<(), Failure> {
    match file {
        Some(_) if !html::BUILT => Err(Failure::refused(html::WITHOUT_PAGES)),
        _ => Ok(()),
    }
}

/// Refuses a file that cannot be written.
///
/// # Errors
/// Why not.
pub fn check_file_writable(path: &Path, what: &str) -> Result<(), Failure> {
    test_writability(path).map_err(|why| {
        Failure::refused(format!("cannot write {} ({what}): {why}", display_path(path)))
    })
}

/// Changes nothing: an existing file is opened but not truncated, a missing one is not created.
fn test_writability(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(meta) if meta.is_file() || meta.is_dir() => {
            OpenOptions::new().append(true).open(path).map(drop)
        }
        // A device or a pipe: opening it may block until there is a reader.
        Ok(_) => Ok(()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            match parent.metadata()?.is_dir() {
                true => Ok(rustix::fs::access(
                    parent,
                    rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
                )?),
                false => Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn an_unwritable_output_does_not_prevent_the_others() {
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles/good");
        let bundle = Bundle::open(Path::new(fixture)).expect("it opens");
        let names = ["page", "junit", "lava"];
        let all = [Exit::Done, Exit::Failed, Exit::NotMet, Exit::NoEvidence];
        for full in [&[][..], &[0], &[1], &[2], &[0, 1, 2]] {
            let place = tempfile::tempdir().expect("a directory");
            let path = |file: usize| match full.contains(&file) {
                true => PathBuf::from("/dev/full"),
                false => place.path().join(names[file]),
            };
            let [report, junit, lava] = [0, 1, 2].map(|file| Some(path(file)));
            let (baseline, commit, baseline_required) = (None, None, false);
            let beside = FilesBeside { report, junit, lava, baseline, commit, baseline_required };
            for exit in all {
                let mut outputs = Outputs::default();
                beside.write(&bundle, &mut outputs);
                let others = (0..names.len()).filter(|file| !full.contains(file));
                others.for_each(|file| assert!(path(file).metadata().is_ok_and(|of| of.len() > 0)));
                let Err(why) = outputs.into_ending(exit) else {
                    assert!(full.is_empty());
                    continue;
                };
                let said = why.render(false);
                assert_eq!(said.matches("cannot write /dev/full").count(), full.len(), "{said}");
                assert_eq!(why.exit, if exit == Exit::Done { Exit::Failed } else { exit });
            }
        }
    }
}
