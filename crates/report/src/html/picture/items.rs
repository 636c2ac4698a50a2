//! The items in the lanes of a picture.

use crate::format::span_text;
use crate::html::text::format_name;
use crate::marks::{Detail, Details};
use serde::ser::{Serialize, SerializeSeq, Serializer};
use std::collections::HashMap;

/// The style of an item; the numbers are classes `k0` … in report.css.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ItemStyle {
    /// In the colour of a thread: 0 to 7.
    Hue(u8),
    /// Runnable, but not running.
    Ready,
    Sleeping,
    /// Waiting uninterruptibly, or for a lock.
    Blocked,
    Other,
    Unknown,
    Interrupt,
    /// An interrupt vector of the CPU.
    Vector,
    Softirq,
    Timer,
    /// In the kernel: system calls, locks, work.
    Kernel,
    Point,
    Call,
    Sample,
    /// A request to a device.
    Request,
    Lost,
    /// Several items, each too short to be shown.
    Mixed,
    /// A part of a sample, by the kind of its cause: 0 to 12.
    Cause(u8),
}

impl ItemStyle {
    pub fn number(self) -> u8 {
        match self {
            ItemStyle::Hue(hue) => hue,
            ItemStyle::Ready => 8,
            ItemStyle::Sleeping => 9,
            ItemStyle::Blocked => 10,
            ItemStyle::Other => 11,
            ItemStyle::Unknown => 12,
            ItemStyle::Interrupt => 13,
            ItemStyle::Vector => 14,
            ItemStyle::Softirq => 15,
            ItemStyle::Timer => 16,
            ItemStyle::Kernel => 17,
            ItemStyle::Point => 18,
            ItemStyle::Call => 19,
            ItemStyle::Sample => 20,
            ItemStyle::Request => 21,
            ItemStyle::Lost => 22,
            ItemStyle::Mixed => 23,
            ItemStyle::Cause(kind) => 24 + kind,
        }
    }
}

/// An item: `[from, length, row, look, word, value, detail name, detail, …]`; the value is null
/// except in lanes of values.
#[derive(Clone, PartialEq, Debug)]
pub struct LaneItem {
    pub from: i64,
    pub length: i64,
    /// The row in its lane.
    pub row: usize,
    pub look: ItemStyle,
    pub word: usize,
    /// The value, in lanes of values.
    pub value: Option<i64>,
    /// Further details, as name and text.
    pub details: Vec<(&'static str, String)>,
}

impl LaneItem {
    pub fn end(&self) -> i64 {
        self.from.saturating_add(self.length)
    }
}

impl Serialize for LaneItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        list.serialize_element(&self.from)?;
        list.serialize_element(&self.length)?;
        list.serialize_element(&self.row)?;
        list.serialize_element(&self.look.number())?;
        list.serialize_element(&self.word)?;
        list.serialize_element(&self.value)?;
        for (name, text) in &self.details {
            list.serialize_element(name)?;
            list.serialize_element(text)?;
        }
        list.end()
    }
}

/// Names that many items share.
#[derive(Default)]
pub struct Words {
    known: HashMap<String, usize>,
    list: Vec<String>,
}

impl Words {
    /// The number of a foreign name.
    pub fn intern_name(&mut self, text: &str) -> usize {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        self.known.insert(text.to_owned(), self.list.len());
        self.list.push(format_name(text));
        self.list.len() - 1
    }

    /// All of them, by number.
    pub(crate) fn into_list(self) -> Vec<String> {
        self.list
    }
}

pub(crate) fn format_details(details: &Details<'_>) -> Vec<(&'static str, String)> {
    let text = |detail: &Detail<'_>| match detail {
        Detail::Number(n) => n.to_string(),
        Detail::Address(at) => format!("{at:#x}"),
        Detail::Span(length) => span_text(*length),
        Detail::Text(text) => format_name(text),
    };
    details.iter().map(|(title, detail)| (*title, text(detail))).collect()
}
