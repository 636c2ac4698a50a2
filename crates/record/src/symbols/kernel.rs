//! Functions of the kernel: `kernel:do_sys_openat2`, looked up in /proc/kallsyms.

use super::{Function, FunctionSpec, Site, SymbolError};
use punctual_core::words::nearest_word;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The part before the colon that means the kernel instead of a file.
const OBJECT: &str = "kernel";
const SYMBOLS: &str = "/proc/kallsyms";
/// The maximum number of matches of a pattern: each is two probes in paths that every process
/// takes.
const MAX_MATCHES: usize = 64;

/// Whether it refers to a kernel function.
pub fn is_of_kernel(spec: &FunctionSpec) -> bool {
    spec.object.as_deref() == Some(OBJECT)
}

/// Finds every kernel function that the specs name.
pub fn resolve_in_kernel(specs: &[FunctionSpec]) -> Result<Vec<Function>, Vec<SymbolError>> {
    let text = std::fs::read_to_string(SYMBOLS);
    let text = text.map_err(|source| vec![SymbolError::Io { path: SYMBOLS.into(), source }])?;
    let functions = count_functions(&text);
    let (mut found, mut errors): (Vec<Function>, Vec<SymbolError>) = (Vec::new(), Vec::new());
    for spec in specs {
        match resolve_one(spec, &functions) {
            Ok(these) => these.into_iter().for_each(|one| {
                if !found.iter().any(|other| other.symbol == one.symbol) {
                    found.push(one);
                }
            }),
            Err(why) => errors.push(why),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// Names of functions, with the number of functions that have each: `ffffffff81000000 T
/// do_sys_openat2`, followed by a module's name.
fn count_functions(text: &str) -> BTreeMap<&str, usize> {
    let mut functions = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(1);
        if let (Some("t" | "T"), Some(name)) = (words.next(), words.next()) {
            *functions.entry(name).or_default() += 1;
        }
    }
    functions
}

fn resolve_one(
    spec: &FunctionSpec,
    functions: &BTreeMap<&str, usize>,
) -> Result<Vec<Function>, SymbolError> {
    // Parts of functions that compilers moved away are never called by name.
    let is_whole = |name: &str| !name.contains(".cold") && !name.contains(".part");
    let fitting = functions.iter().filter(|(name, _)| is_whole(name) && spec.fits_name(name));
    let found: Vec<(&str, usize)> = fitting.map(|(name, count)| (*name, *count)).collect();
    match found[..] {
        [] => {
            let near = nearest_word(&spec.function, functions.keys().copied());
            let hint = near.map_or_else(
                || {
                    "; it may be inlined, or this user may not see the names (kernel.kptr_restrict)"
                        .to_owned()
                },
                |near| format!("; did you mean `kernel:{near}`?"),
            );
            Err(SymbolError::NoFunction {
                spec: spec.text.clone(),
                searched: SYMBOLS.to_owned(),
                hint,
            })
        }
        [(_, count)] if count > 1 => Err(SymbolError::Ambiguous { spec: spec.text.clone(), count }),
        _ if found.len() > MAX_MATCHES => {
            Err(SymbolError::TooManyInKernel { spec: spec.text.clone(), found: found.len() })
        }
        _ => Ok(found
            .into_iter()
            .filter(|(_, count)| *count == 1)
            .map(|(name, _)| kernel_function(name))
            .collect()),
    }
}

fn kernel_function(name: &str) -> Function {
    Function {
        name: name.to_owned(),
        bare: name.to_owned(),
        symbol: name.to_owned(),
        object: PathBuf::from(OBJECT),
        offset: 0,
        size: 0,
        site: Site::Kernel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0000000000000000 T do_sys_openat2\n0000000000000000 t \
                        init_once\n0000000000000000 t init_once\n0000000000000000 D \
                        jiffies\n0000000000000000 t ext4_sync_file\t[ext4]\n0000000000000000 t \
                        do_sys_openat2.cold\nbroken\n";

    fn find(spec: &str) -> Result<Vec<String>, String> {
        let found = resolve_one(&FunctionSpec::parse(spec).unwrap(), &count_functions(TEXT));
        found
            .map(|all| all.into_iter().map(|one| one.symbol).collect())
            .map_err(|why| why.to_string())
    }

    #[test]
    fn kernel_functions_are_found_by_name_or_pattern() {
        assert!(is_of_kernel(&FunctionSpec::parse("kernel:x").unwrap()));
        assert!(
            !is_of_kernel(&FunctionSpec::parse("libc:x").unwrap())
                && !is_of_kernel(&FunctionSpec::parse("kernel").unwrap())
        );
        assert_eq!(find("kernel:do_sys_openat2"), Ok(vec!["do_sys_openat2".to_owned()]));
        assert_eq!(find("kernel:ext4_*"), Ok(vec!["ext4_sync_file".to_owned()]));
        assert!(find("kernel:init_once").unwrap_err().contains("2 functions"));
        assert!(
            find("kernel:do_sys_opnat2")
                .unwrap_err()
                .contains("did you mean `kernel:do_sys_openat2`?")
        );
        assert!(find("kernel:jiffies").unwrap_err().contains("not found"));
    }
}
