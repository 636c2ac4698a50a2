//! The frame of every kind of workload: its facts, its properties, and the macros that declare its
//! keys.

use crate::form::DefaultValue;
use crate::parameter::Parameter;
use crate::problem::{Problem, ProblemKind};
use crate::text::{Setting, Span};
use crate::words::Placement;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Nanos, Policy, Priority};

/// The facts that all measures of a kind share; its keys and its [`Kind`] have the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindFacts {
    /// The `kind` in a file.
    pub(crate) word: &'static str,
    /// The same in the series of a bundle.
    pub(crate) in_bundle: &'static str,
    /// Its description, in one line.
    pub(crate) title: &'static str,
    /// The task that takes the samples.
    pub(crate) sampled_by: SampledBy,
    /// The independent source that its own counts are compared with.
    pub(crate) validated_by: &'static str,
    /// The groups of events that show its waits, besides those that every kind has.
    pub(crate) explained_by: &'static [Group],
    /// Whether it times system calls: recording the entry and exit of each would lengthen them.
    pub(crate) times_calls: bool,
}

impl KindFacts {
    /// A kind that takes its samples in its threads, and waits for nothing that needs an event.
    pub(crate) const fn new(word: &'static str, title: &'static str) -> KindFacts {
        KindFacts {
            word,
            in_bundle: word,
            title,
            sampled_by: SampledBy::Thread,
            validated_by: "",
            explained_by: &[],
            times_calls: false,
        }
    }
}

/// The task that takes the samples of a measure: it runs on the CPU when a sample ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampledBy {
    /// The thread of the series.
    Thread,
    /// Other threads or processes of punctual, which the thread of the series only controls.
    Helpers,
    /// None of punctual: the kernel's records of a program or of CPUs are the samples.
    Kernel,
}

impl SampledBy {
    /// In words, for documents.
    pub const fn as_words(self) -> &'static str {
        match self {
            SampledBy::Thread => "its thread",
            SampledBy::Helpers => "tasks that its thread controls",
            SampledBy::Kernel => "the kernel",
        }
    }
}

/// Properties of all kinds, and their defaults. Every method is pure.
pub(crate) trait Kind {
    /// The series of each thread, by the last part of their names; empty: one series with the name
    /// of its thread.
    fn series_parts(&self) -> Vec<String> {
        Vec::new()
    }
    /// The default number of threads.
    fn default_placement(&self) -> Placement {
        Placement::Shared(1)
    }
    /// The default CPUs.
    fn default_cpus(&self) -> DefaultCpus {
        DefaultCpus::Last
    }
    /// The default scheduling policy.
    fn default_policy(&self) -> Policy {
        Policy::Fifo
    }
    /// The CPUs of one of the threads that share these CPUs.
    fn cpus_of(&self, _thread: usize, cpus: &CpuSet) -> CpuSet {
        cpus.clone()
    }
    /// The priority of a thread with its own, if the policy has priorities.
    fn priority_of(&self, _thread: usize) -> Option<Priority> {
        None
    }
    /// The default exact histogram of each series.
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::MILLI, resolution: Nanos::MICRO }
    }
    /// The distance between two samples, if there is one.
    fn sample_period(&self) -> Option<Nanos> {
        None
    }
    /// Whether a real-time thread of this kind never sleeps by itself.
    fn is_spinning(&self) -> bool {
        false
    }
}

/// The exact histogram of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistogramPlan {
    /// The largest latency that it holds.
    pub range: Nanos,
    /// The width of a bin; at most `range`.
    pub resolution: Nanos,
}

impl HistogramPlan {
    /// The number of bins: that of [`punctual_core::LinearHistogram::new`].
    pub(crate) fn bin_count(self) -> u64 {
        (self.range.ns().max(0) / self.resolution.ns().max(1)) as u64 + 1
    }
}

/// The default CPUs of a measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DefaultCpus {
    /// All measured CPUs.
    All,
    /// The last of them.
    Last,
    /// All but the first, which the controller needs; all if there is only one.
    AllButFirst,
}

