//! `netio`: a periodic task that receives, encrypts and writes; times the whole and its parts.

use crate::form::{
    bytes_form, count_form, duration_form, flag_form, optional_form, path_form, text_form,
    word_form,
};
use crate::kind::{
    HistogramPlan, Kind, KindFacts, ParameterProblems, SampledBy, parameters, words,
};
use crate::kinds::Forcing;
use crate::limits::MAX_PERIOD;
use crate::values;
use punctual_core::event::Group;
use punctual_core::{Bytes, Nanos};
use std::path::PathBuf;

words! {
    /// The transport of the data.
    Transport {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// A stream socket of the Unix domain.
        Unix = "unix",
    }
}

words! {
    /// The time at which the task requests a message.
    RequestAt {
        /// First, then waits for the answer: `whole` includes the server's time.
        First = "first",
        /// Last, the message of the next cycle: it is available when that begins.
        Last = "last",
    }
}

words! {
    /// The encryption of the data.
    Cipher {
        /// AES-128 in counter mode.
        Aes128 = "aes-128",
        /// No encryption.
        None = "none",
    }
}

words! {
    /// The destination of the data.
    Writing {
        /// To a file, immediately.
        Direct = "direct",
        /// To a file by another thread, `batch` records at a time.
        Buffered = "buffered",
        /// To a file by another thread, which forces each batch to the disk.
        Forced = "forced",
        /// No writing.
        None = "none",
    }
}

parameters! {
    /// Receive from a server that punctual starts, encrypt, write.
    NetioPlan, NetioSpec {
        /// How data comes.
        transport: Transport = Transport::Tcp, word_form("a transport");
        /// The way of the data: `lo`; `veth`, a pair of devices between two network namespaces that
        /// exist for this measure; or an interface, beyond which `server` is.
        interface: String = "lo".to_owned(), text_form("INTERFACE", values::check_interface);
        /// The server beyond a named interface (docs/reference/workloads.md says what it answers).
        server: Option<String> = None, optional_form(text_form("ADDRESS:PORT", values::ipv4_port));
        /// Times of each message's network softirqs and of the transmit function of the
        /// interface's driver, as series `softirq` and `driver`. It needs BPF.
        shares: bool = false, flag_form();
        /// The server's port; 0: one that is free.
        port: u16 = 0, count_form(0, 65_535);
        /// What is received at a time.
        message: Bytes = Bytes::kib(1), bytes_form(Bytes(1), Bytes::mib(16));
        /// When the task requests a message: `first`, and waits for the server, whose time is then
        /// in `recv` and `whole`; or `last`, that of the next cycle, so that `recv` finds it there.
        request: RequestAt = RequestAt::First, word_form("a time to request");
        /// How it is encrypted: `aes-128` is in counter mode.
        cipher: Cipher = Cipher::Aes128, word_form("a cipher");
        /// Where it goes: `direct`, `buffered`, `forced` (buffered, and each batch forced to the
        /// disk) or `none`.
        writing: Writing = Writing::Direct, word_form("a way to write");
        /// How a write is forced to the disk, as for `storage`.
        forcing: Forcing = Forcing::Sync, word_form("a way to force data to the disk");
        /// Results that the writer takes at once.
        batch: u32 = 10, count_form(1, 100_000);
        /// Where the file is made.
        directory: PathBuf = PathBuf::from("/var/tmp"), path_form();
        /// The distance between two receptions.
        period: Nanos = Nanos::from_millis(10), duration_form(Nanos::from_micros(10), MAX_PERIOD);
    }
}

/// Several batches wait in memory.
const LARGEST_BATCH: Bytes = Bytes::mib(64);

impl NetioPlan {
    /// Whether a named interface leads to a server that punctual does not start.
    pub fn is_elsewhere(&self) -> bool {
        !matches!(self.interface.as_str(), "lo" | "veth")
    }
    pub(crate) const FACTS: KindFacts = KindFacts {
        sampled_by: SampledBy::Helpers,
        validated_by: "`rchar`, `wchar`, TCP_INFO, the last record, calls by perf",
        explained_by: &[Group::Napi, Group::Block],
        ..KindFacts::new(
            "netio",
            "a periodic task that receives, encrypts and writes, step by step",
        )
    };
}

impl Kind for NetioPlan {
    fn series_parts(&self) -> Vec<String> {
        let mut parts = vec!["whole", "send", "recv"];
        parts.extend((self.cipher != Cipher::None).then_some("encrypt"));
        parts.extend(match self.writing {
            Writing::Direct => &["open", "write", "close"][..],
            Writing::Buffered | Writing::Forced | Writing::None => &[],
        });
        parts.extend(self.shares.then_some(["driver", "softirq"]).into_iter().flatten());
        let writer = matches!(self.writing, Writing::Buffered | Writing::Forced);
        parts.extend(writer.then_some("safe-write"));
        parts.into_iter().map(str::to_owned).collect()
    }
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::from_millis(100), resolution: Nanos::MICRO }
    }
    fn sample_period(&self) -> Option<Nanos> {
        Some(self.period)
    }
}

impl NetioSpec {
    pub(crate) fn check_conflicts(&self, plan: &NetioPlan, problems: &mut ParameterProblems) {
        let usual = NetioPlan::default();
        if problems.threads != 1 {
            problems.report_conflict(
                &self.transport,
                "one thread receives",
                "leave `threads` out, or write several measures",
            );
        }
        let (none, elsewhere) = ("a Unix socket has none", plan.is_elsewhere());
        if plan.transport == Transport::Unix {
            problems.report_unused("port", &self.port, &usual.port, none);
            problems.report_unused("interface", &self.interface, &usual.interface, none);
            problems.report_unused("shares", &self.shares, &false, none);
        } else if elsewhere {
            problems.report_unused("port", &self.port, &usual.port, "`server` has it");
        }
        if !elsewhere {
            problems.report_unused("server", &self.server, &None, "punctual starts it");
        } else if plan.server.is_none() && plan.transport != Transport::Unix {
            problems.report_conflict(
                &self.interface,
                "what is sent to an address of this machine does not leave it",
                "start a server on the machine beyond, and give its address as `server`",
            );
        }
        if plan.transport == Transport::Udp && plan.message.get() > 65_507 {
            problems.report_conflict(
                &self.message,
                "a UDP datagram holds at most 65507 B",
                "choose a smaller message, or TCP",
            );
        }
        if plan.writing != Writing::Forced {
            problems.report_unused(
                "forcing",
                &self.forcing,
                &usual.forcing,
                "only `writing = \"forced\"` forces anything",
            );
        }
        if !matches!(plan.writing, Writing::Buffered | Writing::Forced) {
            problems.report_unused("batch", &self.batch, &usual.batch, "nothing is collected");
        } else if plan.message.get().saturating_mul(plan.batch.into()) > LARGEST_BATCH.get() {
            let message = format!("a batch would be larger than {LARGEST_BATCH}");
            problems.report_conflict(
                &self.batch,
                message,
                "choose a smaller `batch`, or a smaller `message`",
            );
        }
        if plan.writing == Writing::None {
            problems.report_unused(
                "directory",
                &self.directory,
                &usual.directory,
                "nothing is written",
            );
        }
        if plan.writing == Writing::Forced
            && plan.forcing == Forcing::Direct
            && !plan.message.get().is_multiple_of(512)
        {
            problems.report_conflict(
                &self.message,
                "O_DIRECT writes whole blocks",
                "choose a multiple of 512 B (of 4 KiB on most disks)",
            );
        }
    }
}
