//! The kind of file behind a descriptor that a thread writes to.

/// The kind of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opened {
    /// Standard output or standard error, or a terminal: printing.
    Output,
    /// A file of a file system.
    File,
    /// Something else: a socket, a pipe, an eventfd, a device.
    Other,
}

/// By the target of the descriptor's link in /proc/PID/fd; without it, only by its number.
pub fn opened(descriptor: u32, link: Option<&str>) -> Opened {
    let is_output = descriptor == 1 || descriptor == 2;
    let Some(link) = link else {
        return if is_output { Opened::Output } else { Opened::Other };
    };
    let begins = |with: &[&str]| with.iter().any(|start| link.starts_with(start));
    match () {
        () if begins(&["/dev/pts/", "/dev/tty", "/dev/console"]) => Opened::Output,
        () if begins(&["/dev/null"]) => Opened::Other,
        () if is_output => Opened::Output,
        () if begins(&["/dev/", "/proc/", "/sys/", "/memfd:"]) => Opened::Other,
        () if begins(&["/"]) => Opened::File,
        () => Opened::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_descriptors_are_classified_as_output_file_or_other() {
        let cases = [
            (1, Some("/dev/pts/3"), Opened::Output),
            (2, Some("pipe:[77]"), Opened::Output),
            (1, Some("/tmp/log"), Opened::Output),
            (1, Some("/dev/null"), Opened::Other),
            (1, None, Opened::Output),
            (7, Some("/dev/tty1"), Opened::Output),
            (7, Some("/var/log/x (deleted)"), Opened::File),
            (7, Some("/dev/shm/ring"), Opened::Other),
            (7, Some("/sys/class/gpio/gpio4/value"), Opened::Other),
            (7, Some("anon_inode:[eventfd]"), Opened::Other),
            (7, Some("socket:[99]"), Opened::Other),
            (7, None, Opened::Other),
        ];
        for (descriptor, link, expected) in cases {
            assert_eq!(opened(descriptor, link), expected, "{descriptor} {link:?}");
        }
    }
}
