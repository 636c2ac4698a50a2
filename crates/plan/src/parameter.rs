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
    fn toml(&self) -> Option<String>;
    /// The value for display.
    fn plain(&self) -> String {
        let toml = self.toml().unwrap_or_default();
        toml.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&toml).to_owned()
    }
}

fn quoted(text: &str) -> Option<String> {
    Some(toml::Value::String(text.to_owned()).to_string())
}

macro_rules! bare {
    ($($type:ty),*) => { $( impl Parameter for $type {
        fn toml(&self) -> Option<String> {
            Some(self.to_string())
        }
    } )* };
}
bare!(bool, u8, u16, u32, u64, i64, Priority, Nice);

macro_rules! text {
    ($($type:ty),*) => { $( impl Parameter for $type {
        fn toml(&self) -> Option<String> {
            quoted(&self.to_string())
        }
        fn plain(&self) -> String {
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
    fn toml(&self) -> Option<String> {
        quoted(&self.to_string_lossy())
    }
    fn plain(&self) -> String {
        self.display().to_string()
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn toml(&self) -> Option<String> {
        self.as_ref().and_then(T::toml)
    }
    fn plain(&self) -> String {
        self.as_ref().map(T::plain).unwrap_or_default()
    }
}

impl<T: Parameter> Parameter for Vec<T> {
    fn toml(&self) -> Option<String> {
        Some(format!("[{}]", self.iter().filter_map(T::toml).collect::<Vec<_>>().join(", ")))
    }
    fn plain(&self) -> String {
        if self.is_empty() {
            "none".to_owned()
        } else {
            self.iter().map(T::plain).collect::<Vec<_>>().join(", ")
        }
    }
}

impl Parameter for CommandLine {
    fn toml(&self) -> Option<String> {
        self.0.toml()
    }
    fn plain(&self) -> String {
        shell_words::join(&self.0)
    }
}

impl Parameter for CpuChoice {
    fn toml(&self) -> Option<String> {
        match self {
            CpuChoice::All => quoted("all"),
            CpuChoice::Listed(cpus) => cpus.toml(),
        }
    }
}

impl Parameter for Placement {
    fn toml(&self) -> Option<String> {
        match self {
            Placement::PerCpu => quoted("per-cpu"),
            Placement::Shared(count) => count.toml(),
        }
    }
}

impl Parameter for DmaLatency {
    fn toml(&self) -> Option<String> {
        self.0.map_or_else(|| quoted("leave"), |bound| bound.toml())
    }
}

impl Parameter for LoadOutput {
    fn toml(&self) -> Option<String> {
        match self {
            LoadOutput::Null => quoted("null"),
            LoadOutput::File(path) => path.toml(),
        }
    }
    fn plain(&self) -> String {
        match self {
            LoadOutput::Null => "null".to_owned(),
            LoadOutput::File(path) => path.plain(),
        }
    }
}

impl Parameter for RecordedEvents {
    fn toml(&self) -> Option<String> {
        match self {
            RecordedEvents::Group(group) => group.toml(),
            RecordedEvents::Tracepoint(named) => quoted(&named.to_string()),
        }
    }
}

macro_rules! named {
    ($($type:ty),*) => { $( impl Parameter for $type {
        fn toml(&self) -> Option<String> {
            quoted(self.word())
        }
    } )* };
}
named!(Group, Policy, Clock);

macro_rules! word_parameter {
    ($name:ident) => {
        impl $crate::parameter::Parameter for $name {
            fn toml(&self) -> Option<String> {
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
