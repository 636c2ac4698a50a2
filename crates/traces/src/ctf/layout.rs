//! Converts declared types to a sequence of reads: each number and text has an index.

use super::types::{Integer, Length, Structure, Type};
use crate::TraceError;
use crate::bytes::ByteOrder;
use std::rc::Rc;

/// A step in reading a part of a packet.
#[derive(Debug)]
pub(super) enum Layout {
    Number {
        form: Number,
        place: u32,
    },
    Skipped {
        bits: u64,
        align: u32,
    },
    /// Characters up to a NUL.
    Text {
        place: u32,
    },
    /// Characters, up to a NUL or the end.
    Characters {
        count: Count,
        place: u32,
    },
    Struct {
        align: u32,
        fields: Vec<Layout>,
    },
    Array {
        element: Box<Layout>,
        count: Count,
    },
    Variant {
        tag: u32,
        cases: Vec<(Ranges, Layout)>,
    },
}

/// Values that select an option.
type Ranges = Vec<(i64, i64)>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) size: u32,
    pub(super) align: u32,
    pub(super) signed: bool,
    pub(super) order: ByteOrder,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    Fixed(u64),
    /// The number with this index.
    At(u32),
}

/// The structure below a name.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    Number(u32, Option<Rc<Vec<(String, i64, i64)>>>),
    Text(u32),
    Fields(Vec<(String, Seen)>),
    Other,
}

impl Seen {
    /// A field, whose name may have an underscore before it (CTF 1.8, C.1.2).
    pub(super) fn get(&self, name: &str) -> Option<&Seen> {
        let Seen::Fields(fields) = self else { return None };
        let found = |(known, _): &&(String, Seen)| known.strip_prefix('_').unwrap_or(known) == name;
        fields.iter().find(found).map(|(_, seen)| seen)
    }

    pub(super) fn number(&self, name: &str) -> Option<u32> {
        match self.get(name) {
            Some(Seen::Number(place, _)) => Some(*place),
            _ => None,
        }
    }

    /// The indices of all numbers with a name, including those in structures and options.
    pub(super) fn numbers(&self, name: &str) -> Vec<u32> {
        let Seen::Fields(fields) = self else { return Vec::new() };
        let mut places = Vec::new();
        for (known, seen) in fields {
            match seen {
                Seen::Number(place, _) if known.trim_start_matches('_') == name => {
                    places.push(*place);
                }
                seen => places.extend(seen.numbers(name)),
            }
        }
        places
    }

    /// Its own numbers and texts in order.
    pub(super) fn fields(&self) -> &[(String, Seen)] {
        match self {
            Seen::Fields(fields) => fields,
            _ => &[],
        }
    }
}

/// The maximum number of values per event: more than any kernel event has.
const MOST_PLACES: u32 = 1 << 12;
/// The maximum size of all events of a trace together.
const MOST_LAYOUTS: usize = 1 << 20;

/// Makes the layouts of one stream's packets and events.
#[derive(Clone, Debug)]
pub(super) struct Compiler {
    order: ByteOrder,
    /// The number of numbers and texts so far.
    pub(super) places: u32,
    /// Those with the clock, and their sizes in bits.
    pub(super) clocks: Vec<(u32, u32)>,
    /// The names that are absolute: `stream.event.header`.
    roots: Vec<(&'static str, Seen)>,
    /// The open structures, outermost first.
    open: Vec<Vec<(String, Seen)>>,
}

impl Compiler {
    pub(super) fn new(order: ByteOrder) -> Compiler {
        Compiler { order, places: 0, clocks: Vec::new(), roots: Vec::new(), open: Vec::new() }
    }

    /// The layout of a part of packets or events; later parts may refer to its fields.
    pub(super) fn part(
        &mut self,
        root: &'static str,
        declared: Option<&Type>,
        budget: &mut usize,
    ) -> Result<(Layout, Seen), TraceError> {
        let nothing = Type::Struct(Rc::new(Structure { align: 1, ..Structure::default() }));
        let (layout, seen) = self.of(declared.unwrap_or(&nothing), budget)?;
        self.roots.push((root, seen.clone()));
        Ok((layout, seen))
    }

    fn of(&mut self, declared: &Type, budget: &mut usize) -> Result<(Layout, Seen), TraceError> {
        *budget += 1;
        if *budget > MOST_LAYOUTS || self.places > MOST_PLACES {
            return Err(super::broken(0, "it has too many fields"));
        }
        Ok(match declared {
            Type::Integer(integer) => {
                let place = self.number(integer);
                (self.layout(integer, place), Seen::Number(place, None))
            }
            Type::Enum(integer, values) => {
                let place = self.number(integer);
                (self.layout(integer, place), Seen::Number(place, Some(values.clone())))
            }
            Type::Float { size, align } => {
                (Layout::Skipped { bits: (*size).into(), align: *align }, Seen::Other)
            }
            Type::Text => {
                let place = self.place();
                (Layout::Text { place }, Seen::Text(place))
            }
            Type::Struct(structure) => self.structure(structure, budget)?,
            Type::Array(element, length) => self.array(element, length, budget)?,
            Type::Variant { tag, options } => self.variant(tag.as_deref(), options, budget)?,
        })
    }

    fn place(&mut self) -> u32 {
        self.places += 1;
        self.places - 1
    }

    fn number(&mut self, integer: &Integer) -> u32 {
        let place = self.place();
        if integer.clock {
            self.clocks.push((place, integer.size));
        }
        place
    }

