#![forbid(unsafe_code)]
//! Results in, bytes out: the terminal, one HTML file, and the formats of other tools.

pub mod answer;
pub mod document;
pub mod export;
pub mod html;
pub mod marks;
pub mod naming;
mod notes;
pub mod openmetrics;
mod published;
pub mod remedies;
pub mod sentence;
mod tables;
pub mod terminal;
mod verdict;

use punctual_core::format;
