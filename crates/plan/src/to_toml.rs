//! An experiment or a plan written as TOML.

use crate::experiment::{Experiment, MeasureSpec};
use crate::plan::Plan;
use crate::section::FileSection;
use crate::text::quote_toml;
use crate::words::Word;

type TomlEntries = Vec<(&'static str, String)>;

impl Experiment {
    /// The experiment in TOML, with only the keys that it sets. Parsed again, it resolves to the
    /// same plan.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let settings = self.settings.toml_entries();
        if !settings.is_empty() {
            write(&mut text, "[experiment]", settings);
        }
        write_each(&mut text, "[target]", &self.target);
        write_each(&mut text, "[partition]", &self.partition);
        write_each(&mut text, "[record]", &self.record);
        write_each(&mut text, "[explain]", &self.explain);
        write_each(&mut text, "[published]", &self.published);
        let results = self.published.iter().flat_map(|published| &published.result);
        write_each(&mut text, "[[published.result]]", results);
        self.measures
            .iter()
            .for_each(|spec| write(&mut text, "[[measure]]", measure_entries(spec)));
        write_each(&mut text, "[[load]]", &self.loads);
        write_each(&mut text, "[[phase]]", &self.phases);
        text
    }
}

impl Plan {
    /// The plan as a complete experiment file. Parsed and resolved again for the same system, it is
    /// the same plan.
    pub fn to_toml(&self) -> String {
        self.to_experiment().to_toml()
    }
}

/// The keys of every measure with those of its kind: who measures, then what, then how long, and
/// the use of the results.
fn measure_entries(spec: &MeasureSpec) -> TomlEntries {
    let mut entries = spec.toml_entries();
    let names = entries.iter().take_while(|(key, _)| *key == "name").count();
    entries.insert(names, ("kind", quote_toml(spec.workload.kind().word())));
    let who = ["name", "kind", "cpus", "threads", "policy", "priority", "runtime", "deadline"];
    let first = entries.iter().take_while(|(key, _)| who.contains(key)).count();
    entries.splice(first..first, spec.workload.entries());
    entries
}

fn write_each<'s, S: FileSection + 's>(
    text: &mut String,
    header: &str,
    sections: impl IntoIterator<Item = &'s S>,
) {
    sections.into_iter().for_each(|section| write(text, header, section.toml_entries()));
}

fn write(text: &mut String, header: &str, entries: TomlEntries) {
    let gap = if text.is_empty() { "" } else { "\n" };
    *text += &format!("{gap}{header}\n");
    entries.into_iter().for_each(|(key, value)| *text += &format!("{key} = {value}\n"));
}
