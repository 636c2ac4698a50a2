//! `[lab]`.

use super::axis::CellSelection;
use super::published::{PublicationSpec, known_names, read_known_tables};
use super::{LabRequirementSpec, MAX_PARALLEL, MAX_REPEAT, PublishedTable, Seeds};
use crate::escape::clip_text;
use crate::form::{ValueType, count_form, custom_form, one_or_more, path_text, text_form};
use crate::notes::{Read, Wrong};
use crate::parameter::Parameter;
use crate::section::section;
use crate::table::{read_integer, read_string as string};
use crate::text::{At, Span};
use crate::values;
use punctual_core::{CpuSet, Requirement};
use toml::de::DeValue;

/// The requirements on every cell.
#[derive(Clone, Debug)]
pub struct Requirements(pub(super) Vec<LabRequirementSpec>);

/// Tables of published figures that have a name.
#[derive(Clone, Debug)]
pub struct Publications(Vec<PublishedTable>);

// A lab file is never written back.
macro_rules! unwritten {
    ($($type:ty),*) => { $( impl Parameter for $type {
        fn to_toml(&self) -> Option<String> {
            None
        }
    } )* };
}
unwritten!(Seeds, Requirements, Publications, CellSelection);

section! {
    /// The settings of the whole lab.
    LabSettings {
        /// The name of the lab.
        key name: String,
            text_form("NAME", values::check_name),
            ["that of the experiment, else the file's name without its extension"];
        /// The file that holds the experiment, beside this one.
        key experiment: String, path_text(), ["the experiment's sections are in the lab file"];
        /// What every series of every cell must hold: a requirement, an array of them, or a table
        /// of them by measure. It belongs to no cell: a change of it does not repeat any run.
        key require: Requirements, custom_form(requirements_type(), read_requirements), ["nothing"];
        /// Each cell is run with each of these seeds: `"1..100"`, `"1..10,42"`.
        key seeds: Seeds, custom_form(seeds_type(), read_seeds), ["the experiment's own `seed`"];
        /// How often each cell and seed is run. In virtual time the runs must be equal to the last
        /// sample.
        key repeat: u32, count_form(1, MAX_REPEAT), [= 1];
        /// The number of simultaneous runs in virtual time.
        key parallel: u32, count_form(1, MAX_PARALLEL), ["one per CPU"];
        /// The CPUs that the axis `isolation` sets apart.
        key isolated: CpuSet, text_form("CPUS", values::parse_cpus), ["none"];
        /// Published figures for comparison, by the name of the publication: `"P2"`, `"P4"`.
        key published: Publications, custom_form(one_or_more("NAME"), published_names), ["none"];
        /// Published figures that are written out.
        sections publication: PublicationSpec, "`[[lab.publication]]`", [];
    }
}

impl LabSettings {
    /// The named tables, then those that are written out.
    pub(super) fn all_published(&self) -> Vec<PublishedTable> {
        let named = self.published.iter().flat_map(|at| at.value.0.clone());
        named.chain(self.publication.iter().map(PublicationSpec::to_table)).collect()
    }
}

fn requirements_type() -> ValueType {
    let mut choice_type = one_or_more("REQUIREMENT");
    let by_measure = ValueType::Named(Box::new(choice_type.clone()));
    if let ValueType::Either(types) = &mut choice_type {
        types.push(by_measure);
    }
    choice_type
}

fn seeds_type() -> ValueType {
    let seed = ValueType::Integer { least: 0, most: i64::MAX };
    ValueType::Either(vec![ValueType::Text("SEEDS"), seed])
}

fn read_seeds(value: &DeValue<'_>) -> Read<Seeds> {
    match value {
        DeValue::Integer(_) => {
            values::check_count(read_integer(value)?, 0, i64::MAX as u64).map(Seeds::from_seed)
        }
        _ => string(value)?.parse().map_err(|why: super::SeedsError| Wrong::new(why.to_string())),
    }
}

/// One text or an array of them.
fn read_texts<'v>(value: &'v DeValue<'_>) -> Read<Vec<(&'v str, Option<Span>)>> {
    match value {
        DeValue::Array(items) => items
            .iter()
            .map(|item| string(item.get_ref()).map(|text| (text, Some(Span::from(item.span())))))
            .collect(),
        other => string(other).map(|text| vec![(text, None)]),
    }
}

fn published_names(value: &DeValue<'_>) -> Read<Publications> {
    let table = |(name, _): (&str, Option<Span>)| {
        let names: Vec<&str> = known_names().collect();
        let wrong =
            || Wrong::new(format!("no published figures are known as `{}`", clip_text(name)));
        read_known_tables(name).ok_or_else(|| {
            wrong().with_help(format!(
                "known are {}; others go into `[[lab.publication]]`",
                names.join(", ")
            ))
        })
    };
    let table_lists = read_texts(value)?.into_iter().map(table).collect::<Read<Vec<_>>>()?;
    Ok(Publications(table_lists.concat()))
}

/// `"p100 < 100us"`, an array of such, or a table of them by measure.
fn read_requirements(value: &DeValue<'_>) -> Read<Requirements> {
    let read_entries =
        |measure: Option<&str>, value: &DeValue<'_>| -> Read<Vec<LabRequirementSpec>> {
            let one = |(text, span): (&str, Option<Span>)| -> Read<LabRequirementSpec> {
                let requirement: Requirement = values::parse_requirement(text)?;
                let requirement = At::new(span.unwrap_or_default(), requirement);
                Ok(LabRequirementSpec { measure: measure.map(str::to_owned), requirement })
            };
            read_texts(value)?.into_iter().map(one).collect()
        };
    match value {
        DeValue::Table(table) => {
            let entry_lists = table
                .iter()
                .map(|(measure, value)| read_entries(Some(measure.get_ref()), value.get_ref()));
            entry_lists.collect::<Read<Vec<_>>>().map(|all| Requirements(all.concat()))
        }
        other => read_entries(None, other).map(Requirements),
    }
}
