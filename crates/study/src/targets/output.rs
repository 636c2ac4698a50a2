//! The bundle's directory of a run elsewhere.

use punctual_session::exit::Failure;
use punctual_session::messages::shown;
use std::path::Path;

/// Checks that the bundle can be created, before anything is started.
pub fn check_output(output: &Path) -> Result<(), Failure> {
    let shown = shown(output);
    if output.symlink_metadata().is_ok() {
        let message =
            format!("{shown} exists already: choose another directory with --output, or move it");
        return Err(Failure::refused(message));
    }
    let parent = parent(output);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(parent, access)
        .map_err(|why| Failure::refused(format!("cannot create {shown}: {why}")))
}

/// The parent directory of a path.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
