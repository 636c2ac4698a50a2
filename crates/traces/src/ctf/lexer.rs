//! The tokens of TSDL, the language of CTF 1.8's metadata (diamon.org/ctf, appendix A and C).

use super::metadata_error;
use crate::TraceError;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Number(u64),
    /// `{`, `;`, `:=`, `...`: a sign, possibly of several characters.
    Sign(&'static str),
}

const SIGNS: [&str; 19] = [
    "...", ":=", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", ".", "=", "*", "-",
    "+",
];
/// The maximum number of tokens: the metadata of a kernel with all its tracepoints has 300,000.
const MOST_TOKENS: usize = 1 << 23;

/// The tokens of a text, with their lines.
pub(super) fn tokenize(text: &str) -> Result<Vec<(Token, u32)>, TraceError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    loop {
        let space = rest.len() - rest.trim_start().len();
        line += count_lines(&rest[..space]);
        rest = &rest[space..];
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let skipped = match first {
            '/' if rest.starts_with("/*") => {
                Some(rest.find("*/").map_or(rest.len(), |end| end + 2))
            }
            '/' if rest.starts_with("//") => Some(rest.find('\n').unwrap_or(rest.len())),
            _ => None,
        };
        if let Some(skipped) = skipped {
            line += count_lines(&rest[..skipped]);
            rest = &rest[skipped..];
            continue;
        }
        let (token, length) = read_token(rest, first, line)?;
        if tokens.len() >= MOST_TOKENS {
            return Err(metadata_error(line, "it has too many words"));
        }
        tokens.push((token, line));
        line += count_lines(&rest[..length]);
        rest = &rest[length..];
    }
}

fn count_lines(text: &str) -> u32 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u32
}

fn read_token(rest: &str, first: char, line: u32) -> Result<(Token, usize), TraceError> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let length = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
    if first.is_ascii_digit() {
        let number = parse_number(&rest[..length])
            .ok_or_else(|| metadata_error(line, "a number is none"))?;
        return Ok((Token::Number(number), length));
    }
    if is_of_name(first) {
        return Ok((Token::Name(rest[..length].to_owned()), length));
    }
    if first == '"' {
        return read_text(rest).ok_or_else(|| metadata_error(line, "a text has no end"));
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    let sign = sign.ok_or_else(|| metadata_error(line, "unexpected character"))?;
    Ok((Token::Sign(sign), sign.len()))
}

/// A number in C syntax: decimal, `0x…` or octal, with suffixes `u` and `l`.
fn parse_number(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    match (hexadecimal, digits.strip_prefix('0')) {
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => digits.parse().ok(),
    }
}

/// The text between quotation marks, and its length including them.
fn read_text(rest: &str) -> Option<(Token, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Token::Text(text), at + 1)),
            '\\' => text.push(chars.next()?.1),
            c => text.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctf_metadata_is_split_into_tokens_without_comments() {
        let text = "/* a\n b */ uint5_t id; // c\n x = 0x1F...-017ul := \"a\\\"b\";";
        let found: Vec<Token> =
            tokenize(text).unwrap().into_iter().map(|(token, _)| token).collect();
        let (name, sign) = (|name: &str| Token::Name(name.to_owned()), Token::Sign);
        let expected = [
            name("uint5_t"),
            name("id"),
            sign(";"),
            name("x"),
            sign("="),
            Token::Number(31),
            sign("..."),
            sign("-"),
            Token::Number(15),
            sign(":="),
            Token::Text("a\"b".to_owned()),
            sign(";"),
        ];
        assert_eq!(found, expected);
        assert_eq!(tokenize(text).unwrap()[3].1, 3);
        for broken in ["\"a", "#", "12ab"] {
            assert!(tokenize(broken).is_err());
        }
    }
}
