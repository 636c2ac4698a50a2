//! Messages of the guard that punctual has not read yet. Punctual may be stopped for a while
//! (SIGSTOP, a debugger), and must not miss a load that failed meanwhile.

use super::protocol::GuardEvent;
use std::io::{self, Write};

/// Some 60,000 events. Beyond this they are only counted, and the run fails.
const MAX_OUTBOX_BYTES: usize = 4 << 20;

/// Events in order, as lines.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Vec<u8>,
    lost: u64,
}

impl Outbox {
    /// Appends an event.
    pub fn push(&mut self, event: &GuardEvent) {
        let Ok(mut line) = serde_json::to_vec(event) else {
            self.lost += 1;
            return;
        };
        line.push(b'\n');
        if self.waiting.len() + line.len() > MAX_OUTBOX_BYTES {
            self.lost += 1;
            return;
        }
        self.waiting.append(&mut line);
    }

    /// Whether there are no unread messages.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.lost == 0
    }

    /// Writes as much as the socket accepts, without waiting. A broken socket is detected by
    /// reading from it.
    pub(crate) fn write_pending(&mut self, socket: &mut impl Write) {
        let mut sent = 0;
        while sent < self.waiting.len() {
            match socket.write(&self.waiting[sent..]) {
                Ok(0) => break,
                Ok(n) => sent += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.waiting.drain(..sent);
        if self.waiting.is_empty() && self.lost > 0 {
            let events = std::mem::take(&mut self.lost);
            self.push(&GuardEvent::Lost { events });
            self.write_pending(socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket with room for this many bytes.
    struct Socket(Vec<u8>, usize);

    impl Write for Socket {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.1.saturating_sub(self.0.len()).min(bytes.len());
            if room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.0.extend(&bytes[..room]);
            Ok(room)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn read(socket: &Socket) -> Vec<GuardEvent> {
        let lines = socket.0.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    #[test]
    fn what_a_full_socket_does_not_take_is_sent_later_and_in_order() {
        let (mut outbox, mut socket) = (Outbox::default(), Socket(Vec::new(), 50));
        let started = |load| GuardEvent::Started { load, pid: 7 };
        (0..600).for_each(|load| outbox.push(&started(load)));
        outbox.write_pending(&mut socket);
        assert!(!outbox.is_empty() && socket.0.len() == 50, "cut within a line");
        socket.1 = usize::MAX;
        outbox.write_pending(&mut socket);
        assert!(outbox.is_empty());
        assert_eq!(read(&socket), (0..600).map(started).collect::<Vec<_>>());
    }

    #[test]
    fn events_beyond_the_limit_are_counted_as_lost() {
        let (mut outbox, mut socket) = (Outbox::default(), Socket(Vec::new(), 0));
        let event = GuardEvent::Started { load: 1, pid: 7 };
        let each = serde_json::to_vec(&event).unwrap().len() + 1;
        let kept = MAX_OUTBOX_BYTES / each;
        (0..kept + 5).for_each(|_| outbox.push(&event));
        outbox.write_pending(&mut socket);
        socket.1 = usize::MAX;
        outbox.write_pending(&mut socket);
        let events = read(&socket);
        assert_eq!(
            (events.len(), events.last()),
            (kept + 1, Some(&GuardEvent::Lost { events: 5 }))
        );
        assert!(outbox.is_empty());
    }
}
