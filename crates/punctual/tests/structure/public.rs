//! The public items of a source, and the names in it, from its tokens.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;

pub struct Item {
    pub name: String,
    /// A type is public because an item that mentions it is.
    pub is_type: bool,
    /// Another name of an item.
    is_alias: bool,
    /// The names in its signature, or in the whole of a type.
    pub mentions: BTreeSet<String>,
}

const TYPES: [&str; 5] = ["struct", "enum", "union", "trait", "type"];
const OTHERS: [&str; 4] = ["fn", "mod", "const", "static"];

/// The items that are `pub` without a restriction, methods as well. Items that a macro makes are
/// unknown: all names in its invocation count as one public item.
pub fn items(tokens: &TokenStream, into: &mut Vec<Item>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let before = |by: usize| at.checked_sub(by).map(|at| tokens[at].to_string());
        let is_of_macro = before(1).as_deref() == Some("!");
        let is_definition = before(2).as_deref() == Some("!");
        match token {
            TokenTree::Group(group) if is_of_macro && group.delimiter() == Delimiter::Brace => {
                let mut mentions = BTreeSet::new();
                names(&group.stream(), &mut mentions);
                into.push(Item { name: String::new(), is_type: false, is_alias: false, mentions });
            }
            TokenTree::Group(group) if !is_of_macro && !is_definition => {
                items(&group.stream(), into);
            }
            // The associated type of a trait is as public as the trait.
            TokenTree::Ident(word) if *word == "type" && before(1).as_deref() != Some("pub") => {
                let mut mentions = BTreeSet::new();
                let is_end = |token: &&TokenTree| token.to_string() != ";";
                names(&tokens[at..].iter().take_while(is_end).cloned().collect(), &mut mentions);
                into.push(Item { name: String::new(), is_type: false, is_alias: false, mentions });
            }
            TokenTree::Ident(word) if *word == "pub" => into.extend(item(&tokens[at + 1..])),
            // `pub use … as …`
            TokenTree::Ident(word) if *word == "as" && at > 0 && at + 1 < tokens.len() => {
                into.push(Item {
                    name: tokens[at + 1].to_string(),
                    is_type: false,
                    is_alias: true,
                    mentions: BTreeSet::from([tokens[at - 1].to_string()]),
                });
            }
            _ => {}
        }
    }
}

fn item(tokens: &[TokenTree]) -> Option<Item> {
    let qualifiers = ["const", "unsafe", "async", "extern"];
    let word = |at: usize| tokens.get(at).map(TokenTree::to_string).unwrap_or_default();
    let is_function = |at: usize| word(at) == "fn" || qualifiers.contains(&word(at).as_str());
    let mut at = 0;
    while qualifiers.contains(&word(at).as_str()) && is_function(at + 1) {
        at += 1;
    }
    let kind = word(at);
    let is_type = TYPES.contains(&kind.as_str());
    if !is_type && !OTHERS.contains(&kind.as_str()) {
        return None;
    }
    let mut mentions = BTreeSet::new();
    for token in &tokens[at + 2..] {
        let is_body =
            matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        let ends = matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';');
        let is_value = matches!(kind.as_str(), "const" | "static")
            && matches!(token, TokenTree::Punct(mark) if mark.as_char() == '=');
        if ends || (is_body || is_value) && !is_type {
            break;
        }
        names(&TokenStream::from(token.clone()), &mut mentions);
        if is_body {
            break;
        }
    }
    Some(Item { name: word(at + 1), is_type, is_alias: false, mentions })
}

/// All names in the tokens.
pub fn names(tokens: &TokenStream, into: &mut BTreeSet<String>) {
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) => names(&group.stream(), into),
            TokenTree::Ident(name) => {
                into.insert(name.to_string());
            }
            // A path in an attribute of serde.
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                into.extend(text.trim_matches('"').split("::").skip(1).map(str::to_owned));
            }
            TokenTree::Punct(_) => {}
        }
    }
}

/// Those that are neither named outside nor mentioned by one that is.
pub fn unused(items: &[Item], outside: &BTreeSet<String>) -> Vec<String> {
    let is_used =
        |item: &Item, used: &BTreeSet<String>| item.name.is_empty() || used.contains(&item.name);
    let types: BTreeSet<&String> =
        items.iter().filter(|item| item.is_type).map(|item| &item.name).collect();
    let mut used = outside.clone();
    loop {
        let known = used.len();
        for item in items {
            if is_used(item, &used) {
                let needed = item.mentions.iter();
                used.extend(needed.filter(|name| item.is_alias || types.contains(name)).cloned());
            }
        }
        if used.len() == known {
            break;
        }
    }
    let unused = items.iter().filter(|item| !item.is_alias && !is_used(item, &used));
    unused.map(|item| item.name.clone()).collect()
}
