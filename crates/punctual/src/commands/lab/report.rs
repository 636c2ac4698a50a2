//! `punctual lab report`: the results of a lab as one page.

use crate::commands::bundle_page;
use crate::commands::printing;
use crate::commands::stored::{StoredRun, StoredRuns};
use crate::exit::{Ending, Failure, Outputs};
use crate::output;
use punctual_bundle::lab::{self, CellDocument, LabDocument};
use punctual_bundle::{Bundle, Member};
use punctual_report::document::{self, lab_page};
use punctual_report::export;
use punctual_report::html::{self, HtmlError};
use punctual_stats::lab::{StoredCell, add_requirements, of_runs, pool_samples};
use punctual_study::labs::worst;
use std::path::{Path, PathBuf};

/// Write the report of a lab, finished or not
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual lab report punctual-lab-p2\n  punctual lab report \
                        punctual-lab-p2 -o p2.html --junit p2.xml\n\nExit codes: as `punctual \
                        lab run`.")]
pub struct LabReportArgs {
    /// The lab's directory
    #[arg(value_name = "LAB")]
    directory: PathBuf,
    /// Report a lab of the Parquet tables in DIR (export --format parquet-tables): LAB is its name,
    /// and the page NAME.html in the current directory
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
    /// The output file [default: report.html in the lab's directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the verdicts as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print lab.json instead of tables
    #[arg(long)]
    json: bool,
}

/// Reads the lab, writes the report and prints the tables.
pub fn run(args: LabReportArgs) -> Ending {
    if !html::BUILT {
        return Err(Failure::refused(html::WITHOUT_PAGES));
    }
    let (document, page) = match &args.tables {
        None => {
            let document = read(&args.directory)?;
            let page = write(&document, &args.directory, args.output.as_deref());
            (document, page)
        }
        Some(tables) => of_tables(tables, &args.directory, args.output.as_deref())?,
    };
    let mut outputs = Outputs::default();
    let page = outputs.add(page);
    if let Some(file) = &args.junit {
        outputs.add(write_junit(&document, file));
    }
    let directory = args.directory.display().to_string();
    let text = |options: &_| {
        document::build_lab_document(&document, &directory, &[]).to_terminal_text(options)
    };
    let places = [("report", page.as_deref())];
    outputs.add(printing::print_document(&document, args.json, text, &places));
    outputs.into_ending(document.to_exit())
}

/// The document in a lab's directory, with the current knowledge of its worst samples.
///
/// # Errors
/// The document cannot be read, or is of another version.
pub fn read(directory: &Path) -> Result<LabDocument, Failure> {
    let mut document = lab::read(directory).map_err(Failure::refused)?;
    worst::refresh_worst(&mut document, directory);
    Ok(document)
}

fn stored_cell(run: &StoredRun) -> Option<StoredCell<'_>> {
    let (seed, verdict, bundle) = (run.seed, run.verdict, &run.bundle);
    Some(StoredCell { cell: run.cell.as_deref()?, seed, verdict, bundle })
}

/// The lab of this name from the tables, and its page.
fn of_tables(
    tables: &Path,
    name: &Path,
    file: Option<&Path>,
) -> Result<(LabDocument, Result<PathBuf, Failure>), Failure> {
    let name = name.to_string_lossy();
    let stored = StoredRuns::of_lab(tables, &name)?;
    let cells: Vec<StoredCell<'_>> = stored.runs.iter().filter_map(stored_cell).collect();
    let document = of_runs(&name, &cells)
        .ok_or_else(|| Failure::refused(format!("no run of the lab {name} has a cell")))?;
    let pooled = |cell: &CellDocument| {
        let mut seeds: Vec<Option<u64>> = Vec::new();
        let mut of_cell = cells.iter().filter(|run| run.cell == cell.name).filter(|run| {
            let is_first = !seeds.contains(&run.seed);
            seeds.push(run.seed);
            is_first
        });
        let mut pooled_bundle = of_cell.next()?.bundle.clone();
        of_cell.for_each(|run| pool_samples(&mut pooled_bundle, run.bundle));
        Some(pooled_bundle)
    };
    let pooled: Vec<Option<Bundle>> = document.cells.iter().map(pooled).collect();
    let page = lab_page(&document, &pooled, &[], &tables.display().to_string());
    let page = page.map_err(Failure::failed)?;
    let member = Member::from_root(Path::new(".")).join(format!("{name}.html"));
    let page = output::write_page(file, &member, &page);
    Ok((document, page))
}

