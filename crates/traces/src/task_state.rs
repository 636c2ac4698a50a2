//! The state in which a task leaves its CPU, as sched_switch reports it.

use punctual_core::event::TaskState;

/// The bits of `prev_state`, which differ between kernel versions: the `print fmt` of sched_switch
/// names each by its letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StateBits {
    letters: Vec<(u64, u8)>,
    /// Preempted: `+`.
    preempted: u64,
}

impl Default for StateBits {
    /// Since 4.14: `TASK_REPORT` and one bit above it.
    fn default() -> StateBits {
        let letters = b"SDTtXZPI".iter().enumerate().map(|(bit, letter)| (1 << bit, *letter));
        StateBits { letters: letters.collect(), preempted: 0x100 }
    }
}

impl StateBits {
    /// Reads the bits from the print format of sched_switch.
    pub(crate) fn of_print_format(text: &str) -> StateBits {
        let mut letters = Vec::new();
        for part in text.split('{').skip(1).take(MOST_BITS) {
            let Some((number, letter)) =
                part.split_once('}').and_then(|(pair, _)| pair.split_once(','))
            else {
                continue;
            };
            let letter = letter.trim().trim_matches('"').as_bytes();
            if let (Some(bit), [letter]) = (parse_literal(number), letter) {
                letters.push((bit, *letter));
            }
        }
        if letters.is_empty() {
            return StateBits::default();
        }
        // `REC->prev_state & 2048 ? "+" : ""`; if computed, the bit above all others.
        let stated = text
            .rsplit_once("? \"+\"")
            .and_then(|(before, _)| parse_literal(before.rsplit_once("prev_state &")?.1));
        let above = letters.iter().map(|(bit, _)| bit.saturating_mul(2)).max().unwrap_or(0x100);
        StateBits { letters, preempted: stated.unwrap_or(above) }
    }

    /// The bits of a kernel release such as `4.4.3-rt` (TASK_STATE_MAX and TASK_REPORT_MAX of its
    /// include/linux/sched.h), if the file has no print format. An unknown one counts as new.
    pub(crate) fn of_release(release: &str) -> StateBits {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return StateBits::default();
        };
        let version = (major, minor);
        if version >= (4, 14) {
            return StateBits::default();
        }
        // EXIT_ZOMBIE and EXIT_DEAD were swapped in 3.14: both mean the end.
        let letters = b"SDTtZXxKW".iter().enumerate().map(|(bit, letter)| (1 << bit, *letter));
        let preempted = match version {
            (..=2, _) | (3, ..=8) => 0x200,
            (3, _) | (4, ..=1) => 0x400,
            (4, ..=7) => 0x800,
            _ => 0x1000,
        };
        StateBits { letters: letters.collect(), preempted }
    }

    pub(crate) fn decode_state(&self, bits: i64) -> TaskState {
        let bits = bits as u64;
        if bits & self.preempted != 0 {
            return TaskState::Preempted;
        }
        let named = self.letters.iter().filter(|(bit, _)| bits & bit != 0);
        let state =
            named.map(|(_, letter)| of_letter(*letter)).find(|state| *state != TaskState::Other);
        match state {
            Some(state) => state,
            None if bits & (self.preempted.saturating_sub(1)) == 0 => TaskState::Preempted,
            None => TaskState::Other,
        }
    }
}

/// More bits than any kernel has.
const MOST_BITS: usize = 32;

