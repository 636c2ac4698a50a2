//! The keys of a section as rows of a table in a document.

use punctual_plan::{DefaultValue, SectionKey, ValueType};

/// The rows of these keys, and of those of the sections in them.
pub fn rows(keys: &[SectionKey], header: &str) -> String {
    let mut text = String::new();
    for key in keys {
        match &key.value {
            ValueType::Sections(inner) => {
                let name = format!("{}.{}", header.trim_matches(['[', ']']), key.name);
                text += &format!("| `[[{name}]]` | {} |\n", sentence(key));
                text += &rows(inner, &name);
            }
            _ => text += &format!("| `{}` | {} |\n", key.name, sentence(key)),
        }
    }
    text
}

fn sentence(key: &SectionKey) -> String {
    let lines = key.about.lines().map(str::trim).filter(|line| !line.is_empty());
    let about = lines.collect::<Vec<_>>().join(" ");
    match &key.default {
        DefaultValue::Words("") => about,
        DefaultValue::Words(words) => format!("{about} Default: {words}"),
        DefaultValue::Value(value) => format!("{about} Default: `{value}`"),
        DefaultValue::Needed => format!("{about} This key is needed"),
    }
}
