//! Names of network devices.

use std::fmt;

/// The name of a network device, of at most 15 bytes (IFNAMSIZ). Untrusted: escape it for output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct InterfaceName(pub [u8; 16]);

impl InterfaceName {
    /// The name in these bytes, up to the first NUL.
    pub fn of(bytes: &[u8]) -> InterfaceName {
        let mut name = InterfaceName::default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(15);
        name.0[..end].copy_from_slice(&bytes[..end]);
        name
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}
