//! HDR histograms as text: base64 of the HdrHistogram V2 format, read back with bounds. Written uncompressed, because a compressor's
//! tables would be the largest thing in the memory of a run; the compressed form is read as well.
//!
//! Layout (HdrHistogram's Java `EncodableHistogram`, followed by every port). Compressed: outer header of a cookie and a length (u32
//! BE each), then a zlib stream of the plain form. Plain: cookie, length of the counts, normalizing offset, significant digits (u32 BE each), lowest and highest
//! value (u64 BE each), conversion ratio (f64 BE), then the counts as zigzag LEB128 of at most nine bytes; a negative number is a run
//! of zeros.

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use punctual_core::series::{HDR_DIGITS, HDR_MAX};
use std::io::Read;

/// The cookie of the plain form, but for the bits that give the size of a word (`V2EncodingCookieBase`).
const PLAIN_COOKIE: u32 = 0x1c84_9303;
const OUTER_HEADER: usize = 8;
const INNER_HEADER: usize = 40;
/// More counts than any histogram of [`HDR_DIGITS`] up to [`HDR_MAX`] has, at nine bytes each.
const MAX_INFLATED: u64 = INNER_HEADER as u64 + 9 * 64 * 1_024;

/// The text of a histogram.
pub(crate) fn encode(hdr: &Histogram<u64>) -> Result<String, String> {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(hdr, &mut bytes).map_err(|e| e.to_string())?;
    Ok(BASE64_STANDARD.encode(bytes))
}

/// Reads the text back. What is inflated is bounded and looked at first: the library believes a length of 4 GiB, and counts that
/// overflow.
pub(crate) fn decode(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|e| format!("the HDR histogram is not base64: {e}"))?;
    let inner = if is_plain(&bytes) { bytes } else { inflate(&bytes)? };
    check(&inner).ok_or("the HDR histogram is not one of punctual's")?;
    let mut hdr: Histogram<u64> =
        Deserializer::new().deserialize(&mut inner.as_slice()).map_err(|e| format!("the HDR histogram: {e}"))?;
    hdr.auto(true);
    Ok(hdr)
}

fn is_plain(bytes: &[u8]) -> bool {
    let cookie = bytes.first_chunk().map(|word| u32::from_be_bytes(*word));
    cookie.is_some_and(|cookie| cookie & !0xf0 == PLAIN_COOKIE)
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let zipped = bytes.get(OUTER_HEADER..).ok_or("the HDR histogram has no header")?;
    let mut inner = Vec::new();
    let inflated = ZlibDecoder::new(zipped).take(MAX_INFLATED + 1).read_to_end(&mut inner);
    inflated.map_err(|e| format!("the HDR histogram is not compressed as it should be: {e}"))?;
    Ok(inner)
}

/// Whether the plain bytes have the shape of a histogram that punctual writes.
fn check(inner: &[u8]) -> Option<()> {
    let u32_at = |at: usize| Some(u32::from_be_bytes(inner.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_be_bytes(inner.get(at..at + 8)?.try_into().ok()?));
    let counts = inner.get(INNER_HEADER..)?;
    let fits = inner.len() as u64 <= MAX_INFLATED
        && u32_at(4)? as usize == counts.len()
        && u32_at(12)? == u32::from(HDR_DIGITS)
        && u64_at(16)? == 1
        && u64_at(24)? < 4 * HDR_MAX
        && sum(counts).is_some();
    fits.then_some(())
}

/// The sum of the counts; `None` where they are cut short, where one has no negation, or where the sum passes 64 bits.
fn sum(mut counts: &[u8]) -> Option<u64> {
    let mut sum = 0u64;
    while !counts.is_empty() {
        let mut zigzag = 0u64;
        for place in 0..9 {
            let (byte, rest) = counts.split_first()?;
            counts = rest;
            let bits = if place < 8 { byte & 0x7f } else { *byte };
            zigzag |= u64::from(bits) << (7 * place);
            if place == 8 || byte & 0x80 == 0 {
                break;
            }
        }
        let number = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        if number == i64::MIN {
            return None;
        }
        sum = sum.checked_add(number.max(0) as u64)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use punctual_core::Nanos;
    use punctual_core::series::{empty_hdr, record_hdr};
    use std::io::Write;

    /// A text with these inflated bytes.
    fn text_of(inner: &[u8]) -> String {
        let mut zip = ZlibEncoder::new(Vec::new(), Compression::fast());
        zip.write_all(inner).unwrap();
        let zipped = zip.finish().unwrap();
        let mut bytes = 0x1c84_9314u32.to_be_bytes().to_vec();
        bytes.extend((zipped.len() as u32).to_be_bytes());
        bytes.extend(zipped);
        BASE64_STANDARD.encode(bytes)
    }

    fn inner(length: u32, digits: u32, high: u64, counts: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        [0x1c84_9313, length, 0, digits].iter().for_each(|n: &u32| bytes.extend(n.to_be_bytes()));
        [1, high].iter().for_each(|n: &u64| bytes.extend(n.to_be_bytes()));
        bytes.extend(1f64.to_be_bytes());
        bytes.extend(counts);
        bytes
    }

    #[test]
    fn hostile_lengths_and_counts_are_refused() {
        assert_eq!(decode(&text_of(&inner(1, 3, 4_095, &[2]))).unwrap().len(), 1);
        assert!(decode(&text_of(&inner(u32::MAX, 3, 4_095, &[2]))).is_err(), "4 GiB of counts");
        assert!(decode(&text_of(&inner(1, 5, 4_095, &[2]))).is_err(), "five digits");
        assert!(decode(&text_of(&inner(1, 3, u64::MAX, &[2]))).is_err(), "a range beyond all bounds");
        assert!(decode(&text_of(&inner(9, 3, 4_095, &[0xff; 9]))).is_err(), "a run of 2^63 zeros");
        assert!(decode(&text_of(&vec![0; 1 << 24])).is_err(), "more than ever fits");
        assert!(decode("AAAA").is_err());
    }

    proptest! {
        #[test]
        fn histograms_come_back(values in proptest::collection::vec(any::<i64>(), 0..50)) {
            let mut hdr = empty_hdr();
            values.iter().for_each(|v| record_hdr(&mut hdr, Nanos(*v), 3));
            prop_assert_eq!(decode(&encode(&hdr).unwrap()).unwrap(), hdr);
        }
        #[test]
        fn no_counts_panic(counts in proptest::collection::vec(any::<u8>(), 0..60), high in any::<u64>()) {
            let _ = decode(&text_of(&inner(counts.len() as u32, 3, high, &counts)));
        }
    }
}
