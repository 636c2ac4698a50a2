//! The modules of its crate that each module names, from the tokens of its source.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Module {
    /// The path from the crate's root, which is empty.
    pub path: Vec<String>,
    /// Modules of the same crate, from its root.
    pub imports: Vec<Vec<String>>,
}

/// The modules of a crate's `src`, without test modules; `files` are those below it.
pub fn read(src: &Path, files: &[PathBuf]) -> Vec<Module> {
    let mut modules = Vec::new();
    for path in files {
        let below = path.strip_prefix(src).unwrap().with_extension("");
        let mut names: Vec<String> =
            below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        if matches!(names.last().unwrap().as_str(), "lib" | "main" | "mod") {
            names.pop();
        }
        if !names.iter().any(|name| name.ends_with("tests")) {
            modules.push(of_source(&names.join("::"), &fs::read_to_string(path).unwrap()));
        }
    }
    known(modules)
}

/// The paths in a module's source, including items.
pub fn of_source(path: &str, source: &str) -> Module {
    let path: Vec<String> = path.split("::").filter(|p| !p.is_empty()).map(Into::into).collect();
    let tokens: TokenStream = source.parse().unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut named = Vec::new();
    collect(tokens, &mut named);
    let imports = named.into_iter().filter_map(|name| from_root(&path, name)).collect();
    Module { path, imports }
}

/// Reduces each import to its longest prefix that is a module.
pub fn known(mut modules: Vec<Module>) -> Vec<Module> {
    let paths: Vec<Vec<String>> = modules.iter().map(|module| module.path.clone()).collect();
    for import in modules.iter_mut().flat_map(|module| &mut module.imports) {
        while !import.is_empty() && !paths.contains(import) {
            import.pop();
        }
    }
    modules
}

fn from_root(module: &[String], name: Vec<String>) -> Option<Vec<String>> {
    let supers = name.iter().take_while(|part| *part == "super").count();
    match name.first()?.as_str() {
        "crate" => Some(name[1..].to_vec()),
        "self" => Some([module, &name[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(supers)?], &name[supers..]].concat()),
        _ => None,
    }
}

/// Appends every path in the tokens; those of a `use` with braces one by one.
fn collect(tokens: TokenStream, named: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(mark) if mark.as_char() == '#' && tests_follow(&tokens[at..]) => {
                // The attribute, then everything up to the item's end.
                at += 2;
                while !matches!(&tokens[at..], [] | [TokenTree::Group(_), ..])
                    && !is_mark(&tokens[at], ';')
                {
                    at += 1;
                }
            }
            TokenTree::Group(group) => collect(group.stream(), named),
            TokenTree::Ident(_) => {
                at += path(&tokens[at..], &[], named);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// `#[cfg(test)]` and a module.
fn tests_follow(tokens: &[TokenTree]) -> bool {
    let is = |at: usize, text: &str| {
        tokens.get(at).is_some_and(|token| token.to_string().replace(' ', "") == text)
    };
    is(1, "[cfg(test)]") && is(2, "mod")
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// Reads one path, and those of its braces, and returns the number of its tokens.
fn path(tokens: &[TokenTree], before: &[String], named: &mut Vec<Vec<String>>) -> usize {
    let mut names = before.to_vec();
    let mut at = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(name)) => names.push(name.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace && at > 0 => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for tree in inner.split(|token| is_mark(token, ',')) {
                    path(tree, &names, named);
                }
                return at + 1;
            }
            _ => break,
        }
        at += 1;
        let goes_on = tokens.get(at).is_some_and(|token| is_mark(token, ':'))
            && tokens.get(at + 1).is_some_and(|token| is_mark(token, ':'));
        if !goes_on {
            break;
        }
        at += 2;
    }
    if names.len() > 1 && names.last().is_some_and(|name| name == "self") {
        names.pop();
    }
    named.push(names);
    at.max(1)
}
