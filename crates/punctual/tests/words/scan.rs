//! Splits Rust sources into identifiers, texts and documentation. Comments are skipped.

/// A piece of a source.
pub struct Piece<'a> {
    pub kind: Kind,
    /// The number of the line, from 1.
    pub line: usize,
    pub text: &'a str,
    /// Whether it is in a module compiled for tests only.
    pub is_test: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Identifier {
        /// Whether it follows `fn`.
        of_function: bool,
    },
    /// A string literal, without its quotes.
    Text,
    /// `///` and `//!`.
    Documentation,
}

/// The words of an identifier, in lower case.
pub fn words(identifier: &str) -> Vec<String> {
    let chars: Vec<char> = identifier.chars().collect();
    let mut words = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let is_next_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        let was_lower = at > 0 && !chars[at - 1].is_uppercase();
        let begins = c.is_uppercase() && (was_lower || is_next_lower);
        if (*c == '_' || begins) && !words[words.len() - 1].is_empty() {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), *c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

pub fn pieces(source: &str) -> Vec<Piece<'_>> {
    let mut reader = Reader {
        source,
        at: 0,
        line: 1,
        last: "",
        test_depth: None,
        depth: 0,
        next_is_test: false,
    };
    let mut pieces = Vec::new();
    while reader.at < source.len() {
        pieces.extend(reader.step());
    }
    pieces
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    /// The last identifier, followed only by spaces, `=` and `(`.
    last: &'a str,
    /// The number of open braces, now and when the test module began.
    depth: usize,
    test_depth: Option<usize>,
    next_is_test: bool,
}

impl<'a> Reader<'a> {
    fn step(&mut self) -> Option<Piece<'a>> {
        let rest = &self.source[self.at..];
        if rest.starts_with("//") {
            let text = self.take(rest.find('\n').unwrap_or(rest.len()));
            let documents =
                (text.starts_with("///") && !text.starts_with("////")) || text.starts_with("//!");
            return documents.then(|| self.piece(Kind::Documentation, text));
        }
        if rest.starts_with("/*") {
            self.take(block_comment(rest));
            return None;
        }
        if let Some((open, length, close)) = string(rest) {
            let line = self.line;
            let text = self.take(length);
            self.last = "";
            let text = &text[open..text.len().saturating_sub(close).max(open)];
            return Some(Piece { line, ..self.piece(Kind::Text, text) });
        }
        let c = rest.chars().next()?;
        if c == '\'' {
            self.take(character(rest));
            return None;
        }
        if c.is_alphabetic() || c == '_' {
            let length =
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let text = self.take(length);
            let of_function = self.last == "fn";
            self.next_is_test |= text == "test" && self.last == "cfg";
            self.last = text;
            return Some(self.piece(Kind::Identifier { of_function }, text));
        }
        match c {
            '{' => {
                if std::mem::take(&mut self.next_is_test) && self.test_depth.is_none() {
                    self.test_depth = Some(self.depth);
                }
                self.depth += 1;
            }
            '}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.test_depth == Some(self.depth) {
                    self.test_depth = None;
                }
            }
            ';' => self.next_is_test = false,
            _ => {}
        }
        if !c.is_whitespace() && !"=(".contains(c) {
            self.last = "";
        }
        // A number with its suffix is not an identifier.
        let length = match c.is_ascii_digit() {
            true => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
            false => c.len_utf8(),
        };
        self.take(length);
        None
    }

    fn take(&mut self, length: usize) -> &'a str {
        let text = &self.source[self.at..self.at + length];
        self.at += length;
        self.line += text.matches('\n').count();
        text
    }

    fn piece(&self, kind: Kind, text: &'a str) -> Piece<'a> {
        Piece { kind, line: self.line, text, is_test: self.test_depth.is_some() }
    }
}

/// The length of a block comment; they nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The start of a string literal's text, the literal's length, and the length of its end.
fn string(rest: &str) -> Option<(usize, usize, usize)> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|rest| {
            let hashes = rest.trim_start_matches('#');
            hashes.starts_with('"') && (prefix.ends_with('r') || hashes.len() == rest.len())
        })
    })?;
    let body = &rest[prefix.len()..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    let open = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        let length = rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len());
        return Some((open, length, end.len()));
    }
    let mut escaped = false;
    for (at, c) in rest[open..].char_indices() {
        match c {
            '"' if !escaped => return Some((open, open + at + 1, 1)),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    Some((open, rest.len(), 0))
}

/// The length of a character literal, or of a lifetime's quote.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(1, |at| at + 4),
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}
