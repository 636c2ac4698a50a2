//! The experiment as written and the plan as run, for repeating them. Equal ones are shown once.

use super::ReportInput;
use super::text::{clip_text, format_name};
use serde::Serialize;
use std::io::Read;

/// A text of the bundle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct BundleText {
    pub title: String,
    /// The text, cut if there is not enough room.
    pub text: String,
    /// Why it is missing or incomplete.
    pub remark: Option<String>,
}

/// The texts of all bundles, each at most `limit` characters, at most `many` of them.
pub(crate) fn collect_texts(
    inputs: &[ReportInput<'_>],
    labels: &[String],
    limit: usize,
    many: usize,
) -> Vec<BundleText> {
    let mut texts: Vec<(BundleText, Vec<usize>)> = Vec::new();
    for (place, input) in inputs.iter().enumerate() {
        for document in
            [experiment_text(input, limit), plan_text(input, limit)].into_iter().flatten()
        {
            match texts.iter_mut().find(|(other, _)| *other == document) {
                Some((_, places)) => places.push(place),
                None => texts.push((document, vec![place])),
            }
        }
    }
    let titled = |(mut document, places): (BundleText, Vec<usize>)| {
        if inputs.len() > 1 {
            let names: Vec<&str> =
                places.iter().take(4).filter_map(|p| labels.get(*p)).map(String::as_str).collect();
            let more_names = if places.len() > 4 {
                format!(" and {} more", places.len() - 4)
            } else {
                String::new()
            };
            document.title = format!("{} – {}{more_names}", document.title, names.join(", "));
        }
        document
    };
    texts.into_iter().take(many).map(titled).collect()
}

fn shorten_text(title: String, text: &str, whole: bool, limit: usize) -> BundleText {
    let cut = clip_text(text, limit);
    let remark = (!whole || cut.len() < text.len())
        .then(|| "Only its beginning is shown; the bundle holds all of it.".to_owned());
    BundleText { title, text: cut, remark }
}

/// The experiment, byte for byte in the bundle and possibly not UTF-8; reads only the bytes that
/// can be shown.
fn experiment_text(input: &ReportInput<'_>, limit: usize) -> Option<BundleText> {
    let file_name = input.bundle.manifest.experiment_file.as_deref()?;
    let title = format!("The experiment as written ({})", format_name(file_name));
    let missing =
        |why: String| BundleText { title: title.clone(), text: String::new(), remark: Some(why) };
    let mut bytes = Vec::new();
    let room = limit as u64 * 4;
    match input
        .bundle
        .member(file_name)
        .open()
        .and_then(|file| file.take(room + 1).read_to_end(&mut bytes))
    {
        Ok(_) => Some(shorten_text(
            title,
            &String::from_utf8_lossy(&bytes),
            bytes.len() as u64 <= room,
            limit,
        )),
        Err(why) => Some(missing(format!("Not shown: {why}."))),
    }
}

fn plan_text(input: &ReportInput<'_>, limit: usize) -> Option<BundleText> {
    let title = "The plan as run (plan.toml)".to_owned();
    match input.bundle.plan_text() {
        Ok(Some(text)) => Some(shorten_text(title, &text, true, limit)),
        Ok(None) => None,
        Err(why) => Some(BundleText { title, text: String::new(), remark: Some(why.to_string()) }),
    }
}
