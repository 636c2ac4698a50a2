//! `punctual occupancy` of traces of others, and of bundles that have none.

use crate::common::{Place, punctual, text};

/// Text of ftrace: pages of a large request, and a slab object that is freed and given again.
#[test]
fn pages_given_and_objects_given_again_are_those_of_a_trace() {
    let sizes = |asked, given| format!(" bytes_req={asked} bytes_alloc={given} gfp_flags=0");
    let (large, page) = (sizes(65 << 12, 128 << 12), sizes(4_096, 4_480));
    let lines = [
        ("kmalloc", 0xa1, &*large),
        ("kmem_cache_alloc", 0xcef4_0c80_u64, &page),
        ("kmem_cache_free", 0xcef4_0c80, ""),
        ("kmem_cache_alloc", 0xcef4_0c80, &page),
        ("kfree", 0xa1, ""),
    ];
    let line = |(at, (what, object, sizes)): (usize, (&str, u64, &str))| {
        format!(
            "  a-7 [000] .... 1.00000{at}: {what}: call_site=x+0x1/0x2 ptr={object:016x}{sizes}\n"
        )
    };
    let trace: String = lines.into_iter().enumerate().map(line).collect();
    let place = Place::with("");
    place.write("trace.txt", trace.as_bytes());
    let shown = place.punctual(&["occupancy", "trace.txt", "--memory", "--json"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let given = serde_json::json!([{"asked": 65, "given": 128, "requests": 1}]);
    assert_eq!(shown["pages"], given, "{shown:#}");
    let slab = ["requests", "requested", "allocated", "known", "reused", "freed"];
    let slab = slab.map(|key| shown["slab"][key].as_u64().expect(key));
    assert_eq!(slab, [2, 8_192, 8_960, 2, 1, 1], "{shown:#}");
    assert_eq!(shown["kmalloc"]["freed"], 1, "{shown:#}");
    let page = text(&place.punctual(&["occupancy", "trace.txt", "--memory"]));
    assert!(page.contains("reused") && page.contains("128"), "{page}");
    place.write("other.txt", b"  a-7 [000] .... 1.000001: softirq_entry: vec=1 [action=TIMER]\n");
    let refused = place.punctual(&["occupancy", "other.txt", "--memory"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("--events kmalloc,page"), "{}", text(&refused));
}

#[test]
fn a_bundle_without_a_recording_is_refused() {
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles/good");
    for command in ["pairs", "occupancy"] {
        let output = punctual().args([command, bundle]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output).contains("has no recording"), "{}", text(&output));
    }
}