    fn layout(&self, integer: &Integer, place: u32) -> Layout {
        let Integer { size, align, signed, order, .. } = *integer;
        let form = Number { size, align, signed, order: order.unwrap_or(self.order) };
        Layout::Number { form, place }
    }

    fn structure(
        &mut self,
        structure: &Structure,
        budget: &mut usize,
    ) -> Result<(Layout, Seen), TraceError> {
        self.open.push(Vec::new());
        let mut fields = Vec::new();
        for (name, declared) in &structure.fields {
            let (layout, seen) = self.of(declared, budget)?;
            fields.push(layout);
            if let Some(open) = self.open.last_mut() {
                open.push((name.clone(), seen));
            }
        }
        let seen = self.open.pop().unwrap_or_default();
        let align = fields.iter().map(Layout::align).max().unwrap_or(1).max(structure.align);
        Ok((Layout::Struct { align, fields }, Seen::Fields(seen)))
    }

    fn array(
        &mut self,
        element: &Type,
        length: &Length,
        budget: &mut usize,
    ) -> Result<(Layout, Seen), TraceError> {
        let count = match length {
            Length::Fixed(count) => Count::Fixed(*count),
            Length::Of(path) => match self.find(path) {
                Some(Seen::Number(place, _)) => Count::At(place),
                _ => return Err(unknown(path)),
            },
        };
        match element {
            Type::Integer(Integer { text: true, size: 8, align: 8, .. }) => {
                let place = self.place();
                Ok((Layout::Characters { count, place }, Seen::Text(place)))
            }
            Type::Integer(Integer { size, align, .. }) if size % align == 0 => {
                let (bits, align) = ((*size).into(), *align);
                // Contiguous elements are skipped at once; short arrays, such as the two arguments
                // of a system call, are kept.
                if let Count::Fixed(count @ 1..=KEPT) = count {
                    let many = (0..count).map(|at| {
                        let (layout, seen) = self.of(element, budget)?;
                        Ok((layout, (at.to_string(), seen)))
                    });
                    let many: Vec<(Layout, (String, Seen))> =
                        many.collect::<Result<_, TraceError>>()?;
                    let (fields, seen) = many.into_iter().unzip();
                    return Ok((Layout::Struct { align, fields }, Seen::Fields(seen)));
                }
                let element = Box::new(Layout::Skipped { bits, align });
                Ok((Layout::Array { element, count }, Seen::Other))
            }
            element => {
                let (layout, _) = self.of(element, budget)?;
                Ok((Layout::Array { element: Box::new(layout), count }, Seen::Other))
            }
        }
    }

    fn variant(
        &mut self,
        tag: Option<&[String]>,
        options: &Structure,
        budget: &mut usize,
    ) -> Result<(Layout, Seen), TraceError> {
        let path = tag.unwrap_or_default();
        let Some(Seen::Number(tag, Some(values))) = self.find(path) else {
            return Err(unknown(path));
        };
        let (mut cases, mut seen) = (Vec::new(), Vec::new());
        for (name, declared) in &options.fields {
            let (layout, below) = self.of(declared, budget)?;
            let is_of = |label: &str| {
                label == name || label.trim_start_matches('_') == name.trim_start_matches('_')
            };
            let chosen = values.iter().filter(|(label, ..)| is_of(label));
            cases.push((chosen.map(|(_, first, last)| (*first, *last)).collect(), layout));
            seen.push((name.clone(), below));
        }
        Ok((Layout::Variant { tag, cases }, Seen::Fields(seen)))
    }

    /// A field by its path: from a root, or from the innermost structure that has its first name.
    fn find(&self, path: &[String]) -> Option<Seen> {
        let whole = path.join(".");
        let below = |seen: &Seen, path: &[String]| {
            path.iter().try_fold(seen.clone(), |seen, name| match seen {
                Seen::Fields(fields) => {
                    fields.into_iter().find(|(known, _)| known == name).map(|(_, seen)| seen)
                }
                _ => None,
            })
        };
        for (root, seen) in &self.roots {
            if let Some(rest) = whole.strip_prefix(root).and_then(|rest| rest.strip_prefix('.')) {
                let rest: Vec<String> = rest.split('.').map(str::to_owned).collect();
                return below(seen, &rest);
            }
        }
        let (first, rest) = path.split_first()?;
        let innermost = self.open.iter().rev();
        let outer = self.roots.iter().rev().map(|(_, seen)| seen.fields());
        innermost
            .map(Vec::as_slice)
            .chain(outer)
            .find_map(|fields| fields.iter().rev().find(|(known, _)| known == first))
            .and_then(|(_, seen)| below(seen, rest))
    }
}

/// The maximum number of array elements that are kept.
const KEPT: u64 = 16;

impl Layout {
    /// Its alignment in bits of a packet.
    pub(super) fn align(&self) -> u32 {
        match self {
            Layout::Number { form, .. } => form.align,
            Layout::Skipped { align, .. } | Layout::Struct { align, .. } => *align,
            Layout::Text { .. } | Layout::Characters { .. } => 8,
            Layout::Array { element, .. } => element.align(),
            Layout::Variant { .. } => 1,
        }
    }
}

fn unknown(path: &[String]) -> TraceError {
    let path = path.join(".");
    super::broken(0, &format!("the field `{}` is not declared before its use", path.escape_debug()))
}
