//! Each module is a suite of its own.

mod coverage;
mod document;
mod error_rates;
mod tail_rates;
