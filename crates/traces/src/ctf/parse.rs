//! Parses the text of the metadata to declarations.

use super::CtfScopes;
use super::broken;
use super::lexer::{Token, tokens};
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
        Ok(Parser { tokens: tokens(text)?, ..Parser::default() })
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn line(&self) -> u32 {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(0, |(_, line)| *line)
    }

    pub(super) fn wrong<T>(&self, why: &str) -> ParseResult<T> {
        Err(broken(self.line(), why))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    /// Skips a sign, if it is next.
    pub(super) fn take(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.at += usize::from(is);
        is
    }

    pub(super) fn need(&mut self, sign: &str) -> ParseResult<()> {
        match self.take(sign) {
            true => Ok(()),
            false => self.wrong(&format!("`{sign}` is missing")),
        }
    }

    fn word(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn name(&mut self) -> ParseResult<String> {
        match self.word().map(str::to_owned) {
            Some(name) => {
                self.at += 1;
                Ok(name)
            }
            None => self.wrong("a name is missing"),
        }
    }

    /// `packet.header`
    fn path(&mut self) -> ParseResult<Vec<String>> {
        let mut path = vec![self.name()?];
        while self.take(".") {
            path.push(self.name()?);
        }
        Ok(path)
    }

    fn number(&mut self) -> ParseResult<i64> {
        let negative = self.take("-");
        let _ = self.take("+");
        let Some(Token::Number(number)) = self.peek() else {
            return self.wrong("a number is missing");
        };
        let number = *number as i64;
        self.at += 1;
        Ok(if negative { number.wrapping_neg() } else { number })
    }

    /// The declarations and attributes of a block, after its `{`.
    pub(super) fn block(&mut self) -> ParseResult<Vec<(String, Attribute)>> {
        self.scopes.open();
        let mut attributes = Vec::new();
        while !self.take("}") {
            if self.declaration()? {
                continue;
            }
            let key = match self.peek() {
                Some(Token::Text(text)) => {
                    let text = text.clone();
                    self.at += 1;
                    text
                }
                _ => self.path()?.join("."),
            };
            let attribute = if self.take(":=") {
                Attribute::Type(self.any_type()?)
            } else {
                self.need("=")?;
                Attribute::Value(self.value()?)
            };
            self.need(";")?;
            attributes.push((key, attribute));
        }
        self.scopes.close();
        Ok(attributes)
    }

    fn value(&mut self) -> ParseResult<AttributeValue> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(AttributeValue::Text(text))
            }
            Some(Token::Name(_)) => Ok(AttributeValue::Text(self.path()?.join("."))),
            _ => Ok(AttributeValue::Number(self.number()?)),
        }
    }

    /// Reads `typealias`, `typedef`, and a named type that is declared without a field.
    pub(super) fn declaration(&mut self) -> ParseResult<bool> {
        match self.word() {
            Some("typealias") => {
                self.at += 1;
                let declared = self.any_type()?;
                self.need(":=")?;
                let name = self.words_until(";")?;
                self.scopes.add(name, declared);
            }
            Some("typedef") => {
                self.at += 1;
                let (name, declared) = self.field()?;
                self.scopes.add(name, declared);
            }
            Some("struct" | "variant" | "enum") => {
                let start = self.at;
                self.any_type()?;
                // A field of this type follows: the type is read again with it.
                if !self.is(";") {
                    self.at = start;
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
        self.need(";")?;
        Ok(true)
    }

    fn words_until(&mut self, sign: &str) -> ParseResult<String> {
        let mut words = Vec::new();
        while !self.is(sign) {
            match self.take("*") {
                true => words.push("*".to_owned()),
                false => words.push(self.name()?),
            }
        }
        Ok(words.join(" "))
    }

    /// `uint32_t id`, `integer { … } comm[16]`
    fn field(&mut self) -> ParseResult<(String, CtfType)> {
        let keyword = |word: &str| {
            matches!(word, "integer" | "floating_point" | "string" | "struct" | "variant" | "enum")
        };
        let (mut declared, name) = if self.word().is_some_and(keyword) {
            (self.any_type()?, self.name()?)
        } else {
            let mut words = Vec::new();
            while self.word().is_some() || self.is("*") {
                match self.take("*") {
                    true => words.push("*".to_owned()),
                    false => words.push(self.name()?),
                }
            }
            let Some(name) = words.pop() else { return self.wrong("a field is missing") };
            (self.known(&words.join(" "))?, name)
        };
        let mut lengths = Vec::new();
        while self.take("[") {
            lengths.push(match self.peek() {
                Some(Token::Number(count)) => {
                    let count = *count;
                    self.at += 1;
                    ArrayLength::Fixed(count)
                }
                _ => ArrayLength::Of(Path::Names(self.path()?)),
            });
            self.need("]")?;
            self.at_most(declared.depth() + lengths.len() as u32)?;
        }
        for length in lengths.into_iter().rev() {
            declared = CtfType::Array(Rc::new(declared), length);
        }
        Ok((name, declared))
    }

    fn known(&self, name: &str) -> ParseResult<CtfType> {
        match self.scopes.find(name) {
            Some(found) => Ok(found),
            None => self.wrong(&format!("the type `{}` is not declared", name.escape_debug())),
        }
    }

    fn any_type(&mut self) -> ParseResult<CtfType> {
        self.depth += 1;
        self.at_most(self.depth)?;
        let found = match self.word() {
            Some("integer") => self.integer(),
            Some("floating_point") => self.float(),
            Some("string") => {
                self.at += 1;
                if self.take("{") {
                    self.block()?;
                }
                Ok(CtfType::Text)
            }
            Some("struct") => self.structure(),
            Some("variant") => self.variant(),
            Some("enum") => self.enumeration(),
            _ => {
                let mut words = Vec::new();
                while self.word().is_some() || self.is("*") {
                    match self.take("*") {
                        true => words.push("*".to_owned()),
                        false => words.push(self.name()?),
                    }
                }
                self.known(&words.join(" "))
            }
        };
        self.depth -= 1;
        found
    }

    fn integer(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        self.need("{")?;
        let mut integer = Integer::default();
        for (key, attribute) in self.block()? {
            let Attribute::Value(value) = attribute else { continue };
            let word = |words: &[&str]| {
                matches!(&value, AttributeValue::Text(text)
                    if words.iter().any(|word| text.eq_ignore_ascii_case(word)))
            };
            match key.as_str() {
                "size" => integer.size = self.bits(&value, 64)?,
                "align" => integer.align = self.align(&value)?,
                "signed" => integer.signed = value == AttributeValue::Number(1) || word(&["true"]),
                "byte_order" => integer.order = byte_order(&value),
                "encoding" => integer.text = word(&["utf8", "ascii"]),
                "map" => integer.clock = true,
                _ => {}
            }
        }
        if integer.size == 0 {
            return self.wrong("an integer has no size");
        }
        if integer.align == 0 {
            integer.align = if integer.size.is_multiple_of(8) { 8 } else { 1 };
        }
        Ok(CtfType::Integer(integer))
    }

    fn float(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        self.need("{")?;
        let (mut size, mut align) = (0, 0);
        for (key, attribute) in self.block()? {
            let Attribute::Value(value) = attribute else { continue };
            match key.as_str() {
                "exp_dig" | "mant_dig" => size += self.bits(&value, 1 << 10)?,
                "align" => align = self.align(&value)?,
                _ => {}
            }
        }
        let align = if align == 0 { if size % 8 == 0 { 8 } else { 1 } } else { align };
        Ok(CtfType::Float { size, align })
    }

    fn bits(&self, value: &AttributeValue, most: i64) -> ParseResult<u32> {
        match value {
            AttributeValue::Number(bits) if (1..=most).contains(bits) => Ok(*bits as u32),
            _ => self.wrong("unsupported size"),
        }
    }

    fn align(&self, value: &AttributeValue) -> ParseResult<u32> {
        match value {
            AttributeValue::Number(bits) => self.power_of_two(*bits),
            AttributeValue::Text(_) => self.wrong("unsupported alignment"),
        }
    }

    fn power_of_two(&self, bits: i64) -> ParseResult<u32> {
        match u64::try_from(bits) {
            Ok(bits) if bits.is_power_of_two() && bits <= MOST_ALIGN => Ok(bits as u32),
            _ => self.wrong("unsupported alignment"),
        }
    }

    fn structure(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        let name = self.word().map(|name| format!("struct {name}"));
        self.at += usize::from(name.is_some());
        if !self.take("{") {
            return self.known(&name.unwrap_or_default());
        }
        let fields = self.fields()?;
        let mut align = 1;
        if self.word() == Some("align") {
            self.at += 1;
            self.need("(")?;
            let bits = self.number()?;
            align = self.power_of_two(bits)?;
            self.need(")")?;
        }
        let structure = CtfType::Struct(Rc::new(Structure { align, ..fields }));
        self.named(name, structure)
    }

    fn fields(&mut self) -> ParseResult<Structure> {
        self.scopes.open();
        let mut fields = Vec::new();
        while !self.take("}") {
            if self.declaration()? {
                continue;
            }
            fields.push(self.field()?);
            self.need(";")?;
        }
        self.scopes.close();
        let structure = Structure::new(1, fields);
        self.at_most(structure.depth)?;
        Ok(structure)
    }

    fn at_most(&self, depth: u32) -> ParseResult<()> {
        match depth <= MOST_DEPTH {
            true => Ok(()),
            false => self.wrong("types lie too deep within types"),
        }
    }

    fn variant(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        let name = self.word().map(|name| format!("variant {name}"));
        self.at += usize::from(name.is_some());
        let mut tag = None;
        if self.take("<") {
            tag = Some(Path::Names(self.path()?));
            self.need(">")?;
        }
        if !self.take("{") {
            return Ok(match (self.known(&name.unwrap_or_default())?, tag) {
                (CtfType::Variant { options, ranges, .. }, Some(tag)) => {
                    CtfType::Variant { tag: Some(tag), options, ranges }
                }
                (found, _) => found,
            });
        }
        let options = Rc::new(self.fields()?);
        self.named(name, CtfType::Variant { tag, options, ranges: None })
    }

    fn enumeration(&mut self) -> ParseResult<CtfType> {
        self.at += 1;
        let name = self.word().map(|name| format!("enum {name}"));
        self.at += usize::from(name.is_some());
        let base = match (self.take(":"), self.is("{")) {
            (true, _) => Some(self.any_type()?),
            (false, true) => self.scopes.find("int"),
            (false, false) => return self.known(&name.unwrap_or_default()),
        };
        let Some(CtfType::Integer(base)) = base else {
            return self.wrong("an enumeration is of no integer");
        };
        self.need("{")?;
        let mut values = Vec::new();
        let mut next = 0i64;
        while !self.take("}") {
            let label = match self.peek() {
                Some(Token::Text(text)) => text.clone(),
                Some(Token::Name(name)) => name.clone(),
                _ => return self.wrong("a name of a value is missing"),
            };
            self.at += 1;
            let (mut first, mut last) = (next, next);
            if self.take("=") {
                first = self.number()?;
                last = if self.take("...") { self.number()? } else { first };
            }
            next = last.wrapping_add(1);
            values.push((label, first, last));
            if !self.take(",") {
                self.need("}")?;
                break;
            }
        }
        self.named(name, CtfType::Enum(base, Rc::new(values)))
    }

    fn named(&mut self, name: Option<String>, declared: CtfType) -> ParseResult<CtfType> {
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
