//! Each module is its own suite.

mod browser;
mod processor;
mod recording;
mod support;

mod exact;
mod export;
mod fleet;
mod html;
mod html_breakdown;
mod html_browser;
mod html_lab;
mod html_recording;
mod openmetrics;
mod pairs;
mod perfetto;
mod recording_any;
mod show;
mod verdicts;
