//! Tests that load programs into this kernel and record with them: one at a time.

mod kernel;
