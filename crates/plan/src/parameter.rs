//! Values of parameters: as TOML, and for display.

use crate::words::{
    ByteSize, CommandLine, CpuChoice, DmaLatency, Frequency, LoadOutput, Nice, OnExit, Placement,
    RecordedEvents, SshAddress, SystressFormat, Temperature, TimerMethod,
};
use punctual_core::cycle::CycleKind;
use punctual_core::event::Group;
use punctual_core::{
    Bytes, Clock, CpuSet, Equivalence, Nanos, PerfEvent, Policy, Priority, Requirement,
    SeriesRequirement, Term,
};
use std::path::PathBuf;

/// A type of parameter.
pub(crate) trait Parameter: Clone {
    /// The value in TOML; `None` if nothing is written.
    fn to_toml(&self) -> Option<String>;
    /// The value for display.
    fn to_plain_text(&self) -> String {
        let toml = self.to_toml().unwrap_or_default();
        toml.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&toml).to_owned()
    }
}

fn to_toml_string(text: &str) -> Option<String> {
    Some(toml::Value::String(text.to_owned()).to_string())
}

macro_rules! bare {
    ($($type:ty),*) => { $( impl Parameter for $type {
        fn to_toml(&self) -> Option<String> {
            Some(self.to_string())
        }
    } )* };
}
bare!(bool, u8, u16, u32, u64, i64, Priority, Nice);

macro_rules! text {
    ($($type:ty),*) => { $( impl Parameter for $type {
        fn to_toml(&self) -> Option<String> {
            to_toml_string(&self.to_string())
        }
        fn to_plain_text(&self) -> String {
            self.to_string()
        }
    } )* };
}
text!(
    SshAddress,
    String,
    Nanos,
    Bytes,
    ByteSize,
    CpuSet,
    Equivalence,
    Frequency,
    PerfEvent,
    Requirement,
    SeriesRequirement,
    Temperature,
    Term
);

impl Parameter for PathBuf {
    fn to_toml(&self) -> Option<String> {
        to_toml_string(&self.to_string_lossy())
    }
    fn to_plain_text(&self) -> String {
        self.display().to_string()
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn to_toml(&self) -> Option<String> {
        self.as_ref().and_then(T::to_toml)
    }
    fn to_plain_text(&self) -> String {
        self.as_ref().map(T::to_plain_text).unwrap_or_default()
    }
}

impl<T: Parameter> Parameter for Vec<T> {
    fn to_toml(&self) -> Option<String> {
        Some(format!("[{}]", self.iter().filter_map(T::to_toml).collect::<Vec<_>>().join(", ")))
    }
    fn to_plain_text(&self) -> String {
        if self.is_empty() {
            "none".to_owned()
        } else {
            self.iter().map(T::to_plain_text).collect::<Vec<_>>().join(", ")
        }
    }
}

impl Parameter for CommandLine {
    fn to_toml(&self) -> Option<String> {
        self.0.to_toml()
    }
    fn to_plain_text(&self) -> String {
        shell_words::join(&self.0)
    }
}

impl Parameter for CpuChoice {
    fn to_toml(&self) -> Option<String> {
        match self {
            CpuChoice::All => to_toml_string("all"),
            CpuChoice::Listed(cpus) => cpus.to_toml(),
        }
    }
}

impl Parameter for Placement {
    fn to_toml(&self) -> Option<String> {
        match self {
            Placement::PerCpu => to_toml_string("per-cpu"),
            Placement::Shared(count) => count.to_toml(),
        }
    }
}

impl Parameter for DmaLatency {
    fn to_toml(&self) -> Option<String> {
        self.0.map_or_else(|| to_toml_string("leave"), |bound| bound.to_toml())
    }
}

impl Parameter for LoadOutput {
    fn to_toml(&self) -> Option<String> {
        match self {
            LoadOutput::Null => to_toml_string("null"),
            LoadOutput::File(path) => path.to_toml(),
        }
    }
    fn to_plain_text(&self) -> String {
        match self {
            LoadOutput::Null => "null".to_owned(),
            LoadOutput::File(path) => path.to_plain_text(),
        }
    }
}

impl Parameter for RecordedEvents {
    fn to_toml(&self) -> Option<String> {
        match self {
            RecordedEvents::Group(group) => group.to_toml(),
            RecordedEvents::Tracepoint(named) => to_toml_string(&named.to_string()),
        }
    }
}

macro_rules! named {
    ($($type:ty),*) => { $( impl Parameter for $type {
        fn to_toml(&self) -> Option<String> {
            to_toml_string(self.as_str())
        }
    } )* };
}
named!(Policy, Clock);

impl Parameter for Group {
    fn to_toml(&self) -> Option<String> {
        to_toml_string(self.word())
    }
}

macro_rules! word_parameter {
    ($name:ident) => {
        impl $crate::parameter::Parameter for $name {
            fn to_toml(&self) -> Option<String> {
                Some(format!("\"{}\"", $crate::words::Word::word(*self)))
            }
        }
    };
}
pub(crate) use word_parameter;

word_parameter!(OnExit);
word_parameter!(SystressFormat);
word_parameter!(TimerMethod);
word_parameter!(CycleKind);
