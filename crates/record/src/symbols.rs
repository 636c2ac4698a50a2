//! Functions by name: from `libc:fopen` to a file and an offset in it, where the kernel can place a
//! probe.
//!
//! A probe is on an instruction of a file (Documentation/trace/uprobetracer.rst), so names are
//! looked up in the symbol tables of ELF files: the program's own, those of its libraries, and the
//! separate debug files of distributions.

mod demangle;
mod kernel;
pub mod lines;
mod object;
mod place;
mod site;
mod spec;
#[cfg(feature = "lines")]
mod tables;

pub use kernel::{is_of_kernel, resolve_in_kernel};
pub use object::{ElfObject, Function, executable};
pub use place::{FunctionNames, Mappings, SourceFrame, SymbolPlace};
pub use site::Site;
pub use spec::FunctionSpec;
#[cfg(feature = "lines")]
pub(crate) use {
    place::{FileIdentity, ProcessMapping},
    tables::Tables,
};

use punctual_core::words;
use std::path::{Path, PathBuf};

/// The maximum number of functions per request: each costs a probe.
const FUNCTIONS_MAX: usize = 4_096;

/// The reason why a function was not found.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The file is malformed.
    #[error("{}: {why}", path.display())]
    Malformed {
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// The argument is not a function's name.
    #[error("`{spec}` is not a function name: {why}")]
    Spec {
        spec: String,
        /// The defect.
        why: &'static str,
    },
    /// No file of that name is part of the program.
    #[error("`{spec}`: the program has no file `{object}`; it has {known}")]
    NoObject {
        spec: String,
        /// The part before the colon.
        object: String,
        known: String,
    },
    /// No such function.
    #[error("`{spec}` is not found in {searched}{hint}")]
    NoFunction {
        spec: String,
        /// The files that were searched.
        searched: String,
        /// The likely intention, or the reason why it does not exist.
        hint: String,
    },
    /// The program has no source file of that name.
    #[error("`{spec}`: the debug information of {searched} names no source file `{file}`{hint}")]
    NoSource {
        spec: String,
        file: String,
        /// The files that were searched.
        searched: String,
        hint: String,
    },
    /// The line produced no code.
    #[error("`{spec}`: line {line} of {file} has no code in {object}; {near}")]
    NoCode { spec: String, line: u64, file: String, object: String, near: String },
    /// The positions of lines are unknown.
    #[error("`{spec}`: {why}")]
    NoDebugInformation {
        spec: String,
        /// The missing information, with a remedy.
        why: String,
    },
    /// Several kernel functions have this name, and a probe would be on any of them.
    #[error(
        "`{spec}`: {count} functions of the kernel have this name, which does not say where the \
         probe belongs"
    )]
    Ambiguous { spec: String, count: usize },
    /// The same in the kernel.
    #[error(
        "`{spec}` fits {found} functions of the kernel, more than are timed at once: narrow it \
         down"
    )]
    TooManyInKernel { spec: String, found: usize },
    /// The pattern matches too many places.
    #[error(
        "`{spec}` matches {found} places, more than the {FUNCTIONS_MAX} that can be probed at \
         once: narrow it down"
    )]
    TooMany { spec: String, found: usize },
}

/// Finds every function that the specs name among these files: the program first, then its
/// libraries.
///
/// A spec without a file is searched in all of them, and the first one that defines it counts.
/// Functions at one place (aliases) are one function. All failures are reported together.
pub fn resolve(
    specs: &[FunctionSpec],
    files: &[PathBuf],
) -> Result<Vec<Function>, Vec<SymbolError>> {
    let mut objects: Vec<(PathBuf, ElfObject)> = Vec::new();
    let mut errors = Vec::new();
    for path in files.iter().chain(specs.iter().filter_map(|spec| spec.path.as_ref())) {
        if objects.iter().any(|(known, _)| known == path) {
            continue;
        }
        match ElfObject::read(path) {
            Ok(object) => objects.push((path.clone(), object)),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut found: Vec<Function> = Vec::new();
    for spec in specs {
        match resolve_one(spec, &objects) {
            Ok(functions) => {
                for function in functions {
                    if !found
                        .iter()
                        .any(|one| one.offset == function.offset && one.object == function.object)
                    {
                        found.push(function);
                    }
                }
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

fn resolve_one(
    spec: &FunctionSpec,
    objects: &[(PathBuf, ElfObject)],
) -> Result<Vec<Function>, SymbolError> {
    let searched: Vec<&(PathBuf, ElfObject)> =
        objects.iter().filter(|(path, _)| spec.is_in(path)).collect();
    if let (Some(object), true) = (&spec.object, searched.is_empty()) {
        let known = objects.iter().map(|(path, _)| short(path)).collect::<Vec<_>>().join(", ");
        return Err(SymbolError::NoObject {
            spec: spec.text.clone(),
            object: object.clone(),
            known,
        });
    }
    let mut found = Vec::new();
    for (_, object) in &searched {
        // Beside a resolver there is at most an old variant that new programs do not use
        // (memcpy@GLIBC_2.2.5).
        if !spec.is_pattern() && object.indirect.iter().any(|name| spec.fits_name(name)) {
            break;
        }
        found.extend(object.functions.iter().filter(|function| spec.fits(function)).cloned());
        // A name means one function; a pattern, or a name in a named file, means all matches.
        if !found.is_empty() && spec.object.is_none() && !spec.is_pattern() {
            break;
        }
    }
    match found.len() {
        0 => Err(SymbolError::NoFunction {
            spec: spec.text.clone(),
            searched: searched.iter().map(|(path, _)| short(path)).collect::<Vec<_>>().join(", "),
            hint: hint(spec, &searched),
        }),
        n if n > FUNCTIONS_MAX => Err(SymbolError::TooMany { spec: spec.text.clone(), found: n }),
        _ => Ok(found),
    }
}

/// The possible reason: a typing error, an import, a resolver, a stripped file.
fn hint(spec: &FunctionSpec, searched: &[&(PathBuf, ElfObject)]) -> String {
    if searched.iter().any(|(_, object)| object.indirect.iter().any(|name| spec.fits_name(name))) {
        return "; that symbol is a resolver (IFUNC) for several variants: name the variant"
            .to_owned();
    }
    let names =
        searched.iter().flat_map(|(_, object)| object.functions.iter()).map(|f| f.bare.as_str());
    if let Some(near) = words::nearest(&spec.function, names) {
        return format!("; did you mean `{near}`?");
    }
    if let Some((path, _)) =
        searched.iter().find(|(_, o)| o.imported.iter().any(|name| spec.fits_name(name)))
    {
        return format!(
            "; {} only imports it: name the library that defines it, `libNAME:{}`",
            short(path),
            spec.function
        );
    }
    match searched.iter().find(|(_, object)| !object.has_symbol_table) {
        Some((path, object)) => format!(
            "; {} is stripped: only exported functions are known. Install its debug symbols \
             (build id {})",
            short(path),
            object.build_id.as_deref().unwrap_or("none")
        ),
        None => String::new(),
    }
}

fn short(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
