//! Why recording is impossible, with a remedy.

use crate::bpf::LoadError;
use crate::rights::describe_refusal;

/// Why recording is impossible.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
    /// The backend does not work here, with the reason and a remedy.
    #[error(
        "recording through {backend} is not possible: {why}{}",
        remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default()
    )]
    Backend { backend: &'static str, why: String, remedy: Option<String> },
    /// No backend works here.
    #[error("kernel events cannot be recorded on this system: {}", each_once(.0))]
    None(Vec<StartError>),
}

impl StartError {
    /// The remedy, where one is known; of several backends all of theirs.
    pub fn joined_remedy(&self) -> Option<String> {
        match self {
            StartError::Request(_) => None,
            StartError::Backend { remedy, .. } => remedy.clone(),
            StartError::None(all) => {
                let mut remedies: Vec<String> =
                    all.iter().filter_map(StartError::joined_remedy).collect();
                remedies.dedup();
                (!remedies.is_empty()).then(|| remedies.join("; or "))
            }
        }
    }

    /// Why programs could not be loaded into the kernel, with a remedy.
    pub(crate) fn from_load_error(backend: &'static str, why: &LoadError) -> StartError {
        use std::io::ErrorKind::PermissionDenied;
        let (why, remedy) = match why {
            LoadError::NoBtf(_) => {
                (why.to_string(), Some("use a kernel with CONFIG_DEBUG_INFO_BTF=y".to_owned()))
            }
            // The verifier also returns EACCES for programs, with its reasons.
            LoadError::Refused { log, .. } if !log.is_empty() => (why.to_string(), None),
            LoadError::Map { why, .. } | LoadError::Refused { why, .. }
                if why.kind() == PermissionDenied =>
            {
                describe_refusal()
            }
            // 5.10 limits the values of a map as kmalloc does (kernel/bpf/arraymap.c). It also
            // lacks the atomic additions used by the programs, which were added in 5.12.
            LoadError::Map { why: refusal, .. } if refusal.raw_os_error() == Some(libc::E2BIG) => {
                (why.to_string(), Some("use Linux 5.12 or newer, or smaller buffers".to_owned()))
            }
            _ => (why.to_string(), None),
        };
        StartError::Backend { backend, why, remedy }
    }
}

/// Removes repetitions of a reason that several backends share.
fn each_once(reasons: &[StartError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut remedies: Vec<String> = Vec::new();
    let add = |texts: &mut Vec<String>, text: String| {
        if !texts.contains(&text) {
            texts.push(text);
        }
    };
    for reason in reasons {
        match reason {
            StartError::Backend { why, remedy, .. } => {
                add(&mut texts, why.clone());
                remedy.iter().for_each(|remedy| add(&mut remedies, remedy.clone()));
            }
            other => add(&mut texts, other.to_string()),
        }
    }
    texts.append(&mut remedies);
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedies_of_refused_backends_are_joined_without_duplicates() {
        let backend = |remedy: Option<&str>| StartError::Backend {
            backend: "BPF",
            why: "refused".to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let of = |all| StartError::None(all).joined_remedy();
        assert_eq!(backend(None).joined_remedy(), None);
        assert_eq!(StartError::Request("odd".to_owned()).joined_remedy(), None);
        assert_eq!(of(vec![backend(None), backend(None)]), None);
        assert_eq!(of(vec![backend(Some("x")), backend(Some("x"))]).as_deref(), Some("x"));
        assert_eq!(of(vec![backend(Some("x")), backend(Some("y"))]).as_deref(), Some("x; or y"));
    }
}
