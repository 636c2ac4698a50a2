//! The request of a run, the same in the connection and in the directory: texts, each ended by NUL.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The maximum number of texts of a request.
const TEXTS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRequest {
    /// How long the run continues and its bundle is kept without a connected client.
    pub keep_for: Duration,
    /// The name of the experiment's file: punctual recognises the format by it, and users the run.
    pub file: String,
    /// `punctual run`'s arguments before the file.
    pub arguments: Vec<String>,
}

impl RunRequest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let keep_for = self.keep_for.as_secs().to_string();
        let texts = [&keep_for, &self.file].into_iter().chain(&self.arguments);
        texts.flat_map(|text| text.bytes().filter(|byte| *byte != 0).chain([0])).collect()
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<RunRequest> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "an invalid run request");
        let text = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.strip_suffix('\0'))
            .ok_or_else(wrong)?;
        let mut texts = text.split('\0').map(str::to_owned).take(TEXTS_MAX);
        let mut next = || texts.next().ok_or_else(wrong);
        let keep_for = Duration::from_secs(next()?.parse().map_err(|_| wrong())?);
        let file = next()?;
        // The name becomes one in a directory, and an argument.
        if file.is_empty() || file.starts_with(['.', '-']) || file.contains('/') {
            return Err(wrong());
        }
        Ok(RunRequest { keep_for, file, arguments: texts.collect() })
    }

    pub(crate) fn read(path: &Path) -> io::Result<RunRequest> {
        RunRequest::decode(&fs::read(path)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_request_is_decoded_as_encoded() {
        let request = RunRequest {
            keep_for: Duration::from_secs(86_400),
            file: "my experiment.toml".into(),
            arguments: vec!["--force".into(), "--stop-above".into(), "1ms".into()],
        };
        assert_eq!(RunRequest::decode(&request.encode()).unwrap(), request);
        let elsewhere = RunRequest { file: "../x".into(), ..request };
        assert!(RunRequest::decode(&elsewhere.encode()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = RunRequest::decode(&bytes);
        }
    }
}
