//! Tests in guests, and of the published scores.

mod truth;