/// Collects contradictions between parameters of a kind: each is already valid by itself.
pub(crate) struct ParameterProblems<'a> {
    pub(crate) section: Span,
    /// The measure's scheduling policy.
    pub(crate) policy: Policy,
    /// The number of threads of the measure.
    pub(crate) threads: usize,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl ParameterProblems<'_> {
    /// The place of the setting, or of the section if it is not set.
    fn place_of_setting<T>(&self, setting: &Setting<T>) -> Span {
        setting.as_ref().map_or(self.section, |at| at.span)
    }
    /// Values that contradict each other.
    pub(crate) fn report_conflict<T>(
        &mut self,
        setting: &Setting<T>,
        message: impl Into<String>,
        help: &str,
    ) {
        let place = self.place_of_setting(setting);
        self.problems
            .push(Problem::error(ProblemKind::Combination, Some(place), message).with_help(help));
    }
    /// Values that could harm the system: only accepted with `--force` or `force = true`.
    pub(crate) fn report_danger<T>(
        &mut self,
        setting: &Setting<T>,
        message: impl Into<String>,
        help: &str,
    ) {
        let place = self.place_of_setting(setting);
        self.problems
            .push(Problem::error(ProblemKind::NeedsForce, Some(place), message).with_help(help));
    }
    /// A key without effect in combination with the others; its default value is accepted, as in a
    /// plan that sets everything.
    pub(crate) fn report_unused<T: PartialEq>(
        &mut self,
        key: &str,
        setting: &Setting<T>,
        usual: &T,
        because: &str,
    ) {
        if setting.as_ref().is_some_and(|at| at.value != *usual) {
            self.report_conflict(
                setting,
                format!("`{key}` has no effect here: {because}"),
                &format!("leave `{key}` out"),
            );
        }
    }
}

/// Declares the two structs of a kind in one table: `…Plan`, with every value, and `…Spec`, with
/// the values set in the file.
///
/// A row is `/// documentation`, `name: type = default, form;`.
macro_rules! parameters {
    (
        $(#[$about:meta])*
        $plan:ident, $spec:ident {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty = $default:expr, $form:expr; )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $plan { $( $(#[doc = $doc])+ pub $field: $type, )* }

        /// The values set in the file.
        #[derive(Clone, Debug, Default)]
        pub struct $spec { $( $(#[doc = $doc])+ pub $field: $crate::text::Setting<$type>, )* }

        impl Default for $plan {
            fn default() -> $plan {
                $plan { $( $field: $default, )* }
            }
        }

        impl $spec {
            /// Every key of the kind.
            pub(crate) fn section_keys() -> Vec<$crate::form::SectionKey> {
                vec![ $( $crate::form::SectionKey {
                    name: stringify!($field),
                    about: concat!($($doc, "\n"),+),
                    value: $crate::form::value_type::<$type>($form),
                    default: $crate::kind::default_of::<$type>($default),
                }, )* ]
            }
            pub(crate) fn read(
                notes: &mut $crate::notes::ProblemNotes,
                t: &mut $crate::table::TomlTable,
            ) -> $spec {
                $spec { $( $field: t.read_setting(notes, stringify!($field), |v| $form.read(v)),
                    )* }
            }
            pub(crate) fn to_plan(&self) -> $plan {
                $plan { $(
                    $field: self.$field.as_ref().map_or_else(|| $default, |at| at.value.clone()),
                )* }
            }
            /// The settings that differ from the defaults: a plan written as a file sets
            /// everything, which is valid.
            pub(crate) fn beside_defaults(&self) -> $spec {
                $spec { $( $field: self.$field.clone().filter(|at| at.value != $default), )* }
            }
            /// The keys that are set, with their values in TOML.
            pub(crate) fn toml_entries(&self) -> Vec<(&'static str, String)> {
                use $crate::parameter::Parameter;
                let mut entries = Vec::new();
                $(
                    let toml = self.$field.as_ref().and_then(|at| at.value.to_toml());
                    entries.extend(toml.map(|toml| (stringify!($field), toml)));
                )*
                entries
            }
        }

        impl $plan {
            /// The experiment that sets everything.
            pub(crate) fn to_spec(&self) -> $spec {
                use $crate::parameter::Parameter;
                use $crate::text::At;
                $(
                    let value = || At::new(Default::default(), self.$field.clone());
                    let $field = self.$field.to_toml().map(|_| value());
                )*
                $spec { $( $field, )* }
            }
            /// Every parameter by its key, for display; absent ones are omitted.
            pub(crate) fn display_entries(&self) -> Vec<(&'static str, String)> {
                use $crate::parameter::Parameter;
                let mut facts = Vec::new();
                $(
                    let is_set = self.$field.to_toml().is_some();
                    facts.extend(is_set.then(|| (stringify!($field), self.$field.to_plain_text())));
                )*
                facts
            }
        }
    };
}
pub(crate) use parameters;

/// Declares the words of a closed list in one table.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $( $(#[$doc:meta])* $variant:ident = $word:literal, )* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $( $(#[$doc])* $variant, )* }

        impl $crate::words::Word for $name {
            const WORDS: &'static [(&'static str, $name)] = &[ $( ($word, $name::$variant), )* ];
        }
        $crate::parameter::word_parameter!($name);
    };
}
pub(crate) use words;

/// A default, for documents.
pub(crate) fn default_of<T: Parameter>(value: T) -> DefaultValue {
    value.to_toml().map_or(DefaultValue::Words("none"), DefaultValue::Value)
}
