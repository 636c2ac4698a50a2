//! Each module is a separate suite.

mod coverage;
mod document;
mod error_rates;
