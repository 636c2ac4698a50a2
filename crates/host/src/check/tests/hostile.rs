//! Trees whose files hold arbitrary content.

use super::*;
use proptest::prelude::*;

/// Arbitrary content of a file in place of its own.
fn content(original: &str) -> impl Strategy<Value = Option<Vec<u8>>> + use<> {
    let cut = original.as_bytes().to_vec();
    let doubled = original.repeat(2).into_bytes();
    prop_oneof![
        2 => Just(None),
        2 => Just(Some(Vec::new())),
        2 => (0..=cut.len()).prop_map(move |end| Some(cut[..end].to_vec())),
        1 => Just(Some(doubled)),
        2 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Some),
        2 => "[-0-9a-f,.(\\[\\])= \n:]{0,40}".prop_map(|text| Some(text.into_bytes())),
        1 => prop::sample::select(vec![
            "-1",
            "18446744073709551616",
            "99999999999999999999999",
            "0-8191",
            "(((",
            ")",
            "[",
            "\u{1b}[2J<script>",
            "%n%s",
            "ü\u{202e}",
        ])
        .prop_map(|text| Some(text.as_bytes().to_vec())),
    ]
}

fn damaged() -> impl Strategy<Value = FakeFiles> {
    let paths = ideal_files().file_paths();
    prop::collection::vec(0..paths.len(), 1..30).prop_flat_map(move |chosen| {
        let damage: Vec<_> = chosen
            .iter()
            .map(|i| {
                let path = paths[*i].clone();
                let original = crate::files::Files::read(&ideal_files(), &path).unwrap_or_default();
                content(&original).prop_map(move |bytes| (path.clone(), bytes))
            })
            .collect();
        damage.prop_map(|damage| {
            damage.into_iter().fold(ideal_files(), |files, (path, bytes)| match bytes {
                Some(bytes) => files.with_bytes(&path, &bytes),
                None => files.without_path(&path),
            })
        })
    })
}

proptest! {
    #[test]
    fn no_tree_makes_a_rule_panic_or_talk_without_end(
        files in damaged(),
        cpus in prop::option::of("[0-9]{1,3}"),
    ) {
        let results = results(&files, cpus.as_deref());
        prop_assert_eq!(results.len(), all_rules().count());
        for result in results {
            prop_assert!(
                result.evidence.len() < 20_000,
                "{}: {} bytes",
                result.id,
                result.evidence.len()
            );
            prop_assert!(!result.evidence.is_empty(), "{}", result.id);
        }
    }
}

#[test]
fn many_hostile_names_stay_a_short_text() {
    let mut files = ideal_files();
    for pid in 1000..3000 {
        let name = "\u{1b}]0;x\u{7}<b>".repeat(2);
        files = files
            .with_file(
                &format!("/proc/{pid}/stat"),
                &format!(
                    "{pid} ({name}) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 \
                     0 0 0 0 0 17 0 0 0 0"
                ),
            )
            .with_file(&format!("/proc/{pid}/status"), "Cpus_allowed_list:\t0-3");
    }
    let result = result(&files, None, "user-tasks");
    assert_eq!(
        (result.verdict, result.message.as_str()),
        (RuleVerdict::Warning, "2000 processes may run there")
    );
    assert!(result.evidence.contains("and 1992 more"), "{}", result.evidence);
}
