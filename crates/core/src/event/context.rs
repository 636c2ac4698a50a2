//! The CPU state in the header of a kernel record.

/// Whether interrupts and preemption were enabled at the time of a record
/// (kernel/trace/trace_output.c: trace_print_lat_fmt).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpuContext {
    /// Interrupts were disabled; `None`: unknown (`X`).
    pub irqs_off: Option<bool>,
    /// Softirqs were disabled (`b`, `D`).
    pub softirqs_off: bool,
    pub need_resched: bool,
    /// In the handler of an interrupt or a non-maskable interrupt.
    pub hardirq: bool,
    pub softirq: bool,
    /// The nesting depth of disabled preemption, 15 at most.
    pub preempt_depth: u8,
}

/// `common_flags` of a record (include/linux/trace_events.h).
mod flag {
    pub(crate) const IRQS_OFF: u8 = 0x01;
    /// Not provided by the architecture; since Linux 6.13 a lazy reschedule request.
    pub(crate) const IRQS_NOSUPPORT: u8 = 0x02;
    pub(crate) const NEED_RESCHED: u8 = 0x04;
    pub(crate) const HARDIRQ: u8 = 0x08;
    pub const SOFTIRQ: u8 = 0x10;
    pub const NMI: u8 = 0x40;
    pub(crate) const BH_OFF: u8 = 0x80;
}

impl CpuContext {
    /// From `common_flags` and `common_preempt_count`.
    pub fn of_record(flags: u8, preempt_count: u8) -> CpuContext {
        let has = |bits: u8| flags & bits != 0;
        let irqs_off = match (has(flag::IRQS_OFF), has(flag::IRQS_NOSUPPORT)) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        };
        CpuContext {
            irqs_off,
            softirqs_off: has(flag::BH_OFF),
            need_resched: has(flag::NEED_RESCHED),
            hardirq: has(flag::HARDIRQ | flag::NMI),
            softirq: has(flag::SOFTIRQ),
            preempt_depth: preempt_count & 0xf,
        }
    }

    /// From the columns of text; `lazy`: the reschedule request is followed by a column for a lazy
    /// request (PREEMPT_RT before Linux 6.13). `None` if these are not such columns.
    pub fn of_columns(columns: &[u8], lazy: bool) -> Option<CpuContext> {
        let (first, second) = (*columns.first()?, *columns.get(1)?);
        let irqs_off = match first {
            b'd' | b'D' => Some(true),
            b'.' | b'b' => Some(false),
            b'X' => None,
            _ => return None,
        };
        let rest_columns = &columns[2 + usize::from(lazy && columns.len() > 4)..];
        let served = *rest_columns.first()?;
        let depth = rest_columns.get(1).and_then(|depth| char::from(*depth).to_digit(16));
        Some(CpuContext {
            irqs_off,
            softirqs_off: matches!(first, b'b' | b'D'),
            need_resched: b"NnBb".contains(&second),
            hardirq: b"hHzZ".contains(&served),
            softirq: b"sH".contains(&served),
            preempt_depth: depth.unwrap_or(0) as u8,
        })
    }

    /// Whether text has the column for lazy requests: `h` is then the fourth.
    pub fn is_lazy(columns: &[u8]) -> bool {
        columns.len() > 4 && columns.get(3).is_some_and(|served| b"hHsSzZ".contains(served))
    }

    /// As a word for [`CpuContext::of_bits`].
    pub fn bits(self) -> u32 {
        let irqs = self.irqs_off.map_or(0, |off| 1 + u32::from(off));
        let flags = [self.softirqs_off, self.need_resched, self.hardirq, self.softirq];
        let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u32::from(*flag));
        irqs | flags << 2 | u32::from(self.preempt_depth) << 8
    }

    /// From such a word.
    pub fn of_bits(bits: u32) -> CpuContext {
        let has = |place: u32| bits >> place & 1 != 0;
        CpuContext {
            irqs_off: [None, Some(false), Some(true), None][bits as usize & 3],
            softirqs_off: has(2),
            need_resched: has(3),
            hardirq: has(4),
            softirq: has(5),
            preempt_depth: (bits >> 8) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_all_kernels_are_read() {
        let of = |columns: &str, lazy| CpuContext::of_columns(columns.as_bytes(), lazy);
        let rest = CpuContext::default();
        let off = CpuContext { irqs_off: Some(true), ..rest };
        let on = CpuContext { irqs_off: Some(false), ..rest };
        let cases = [
            // Before and since Linux 5.14.
            ("d..2", false, Some(CpuContext { preempt_depth: 2, ..off })),
            ("dNh1.", false, {
                let served = CpuContext { hardirq: true, preempt_depth: 1, ..off };
                Some(CpuContext { need_resched: true, ..served })
            }),
            ("..s..", false, Some(CpuContext { softirq: true, ..on })),
            // Softirqs disabled (Linux 6.1): with interrupts enabled, and disabled.
            ("b..1.", false, { Some(CpuContext { softirqs_off: true, preempt_depth: 1, ..on }) }),
            ("D.H..", false, {
                let served = CpuContext { hardirq: true, softirq: true, ..off };
                Some(CpuContext { softirqs_off: true, ..served })
            }),
            ("X....", false, Some(rest)),
            // PREEMPT_RT.
            ("d..h3", true, Some(CpuContext { hardirq: true, preempt_depth: 3, ..off })),
            ("b...3", true, Some(CpuContext { softirqs_off: true, preempt_depth: 3, ..on })),
            ("d..h..2.", true, Some(CpuContext { hardirq: true, ..off })),
            ("[002]", false, None),
            ("d", false, None),
        ];
        for (columns, lazy, expected) in cases {
            assert_eq!(of(columns, lazy), expected, "{columns}");
        }
        assert!(CpuContext::is_lazy(b"d..h3") && !CpuContext::is_lazy(b"d.h3."));
    }

    #[test]
    fn cpu_contexts_are_restored_from_their_bits() {
        for flags in 0..=u8::MAX {
            let context = CpuContext::of_record(flags, 0x23);
            assert_eq!(CpuContext::of_bits(context.bits()), context);
            assert_eq!(context.preempt_depth, 3);
        }
        assert_eq!(CpuContext::of_record(0x81, 0).irqs_off, Some(true));
        assert_eq!(CpuContext::of_record(0x02, 0).irqs_off, None);
        assert!(CpuContext::of_record(0x80, 0).softirqs_off);
    }
}
