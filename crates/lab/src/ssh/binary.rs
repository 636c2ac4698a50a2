//! Chooses the punctual to send: the running one if suitable, else one built for the other system.

use super::{ErrorPlace, SshError};
use elf::ElfBytes;
use elf::endian::AnyEndian;
use std::fs;
use std::path::{Path, PathBuf};

/// A program to send.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

const MAX: u64 = 512 << 20;

/// The machine names of uname(2), with the ELF number, the name in `./x build --arch`, and the
/// target triple of a static program for it.
const MACHINES: [(&str, u16, &str, &str); 4] = [
    ("x86_64", elf::abi::EM_X86_64, "x86_64", "x86_64-unknown-linux-musl"),
    ("aarch64", elf::abi::EM_AARCH64, "aarch64", "aarch64-unknown-linux-musl"),
    ("armv7l", elf::abi::EM_ARM, "armv7", "armv7-unknown-linux-gnueabihf"),
    ("riscv64", elf::abi::EM_RISCV, "riscv64", "riscv64gc-unknown-linux-gnu"),
];

/// The program for a machine of that kind: the named one, the running one, or one built beside it.
pub(crate) fn choose_binary(named: Option<&Path>, machine: &str) -> Result<Binary, SshError> {
    let wrong = |message: String| SshError::new(ErrorPlace::Request, message);
    let known_machine = MACHINES.iter().find(|(name, ..)| *name == machine);
    if let Some(path) = named {
        let binary = read(path)?;
        return match (known_machine, binary_kind(&binary.bytes)) {
            (_, None) => Err(wrong(format!("{} is not a program", path.display()))),
            (Some((_, number, ..)), Some(kind)) if kind.machine != *number => Err(wrong(format!(
                "{} is a program for another architecture than that of the remote system \
                 ({machine})",
                path.display()
            ))),
            // Whether it finds the libraries that it needs is known only there.
            _ => Ok(binary),
        };
    }
    let Some((_, number, arch, triple)) = known_machine else {
        return Err(wrong(format!(
            "the remote system is a {machine}: build punctual for it and name the program with \
             `binary`"
        )));
    };
    let own_path =
        std::env::current_exe().map_err(SshError::local("find", Path::new("/proc/self/exe")))?;
    let fits = |path: &Path| {
        let binary = read(path).ok()?;
        binary_kind(&binary.bytes)
            .filter(|kind| kind.machine == *number && kind.is_static)
            .map(|_| binary)
    };
    // target/TRIPLE/release/punctual has target/ three steps up, target/release/punctual two.
    let built_paths = own_path
        .ancestors()
        .skip(2)
        .take(3)
        .map(|place| place.join(triple).join("release/punctual"));
    let places = std::iter::once(own_path.clone()).chain(built_paths);
    places.into_iter().find_map(|path| fits(&path)).ok_or_else(|| {
        wrong(format!(
            "no local punctual runs on the remote {machine}: it must be static, and {} is not, or \
             it is for another architecture. Build one with `./x build --arch {arch}` and name \
             it: `binary = \"target/{triple}/release/punctual\"`",
            own_path.display(),
        ))
    })
}

fn read(path: &Path) -> Result<Binary, SshError> {
    let size = fs::metadata(path).map_err(SshError::local("read", path))?.len();
    if size > MAX {
        return Err(SshError::new(
            ErrorPlace::Request,
            format!("{} is too large to be a program", path.display()),
        ));
    }
    Ok(Binary {
        path: path.to_owned(),
        bytes: fs::read(path).map_err(SshError::local("read", path))?,
    })
}

struct BinaryKind {
    machine: u16,
    is_static: bool,
}

/// The kind of an ELF program; `None` for other files.
fn binary_kind(bytes: &[u8]) -> Option<BinaryKind> {
    let file = ElfBytes::<AnyEndian>::minimal_parse(bytes).ok()?;
    let segments = file.segments()?;
    // A program with an interpreter needs the libraries of the system that it was built on.
    let is_static = !segments.iter().any(|segment| segment.p_type == elf::abi::PT_INTERP);
    Some(BinaryKind { machine: file.ehdr.e_machine, is_static })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_binary_of_another_architecture_is_refused() {
        let own = std::env::current_exe().unwrap();
        let machine = std::env::consts::ARCH;
        assert_eq!(choose_binary(Some(&own), machine).unwrap().path, own);
        let other = if machine == "x86_64" { "aarch64" } else { "x86_64" };
        assert!(
            choose_binary(Some(&own), other).unwrap_err().message.contains("another architecture")
        );
        assert!(
            choose_binary(Some(Path::new("/etc/passwd")), machine)
                .unwrap_err()
                .message
                .contains("is not a program")
        );
        assert!(
            choose_binary(Some(Path::new("/nowhere")), machine)
                .unwrap_err()
                .message
                .contains("/nowhere")
        );
    }

    #[test]
    fn a_missing_agent_binary_is_reported_with_its_build_command() {
        let error = choose_binary(None, "riscv64").unwrap_err();
        assert!(error.message.contains("`./x build --arch riscv64`"), "{error}");
        let error = choose_binary(None, "armv7l").unwrap_err();
        assert!(error.message.contains("./x build --arch armv7`"), "{error}");
        assert!(error.message.contains("target/armv7-unknown-linux-gnueabihf/release"), "{error}");
        assert!(choose_binary(None, "sparc64").unwrap_err().message.contains("sparc64"));
    }
}
