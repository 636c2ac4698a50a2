//! `storage`: open, write, close, and forcing data to the disk.

use crate::form::{bytes_form, count_form, duration_form, path_form, word_form};
use crate::kind::{
    HistogramPlan, Kind, KindFacts, ParameterProblems, SampledBy, parameters, words,
};
use crate::limits::MAX_PERIOD;
use punctual_core::event::Group;
use punctual_core::{Bytes, Nanos};
use std::path::PathBuf;

words! {
    /// The writer.
    StorageMode {
        /// The measuring thread, immediately.
        Direct = "direct",
        /// Another thread, `batch` records at a time.
        Buffered = "buffered",
        /// The measuring thread, and each record is forced to the disk.
        Forced = "forced",
    }
}

words! {
    /// How data is forced to the disk.
    Forcing {
        /// fsync(2)
        Fsync = "fsync",
        /// fdatasync(2)
        Fdatasync = "fdatasync",
        /// sync(2): all file systems.
        Sync = "sync",
        /// open(2) with O_DSYNC.
        Dsync = "o-dsync",
        /// open(2) with O_DIRECT: bypasses the page cache.
        Direct = "o-direct",
        /// A write and an fsync, linked, through io_uring(7).
        IoUring = "io-uring",
    }
}

parameters! {
    /// A periodic task that writes records to a file.
    StoragePlan, StorageSpec {
        /// Who writes: `direct`: the task writes at once; `buffered`: another thread writes,
        /// `batch` records at a time; `forced`: the task writes, and forces each record to the
        /// disk.
        mode: StorageMode = StorageMode::Direct, word_form("a way to write");
        /// How a record is forced to the disk, in the mode `forced`.
        forcing: Forcing = Forcing::Fsync, word_form("a way to force data to the disk");
        /// Where the file is created; it has no name and is gone at the end, even after kill -9.
        directory: PathBuf = PathBuf::from("/var/tmp"), path_form();
        /// The size of a record.
        record: Bytes = Bytes(64), bytes_form(Bytes(1), Bytes::mib(64));
        /// Records that the writer takes at once.
        batch: u32 = 10, count_form(1, 100_000);
        /// The file starts again at this size.
        file_max: Bytes = Bytes::mib(64), bytes_form(Bytes(1), Bytes(1 << 40));
        /// The distance between two records.
        period: Nanos = Nanos::from_millis(10), duration_form(Nanos::from_micros(10), MAX_PERIOD);
    }
}

/// Several batches wait in memory.
const LARGEST_BATCH: Bytes = Bytes::mib(64);

impl StoragePlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        sampled_by: SampledBy::Helpers,
        validated_by: "`wchar`, fstat(2), calls by tracepoint, the device's writes",
        explained_by: &[Group::Block, Group::Jbd2, Group::Mmc, Group::Lock, Group::Page],
        ..KindFacts::new("storage", "open, write, close and sync of a file")
    };
}

impl Kind for StoragePlan {
    fn series_parts(&self) -> Vec<String> {
        let parts: &[&str] = match self.mode {
            StorageMode::Direct => &["whole", "open", "write", "close"],
            StorageMode::Buffered => &["whole", "safe-write"],
            // In these modes the write itself waits for the disk.
            StorageMode::Forced if matches!(self.forcing, Forcing::Dsync | Forcing::Direct) => {
                &["whole", "open", "write", "close"]
            }
            StorageMode::Forced => &["whole", "open", "write", "force", "close"],
        };
        parts.iter().map(|part| (*part).to_owned()).collect()
    }
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::from_millis(100), resolution: Nanos::MICRO }
    }
    fn sample_period(&self) -> Option<Nanos> {
        Some(self.period)
    }
}

impl StorageSpec {
    pub(crate) fn check_conflicts(&self, plan: &StoragePlan, problems: &mut ParameterProblems) {
        let usual = StoragePlan::default();
        if problems.threads != 1 {
            problems.report_conflict(
                &self.mode,
                "one thread writes",
                "leave `threads` out, or write several measures",
            );
        }
        if plan.mode != StorageMode::Forced {
            problems.report_unused(
                "forcing",
                &self.forcing,
                &usual.forcing,
                "only `mode = \"forced\"` forces anything",
            );
        } else if plan.forcing == Forcing::Direct && !plan.record.get().is_multiple_of(512) {
            let help = "choose a multiple of 512 B (of 4 KiB on most disks)";
            problems.report_conflict(&self.record, "O_DIRECT writes whole blocks", help);
        }
        if plan.mode != StorageMode::Buffered {
            problems.report_unused(
                "batch",
                &self.batch,
                &usual.batch,
                "only `buffered` collects records",
            );
        } else if plan.record.get().saturating_mul(plan.batch.into()) > LARGEST_BATCH.get() {
            let message = format!("a batch would be larger than {LARGEST_BATCH}");
            problems.report_conflict(
                &self.batch,
                message,
                "choose a smaller `batch`, or a smaller `record`",
            );
        } else if plan.record.get().saturating_mul(plan.batch.into()) > plan.file_max.get() {
            problems.report_conflict(
                &self.batch,
                "a batch is larger than the file may be",
                "choose a larger `file_max`",
            );
        }
        if plan.record > plan.file_max {
            problems.report_conflict(
                &self.record,
                "a record is larger than the file may be",
                "choose a larger `file_max`",
            );
        }
    }
}
