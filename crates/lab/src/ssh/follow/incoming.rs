//! Receives the bundle beside its place, and moves it there only when complete.

use super::super::files::FileReceiver;
use super::super::wire::WireFrame;
use super::{ErrorPlace, SshError};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The maximum size of a received bundle.
const MAX: u64 = 64 << 30;

pub struct Incoming {
    place: TempDir,
    receiver: FileReceiver,
}

impl Incoming {
    pub fn new(output: &Path) -> Result<Incoming, SshError> {
        let parent = output
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let place = tempfile::Builder::new().prefix(".punctual-incoming-").tempdir_in(parent);
        let place = place.map_err(SshError::local("create a directory in", parent))?;
        let receiver = FileReceiver::new(&bundle_in(&place), MAX)
            .map_err(SshError::local("create", &bundle_in(&place)))?;
        Ok(Incoming { place, receiver })
    }

    /// Handles the next frame; true for the last one.
    pub fn take(&mut self, frame: &WireFrame) -> Result<bool, SshError> {
        let wrong =
            |why| SshError::new(ErrorPlace::Local, format!("the bundle cannot be received: {why}"));
        self.receiver.take(frame).map_err(wrong)
    }

    /// Moves the bundle to its place; false if there was none.
    pub fn settle(self, output: &Path) -> Result<bool, SshError> {
        let bundle = bundle_in(&self.place);
        if !bundle.join("bundle.json").is_file() {
            return Ok(false);
        }
        fs::rename(&bundle, output).map_err(SshError::local("create", output))?;
        Ok(true)
    }
}

fn bundle_in(place: &TempDir) -> PathBuf {
    place.path().join("bundle")
}
