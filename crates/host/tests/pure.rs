//! Each module is its own suite.

mod isolate_support;

mod isolate_docs;
mod isolate_leftovers;
mod isolate_partrt;
mod isolate_refusals;
mod isolate_scripted;
