//! A requested pair, scope or function, with its limit.

use super::endpoint::{Endpoint, EndpointError, clip_input, functions_named, points_named};
use super::{MatchRule, PairKey};
use punctual_core::event::{FunctionId, Names, PointId, PointKind};
use punctual_core::{Limit, LimitError};
use std::fmt;

/// The target of a request.
#[derive(Clone, PartialEq, Debug)]
pub enum RequestTarget {
    /// From one end to another.
    Pair {
        from: Endpoint,
        to: Endpoint,
        /// Their common key.
        by: PairKey,
        /// The A that a B is matched with.
        rule: MatchRule,
    },
    /// The calls of a function; several numbers if several files have one of that name.
    Function { name: String, functions: Vec<FunctionId> },
}

/// A pair or a function, with or without a limit.
#[derive(Clone, PartialEq, Debug)]
pub struct PairRequest {
    pub target: RequestTarget,
    /// The limit, if any.
    pub limit: Option<Limit>,
}

/// Why a text is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// An invalid end.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// An invalid limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl PairRequest {
    /// Looks up `A->B`, a scope `NAME` or a function `NAME`. By default, `by` and `rule` are the
    /// natural ones: brackets for scopes and functions; next by value for timers, block requests
    /// and journal commits; else the next one.
    pub fn from_text(
        text: &str,
        names: &Names,
        by: Option<PairKey>,
        rule: Option<MatchRule>,
    ) -> Result<PairRequest, RequestError> {
        Ok(PairRequest { target: find_target(text.trim(), names, by, rule)?, limit: None })
    }

    /// As [`PairRequest::from_text`], with a limit: `A->B < 100us`, `fopen <= 1ms`.
    pub fn find_limited(
        text: &str,
        names: &Names,
        by: Option<PairKey>,
        rule: Option<MatchRule>,
    ) -> Result<PairRequest, RequestError> {
        let (target, limit) = Limit::parse_with_subject(text)?;
        let request = PairRequest::from_text(target, names, by, rule)?;
        Ok(PairRequest { limit: Some(limit), ..request })
    }
}

fn find_target(
    text: &str,
    names: &Names,
    by: Option<PairKey>,
    rule: Option<MatchRule>,
) -> Result<RequestTarget, RequestError> {
    let mut first_error = None;
    for (place, _) in text.match_indices("->") {
        let ends = Endpoint::from_text(&text[..place], names).and_then(|from| {
            let to = Endpoint::from_text(&text[place + 2..], names)?;
            Ok((from, to))
        });
        match ends {
            Ok((from, to)) => return Ok(pair_target(from, to, by, rule)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let points = points_named(text, names);
    if !points.is_empty() {
        let end = |kind, word| Endpoint::of_point(format!("{text}:{word}"), points.clone(), kind);
        return Ok(pair_target(
            end(PointKind::Begin, "begin"),
            end(PointKind::End, "end"),
            by,
            rule,
        ));
    }
    let functions = functions_named(text, names);
    if !functions.is_empty() {
        return Ok(RequestTarget::Function { name: text.to_owned(), functions });
    }
    Err(first_error
        .unwrap_or_else(|| Endpoint::from_text(text, names).err().unwrap_or(not_a_pair(text)))
        .into())
}

fn not_a_pair(text: &str) -> EndpointError {
    EndpointError::Unknown {
        name: clip_input(text),
        near: Some(format!("{}->…", clip_input(text))),
    }
}

fn pair_target(
    from: Endpoint,
    to: Endpoint,
    by: Option<PairKey>,
    rule: Option<MatchRule>,
) -> RequestTarget {
    let natural = match (from.natural_key(), to.natural_key()) {
        (a, b) if a == b => a,
        // Ends about a CPU and a thread have no common key.
        _ => PairKey::Global,
    };
    let pair_key = by.unwrap_or(if rule == Some(MatchRule::Async) && natural == PairKey::Thread {
        PairKey::Value
    } else {
        natural
    });
    let natural_rule = match pair_key {
        PairKey::Value => MatchRule::Async,
        _ if from.is_begin_of(&to) => MatchRule::Nested,
        _ => MatchRule::Next,
    };
    RequestTarget::Pair { by: pair_key, rule: rule.unwrap_or(natural_rule), from, to }
}

impl RequestTarget {
    /// The numbers of a scope, if this is one: test points, matched as brackets within a thread.
    /// Empty for anything else.
    pub fn scope_points(&self) -> &[PointId] {
        match self {
            RequestTarget::Pair { from, to, by: PairKey::Thread, rule: MatchRule::Nested }
                if from.is_begin_of(to) =>
            {
                from.matched_points()
            }
            _ => &[],
        }
    }
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestTarget::Pair { from, to, .. } => {
                let scope = from
                    .name
                    .strip_suffix(":begin")
                    .filter(|scope| to.name.strip_suffix(":end") == Some(scope));
                match scope {
                    Some(scope) => f.write_str(scope),
                    None => write!(f, "{}->{}", from.name, to.name),
                }
            }
            RequestTarget::Function { name, .. } => f.write_str(name),
        }
    }
}
