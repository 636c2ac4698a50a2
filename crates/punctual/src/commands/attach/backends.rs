//! The words of `--backend`: those of `trace` that can provide cycles.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use punctual_record::Backend;

const BACKENDS: [(&str, Backend, &str); 3] = [
    ("auto", Backend::Auto, "BPF programs, or where these cannot be had, tracefs"),
    ("btf", Backend::Btf, "BPF programs alone, which know the kernel's types (BTF)"),
    ("tracefs", Backend::Tracefs, "the kernel's own trace buffers (docs/attach.md: Without BPF)"),
];

/// The values of the option.
pub fn backend_parser() -> impl TypedValueParser<Value = Backend> {
    let values = BACKENDS.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(values).map(|word| {
        let chosen_backend = BACKENDS.iter().find(|(other, _, _)| *other == word);
        chosen_backend.map_or(Backend::Auto, |(_, backend, _)| *backend)
    })
}
