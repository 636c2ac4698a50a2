//! The items in the lanes of a picture.

use crate::format::span;
use crate::html::text::name;
use crate::marks::{Detail, Details};
use serde::ser::{Serialize, SerializeSeq, Serializer};
use std::collections::HashMap;

/// The style of an item; the numbers are classes `k0` … in report.css.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Look {
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

impl Look {
    pub fn number(self) -> u8 {
        match self {
            Look::Hue(hue) => hue,
            Look::Ready => 8,
            Look::Sleeping => 9,
            Look::Blocked => 10,
            Look::Other => 11,
            Look::Unknown => 12,
            Look::Interrupt => 13,
            Look::Vector => 14,
            Look::Softirq => 15,
            Look::Timer => 16,
            Look::Kernel => 17,
            Look::Point => 18,
            Look::Call => 19,
            Look::Sample => 20,
            Look::Request => 21,
            Look::Lost => 22,
            Look::Mixed => 23,
            Look::Cause(kind) => 24 + kind,
        }
    }
}

/// An item: `[from, length, row, look, word, value, detail name, detail, …]`; the value is null
/// except in lanes of values.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    pub from: i64,
    pub length: i64,
    /// The row in its lane.
    pub row: usize,
    pub look: Look,
    pub word: usize,
    /// The value, in lanes of values.
    pub value: Option<i64>,
    /// Further details, as name and text.
    pub details: Vec<(&'static str, String)>,
}

impl Item {
    pub fn end(&self) -> i64 {
        self.from.saturating_add(self.length)
    }
}

impl Serialize for Item {
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
    pub fn of(&mut self, text: &str) -> usize {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        self.known.insert(text.to_owned(), self.list.len());
        self.list.push(name(text));
        self.list.len() - 1
    }

    /// All of them, by number.
    pub fn into_list(self) -> Vec<String> {
        self.list
    }
}

pub fn details(details: &Details<'_>) -> Vec<(&'static str, String)> {
    let text = |detail: &Detail<'_>| match detail {
        Detail::Number(n) => n.to_string(),
        Detail::Address(at) => format!("{at:#x}"),
        Detail::Span(length) => span(*length),
        Detail::Text(text) => name(text),
    };
    details.iter().map(|(title, detail)| (*title, text(detail))).collect()
}
