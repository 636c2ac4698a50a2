//! Creates and reads an OCI image layout.

use crate::packaged::{program, repository, run};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TOOLS: [&str; 7] = ["readelf", "strip", "tar", "gzip", "sha256sum", "cargo", "python3"];

pub fn make(layout: &Path) {
    run(Command::new(repository().join("packaging/image"))
        .args([program(), layout])
        .env("LAYER_LEVEL", "1")
        .env("SOURCE_DATE_EPOCH", "1700000000"));
}

pub fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// The file of a descriptor, with the stated size and digest.
pub fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().expect("a digest");
    let hex = digest.strip_prefix("sha256:").expect("SHA-256");
    let path = layout.join("blobs/sha256").join(hex);
    let bytes = fs::read(&path).expect("a blob");
    assert_eq!(descriptor["size"], bytes.len());
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, hex);
    path
}
