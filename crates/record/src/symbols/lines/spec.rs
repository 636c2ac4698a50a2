//! The user's notation of a line: `loop.c:42`, `./loop:loop.c:42`, `libfilter:src/iir.cpp:120`.

use crate::symbols::{FunctionSpec, SymbolError};

/// A source line as named on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineSpec {
    pub text: String,
    /// The program or library, if given.
    pub(super) binary: Option<FunctionSpec>,
    /// The source file: its name, the end of its path, or its path.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

impl LineSpec {
    /// Parses `[BINARY:]FILE:LINE`; `None` if the text is a function rather than a line.
    pub fn parse(text: &str) -> Option<Result<LineSpec, SymbolError>> {
        let (rest, number) = text.rsplit_once(':')?;
        // Names of functions do not begin with a digit.
        if number.is_empty()
            || !number.bytes().all(|byte| byte.is_ascii_digit())
            || rest.ends_with(':')
        {
            return None;
        }
        let wrong = |why| SymbolError::Spec { spec: text.to_owned(), why };
        let (binary, file) =
            rest.rsplit_once(':').map_or((None, rest), |(binary, file)| (Some(binary), file));
        if file.is_empty() {
            return Some(Err(wrong(
                "the source file is empty; write FILE:LINE or BINARY:FILE:LINE",
            )));
        }
        let line = match number.parse() {
            Ok(line) if line > 0 => line,
            _ => return Some(Err(wrong("lines count from 1 to 18446744073709551615"))),
        };
        // The part before the first colon is looked up as for a function.
        let binary =
            match binary.map(|binary| FunctionSpec::parse(&format!("{binary}:line"))).transpose() {
                Ok(binary) => binary,
                Err(SymbolError::Spec { why, .. }) => return Some(Err(wrong(why))),
                Err(error) => return Some(Err(error)),
            };
        Some(Ok(LineSpec { text: text.to_owned(), binary, file: file.to_owned(), line }))
    }

    /// Its name in figures.
    pub fn display_name(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}
