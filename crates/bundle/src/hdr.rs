//! HDR histograms in JSON: the lower edge in ns and the count of each non-empty bucket, ascending.
//! Readers need no library for it, and writing it during a measurement needs no buffer.

use hdrhistogram::Histogram;
use punctual_core::series::{HDR_MAX, empty_hdr};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};

/// A histogram to write.
pub(crate) struct HdrCounts<'a>(pub &'a Histogram<u64>);

impl Serialize for HdrCounts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pairs = serializer.serialize_seq(None)?;
        for bucket in self.0.iter_recorded() {
            let edge = self.0.lowest_equivalent(bucket.value_iterated_to());
            pairs.serialize_element(&(edge, bucket.count_at_value()))?;
        }
        pairs.end()
    }
}

/// A histogram as read, not yet checked.
#[derive(Deserialize)]
pub(crate) struct Pairs(pub Vec<(u64, u64)>);

impl Pairs {
    /// The histogram, if values ascend within bounds and counts are consistent.
    pub(crate) fn into_histogram(self) -> Result<Histogram<u64>, String> {
        let mut hdr = empty_hdr();
        let (mut last, mut sum) = (None, 0u64);
        for (value, count) in self.0 {
            if value > HDR_MAX || count == 0 || last.is_some_and(|last| value <= last) {
                return Err(format!(
                    "the HDR histogram's bucket ({value}, {count}) is out of order or bounds"
                ));
            }
            sum =
                sum.checked_add(count).ok_or("the HDR histogram counts more than 64 bits hold")?;
            hdr.record_n(value, count).map_err(|why| format!("the HDR histogram: {why}"))?;
            last = Some(value);
        }
        Ok(hdr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::Nanos;
    use punctual_core::series::record_hdr;

    fn restored(json: &str) -> Result<Histogram<u64>, String> {
        serde_json::from_str::<Pairs>(json).map_err(|why| why.to_string())?.into_histogram()
    }

    #[test]
    fn impossible_histograms_are_refused() {
        assert_eq!(restored("[[5,2],[7,1]]").unwrap().len(), 3);
        for wrong in
            ["[[7,1],[5,2]]", "[[5,0]]", "[[5,1],[5,1]]", "[[18446744073709551615,1]]", "[[-1,1]]"]
        {
            assert!(restored(wrong).is_err(), "{wrong}");
        }
        assert!(restored("[[1,18446744073709551615],[2,1]]").is_err(), "more than 64 bits");
    }

    proptest! {
        #[test]
        fn histograms_are_restored(values in proptest::collection::vec(any::<i64>(), 0..50)) {
            let mut hdr = empty_hdr();
            values.iter().for_each(|v| record_hdr(&mut hdr, Nanos(*v), 3));
            let json = serde_json::to_string(&HdrCounts(&hdr)).unwrap();
            prop_assert_eq!(restored(&json).unwrap(), hdr);
        }
        #[test]
        fn no_text_panics(text in "[\\[\\],0-9]{0,40}") {
            let _ = restored(&text);
        }
    }
}
