//! Latencies longer than the measured ones.

pub mod model_free;
