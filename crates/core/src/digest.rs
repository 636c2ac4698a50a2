//! A fingerprint of a measurement: two series have the same digest if and only if every sample is
//! the same.

use crate::{Sample, SeriesData};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The data that a digest covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DigestOf {
    /// Every sample in order: index, due, woke.
    Samples,
    /// The counts of the exact and of the overall histogram, the sum, and the worst samples: for a
    /// series whose samples are only counted.
    Counts,
}

/// The SHA-256 of a series.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sha256Digest {
    /// In 64 hexadecimal digits.
    pub sha256: String,
    pub of: DigestOf,
}

/// The digest of a growing series. `seq`, `due` and `woke` of every sample are hashed as integers
/// of 8 bytes each, the lowest byte first.
#[derive(Clone, Debug, Default)]
pub struct SampleDigest(Sha256);

impl SampleDigest {
    pub fn add(&mut self, sample: &Sample) {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&sample.seq.to_le_bytes());
        bytes[8..16].copy_from_slice(&sample.due.ns().to_le_bytes());
        bytes[16..].copy_from_slice(&sample.woke.ns().to_le_bytes());
        self.0.update(bytes);
    }

    /// The digest of all samples so far.
    pub fn current_digest(&self) -> Sha256Digest {
        Sha256Digest { sha256: encode_hex(&self.0.clone().finalize()), of: DigestOf::Samples }
    }
}

impl Sha256Digest {
    /// The digest of a series with counts only: (bin, count) of the non-empty bins of the exact
    /// histogram and of the other one, then counts beyond the range, the sum, and the worst
    /// samples.
    pub fn of_counts(data: &SeriesData) -> Sha256Digest {
        let mut hash = Sha256::new();
        let bins = data.exact.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        bins.for_each(|(bin, count)| hash_pair(&mut hash, bin as u64, *count));
        data.whole.iter_recorded().for_each(|bucket| {
            hash_pair(&mut hash, bucket.value_iterated_to(), bucket.count_at_value())
        });
        hash_pair(&mut hash, data.exact.above, data.exact.below);
        hash.update(data.sum.to_le_bytes());
        let mut worst = SampleDigest(hash);
        data.worst.iter().for_each(|sample| worst.add(sample));
        Sha256Digest { of: DigestOf::Counts, ..worst.current_digest() }
    }
}

fn hash_pair(hash: &mut Sha256, first: u64, second: u64) {
    hash.update(first.to_le_bytes());
    hash.update(second.to_le_bytes());
}

/// The digest of a whole run: over a line `phase NUL series NUL digest` for each of its series, in
/// order. `None` if a series has none.
pub fn of_run<'a>(
    series: impl IntoIterator<Item = (&'a str, &'a str, Option<&'a Sha256Digest>)>,
) -> Option<String> {
    let mut hash = Sha256::new();
    let mut has_series = false;
    for (phase, name, digest) in series {
        hash.update(format!("{phase}\0{name}\0{}\n", digest?.sha256));
        has_series = true;
    }
    has_series.then(|| encode_hex(&hash.finalize()))
}

/// In lower-case hexadecimal, two digits per byte.
pub fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClockNs;

    fn of(samples: &[(u64, i64, i64)]) -> Sha256Digest {
        let mut digest = SampleDigest::default();
        for (seq, due, woke) in samples {
            digest.add(&Sample { seq: *seq, due: ClockNs(*due), woke: ClockNs(*woke), cpu: 0 });
        }
        digest.current_digest()
    }

    #[test]
    fn the_digest_is_the_sha256_of_the_documented_encoding() {
        // python3: hashlib.sha256(struct.pack('<QqqQqq', 0, 1000, 1500, 1, 2000, -1)).hexdigest()
        let known = "117711d07a712afb363722324d9c48faeef3617b73634a25721834589b9b186d";
        assert_eq!(of(&[(0, 1000, 1500), (1, 2000, -1)]).sha256, known);
    }

    #[test]
    fn the_digest_depends_on_the_order_and_every_digit() {
        let one = of(&[(0, 1, 2), (1, 3, 4)]);
        assert_ne!(one, of(&[(1, 3, 4), (0, 1, 2)]));
        assert_ne!(one, of(&[(0, 1, 2), (1, 3, 5)]));
        assert_eq!(one, of(&[(0, 1, 2), (1, 3, 4)]));
        assert_eq!(of_run([("a", "b", None)]), None);
        assert_ne!(of_run([("a", "b", Some(&one))]), of_run([("a", "c", Some(&one))]));
        assert_eq!(of_run([]), None);
    }
}