/// Writes the page, and that of each cell's worst run into its bundle.
pub fn write(
    document: &LabDocument,
    directory: &Path,
    file: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let page = render_page(document, directory, file).map_err(Failure::failed)?;
    output::write_page(file, &Member::from_root(directory).join("report.html"), &page)
}

/// The page for `file`, or for the lab's directory; writes that of each cell's worst run.
///
/// # Errors
/// A template does not fit its data.
pub fn render_page(
    document: &LabDocument,
    directory: &Path,
    file: Option<&Path>,
) -> Result<String, HtmlError> {
    let pooled: Vec<Option<Bundle>> =
        document.cells.iter().map(|cell| pool_cell(document, cell, directory)).collect();
    let pages: Vec<Option<String>> =
        document.cells.iter().map(|cell| page_of(document, cell, directory, file)).collect();
    lab_page(document, &pooled, &pages, &directory.display().to_string())
}

/// Writes the page of a cell's worst run; returns the link from the lab's page. A run without a
/// page, because it is damaged or read-only, gets no link.
fn page_of(
    document: &LabDocument,
    cell: &CellDocument,
    directory: &Path,
    file: Option<&Path>,
) -> Option<String> {
    let name = cell.bundle.as_ref()?;
    let bundle = member_inside(directory, name).filter(Member::is_directory)?;
    let mut bundle = Bundle::open(bundle.path()).ok()?;
    add_requirements(&mut bundle, &document.requirements);
    let page = bundle_page::write_own(&bundle).ok()?;
    match file {
        None => Some(format!("{name}/{}", page.file_name()?.to_str()?)),
        Some(file) => from(file, &page),
    }
}

/// The relative path from a page to another.
fn from(page: &Path, other: &Path) -> Option<String> {
    let (page, other) = (std::path::absolute(page).ok()?, std::path::absolute(other).ok()?);
    let base = page.parent()?;
    let (mut up, mut shared) = (String::new(), base);
    while !other.starts_with(shared) {
        up += "../";
        shared = shared.parent()?;
    }
    Some(up + other.strip_prefix(shared).ok()?.to_str()?)
}

/// Writes the verdicts.
pub fn write_junit(document: &LabDocument, file: &Path) -> Result<(), Failure> {
    let mut xml = Vec::new();
    export::write_junit_of_lab(document, &mut xml).map_err(Failure::failed)?;
    output::write_to(Some(file), &xml)
}

/// All seeds of a cell (first repetitions) as one bundle; `None` without any.
fn pool_cell(document: &LabDocument, cell: &CellDocument, directory: &Path) -> Option<Bundle> {
    let bundles = cell.seeds.iter().filter_map(|seed| seed.runs.first()?.bundle.as_ref());
    let members =
        bundles.filter_map(|name| member_inside(directory, name)).filter(Member::is_directory);
    let mut bundles = members.filter_map(|member| Bundle::open(member.path()).ok());
    let mut pooled_bundle = bundles.next()?;
    bundles.for_each(|bundle| pool_samples(&mut pooled_bundle, &bundle));
    add_requirements(&mut pooled_bundle, &document.requirements);
    Some(pooled_bundle)
}

/// A path in the document, if it stays inside the lab's directory: the document is untrusted.
pub fn member_inside(directory: &Path, name: &str) -> Option<Member> {
    let member = Member::from_root(directory).join(name);
    member.exists().then_some(member)
}

#[cfg(test)]
mod tests {
    use super::from;
    use std::path::Path;

    #[test]
    fn links_between_pages_are_relative() {
        let way = |page: &str, other: &str| from(Path::new(page), Path::new(other));
        let cell = "/a/lab/cells/x/r1/report.html";
        assert_eq!(way("/a/lab/p.html", cell).as_deref(), Some("cells/x/r1/report.html"));
        assert_eq!(way("/a/b/p.html", cell).as_deref(), Some("../lab/cells/x/r1/report.html"));
        assert_eq!(way("p.html", "lab/r1/report.html").as_deref(), Some("lab/r1/report.html"));
    }
}
