//! Lines of a stream, in bounded memory.

use std::io::{self, Read};

/// The maximum length of a line; longer ones are skipped.
const LONGEST: usize = 64 << 10;
const BUFFER: usize = 4 * LONGEST;

pub(crate) struct TraceLines {
    bytes: Box<dyn Read>,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    ended: bool,
    /// The current data belong to a line that is too long.
    skipping: bool,
    pub(crate) too_long: u64,
    /// The last line is incomplete.
    pub(crate) cut_off: bool,
}

impl TraceLines {
    pub(crate) fn new(bytes: Box<dyn Read>) -> TraceLines {
        let buffer = vec![0; BUFFER];
        TraceLines {
            bytes,
            buffer,
            from: 0,
            to: 0,
            ended: false,
            skipping: false,
            too_long: 0,
            cut_off: false,
        }
    }

    /// The next line, without its end; `None` after the last.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut looked_at = self.from;
        loop {
            let found = self.buffer[looked_at..self.to].iter().position(|byte| *byte == b'\n');
            if let Some(length) = found.map(|at| looked_at + at - self.from) {
                let line = self.from..self.from + length;
                self.from = line.end + 1;
                looked_at = self.from;
                let skipped = std::mem::take(&mut self.skipping);
                if skipped || length > LONGEST {
                    self.too_long += u64::from(!skipped);
                    continue;
                }
                return Ok(Some(self.line_at(line)));
            }
            if self.ended {
                let line = self.from..self.to;
                self.cut_off |= !line.is_empty();
                self.from = self.to;
                let skipped = std::mem::take(&mut self.skipping);
                return Ok((!line.is_empty() && !skipped).then(|| self.line_at(line)));
            }
            if self.to - self.from >= LONGEST {
                self.too_long += u64::from(!self.skipping);
                self.skipping = true;
                self.from = self.to;
            }
            self.buffer.copy_within(self.from..self.to, 0);
            (self.to, self.from) = (self.to - self.from, 0);
            looked_at = self.to;
            match self.bytes.read(&mut self.buffer[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.to += read,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
    }

    fn line_at(&self, range: std::ops::Range<usize>) -> &[u8] {
        let line = &self.buffer[range];
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlong_lines_are_skipped_and_counted() {
        let text = [vec![b'a'; LONGEST + 70_000], b"\nb\r\n\nc".to_vec(), vec![b'd'; 9]].concat();
        let mut lines = TraceLines::new(Box::new(io::Cursor::new(text)));
        let first = lines.next().unwrap().map(|line| line.len());
        assert_eq!(first, Some(1));
        assert_eq!(lines.next().unwrap(), Some(&b""[..]));
        assert!(!lines.cut_off);
        assert_eq!(lines.next().unwrap(), Some(&b"cddddddddd"[..]));
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!((lines.too_long, lines.cut_off), (1, true));
    }
}