fn parse_literal(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `task_state_array` of fs/proc/array.c.
fn of_letter(letter: u8) -> TaskState {
    match letter {
        b'R' => TaskState::Preempted,
        b'S' => TaskState::Sleeping,
        // An idle kernel thread, which delays no other.
        b'I' => TaskState::Sleeping,
        b'D' => TaskState::Blocked,
        b'T' | b't' => TaskState::Stopped,
        b'Z' | b'X' | b'x' => TaskState::Dead,
        _ => TaskState::Other,
    }
}

/// The state in text: `S`, `R+`, `D|K`.
pub(crate) fn of_text(text: &[u8]) -> TaskState {
    if text.contains(&b'+') {
        return TaskState::Preempted;
    }
    let letters = text.iter().filter(|byte| **byte != b'|').map(|letter| of_letter(*letter));
    let mut known_states = letters.filter(|state| *state != TaskState::Other);
    known_states.next().unwrap_or(TaskState::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_state_bits_are_read_from_the_print_format() {
        // Linux 6.12.
        let new = StateBits::of_print_format(
            "\"prev_comm=%s prev_state=%s%s ==>\", REC->prev_comm, (REC->prev_state & \
             ((((0x00000000 | 0x00000001 | 0x00000040) + 1) << 1) - 1)) ? \
             __print_flags(REC->prev_state & ((((0x00000000) + 1) << 1) - 1), \"|\", { 0x00000001, \
             \"S\" }, { 0x00000002, \"D\" }, { 0x00000004, \"T\" }, { 0x00000008, \"t\" }, { \
             0x00000010, \"X\" }, { 0x00000020, \"Z\" }, { 0x00000040, \"P\" }, { 0x00000080, \
             \"I\" }) : \"R\", REC->prev_state & (((0x00000000 | 0x00000040) + 1) << 1) ? \"+\" : \
             \"\", REC->next_comm",
        );
        assert_eq!(new, StateBits::default());
        // Linux 3.10.
        let old = StateBits::of_print_format(
            "REC->prev_state & (512-1) ? __print_flags(REC->prev_state & (512-1), \"|\", { 1, \
             \"S\"} , { 2, \"D\" }, { 4, \"T\" }, { 8, \"t\" }, { 16, \"Z\" }, { 32, \"X\" }, { \
             64, \"x\" }, { 128, \"K\" }, { 256, \"W\" }) : \"R\", REC->prev_state & 512 ? \"+\" : \
             \"\", REC->next_comm",
        );
        assert_eq!(old.preempted, 512);
        assert_eq!(old.decode_state(16), TaskState::Dead);
        assert_eq!(old.decode_state(0x82), TaskState::Blocked);
        assert_eq!(old.decode_state(512), TaskState::Preempted);
        assert_eq!(old.decode_state(256), TaskState::Other);
        assert_eq!(new.decode_state(0), TaskState::Preempted);
        assert_eq!(new.decode_state(0x80), TaskState::Sleeping);
        assert_eq!(new.decode_state(0x40), TaskState::Other);
    }

    #[test]
    fn task_state_bits_depend_on_the_kernel_release() {
        assert_eq!(StateBits::of_release("6.12.0-rt1"), StateBits::default());
        assert_eq!(StateBits::of_release("4.14"), StateBits::default());
        let expected = [
            ("3.6.11-1-ARCH", 0x200),
            ("3.10.31-ltsi", 0x400),
            ("4.4.3-1-ARCH", 0x800),
            ("4.11.0-10-generic", 0x1000),
        ];
        for (release, preempted) in expected {
            let bits = StateBits::of_release(release);
            assert_eq!(bits.decode_state(preempted), TaskState::Preempted, "{release}");
            assert_eq!(bits.decode_state(0), TaskState::Preempted);
            assert_eq!(
                (bits.decode_state(1), bits.decode_state(2)),
                (TaskState::Sleeping, TaskState::Blocked)
            );
            assert_eq!(
                (bits.decode_state(16), bits.decode_state(32)),
                (TaskState::Dead, TaskState::Dead)
            );
        }
    }

    #[test]
    fn task_state_letters_are_parsed() {
        assert_eq!(of_text(b"R+"), TaskState::Preempted);
        assert_eq!(of_text(b"R"), TaskState::Preempted);
        assert_eq!(of_text(b"D|W"), TaskState::Blocked);
        assert_eq!(of_text(b"K|D"), TaskState::Blocked);
        assert_eq!(of_text(b"t"), TaskState::Stopped);
        assert_eq!(of_text(b"?"), TaskState::Other);
    }
}
