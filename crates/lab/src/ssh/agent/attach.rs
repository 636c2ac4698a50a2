//! The process at the end of a connection: reports the run's state, passes on requests, sends the
//! bundle.

use super::super::files;
use super::super::wire::{self, FrameKind, GREETING, WireFrame};
use super::{RunDirectory, RunRequest};
use crate::ssh::agent;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between two polls of the files: each wakes a CPU of the measured system.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time between two updates of the last contact.
const TOUCH: Duration = Duration::from_secs(20);

/// Serves until the connection ends or the bundle has been fetched; the client has messages before
/// `offset` already.
pub(crate) fn attach_to_run(directory: &RunDirectory, offset: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(GREETING)?;
    out.flush()?;
    directory.note_contact()?;
    let (send, asked) = mpsc::channel();
    std::thread::spawn(move || {
        let mut from = io::stdin().lock();
        while let Ok(Some(frame)) = wire::read(&mut from) {
            if send.send(frame).is_err() {
                return;
            }
        }
    });
    let mut end =
        AttachEnd { directory, out, offset, request: None, interrupt: false, reported: false };
    let mut touched = Instant::now();
    loop {
        match asked.recv_timeout(POLL_INTERVAL) {
            Ok(frame) if frame.kind == FrameKind::Fetched => {
                agent::remove(directory)?;
                return wire::write(&mut end.out, FrameKind::Gone, &[]);
            }
            Ok(frame) => end.serve_frame(frame)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return directory.note_contact(),
        }
        end.report_state()?;
        if touched.elapsed() > TOUCH {
            directory.note_contact()?;
            touched = Instant::now();
        }
    }
}

struct AttachEnd<'a, W> {
    directory: &'a RunDirectory,
    out: W,
    offset: u64,
    request: Option<RunRequest>,
    /// Whether to interrupt the run, as soon as there is one.
    interrupt: bool,
    reported: bool,
}

impl<W: Write> AttachEnd<'_, W> {
    fn serve_frame(&mut self, frame: WireFrame) -> io::Result<()> {
        match frame.kind {
            FrameKind::RunRequest => self.request = Some(RunRequest::decode(&frame.payload)?),
            FrameKind::Experiment => self.begin_run(&frame.payload)?,
            FrameKind::Interrupt => self.interrupt = true,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a frame of the other direction",
                ));
            }
        }
        Ok(())
    }

    /// The order is complete: starts the run through the supervisor, which waits for it. After a
    /// reconnection it is sent again.
    fn begin_run(&mut self, experiment: &[u8]) -> io::Result<()> {
        let Some(request) = self.request.take() else { return Ok(()) };
        if self.directory.file_path("order").exists() {
            return Ok(());
        }
        let work = self.directory.file_path("work");
        let written = fs::create_dir_all(&work)
            .and_then(|()| fs::write(work.join(&request.file), experiment));
        match written.and_then(|()| self.directory.write_whole("order", &request.encode())) {
            Ok(()) => Ok(()),
            Err(why) => {
                let _ = wire::write(
                    &mut self.out,
                    FrameKind::Failed,
                    format!("the experiment cannot be written: {why}").as_bytes(),
                );
                Err(why)
            }
        }
    }

    /// Reports the state; once the run has ended, the whole bundle.
    fn report_state(&mut self) -> io::Result<()> {
        self.interrupt = self.interrupt && !self.directory.interrupt_run()?;
        if self.reported {
            return wire::write(&mut self.out, FrameKind::Alive, &[]);
        }
        // In this order: a supervisor that ends between the two has stored how the run ended.
        let supervised = self.directory.supervisor_pid()?.is_some();
        let ended =
            self.directory.read_ending().or_else(|| (!supervised).then(|| "died".to_owned()));
        self.send_messages()?;
        let Some(ended) = ended else { return wire::write(&mut self.out, FrameKind::Alive, &[]) };
        self.reported = true;
        let answer = fs::read(self.directory.file_path("answer")).unwrap_or_default();
        answer
            .chunks(64 << 10)
            .try_for_each(|chunk| wire::write(&mut self.out, FrameKind::Answer, chunk))?;
        wire::write(&mut self.out, FrameKind::Ended, ended.as_bytes())?;
        let bundle = self.directory.file_path("bundle");
        match bundle.is_dir() {
            true => files::send_files(&bundle, &mut self.out),
            false => wire::write(&mut self.out, FrameKind::BundleEnd, &[0; 16]),
        }
    }

    fn send_messages(&mut self) -> io::Result<()> {
        let Ok(mut file) = File::open(self.directory.file_path("messages")) else { return Ok(()) };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut chunk = [0; 16 << 10];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(()),
                n => {
                    self.offset += n as u64;
                    wire::write(&mut self.out, FrameKind::Message, &chunk[..n])?;
                }
            }
        }
    }
}
