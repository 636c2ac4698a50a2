//! Every link of a document has a target, every page can be reached from docs/README.md, every page
//! named in a source exists, and the documents for users stay short.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The files below some directories of the repository, with one of the endings.
fn files(directories: &[&str], endings: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = directories.iter().map(|name| root().join(name)).collect();
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() {
                let built = ["target", "corpus", "artifacts", ".git", "testdata"];
                open.extend((!built.contains(&&*name)).then_some(path));
            } else if endings.iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found
}

fn documents() -> Vec<PathBuf> {
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let mut all = files(&["docs", "crates", "bench", "fixtures", "packaging"], &[".md"]);
    all.extend(pages.map(|name| root().join(name)));
    all
}

/// The lines that are prose: not within a block of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence && !line.starts_with("    ")
    })
}

/// The targets of links: `](TARGET)`.
fn links(text: &str) -> Vec<&str> {
    let ends = prose(text).flat_map(|line| line.split("](").skip(1));
    ends.filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// GitHub's anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// Resolves `docs/a/../b.md` to `docs/b.md`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
        path
    })
}

fn target(page: &Path, link: &str) -> PathBuf {
    let path = link.split('#').next().unwrap_or_default();
    if path.is_empty() { page.to_owned() } else { plain(&page.parent().unwrap().join(path)) }
}

#[test]
fn every_link_in_the_documents_has_a_target() {
    let (mut count, mut dead) = (0, Vec::new());
    for page in documents() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            count += 1;
            let path = target(&page, link);
            let found = match link.split_once('#') {
                None => path.exists(),
                Some((_, name)) => {
                    fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(name))
                }
            };
            if !found {
                dead.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(count > 100, "{count} links were found");
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_page_is_reached_from_the_index() {
    let mut open = vec![root().join("docs/README.md")];
    let mut reached = BTreeSet::new();
    while let Some(page) = open.pop() {
        if reached.insert(page.clone()) && page.extension().is_some_and(|end| end == "md") {
            let text = fs::read_to_string(&page).unwrap_or_default();
            open.extend(links(&text).iter().map(|link| target(&page, link)));
        }
    }
    let pages = files(&["docs"], &[".md"]);
    assert!(pages.len() > 30, "{} pages were found", pages.len());
    let lost: Vec<_> = pages.iter().filter(|page| !reached.contains(*page)).collect();
    assert!(lost.is_empty(), "no link leads from docs/README.md to {lost:?}");
}

/// The pages named in a text: `docs/reference/json.md`, in a help text or a comment.
fn pages_named(text: &str) -> Vec<&str> {
    let starts = text.match_indices("docs/").map(|(at, _)| &text[at..]);
    let named = |rest: &'_ str| {
        rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/._-".contains(c)).unwrap_or(rest.len())
    };
    starts
        .map(|rest| rest[..named(rest)].trim_end_matches('.'))
        .filter(|path| path.ends_with(".md"))
        .collect()
}

#[test]
fn pages_named_in_sources_exist() {
    let endings = [".rs", ".c", ".h", ".sh", ".toml", ".yml", ".yaml", ".json", ".5", ".py"];
    let mut all = files(&["crates", "bench", "examples", "packaging", "docs"], &endings);
    all.extend(["x", "Cargo.toml", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let (mut count, mut wrong) = (0, Vec::new());
    // This one contains examples.
    all.retain(|path| !path.ends_with("tests/links.rs"));
    for source in &all {
        for page in pages_named(&fs::read_to_string(source).unwrap_or_default()) {
            count += 1;
            if !root().join(page).exists() {
                wrong.push(format!("{}: {page}", source.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(count > 50, "{count} names were found");
    assert!(wrong.is_empty(), "pages that are not there:\n{}", wrong.join("\n"));
}

/// The words of the documents for users, of the reference, and of the notes.
fn words_by_kind() -> [(&'static str, usize); 3] {
    let mut words = [("users", 0), ("reference", 0), ("notes", 0)];
    let pages = files(&["docs"], &[".md"]).into_iter().chain([root().join("README.md")]);
    for page in pages {
        let kind = match page.strip_prefix(root().join("docs")) {
            Ok(path) if path.starts_with("reference") => 1,
            Ok(path) if path.starts_with("notes") || path.starts_with("decisions") => 2,
            _ => 0,
        };
        words[kind].1 += fs::read_to_string(page).unwrap().split_whitespace().count();
    }
    words
}

/// The table is in thousands, so that single sentences do not change it.
#[test]
fn documents_for_users_do_not_exceed_their_word_limit() {
    let words = words_by_kind();
    assert!(words[0].1 <= 30_000, "{words:?}: a user reads no more than 30,000 words");
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    for (kind, count) in words {
        let row = page.lines().find(|line| line.starts_with(&format!("| {kind} |")));
        let row = row.unwrap_or_else(|| panic!("CONTRIBUTING.md has no row for {kind}"));
        let stated = row.split('|').nth(3).and_then(|cell| cell.trim().parse::<usize>().ok());
        let stated = stated.unwrap_or_else(|| panic!("{row}: no number of thousands"));
        let off = count.abs_diff(stated * 1_000);
        assert!(off <= 2_000, "{row}: there are {count} words; correct it");
    }
}

#[test]
fn links_are_recognised_outside_of_code() {
    let text = "a [b](c.md) and [d](e.md#f-g)\n```\n[x](y)\n```\n    [x](y)\n## F, `g`?\n";
    assert_eq!(links(text), ["c.md", "e.md#f-g"]);
    assert_eq!(anchors(text), BTreeSet::from(["f-g".to_owned()]));
    assert_eq!(target(Path::new("/a/b/c.md"), "../d.md#e"), Path::new("/a/d.md"));
    assert_eq!(pages_named("see docs/a/b-c.md, docs/x.rst."), ["docs/a/b-c.md"]);
}
