//! The kind of file behind a descriptor that a thread writes to.

/// The kind of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutputKind {
    /// Standard output or standard error, or a terminal: printing.
    Output,
    /// A file of a file system.
    File,
    /// Something else: a socket, a pipe, an eventfd, a device.
    Other,
}

/// By the target of the descriptor's link in /proc/PID/fd; without it, only by its number.
pub(crate) fn output_kind(descriptor: u32, link: Option<&str>) -> OutputKind {
    let is_output = descriptor == 1 || descriptor == 2;
    let Some(link) = link else {
        return if is_output { OutputKind::Output } else { OutputKind::Other };
    };
    let begins = |with: &[&str]| with.iter().any(|start| link.starts_with(start));
    match () {
        () if begins(&["/dev/pts/", "/dev/tty", "/dev/console"]) => OutputKind::Output,
        () if begins(&["/dev/null"]) => OutputKind::Other,
        () if is_output => OutputKind::Output,
        () if begins(&["/dev/", "/proc/", "/sys/", "/memfd:"]) => OutputKind::Other,
        () if begins(&["/"]) => OutputKind::File,
        () => OutputKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_descriptors_are_classified_as_output_file_or_other() {
        let cases = [
            (1, Some("/dev/pts/3"), OutputKind::Output),
            (2, Some("pipe:[77]"), OutputKind::Output),
            (1, Some("/tmp/log"), OutputKind::Output),
            (1, Some("/dev/null"), OutputKind::Other),
            (1, None, OutputKind::Output),
            (7, Some("/dev/tty1"), OutputKind::Output),
            (7, Some("/var/log/x (deleted)"), OutputKind::File),
            (7, Some("/dev/shm/ring"), OutputKind::Other),
            (7, Some("/sys/class/gpio/gpio4/value"), OutputKind::Other),
            (7, Some("anon_inode:[eventfd]"), OutputKind::Other),
            (7, Some("socket:[99]"), OutputKind::Other),
            (7, None, OutputKind::Other),
        ];
        for (descriptor, link, expected) in cases {
            assert_eq!(output_kind(descriptor, link), expected, "{descriptor} {link:?}");
        }
    }
}
