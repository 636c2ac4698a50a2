//! Converts declared types to a sequence of reads: each number and text has an index.

use super::types::{ArrayLength, CtfType, Integer, Path, Ranges, Structure};
use crate::TraceError;
use crate::bytes::ByteOrder;
use std::rc::Rc;

/// A step in reading a part of a packet.
#[derive(Debug)]
pub(super) enum PacketStep {
    Number {
        form: IntegerLayout,
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
        count: ElementCount,
        place: u32,
    },
    Struct {
        align: u32,
        fields: Vec<PacketStep>,
    },
    Array {
        element: Box<PacketStep>,
        count: ElementCount,
    },
    Variant {
        tag: u32,
        cases: Vec<(Ranges, PacketStep)>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct IntegerLayout {
    pub(super) size: u32,
    pub(super) align: u32,
    pub(super) signed: bool,
    pub(super) order: ByteOrder,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ElementCount {
    Fixed(u64),
    /// The number with this index.
    At(u32),
}

/// The structure below a name.
#[derive(Clone, Debug)]
pub(super) enum NamedStructure {
    Number(u32, Option<Rc<Vec<(String, i64, i64)>>>),
    Text(u32),
    Fields(Vec<(String, NamedStructure)>),
    Other,
}

impl NamedStructure {
    /// A field, whose name may have an underscore before it (CTF 1.8, C.1.2).
    pub(super) fn get(&self, name: &str) -> Option<&NamedStructure> {
        let NamedStructure::Fields(fields) = self else { return None };
        let found = |(known, _): &&(String, NamedStructure)| {
            known.strip_prefix('_').unwrap_or(known) == name
        };
        fields.iter().find(found).map(|(_, seen)| seen)
    }

    pub(super) fn number_place(&self, name: &str) -> Option<u32> {
        match self.get(name) {
            Some(NamedStructure::Number(place, _)) => Some(*place),
            _ => None,
        }
    }

    /// The field below a path.
    fn find_below(&self, path: &[String]) -> Option<&NamedStructure> {
        path.iter().try_fold(self, |seen, name| match seen {
            NamedStructure::Fields(fields) => {
                fields.iter().find(|(known, _)| known == name).map(|(_, seen)| seen)
            }
            _ => None,
        })
    }

    /// Its own numbers and texts in order.
    pub(super) fn named_fields(&self) -> &[(String, NamedStructure)] {
        match self {
            NamedStructure::Fields(fields) => fields,
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
    /// The numbers of the current part that have a role, including those in structures and options.
    roles: Vec<(&'static str, u32)>,
    /// The names that are roles.
    named: &'static [&'static str],
    /// The parts so far: `stream.event.header`.
    roots: Vec<(&'static str, NamedStructure)>,
    /// The current part.
    root: &'static str,
    /// The name of the current field.
    name: String,
    /// The open structures, outermost first, with their names.
    open: Vec<(String, Vec<(String, NamedStructure)>)>,
}

/// Names that are roles in CTF 1.8; in CTF 2, which states roles, the last alone.
const NAMED_ROLES: [&str; 11] = [
    "magic",
    "stream_id",
    "stream_instance_id",
    "timestamp_begin",
    "timestamp_end",
    "content_size",
    "packet_size",
    "events_discarded",
    "packet_seq_num",
    "id",
    "cpu_id",
];

impl Compiler {
    pub(super) fn new(order: ByteOrder, states_roles: bool) -> Compiler {
        Compiler {
            order,
            places: 0,
            clocks: Vec::new(),
            roles: Vec::new(),
            named: if states_roles { &NAMED_ROLES[10..] } else { &NAMED_ROLES },
            roots: Vec::new(),
            root: "",
            name: String::new(),
            open: Vec::new(),
        }
    }

    /// The numbers of the last part that have a role.
    pub(super) fn places_with_role(&self, role: &str) -> impl Iterator<Item = u32> {
        self.roles.iter().filter(move |(known, _)| *known == role).map(|(_, place)| *place)
    }

    /// The first of them.
    pub(super) fn place_with_role(&self, role: &str) -> Option<u32> {
        self.places_with_role(role).next()
    }

    /// The layout of a part of packets or events; later parts may refer to its fields.
    pub(super) fn compile_part(
        &mut self,
        root: &'static str,
        declared: Option<&CtfType>,
        budget: &mut usize,
    ) -> Result<(PacketStep, NamedStructure), TraceError> {
        let nothing = CtfType::Struct(Rc::new(Structure { align: 1, ..Structure::default() }));
        self.root = root;
        self.roles.clear();
        let (layout, seen) = self.compile_type(declared.unwrap_or(&nothing), budget)?;
        self.roots.push((root, seen.clone()));
        Ok((layout, seen))
    }

    fn compile_type(
        &mut self,
        declared: &CtfType,
        budget: &mut usize,
    ) -> Result<(PacketStep, NamedStructure), TraceError> {
        *budget += 1;
        if *budget > MOST_LAYOUTS || self.places > MOST_PLACES {
            return Err(super::metadata_error(0, "it has too many fields"));
        }
        Ok(match declared {
            CtfType::Integer(integer) => {
                let place = self.add_number(integer);
                (self.number_step(integer, place), NamedStructure::Number(place, None))
            }
            CtfType::Enum(integer, values) => {
                let place = self.add_number(integer);
                (
                    self.number_step(integer, place),
                    NamedStructure::Number(place, Some(values.clone())),
                )
            }
            CtfType::Float { size, align } => {
                (PacketStep::Skipped { bits: (*size).into(), align: *align }, NamedStructure::Other)
            }
            CtfType::Text => {
                let place = self.next_place();
                (PacketStep::Text { place }, NamedStructure::Text(place))
            }
            CtfType::Struct(structure) => self.compile_structure(structure, budget)?,
            CtfType::Array(element, length) => self.compile_array(element, length, budget)?,
            CtfType::Variant { tag, options, ranges } => {
                self.compile_variant(tag.as_ref(), options, ranges.as_deref(), budget)?
            }
        })
    }

    fn next_place(&mut self) -> u32 {
        self.places += 1;
        self.places - 1
    }

    fn add_number(&mut self, integer: &Integer) -> u32 {
        let place = self.next_place();
        if integer.clock {
            self.clocks.push((place, if integer.size == 0 { 64 } else { integer.size }));
        }
        self.roles.extend(integer.role.map(|role| (role, place)));
        place
    }

    fn number_step(&self, integer: &Integer, place: u32) -> PacketStep {
        let Integer { size, align, signed, order, .. } = *integer;
        let form = IntegerLayout { size, align, signed, order: order.unwrap_or(self.order) };
        PacketStep::Number { form, place }
    }

    fn compile_structure(
        &mut self,
        structure: &Structure,
        budget: &mut usize,
    ) -> Result<(PacketStep, NamedStructure), TraceError> {
        self.open.push((std::mem::take(&mut self.name), Vec::new()));
        let mut fields = Vec::new();
        for (name, declared) in &structure.fields {
            let (layout, seen) = self.compile_field(name, name, declared, budget)?;
            fields.push(layout);
            if let Some((_, open)) = self.open.last_mut() {
                open.push((name.clone(), seen));
            }
        }
        let (_, seen) = self.open.pop().unwrap_or_default();
        let align =
            fields.iter().map(PacketStep::alignment).max().unwrap_or(1).max(structure.align);
        Ok((PacketStep::Struct { align, fields }, NamedStructure::Fields(seen)))
    }

    /// A field of a structure, or an option of a variant, whose fields are found below its name.
    fn compile_field(
        &mut self,
        name: &str,
        found_as: &str,
        declared: &CtfType,
        budget: &mut usize,
    ) -> Result<(PacketStep, NamedStructure), TraceError> {
        self.name = found_as.to_owned();
        let (layout, seen) = self.compile_type(declared, budget)?;
        if let NamedStructure::Number(place, _) = seen {
            let named = self.named.iter().find(|role| **role == name.trim_start_matches('_'));
            self.roles.extend(named.map(|role| (*role, place)));
        }
        Ok((layout, seen))
    }

    fn compile_array(
        &mut self,
        element: &CtfType,
        length: &ArrayLength,
        budget: &mut usize,
    ) -> Result<(PacketStep, NamedStructure), TraceError> {
        let count = match length {
            ArrayLength::Fixed(count) => ElementCount::Fixed(*count),
            ArrayLength::Of(path) => match self.find_field(path) {
                Some(NamedStructure::Number(place, _)) => ElementCount::At(*place),
                _ => return Err(unknown_field(path)),
            },
        };
        match element {
            CtfType::Integer(Integer { text: true, size: 8, align: 8, .. }) => {
                let place = self.next_place();
                Ok((PacketStep::Characters { count, place }, NamedStructure::Text(place)))
            }
            CtfType::Integer(Integer { size: size @ 1.., align, .. }) if size % align == 0 => {
                let (bits, align) = ((*size).into(), *align);
                // Contiguous elements are skipped at once; short arrays, such as the two arguments
                // of a system call, are kept.
                if let ElementCount::Fixed(count @ 1..=KEPT_ELEMENTS) = count {
                    let element_layouts = (0..count).map(|at| {
                        let (layout, seen) = self.compile_type(element, budget)?;
                        Ok((layout, (at.to_string(), seen)))
                    });
                    let element_fields: Vec<(PacketStep, (String, NamedStructure))> =
                        element_layouts.collect::<Result<_, TraceError>>()?;
                    let (fields, seen) = element_fields.into_iter().unzip();
                    return Ok((
                        PacketStep::Struct { align, fields },
                        NamedStructure::Fields(seen),
                    ));
                }
                let element = Box::new(PacketStep::Skipped { bits, align });
                Ok((PacketStep::Array { element, count }, NamedStructure::Other))
            }
            element => {
                let (layout, _) = self.compile_type(element, budget)?;
                Ok((PacketStep::Array { element: Box::new(layout), count }, NamedStructure::Other))
            }
        }
    }

    fn compile_variant(
        &mut self,
        tag: Option<&Path>,
        options: &Structure,
        ranges: Option<&Vec<Ranges>>,
        budget: &mut usize,
    ) -> Result<(PacketStep, NamedStructure), TraceError> {
        let nowhere = Path::Names(Vec::new());
        let path = tag.unwrap_or(&nowhere);
        let (tag, values) = match self.find_field(path) {
            Some(NamedStructure::Number(tag, values)) if values.is_some() || ranges.is_some() => {
                (*tag, values.clone().unwrap_or_default())
            }
            _ => return Err(unknown_field(path)),
        };
        let variant_name = std::mem::take(&mut self.name);
        let (mut cases, mut seen) = (Vec::new(), Vec::new());
        for (at, (name, declared)) in options.fields.iter().enumerate() {
            let (layout, below) = self.compile_field(name, &variant_name, declared, budget)?;
            seen.push((name.clone(), below));
            if let Some(ranges) = ranges {
                cases.push((ranges.get(at).cloned().unwrap_or_default(), layout));
                continue;
            }
            let is_of = |label: &str| {
                label == name || label.trim_start_matches('_') == name.trim_start_matches('_')
            };
            let chosen = values.iter().filter(|(label, ..)| is_of(label));
            cases.push((chosen.map(|(_, first, last)| (*first, *last)).collect(), layout));
        }
        Ok((PacketStep::Variant { tag, cases }, NamedStructure::Fields(seen)))
    }

    fn find_field(&self, path: &Path) -> Option<&NamedStructure> {
        match path {
            Path::Names(names) => self.find_by_names(names),
            Path::From(root, names) if *root == self.root => self.find_in_open(0, names),
            Path::From(root, names) => self.find_root(root)?.find_below(names),
            Path::Upwards(levels, names) => {
                self.find_in_open(self.open.len().checked_sub(levels + 1)?, names)
            }
        }
    }

    fn find_root(&self, name: &str) -> Option<&NamedStructure> {
        self.roots.iter().find(|(root, _)| *root == name).map(|(_, seen)| seen)
    }

    /// A field of an open structure, or of one in it.
    fn find_in_open(&self, depth: usize, path: &[String]) -> Option<&NamedStructure> {
        let (first, rest) = path.split_first()?;
        let (_, fields) = self.open.get(depth)?;
        match fields.iter().rev().find(|(known, _)| known == first) {
            Some((_, seen)) => seen.find_below(rest),
            None => {
                let (name, _) = self.open.get(depth + 1)?;
                (name == first).then(|| self.find_in_open(depth + 1, rest))?
            }
        }
    }

    /// From a root, or from the innermost structure that has its first name.
    fn find_by_names(&self, path: &[String]) -> Option<&NamedStructure> {
        let whole = path.join(".");
        for (root, seen) in &self.roots {
            if let Some(rest) = whole.strip_prefix(root).and_then(|rest| rest.strip_prefix('.')) {
                return seen.find_below(&rest.split('.').map(str::to_owned).collect::<Vec<_>>());
            }
        }
        let (first, rest) = path.split_first()?;
        let innermost = self.open.iter().rev().map(|(_, fields)| &fields[..]);
        let outer = self.roots.iter().rev().map(|(_, seen)| seen.named_fields());
        innermost
            .chain(outer)
            .find_map(|fields| fields.iter().rev().find(|(known, _)| known == first))
            .and_then(|(_, seen)| seen.find_below(rest))
    }
}

/// The maximum number of array elements that are kept.
const KEPT_ELEMENTS: u64 = 16;

impl PacketStep {
    /// Its alignment in bits of a packet.
    pub(super) fn alignment(&self) -> u32 {
        match self {
            PacketStep::Number { form, .. } => form.align,
            PacketStep::Skipped { align, .. } | PacketStep::Struct { align, .. } => *align,
            PacketStep::Text { .. } | PacketStep::Characters { .. } => 8,
            PacketStep::Array { element, .. } => element.alignment(),
            PacketStep::Variant { .. } => 1,
        }
    }
}

fn unknown_field(path: &Path) -> TraceError {
    let (Path::Names(names) | Path::From(_, names) | Path::Upwards(_, names)) = path;
    let path = names.join(".");
    super::metadata_error(
        0,
        &format!("the field `{}` is not declared before its use", path.escape_debug()),
    )
}
