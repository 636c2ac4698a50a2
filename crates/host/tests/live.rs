//! Tests that change this machine: one at a time.

mod isolate_real;
