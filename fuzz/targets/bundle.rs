//! A stored bundle of which one file is cut off or, where it has checksums, changed at any byte: no
//! requirement is met that is not met in the whole one, and neither is the run.
use punctual_bundle::Bundle;
use punctual_bundle::summary::{Summary, VerdictWord};
use punctual_stats::summarize_bundle;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What is required of a series, and is open: phase, series, requirement.
type Open = BTreeSet<[String; 3]>;

/// A copy of a fixture, changed and put back each time.
struct Copy {
    directory: PathBuf,
    /// The files, with what is in them.
    files: Vec<(PathBuf, Vec<u8>)>,
    open: Open,
}

/// One that was cut off, and one that lost samples: neither is met.
static COPIES: LazyLock<Vec<Copy>> = LazyLock::new(|| {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-bundle");
    let earlier = fs::read_dir(&place).into_iter().flatten().flatten();
    for left in earlier.filter(|of| !Path::new("/proc").join(of.file_name()).exists()) {
        let _ = fs::remove_dir_all(left.path());
    }
    let place = place.join(std::process::id().to_string());
    ["cut-off", "lossy"].map(|name| copied(name, place.join(name))).into()
});

fn copied(name: &str, directory: PathBuf) -> Copy {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/bundles").join(name);
    let mut files = Vec::new();
    copy(&from, &directory, &mut files);
    files.sort();
    let whole = summary(&directory).expect("a fixture opens");
    let open = open(&whole);
    assert!(whole.verdict.word != Some(VerdictWord::Met) && !open.is_empty(), "{name}");
    Copy { directory, files, open }
}

fn copy(from: &Path, to: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to, files);
            continue;
        }
        let bytes = fs::read(&path).expect("a file");
        fs::write(&to, &bytes).expect("written");
        files.push((to, bytes));
    }
}

fn summary(directory: &Path) -> Option<Summary> {
    Bundle::open(directory).ok().map(|bundle| summarize_bundle(&bundle))
}

fn requirements(summary: &Summary) -> impl Iterator<Item = ([String; 3], VerdictWord)> {
    let series = summary
        .phases
        .iter()
        .flat_map(|phase| phase.series.iter().map(move |series| (phase, series)));
    series.flat_map(|(phase, series)| {
        let of = |text: &String| [phase.name.clone(), series.name.clone(), text.clone()];
        series.requirements.iter().map(move |held| (of(&held.requirement), held.verdict))
    })
}

fn open(summary: &Summary) -> Open {
    let open = requirements(summary).filter(|(_, verdict)| *verdict != VerdictWord::Met);
    open.map(|(what, _)| what).collect()
}

pub fn fuzz(bytes: &[u8]) {
    let Some((head, data)) = bytes.split_first_chunk::<6>() else { return };
    let [copy, file, how, place @ ..] = *head;
    let copy = &COPIES[usize::from(copy) % COPIES.len()];
    let (path, whole) = &copy.files[usize::from(file) % copy.files.len()];
    let place = u32::from_le_bytes([place[0], place[1], place[2], 0]) as usize;
    let place = place % whole.len().max(1);
    let has_checksums = path.extension().is_some_and(|of| of == "log" || of == "checkpoint");
    let mut changed = whole.clone();
    if how % 2 == 0 || !has_checksums {
        changed.truncate(place);
    } else {
        changed.iter_mut().skip(place).zip(data).for_each(|(byte, other)| *byte ^= other);
    }
    fs::write(path, &changed).expect("written");
    let read = summary(&copy.directory);
    fs::write(path, whole).expect("written");
    let Some(read) = read else { return };
    assert!(read.verdict.word != Some(VerdictWord::Met), "{} is met", path.display());
    for (what, verdict) in requirements(&read) {
        let stays = verdict != VerdictWord::Met || !copy.open.contains(&what);
        assert!(stays, "{what:?} is met with {} changed at {place}", path.display());
    }
}
