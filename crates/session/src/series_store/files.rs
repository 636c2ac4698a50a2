//! The files of a series: the saver writes them, in the order of the calls here.

use crate::saver::Saver;
use punctual_bundle::state::SeriesState;
use punctual_bundle::{
    BundleError, PhasePlace, SampleLine, SeriesAccount, SeriesMeta, SeriesWriter,
};
use punctual_core::{Fact, Sample, SampleWindow};
use punctual_sys::pace;
use std::sync::{Arc, Mutex, OnceLock};

/// The size of a window, or of a line, that waits.
const SMALL: usize = 128;

pub(crate) struct SeriesFiles {
    saver: Saver,
    written: Arc<WrittenFiles>,
    /// The number of samples that the log still takes.
    room: u64,
    /// Whether the newest samples replace older ones.
    rotates: bool,
    /// Samples that found no room with the saver, and those after them: the log holds the first
    /// ones, or it holds the newest.
    unsaved: u64,
}

/// The part of the saver's thread.
#[derive(Default)]
struct WrittenFiles {
    /// `None` until the files are created. Locked during a write: the controller thread only tries.
    writer: Mutex<Option<SeriesWriter>>,
    /// The first error.
    trouble: OnceLock<BundleError>,
}

impl WrittenFiles {
    fn set_writer(&self, writer: Result<SeriesWriter, BundleError>) {
        match writer {
            Ok(mut writer) => {
                writer.wait_before_writing(pace::between_samples);
                if let Ok(mut place) = self.writer.lock() {
                    *place = Some(writer);
                }
            }
            Err(why) => drop(self.trouble.set(why)),
        }
    }
}

impl SeriesFiles {
    /// The files of this writer.
    pub fn new(writer: SeriesWriter, saver: &Saver) -> SeriesFiles {
        let files = SeriesFiles::without_files(writer.samples_left(), saver);
        files.written.set_writer(Ok(writer));
        files
    }

    /// Creates files while samples come in. With a limit of its log the newest samples are kept.
    pub fn create(
        place: PhasePlace,
        number: usize,
        meta: SeriesMeta,
        (keep, log_limit): (u64, Option<u64>),
        saver: &Saver,
    ) -> SeriesFiles {
        let files = SeriesFiles::without_files(keep, saver);
        let written = Arc::clone(&files.written);
        saver.put_job(0, move || {
            let begun = place.begin_series(number, &meta, keep).and_then(|mut writer| {
                log_limit.map_or(Ok(()), |limit| writer.begin_rotation(limit)).map(|()| writer)
            });
            written.set_writer(begun);
        });
        files
    }

    fn without_files(room: u64, saver: &Saver) -> SeriesFiles {
        let (saver, written) = (saver.clone(), Arc::default());
        SeriesFiles { saver, written, room, rotates: room == u64::MAX, unsaved: 0 }
    }

    fn put_write(
        &self,
        bytes: usize,
        write: impl FnOnce(&mut SeriesWriter) -> Result<(), BundleError> + Send + 'static,
    ) {
        let written = Arc::clone(&self.written);
        self.saver.put_job(bytes, move || {
            let Ok(mut writer) = written.writer.lock() else { return };
            if let Some(Err(why)) = writer.as_mut().map(write) {
                let _ = written.trouble.set(why);
            }
        });
    }

    /// Appends to the log, unless an append failed before.
    fn append_to_log(
        &self,
        bytes: usize,
        append: impl FnOnce(&mut SeriesWriter) -> Result<(), BundleError> + Send + 'static,
    ) {
        let written = Arc::clone(&self.written);
        self.put_write(bytes, move |writer| match written.trouble.get() {
            None => append(writer),
            Some(_) => Ok(()),
        });
    }

    /// Appends samples to the log within its bound; counts those that find no room with the saver.
    pub fn append_samples(&mut self, samples: &[Sample]) {
        let samples =
            &samples[..samples.len().min(usize::try_from(self.room).unwrap_or(usize::MAX))];
        if samples.is_empty() || self.write_error().is_some() {
            return;
        }
        if !self.rotates {
            self.room -= samples.len() as u64;
        }
        let (bytes, mut copied) = (size_of_val(samples), Vec::new());
        let has_stopped = self.unsaved > 0 && !self.rotates;
        // Memory that is locked has a limit, too (RLIMIT_MEMLOCK).
        let mut fits =
            || self.saver.has_room(bytes) && copied.try_reserve_exact(samples.len()).is_ok();
        if has_stopped || !fits() {
            self.unsaved += samples.len() as u64;
            return;
        }
        copied.extend_from_slice(samples);
        self.append_to_log(bytes, move |writer| writer.append_samples(&copied));
    }

    pub fn append_window(&self, window: SampleWindow) {
        if self.saver.has_room(SMALL) {
            self.append_to_log(SMALL, move |writer| writer.append_window(&window));
        }
    }

    pub fn append_line(&self, line: SampleLine) {
        if self.saver.has_room(SMALL) {
            self.put_write(SMALL, move |writer| writer.append_line(&line));
        }
    }

    /// Saves the statistics, with the length of the log in which they are saved.
    pub(crate) fn save_state(
        &self,
        mut state: SeriesState,
        save: fn(&mut SeriesWriter, &SeriesState) -> Result<(), BundleError>,
    ) {
        self.put_write(0, move |writer| {
            (state.samples_kept, state.log_bytes) = (writer.kept_count(), writer.log_bytes());
            save(writer, &state)
        });
    }

    pub fn write_meta(&self, meta: SeriesMeta) {
        self.put_write(0, move |writer| writer.write_meta(&meta));
    }

    pub fn write_account(&self, account: Fact<SeriesAccount>) {
        self.put_write(0, move |writer| {
            pace::between_samples();
            writer.write_account(&account)
        });
    }

    /// Whether the last checkpoint of the run still waits.
    pub(crate) fn is_behind(&self) -> bool {
        self.saver.is_behind()
    }

    /// The number of samples in the log and its bytes, unless it is being written.
    pub(crate) fn log_size(&self) -> Option<(u64, u64)> {
        let writer = self.written.writer.try_lock().ok()?;
        writer.as_ref().map(|writer| (writer.kept_count(), writer.log_bytes()))
    }

    pub(crate) fn unsaved_count(&self) -> u64 {
        self.unsaved
    }

    /// The first error.
    pub(crate) fn write_error(&self) -> Option<&BundleError> {
        self.written.trouble.get()
    }
}
