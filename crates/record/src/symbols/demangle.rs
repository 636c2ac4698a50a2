//! Demangles the linker's symbol names.

/// The demangled name of a symbol, and the same without parameters.
///
/// C++ by the Itanium ABI, Rust by its legacy and v0 schemes (without the hash of the legacy one);
/// anything else is unchanged.
pub(crate) fn demangle(symbol: &str) -> (String, String) {
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
