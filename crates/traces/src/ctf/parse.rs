//! Parses the text of the metadata to declarations.

use super::CtfScopes;
use super::lexer::{Token, tokenize};
use super::metadata_error;
use super::types::{ArrayLength, CtfType, Integer, MOST_ALIGN, MOST_DEPTH, Path, Structure};
use crate::TraceError;
use crate::bytes::ByteOrder;
use std::rc::Rc;

type ParseResult<T> = Result<T, TraceError>;

/// The value of an attribute: `size = 32`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AttributeValue {
    Number(i64),
    Text(String),
}

#[derive(Clone, Debug)]
pub(super) enum Attribute {
    Value(AttributeValue),
    Type(CtfType),
}

#[derive(Default)]
pub(super) struct Parser {
    tokens: Vec<(Token, u32)>,
    at: usize,
    depth: u32,
    pub(super) scopes: CtfScopes,
}

impl Parser {
    pub(super) fn new(text: &str) -> ParseResult<Parser> {
        Ok(Parser { tokens: tokenize(text)?, ..Parser::default() })
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn current_line(&self) -> u32 {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(0, |(_, line)| *line)
    }

    pub(super) fn error_here<T>(&self, why: &str) -> ParseResult<T> {
        Err(metadata_error(self.current_line(), why))
    }

    fn is_next(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    /// Skips a sign, if it is next.
    pub(super) fn skip_sign(&mut self, sign: &str) -> bool {
        let is = self.is_next(sign);
        self.at += usize::from(is);
        is
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> ParseResult<()> {
        match self.skip_sign(sign) {
            true => Ok(()),
            false => self.error_here(&format!("`{sign}` is missing")),
        }
    }

    fn peek_name(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn read_name(&mut self) -> ParseResult<String> {
        match self.peek_name().map(str::to_owned) {
            Some(name) => {
                self.at += 1;
                Ok(name)
            }
            None => self.error_here("a name is missing"),
        }
    }

    /// `packet.header`
    fn read_path(&mut self) -> ParseResult<Vec<String>> {
        let mut path = vec![self.read_name()?];
        while self.skip_sign(".") {
            path.push(self.read_name()?);
        }
        Ok(path)
    }

    fn read_number(&mut self) -> ParseResult<i64> {
        let negative = self.skip_sign("-");
        let _ = self.skip_sign("+");
        let Some(Token::Number(number)) = self.peek() else {
            return self.error_here("a number is missing");
        };
        let number = *number as i64;
        self.at += 1;
        Ok(if negative { number.wrapping_neg() } else { number })
    }

    /// The declarations and attributes of a block, after its `{`.
    pub(super) fn read_block(&mut self) -> ParseResult<Vec<(String, Attribute)>> {
        self.scopes.open_scope();
        let mut attributes = Vec::new();
        while !self.skip_sign("}") {
            if self.read_declaration()? {
                continue;
            }
            let key = match self.peek() {
                Some(Token::Text(text)) => {
                    let text = text.clone();
                    self.at += 1;
                    text
                }
                _ => self.read_path()?.join("."),
            };
            let attribute = if self.skip_sign(":=") {
                Attribute::Type(self.any_type()?)
            } else {
                self.expect_sign("=")?;
                Attribute::Value(self.read_value()?)
            };
            self.expect_sign(";")?;
            attributes.push((key, attribute));
        }
        self.scopes.close_scope();
        Ok(attributes)
    }

    fn read_value(&mut self) -> ParseResult<AttributeValue> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(AttributeValue::Text(text))
            }
            Some(Token::Name(_)) => Ok(AttributeValue::Text(self.read_path()?.join("."))),
            _ => Ok(AttributeValue::Number(self.read_number()?)),
        }
    }

    /// Reads `typealias`, `typedef`, and a named type that is declared without a field.
    pub(super) fn read_declaration(&mut self) -> ParseResult<bool> {
        match self.peek_name() {
            Some("typealias") => {
                self.at += 1;
                let declared = self.any_type()?;
                self.expect_sign(":=")?;
                let name = self.words_until(";")?;
                self.scopes.add(name, declared);
            }
            Some("typedef") => {
                self.at += 1;
                let (name, declared) = self.read_field()?;
                self.scopes.add(name, declared);
            }
            Some("struct" | "variant" | "enum") => {
                let start = self.at;
                self.any_type()?;
                // A field of this type follows: the type is read again with it.
                if !self.is_next(";") {
                    self.at = start;
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
        self.expect_sign(";")?;
        Ok(true)
    }

    fn words_until(&mut self, sign: &str) -> ParseResult<String> {
        let mut words = Vec::new();
        while !self.is_next(sign) {
            match self.skip_sign("*") {
                true => words.push("*".to_owned()),
                false => words.push(self.read_name()?),
            }
        }
        Ok(words.join(" "))
    }

    /// `uint32_t id`, `integer { … } comm[16]`
    fn read_field(&mut self) -> ParseResult<(String, CtfType)> {
        let keyword = |word: &str| {
            matches!(word, "integer" | "floating_point" | "string" | "struct" | "variant" | "enum")
        };
        let (mut declared, name) = if self.peek_name().is_some_and(keyword) {
            (self.any_type()?, self.read_name()?)
        } else {
            let mut words = Vec::new();
            while self.peek_name().is_some() || self.is_next("*") {
                match self.skip_sign("*") {
                    true => words.push("*".to_owned()),
                    false => words.push(self.read_name()?),
                }
            }
            let Some(name) = words.pop() else { return self.error_here("a field is missing") };
            (self.find_type(&words.join(" "))?, name)
        };
        let mut lengths = Vec::new();
        while self.skip_sign("[") {
            lengths.push(match self.peek() {
                Some(Token::Number(count)) => {
                    let count = *count;
                    self.at += 1;
                    ArrayLength::Fixed(count)
                }
                _ => ArrayLength::Of(Path::Names(self.read_path()?)),
            });
            self.expect_sign("]")?;
            self.at_most(declared.max_depth() + lengths.len() as u32)?;
        }
        for length in lengths.into_iter().rev() {
            declared = CtfType::Array(Rc::new(declared), length);
        }
        Ok((name, declared))
    }

    fn find_type(&self, name: &str) -> ParseResult<CtfType> {
        match self.scopes.find_type(name) {
            Some(found) => Ok(found),
            None => self.error_here(&format!("the type `{}` is not declared", name.escape_debug())),
        }
    }

    fn any_type(&mut self) -> ParseResult<CtfType> {
        self.depth += 1;
        self.at_most(self.depth)?;
        let found = match self.peek_name() {
            Some("integer") => self.read_integer(),
            Some("floating_point") => self.read_float(),
            Some("string") => {
                self.at += 1;
                if self.skip_sign("{") {
                    self.read_block()?;
                }
                Ok(CtfType::Text)
            }
            Some("struct") => self.read_structure(),
            Some("variant") => self.read_variant(),
            Some("enum") => self.read_enumeration(),
            _ => {
                let mut words = Vec::new();
                while self.peek_name().is_some() || self.is_next("*") {
                    match self.skip_sign("*") {
                        true => words.push("*".to_owned()),
                        false => words.push(self.read_name()?),
                    }
                }
                self.find_type(&words.join(" "))
            }
        };
        self.depth -= 1;
        found
    }

    fn read_integer(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        self.expect_sign("{")?;
        let mut integer = Integer::default();
        for (key, attribute) in self.read_block()? {
            let Attribute::Value(value) = attribute else { continue };
            let word = |words: &[&str]| {
                matches!(&value, AttributeValue::Text(text)
                    if words.iter().any(|word| text.eq_ignore_ascii_case(word)))
            };
            match key.as_str() {
                "size" => integer.size = self.check_size(&value, 64)?,
                "align" => integer.align = self.check_alignment(&value)?,
                "signed" => integer.signed = value == AttributeValue::Number(1) || word(&["true"]),
                "byte_order" => integer.order = byte_order(&value),
                "encoding" => integer.text = word(&["utf8", "ascii"]),
                "map" => integer.clock = true,
                _ => {}
            }
        }
        if integer.size == 0 {
            return self.error_here("an integer has no size");
        }
        if integer.align == 0 {
            integer.align = if integer.size.is_multiple_of(8) { 8 } else { 1 };
        }
        Ok(CtfType::Integer(integer))
    }

    fn read_float(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        self.expect_sign("{")?;
        let (mut size, mut align) = (0, 0);
        for (key, attribute) in self.read_block()? {
            let Attribute::Value(value) = attribute else { continue };
            match key.as_str() {
                "exp_dig" | "mant_dig" => size += self.check_size(&value, 1 << 10)?,
                "align" => align = self.check_alignment(&value)?,
                _ => {}
            }
        }
        let align = if align == 0 { if size % 8 == 0 { 8 } else { 1 } } else { align };
        Ok(CtfType::Float { size, align })
    }

    fn check_size(&self, value: &AttributeValue, most: i64) -> ParseResult<u32> {
        match value {
            AttributeValue::Number(bits) if (1..=most).contains(bits) => Ok(*bits as u32),
            _ => self.error_here("unsupported size"),
        }
    }

    fn check_alignment(&self, value: &AttributeValue) -> ParseResult<u32> {
        match value {
            AttributeValue::Number(bits) => self.power_of_two(*bits),
            AttributeValue::Text(_) => self.error_here("unsupported alignment"),
        }
    }

    fn power_of_two(&self, bits: i64) -> ParseResult<u32> {
        match u64::try_from(bits) {
            Ok(bits) if bits.is_power_of_two() && bits <= MOST_ALIGN => Ok(bits as u32),
            _ => self.error_here("unsupported alignment"),
        }
    }

    fn read_structure(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        let name = self.peek_name().map(|name| format!("struct {name}"));
        self.at += usize::from(name.is_some());
        if !self.skip_sign("{") {
            return self.find_type(&name.unwrap_or_default());
        }
        let fields = self.read_fields()?;
        let mut align = 1;
        if self.peek_name() == Some("align") {
            self.at += 1;
            self.expect_sign("(")?;
            let bits = self.read_number()?;
            align = self.power_of_two(bits)?;
            self.expect_sign(")")?;
        }
        let structure = CtfType::Struct(Rc::new(Structure { align, ..fields }));
        self.declare_named(name, structure)
    }

    fn read_fields(&mut self) -> ParseResult<Structure> {
        self.scopes.open_scope();
        let mut fields = Vec::new();
        while !self.skip_sign("}") {
            if self.read_declaration()? {
                continue;
            }
            fields.push(self.read_field()?);
            self.expect_sign(";")?;
        }
        self.scopes.close_scope();
        let structure = Structure::new(1, fields);
        self.at_most(structure.depth)?;
        Ok(structure)
    }

    fn at_most(&self, depth: u32) -> ParseResult<()> {
        match depth <= MOST_DEPTH {
            true => Ok(()),
            false => self.error_here("types lie too deep within types"),
        }
    }

    fn read_variant(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        let name = self.peek_name().map(|name| format!("variant {name}"));
        self.at += usize::from(name.is_some());
        let mut tag = None;
        if self.skip_sign("<") {
            tag = Some(Path::Names(self.read_path()?));
            self.expect_sign(">")?;
        }
        if !self.skip_sign("{") {
            return Ok(match (self.find_type(&name.unwrap_or_default())?, tag) {
                (CtfType::Variant { options, ranges, .. }, Some(tag)) => {
                    CtfType::Variant { tag: Some(tag), options, ranges }
                }
                (found, _) => found,
            });
        }
        let options = Rc::new(self.read_fields()?);
        self.declare_named(name, CtfType::Variant { tag, options, ranges: None })
    }

    fn read_enumeration(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        let name = self.peek_name().map(|name| format!("enum {name}"));
        self.at += usize::from(name.is_some());
        let base = match (self.skip_sign(":"), self.is_next("{")) {
            (true, _) => Some(self.any_type()?),
            (false, true) => self.scopes.find_type("int"),
            (false, false) => return self.find_type(&name.unwrap_or_default()),
        };
        let Some(CtfType::Integer(base)) = base else {
            return self.error_here("an enumeration is of no integer");
        };
        self.expect_sign("{")?;
        let mut values = Vec::new();
        let mut next = 0i64;
        while !self.skip_sign("}") {
            let label = match self.peek() {
                Some(Token::Text(text)) => text.clone(),
                Some(Token::Name(name)) => name.clone(),
                _ => return self.error_here("a name of a value is missing"),
            };
            self.at += 1;
            let (mut first, mut last) = (next, next);
            if self.skip_sign("=") {
                first = self.read_number()?;
                last = if self.skip_sign("...") { self.read_number()? } else { first };
            }
            next = last.wrapping_add(1);
            values.push((label, first, last));
            if !self.skip_sign(",") {
                self.expect_sign("}")?;
                break;
            }
        }
        self.declare_named(name, CtfType::Enum(base, Rc::new(values)))
    }

    fn declare_named(&mut self, name: Option<String>, declared: CtfType) -> ParseResult<CtfType> {
        if let Some(name) = name {
            self.scopes.add(name, declared.clone());
        }
        Ok(declared)
    }
}

/// `le`, `be`, `network`; `native` is `None`.
pub(super) fn byte_order(value: &AttributeValue) -> Option<ByteOrder> {
    match value {
        AttributeValue::Text(text) if text == "le" => Some(ByteOrder::Little),
        AttributeValue::Text(text) if text == "be" || text == "network" => Some(ByteOrder::Big),
        _ => None,
    }
}
