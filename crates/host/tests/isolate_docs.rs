//! docs/reference/isolate.md has the table of tweaks.

use punctual_host::isolate::tweaks;

#[test]
fn the_documented_table_of_tweaks_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/isolate.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("equal -->\n").unwrap();
    let (table, _) = rest.split_once("<!-- end of tweaks -->").unwrap();
    assert_eq!(
        table,
        tweaks::format_markdown(),
        "make docs/reference/isolate.md's table again from the one in tweaks.rs"
    );
}

#[test]
fn every_tweak_has_a_unique_name_and_a_kernel_source() {
    for tweak in tweaks::all_tweaks() {
        assert!(tweak.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", tweak.name);
        assert!(
            tweak.source.contains(".c") && tweak.source.contains(", ") && tweak.doc.ends_with('.'),
            "{}",
            tweak.name
        );
        assert!(!tweak.doc.contains('|') && !tweak.source.contains('|'), "{}", tweak.name);
        assert_eq!(
            tweaks::all_tweaks().filter(|other| other.name == tweak.name).count(),
            1,
            "{}",
            tweak.name
        );
    }
}
