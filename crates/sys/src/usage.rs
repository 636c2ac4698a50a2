//! Disturbances of the calling thread, as counted by the kernel (getrusage(2), RUSAGE_THREAD).

/// Counts since the thread began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl Usage {
    /// The calling thread's current counts.
    pub fn of_this_thread() -> Usage {
        // SAFETY: rusage is plain integers; all zeroes is a value of it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a valid rusage to write to; RUSAGE_THREAD cannot fail on Linux since
        // 2.6.26.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        Usage::from(&usage)
    }

    /// The counts since an earlier reading.
    pub fn usage_since(self, earlier: Usage) -> Usage {
        Usage {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Usage {
        Usage {
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}
