//! Sections of an experiment file, each declared once: parsing, writing, defaults, the tables of
//! the man page and the schema for editors are derived from the declaration.

use crate::form::{SectionKey, ValueType};
use crate::limits::MAX_SECTIONS;
use crate::notes::{ProblemNotes, Wrong};
use crate::parameter::Parameter;
use crate::table::TomlTable;
use crate::text::{At, Setting, Span};

/// The interface that [`section`] implements for a declaration.
pub(crate) trait FileSection: Sized {
    /// Every key, in the order of the declaration.
    fn section_keys() -> Vec<SectionKey>;
    /// Reads the keys; the caller reports the remaining ones ([`TomlTable::finish`]).
    fn read(notes: &mut ProblemNotes, t: &mut TomlTable) -> Self;
    /// The keys that are set, with their values in TOML.
    fn toml_entries(&self) -> Vec<(&'static str, String)>;
    /// The keys that are set, with their values for display.
    fn display_entries(&self) -> Vec<(&'static str, String)>;
    /// The keys that are set, with their places.
    fn key_places(&self) -> Vec<(&'static str, Span)>;
    /// This, completed by `base`.
    fn complete_from(self, base: &Self) -> Self;

    /// Reads the section to its end.
    fn read_whole(notes: &mut ProblemNotes, mut t: TomlTable) -> Self {
        let section = Self::read(notes, &mut t);
        t.finish(notes);
        section
    }
}

/// Declares a section. A row is
///
/// ```text
/// /// What it is for, in Markdown.
/// key NAME: TYPE, FORM, [DEFAULT];
/// ```
///
/// `key` is a value; `list` an array of strings, each with its place; `table` an inline table that
/// is a section of its own, `sections` any number of those, and their FORM is their name in
/// messages. DEFAULT is `= VALUE`, which also declares a method `NAME()` that returns the set value
/// or this one; words; `needed MESSAGE, HELP`; or nothing if the text describes it. The caller
/// reads the fields that follow `beside`.
///
/// A row that ends with `=> plan` is copied to the plan: `resolved` declares the plan's type, with
/// those keys (plain if they have a default, else an `Option`; a list stays a list) and with the
/// results of resolving, which also have a struct of their own. The section then has a method
/// `to_plan`, and the plan `to_spec`.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $row:ident $key:ident : $type:ty, $form:expr, [$($default:tt)*] $(=> $plan:ident)?;
            )*
        }
        $( beside { $( $(#[doc = $also_doc:literal])+ $also:ident : $also_type:ty; )* } )?
        $( resolved { $($resolved:tt)* } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            /// Its header, or the whole of an inline table.
            #[allow(dead_code, reason = "no message is about some sections as a whole")]
            pub span: $crate::text::Span,
            $( $(#[doc = $doc])+ pub $key: $crate::section::field!($row $type), )*
            $( $( $(#[doc = $also_doc])+ pub $also: $also_type, )* )?
        }

        impl $crate::section::FileSection for $name {
            fn section_keys() -> Vec<$crate::form::SectionKey> {
                vec![ $( $crate::form::SectionKey {
                    name: stringify!($key),
                    about: concat!($($doc, "\n"),+),
                    value: $crate::section::value_type!($row $type, $form),
                    default: $crate::section::default_value!($type, $($default)*),
                }, )* ]
            }
            fn read(
                notes: &mut $crate::notes::ProblemNotes,
                t: &mut $crate::table::TomlTable,
            ) -> $name {
                #[allow(clippy::needless_update)]
                let section = $name {
                    span: t.span,
                    $(
                        $key:
                            $crate::section::read!($row $type, notes, t, stringify!($key), $form),
                    )*
                    ..Default::default()
                };
                $( $crate::section::require!(notes, t, stringify!($key), $($default)*); )*
                section
            }
            fn toml_entries(&self) -> Vec<(&'static str, String)> {
                let mut entries = Vec::new();
                $( $crate::section::write!($row entries, stringify!($key), &self.$key); )*
                entries
            }
            fn display_entries(&self) -> Vec<(&'static str, String)> {
                let mut facts = Vec::new();
                $(
                    let fact = $crate::section::plain!($row &self.$key);
                    facts.extend(fact.map(|fact| (stringify!($key), fact)));
                )*
                facts
            }
            fn key_places(&self) -> Vec<(&'static str, $crate::text::Span)> {
                let mut places = Vec::new();
                $( places.extend(self.$key.iter().map(|at| (stringify!($key), at.span))); )*
                places
            }
            #[allow(clippy::needless_update)]
            fn complete_from(self, base: &$name) -> $name {
                $name { $( $key: $crate::section::complete!($row self.$key, base.$key), )* ..self }
            }
        }

        impl $name {
            $( $crate::section::or_default!($key, $type, $($default)*); )*
        }

        $crate::section::plan! {
            $name [$($($resolved)*)?] []
            $( { [$($doc)+] $row $key [$type] [$($default)*] [$($plan)?] } )*
        }
    };
}

/// Declares the plan's type of a section: collects the rows that are copied unchanged.
macro_rules! plan {
    ($name:ident [] $($rows:tt)*) => {};
    (
        $name:ident [$($resolved:tt)+] [$($kept:tt)*]
        { [$($doc:literal)+] $row:ident $key:ident [$type:ty] [$($default:tt)*] [plan] }
        $($rows:tt)*
    ) => {
        $crate::section::plan! {
            $name [$($resolved)+] [$($kept)* { [$($doc)+] $row $key [$type] [$($default)*] }]
            $($rows)*
        }
    };
    ($name:ident [$($resolved:tt)+] [$($kept:tt)*] { $($row:tt)* } $($rows:tt)*) => {
        $crate::section::plan! { $name [$($resolved)+] [$($kept)*] $($rows)* }
    };
    (
        $name:ident
        [
            $(#[doc = $about:literal])+
            $plan:ident, $resolved:ident {
                $( $(#[doc = $more_doc:literal])+ $more:ident : $more_type:ty; )*
            }
        ]
        [$( { [$($doc:literal)+] $row:ident $key:ident [$type:ty] [$($default:tt)*] } )*]
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Debug)]
        pub struct $plan {
            $( $(#[doc = $doc])+ pub $key: $crate::section::planned!($row $type, $($default)*), )*
            $( $(#[doc = $more_doc])+ pub $more: $more_type, )*
        }

        /// The results of resolving, besides the keys that are copied unchanged.
        pub(crate) struct $resolved { $( pub(crate) $more: $more_type, )* }

        impl $name {
            /// The plan: each key as set, or its default, and the results of resolving.
            pub(crate) fn to_plan(&self, resolved: $resolved) -> $plan {
                $plan {
                    $( $key: $crate::section::settle!($row self $key, $($default)*), )*
                    $( $more: resolved.$more, )*
                }
            }
        }

        impl $plan {
            /// The section with the keys that were copied unchanged.
            pub(crate) fn to_spec(&self) -> $name {
                $name {
                    $( $key: $crate::section::restore!($row self.$key, $($default)*), )*
                    ..Default::default()
                }
            }
        }
    };
}

macro_rules! planned {
    (key $type:ty, = $value:expr) => { $type };
    (key $type:ty, $($default:tt)*) => { Option<$type> };
    (list $type:ty, $($default:tt)*) => { Vec<$type> };
}

macro_rules! settle {
    (key $section:tt $key:ident, = $value:expr) => {
        $section.$key()
    };
    (key $section:tt $key:ident, $($default:tt)*) => {
        $section.$key.as_ref().map(|at| at.value.clone())
    };
    (list $section:tt $key:ident, $($default:tt)*) => {
        $crate::text::list_items(&$section.$key).iter().map(|at| at.value.clone()).collect()
    };
}

macro_rules! restore {
    (key $value:expr, = $default:expr) => {
        $crate::text::to_setting($value.clone())
    };
    (key $value:expr, $($default:tt)*) => {
        $value.clone().and_then($crate::text::to_setting)
    };
    (list $value:expr, $($default:tt)*) => {
        $crate::text::to_list_setting($value.iter().cloned())
    };
}

macro_rules! field {
    (key $type:ty) => { $crate::text::Setting<$type> };
    (list $type:ty) => { $crate::text::Setting<Vec<$crate::text::At<$type>>> };
    (table $type:ty) => { Option<$type> };
    (sections $type:ty) => { Vec<$type> };
}

macro_rules! value_type {
    (key $type:ty, $form:expr) => {
        $crate::form::value_type::<$type>($form)
    };
    (list $type:ty, $form:expr) => {
        $crate::section::list_type::<$type>($form)
    };
    (table $type:ty, $form:expr) => {
        $crate::form::ValueType::Table(<$type as $crate::section::FileSection>::section_keys())
    };
    (sections $type:ty, $form:expr) => {
        $crate::form::ValueType::Sections(<$type as $crate::section::FileSection>::section_keys())
    };
}

macro_rules! default_value {
    ($type:ty,) => {
        $crate::form::DefaultValue::Words("")
    };
    ($type:ty, $words:literal) => {
        $crate::form::DefaultValue::Words($words)
    };
    ($type:ty, needed $($rest:tt)*) => {
        $crate::form::DefaultValue::Needed
    };
    ($type:ty, = $value:expr) => {
        $crate::form::DefaultValue::Value(
            $crate::parameter::Parameter::to_toml(&{
                let value: $type = $value;
                value
            })
            .unwrap_or_default(),
        )
    };
}

macro_rules! or_default {
    ($key:ident, $type:ty, = $value:expr) => {
        /// The set value, or the default.
        pub(crate) fn $key(&self) -> $type {
            self.$key.as_ref().map_or_else(|| $value, |at| at.value.clone())
        }
    };
    ($key:ident, $type:ty, $($default:tt)*) => {};
}

macro_rules! read {
    (key $type:ty, $notes:ident, $t:ident, $key:expr, $form:expr) => {
        $t.read_setting($notes, $key, |value| $form.read(value))
    };
    (list $type:ty, $notes:ident, $t:ident, $key:expr, $form:expr) => {{
        let form = $form;
        $t.take_list($notes, $key, |value| form.read(value))
    }};
    (table $type:ty, $notes:ident, $t:ident, $key:expr, $title:expr) => {
        $t.take_table($notes, $key, $title)
            .map(|table| <$type as $crate::section::FileSection>::read_whole($notes, table))
    };
    (sections $type:ty, $notes:ident, $t:ident, $key:expr, $title:expr) => {
        $crate::section::read_all($notes, $t, $key, $title)
    };
}

macro_rules! require {
    ($notes:ident, $t:ident, $key:expr, needed $message:literal, $help:literal) => {
        if !$t.has_key($key) {
            $notes.report_missing($t.span, $message, $help);
        }
    };
    ($notes:ident, $t:ident, $key:expr, $($default:tt)*) => {};
}

macro_rules! write {
    (key $entries:ident, $key:expr, $setting:expr) => {
        $entries.extend($crate::section::value_of($setting).map(|toml| ($key, toml)))
    };
    (list $entries:ident, $key:expr, $setting:expr) => {
        $entries.extend($crate::section::list_of($setting).map(|toml| ($key, toml)))
    };
    (table $entries:ident, $key:expr, $setting:expr) => {
        $entries
            .extend($setting.as_ref().map(|table| ($key, $crate::section::to_inline_table(table))))
    };
    // Sections are written after the one that contains them.
    (sections $entries:ident, $key:expr, $setting:expr) => {};
}

macro_rules! plain {
    (key $setting:expr) => {
        $setting.as_ref().map(|at| $crate::parameter::Parameter::to_plain_text(&at.value))
    };
    (list $setting:expr) => {
        $setting.as_ref().map(|at| $crate::section::plain_list(&at.value))
    };
    (table $setting:expr) => {
        $setting.as_ref().map($crate::section::plain_table)
    };
    (sections $setting:expr) => {
        None::<String>
    };
}

macro_rules! complete {
    (sections $own:expr, $base:expr) => {
        $own
    };
    ($row:ident $own:expr, $base:expr) => {
        $own.or($base.clone())
    };
}

pub(crate) use {
    complete, default_value, field, or_default, plain, plan, planned, read, require, restore,
    section, settle, value_type, write,
};

/// The type of an array of strings, each of this form.
pub(crate) fn list_type<T>(form: crate::form::Form<T>) -> ValueType {
    ValueType::List { of: Box::new(form.value), most: None }
}

/// The value of a setting in TOML.
pub(crate) fn value_of<T: Parameter>(setting: &Setting<T>) -> Option<String> {
    setting.as_ref()?.value.to_toml()
}

/// An array in TOML.
pub(crate) fn list_of<T: Parameter>(setting: &Setting<Vec<At<T>>>) -> Option<String> {
    let items = setting.as_ref()?.value.iter().filter_map(|at| at.value.to_toml());
    Some(format!("[{}]", items.collect::<Vec<_>>().join(", ")))
}

/// An array for display.
pub(crate) fn plain_list<T: Parameter>(items: &[At<T>]) -> String {
    items.iter().map(|at| at.value.clone()).collect::<Vec<T>>().to_plain_text()
}

/// An inline table for display.
pub(crate) fn plain_table(section: &impl FileSection) -> String {
    let facts = section.display_entries().into_iter().map(|(key, value)| format!("{key} {value}"));
    facts.collect::<Vec<_>>().join(", ")
}

/// An inline table in TOML.
pub(crate) fn to_inline_table(section: &impl FileSection) -> String {
    let entries = section.toml_entries().into_iter().map(|(key, value)| format!("{key} = {value}"));
    match entries.collect::<Vec<_>>().join(", ") {
        set if set.is_empty() => "{}".to_owned(),
        set => format!("{{ {set} }}"),
    }
}

/// The sections of one kind.
pub(crate) fn read_all<S: FileSection>(
    notes: &mut ProblemNotes,
    t: &mut TomlTable,
    key: &'static str,
    title: &'static str,
) -> Vec<S> {
    let tables = t.take_sections(notes, key, title);
    let tables = limit_sections(notes, tables, MAX_SECTIONS);
    tables.into_iter().map(|table| S::read_whole(notes, table)).collect()
}

/// At most this many sections of a kind, which limits everything derived from them.
pub(crate) fn limit_sections<'t, 'i>(
    notes: &mut ProblemNotes,
    mut tables: Vec<TomlTable<'t, 'i>>,
    most: usize,
) -> Vec<TomlTable<'t, 'i>> {
    if let Some(beyond) = tables.get(most) {
        let message =
            format!("{} sections {} are too many: at most {most}", tables.len(), beyond.title);
        notes.report_wrong_value(beyond.span, Wrong::new(message));
        tables.truncate(most);
    }
    tables
}
