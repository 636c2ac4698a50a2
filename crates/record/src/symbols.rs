//! Functions by name: from `libc:fopen` to a file and an offset in it, where the kernel can place a
//! probe.
//!
//! A probe is on an instruction of a file (Documentation/trace/uprobetracer.rst), so names are
//! looked up in the symbol tables of ELF files: the program's own, those of its libraries, and the
//! separate debug files of distributions.

mod kernel;
pub mod lines;
mod object;
mod perf_map;
mod place;
mod spec;
pub mod steps;
#[cfg(feature = "lines")]
mod tables;

pub use kernel::{is_of_kernel, resolve_in_kernel};
pub use object::{ElfObject, Function, executable_parts};
#[cfg(feature = "lines")]
pub(crate) use place::FileIdentity;
#[cfg(feature = "lines")]
pub(crate) use place::ProcessMapping;
pub use place::{FunctionNames, Mappings, SourceFrame, SymbolPlace};
use punctual_core::words;
pub use spec::FunctionSpec;
use std::fmt;
use std::path::{Path, PathBuf};
#[cfg(feature = "lines")]
pub(crate) use tables::Tables;

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
pub fn resolve_functions(
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
        let known_objects =
            objects.iter().map(|(path, _)| short_name(path)).collect::<Vec<_>>().join(", ");
        return Err(SymbolError::NoObject {
            spec: spec.text.clone(),
            object: object.clone(),
            known: known_objects,
        });
    }
    let mut found = Vec::new();
    for (_, object) in &searched {
        // Beside a resolver there is at most an old variant that new programs do not use
        // (memcpy@GLIBC_2.2.5).
        if !spec.is_pattern() && object.indirect.iter().any(|name| spec.fits_name(name)) {
            break;
        }
        found.extend(
            object.functions.iter().filter(|function| spec.fits_function(function)).cloned(),
        );
        // A name means one function; a pattern, or a name in a named file, means all matches.
        if !found.is_empty() && spec.object.is_none() && !spec.is_pattern() {
            break;
        }
    }
    match found.len() {
        0 => Err(SymbolError::NoFunction {
            spec: spec.text.clone(),
            searched: searched
                .iter()
                .map(|(path, _)| short_name(path))
                .collect::<Vec<_>>()
                .join(", "),
            hint: likely_reason(spec, &searched),
        }),
        n if n > FUNCTIONS_MAX => Err(SymbolError::TooMany { spec: spec.text.clone(), found: n }),
        _ => Ok(found),
    }
}

/// The possible reason: a typing error, an import, a resolver, a stripped file.
fn likely_reason(spec: &FunctionSpec, searched: &[&(PathBuf, ElfObject)]) -> String {
    if searched.iter().any(|(_, object)| object.indirect.iter().any(|name| spec.fits_name(name))) {
        return "; that symbol is a resolver (IFUNC) for several variants: name the variant"
            .to_owned();
    }
    let names =
        searched.iter().flat_map(|(_, object)| object.functions.iter()).map(|f| f.bare.as_str());
    if let Some(near) = words::nearest_word(&spec.function, names) {
        return format!("; did you mean `{near}`?");
    }
    if let Some((path, _)) =
        searched.iter().find(|(_, o)| o.imported.iter().any(|name| spec.fits_name(name)))
    {
        return format!(
            "; {} only imports it: name the library that defines it, `libNAME:{}`",
            short_name(path),
            spec.function
        );
    }
    match searched.iter().find(|(_, object)| !object.has_symbol_table) {
        Some((path, object)) => format!(
            "; {} is stripped: only exported functions are known. Install its debug symbols \
             (build id {})",
            short_name(path),
            object.build_id.as_deref().unwrap_or("none")
        ),
        None => String::new(),
    }
}

/// The file name of a path.
pub fn short_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The demangled name of a symbol, and the same without parameters.
///
/// C++ by the Itanium ABI, Rust by its legacy and v0 schemes (without the hash of the legacy one);
/// anything else is unchanged.
pub(crate) fn demangle_symbol(symbol: &str) -> (String, String) {
    // A version (`fopen@@GLIBC_2.2.5`) belongs to the linker.
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        let name = format!("{rust:#}");
        return (name.clone(), name);
    }
    if symbol.starts_with("_Z")
        && let Ok(cpp) = cpp_demangle::Symbol::new(symbol)
        && let Ok(name) = cpp.demangle()
    {
        let bare = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        let bare = cpp.demangle_with_options(&bare).unwrap_or_else(|_| name.clone());
        return (name, bare);
    }
    (symbol.to_owned(), symbol.to_owned())
}

/// The kernel's way of executing the instruction under a probe (arch/x86/kernel/uprobes.c,
/// arch/arm64/kernel/probes/).
///
/// An instruction that it cannot emulate is copied and single-stepped out of line, which takes a
/// second exception: several times the cost of the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Site {
    /// A five-byte nop: since Linux 6.18 it becomes a call, without an exception.
    Nop5,
    /// `push` of a register: emulated.
    Push,
    /// A nop, jump or call: emulated.
    Branch,
    /// Anything else: single-stepped out of line.
    SingleStep,
    /// A kernel function.
    Kernel,
    /// An architecture that is not supported.
    Unknown,
}

const EM_X86_64: u16 = 62;

impl Site {
    /// Decodes it from the instruction's bytes.
    pub(crate) fn from_code(machine: u16, code: &[u8]) -> Site {
        if machine != EM_X86_64 {
            return Site::Unknown;
        }
        match code {
            // nopl 0x0(%rax,%rax,1)
            [0x0f, 0x1f, 0x44, 0x00, 0x00, ..] => Site::Nop5,
            [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..] => Site::Push,
            [0x90 | 0xe8 | 0xe9 | 0xeb | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] => Site::Branch,
            _ => Site::SingleStep,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Site::Nop5 => "nop5",
            Site::Push => "push",
            Site::Branch => "branch",
            Site::SingleStep => "single-stepped",
            Site::Kernel => "kprobe",
            Site::Unknown => "",
        })
    }
}

#[cfg(test)]
mod tests;
