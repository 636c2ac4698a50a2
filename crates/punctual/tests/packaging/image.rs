//! The container image: a layout that other tools read.

use crate::layout::{TOOLS, blob, make, read};
use crate::packaged::{files_below, lacks, run};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::process::Command;

#[test]
fn an_image_is_a_layout_of_equal_bytes_that_skopeo_reads() {
    let test = "an_image_is_a_layout_of_equal_bytes_that_skopeo_reads";
    if lacks(test, &TOOLS) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (once, again) = (directory.path().join("once"), directory.path().join("again"));
    make(&once);
    make(&again);
    let files = files_below(&once);
    assert_eq!(files, files_below(&again));
    for file in &files {
        assert!(fs::read(once.join(file)).ok() == fs::read(again.join(file)).ok(), "{file:?}");
    }
    let index = read(&once.join("index.json"));
    let manifest = read(&blob(&once, &index["manifests"][0]));
    let config = read(&blob(&once, &manifest["config"]));
    let layer = blob(&once, &manifest["layers"][0]);
    assert_eq!(files.len(), 5, "nothing else: {files:?}");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/punctual");
    let plain = Command::new("gzip").arg("-dc").arg(layer).output().expect("gzip").stdout;
    let content: String = Sha256::digest(&plain).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{content}"));
    if !lacks("the image's check", &["skopeo"]) {
        let version = env!("CARGO_PKG_VERSION");
        let image = format!("oci:{}:{version}", once.display());
        let seen: Value =
            serde_json::from_str(&run(Command::new("skopeo").args(["inspect", &image])))
                .expect("JSON");
        assert_eq!(seen["Labels"]["org.opencontainers.image.version"], version);
        assert_eq!(seen["Layers"].as_array().map(Vec::len), Some(1));
        // A copy reads every blob, and checks each digest.
        let copy = format!("docker-archive:{}", directory.path().join("copy.tar").display());
        run(Command::new("skopeo").args(["--insecure-policy", "copy", "--quiet", &image, &copy]));
    }
}
