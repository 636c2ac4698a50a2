//! The user's notation of a function: `fopen`, `libc:fopen`, `./netio:netio_task`, `libc:f*`,
//! `ns::Class::method`.

use super::{Function, SymbolError};
use std::path::{Path, PathBuf};

/// A function as named on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionSpec {
    pub text: String,
    /// The file's name, if given: a path, `libc`, `libc.so.6`, or the program's name.
    pub object: Option<String>,
    /// The file's path, if the name contains a slash.
    pub path: Option<PathBuf>,
    /// The function's name or pattern (`*` any characters, `?` any one).
    pub function: String,
}

impl FunctionSpec {
    /// Parses `[FILE:]FUNCTION`. Two colons belong to the name of a C++ or Rust function.
    pub fn parse(text: &str) -> Result<FunctionSpec, SymbolError> {
        let wrong = |why| SymbolError::Spec { spec: text.to_owned(), why };
        let (object, function) = match single_colon(text) {
            Some(at) => (Some(&text[..at]), &text[at + 1..]),
            None => (None, text),
        };
        if function.trim().is_empty() {
            return Err(wrong("the name is empty; write FUNCTION or FILE:FUNCTION"));
        }
        if object == Some("") {
            return Err(wrong("the file before the colon is empty"));
        }
        let path = match object {
            Some(object) if object.contains('/') => Some(
                std::fs::canonicalize(object)
                    .map_err(|source| SymbolError::Io { path: object.into(), source })?,
            ),
            _ => None,
        };
        Ok(FunctionSpec {
            text: text.to_owned(),
            object: object.map(str::to_owned),
            path,
            function: function.to_owned(),
        })
    }

    /// Whether it may match several functions.
    pub(crate) fn is_pattern(&self) -> bool {
        self.function.contains(['*', '?'])
    }

    /// Whether it refers to this file. `libc` means `libc.so.6` as well as `libc-2.31.so`.
    pub fn is_in(&self, file: &Path) -> bool {
        if let Some(path) = &self.path {
            return file == path;
        }
        let Some(object) = &self.object else { return true };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match name.strip_prefix(object.as_str()) {
            Some("") => true,
            Some(rest) => {
                rest.starts_with(".so") || (rest.starts_with('-') && rest.contains(".so"))
            }
            None => false,
        }
    }

    /// Whether it refers to this function: by symbol, by demangled name, or by that without its
    /// parameters.
    pub(super) fn fits_function(&self, function: &Function) -> bool {
        [&function.symbol, &function.name, &function.bare]
            .into_iter()
            .any(|name| self.fits_name(name))
    }

    pub(super) fn fits_name(&self, name: &str) -> bool {
        matches_glob(self.function.as_bytes(), name.as_bytes())
    }
}

/// The position of the first single colon.
fn single_colon(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    (0..bytes.len()).find(|&at| colon(at) && !colon(at + 1) && !(at > 0 && colon(at - 1)))
}

/// `*` matches any characters, `?` any one. Linear in the text for each star: no pattern takes
/// exponential time.
fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}
