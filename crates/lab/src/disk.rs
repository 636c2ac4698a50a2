//! File systems for guests, created on this machine.

use crate::{LabError, tools};
use std::fs;
use std::path::Path;

/// A constant: a random one would be another timeline each time.
const UUID: &str = "70756e63-7475-616c-8000-000000000001";
/// The creation time of the file system, in seconds since 1970: 2026-01-01, the guests' clock.
const MADE_AT: &str = "1767225600";

/// Creates a file with an ext4 file system, the same bytes each time.
pub fn ext4_image(path: &Path, bytes: u64) -> Result<(), LabError> {
    let mke2fs = tools::find_program("mke2fs", "e2fsprogs")?;
    let env = tools::find_program("env", "coreutils")?;
    let file = fs::File::create(path).map_err(LabError::io("create", path))?;
    file.set_len(bytes).map_err(LabError::io("write", path))?;
    let seed = format!("hash_seed={UUID},lazy_itable_init=0,lazy_journal_init=0");
    let fixed = [format!("E2FSPROGS_FAKE_TIME={MADE_AT}"), format!("SOURCE_DATE_EPOCH={MADE_AT}")];
    let (mke2fs, image) =
        (mke2fs.to_string_lossy().into_owned(), path.to_string_lossy().into_owned());
    let words = fixed
        .into_iter()
        .chain([mke2fs])
        .chain(["-q", "-F", "-t", "ext4", "-U", UUID, "-E"].map(str::to_owned));
    let mke2fs_result = tools::run_program(&env, words.chain([seed, image]), Path::new("/"));
    mke2fs_result.map(drop).map_err(|why| {
        LabError::malformed(path, format!("no file system could be created in it: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_same_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            ext4_image(&path, 64 << 20).map(|_| fs::read(path).unwrap())
        };
        let (one, two) = match (make("one"), make("two")) {
            (Err(LabError::Missing(missing)), _) => return println!("SKIPPED: {missing}"),
            (one, two) => (one.unwrap(), two.unwrap()),
        };
        // The magic number of ext2, ext3 and ext4 (fs/ext4/ext4.h, s_magic).
        assert_eq!(one[0x438..0x43a], [0x53, 0xef]);
        assert!(one == two);
    }
}
