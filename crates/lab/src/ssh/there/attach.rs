//! The process at the end of a connection: tells how the run stands, passes on what is asked, hands the bundle over.

use super::super::files;
use super::super::wire::{self, Frame, GREETING, Kind};
use super::{Order, Place, remove};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between looks at the files: each wakes a CPU of the system that is being measured.
const LOOK: Duration = Duration::from_millis(500);
/// Between notes that somebody is connected.
const TOUCH: Duration = Duration::from_secs(20);

/// Serves until the connection ends or the bundle has been fetched; messages before `offset` are known over here.
pub fn attach(place: &Place, offset: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(GREETING)?;
    out.flush()?;
    place.touch()?;
    let (send, asked) = mpsc::channel();
    std::thread::spawn(move || {
        let mut from = io::stdin().lock();
        while let Ok(Some(frame)) = wire::read(&mut from) {
            if send.send(frame).is_err() {
                return;
            }
        }
    });
    let mut end = End { place, out, offset, order: None, interrupt: false, told: false };
    let mut touched = Instant::now();
    loop {
        match asked.recv_timeout(LOOK) {
            Ok(frame) if frame.kind == Kind::Fetched => {
                remove::remove(place)?;
                return wire::write(&mut end.out, Kind::Gone, &[]);
            }
            Ok(frame) => end.serve(frame)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return place.touch(),
        }
        end.tell()?;
        if touched.elapsed() > TOUCH {
            place.touch()?;
            touched = Instant::now();
        }
    }
}

struct End<'a, W> {
    place: &'a Place,
    out: W,
    offset: u64,
    order: Option<Order>,
    /// The run is to be interrupted, as soon as there is one.
    interrupt: bool,
    told: bool,
}

impl<W: Write> End<'_, W> {
    fn serve(&mut self, frame: Frame) -> io::Result<()> {
        match frame.kind {
            Kind::Order => self.order = Some(Order::decode(&frame.payload)?),
            Kind::Experiment => self.begin(&frame.payload)?,
            Kind::Interrupt => self.interrupt = true,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame that belongs to the other direction")),
        }
        Ok(())
    }

    /// The order is complete: the supervisor waits for it. After a reconnection it comes again.
    fn begin(&mut self, experiment: &[u8]) -> io::Result<()> {
        let Some(order) = self.order.take() else { return Ok(()) };
        if self.place.file("order").exists() {
            return Ok(());
        }
        let work = self.place.file("work");
        let written = fs::create_dir_all(&work).and_then(|()| fs::write(work.join(&order.file), experiment));
        match written.and_then(|()| self.place.write_whole("order", &order.encode())) {
            Ok(()) => Ok(()),
            Err(why) => {
                let _ = wire::write(
                    &mut self.out,
                    Kind::Failed,
                    format!("the experiment cannot be written: {why}").as_bytes(),
                );
                Err(why)
            }
        }
    }

    /// How things stand; all of the bundle, once, when the run has ended.
    fn tell(&mut self) -> io::Result<()> {
        self.interrupt = self.interrupt && !self.place.interrupt()?;
        if self.told {
            return wire::write(&mut self.out, Kind::Alive, &[]);
        }
        // In this order: a supervisor that ends between the two has written how the run ended.
        let supervised = self.place.supervisor()?.is_some();
        let ended = self.place.ended().or_else(|| (!supervised).then(|| "died".to_owned()));
        self.messages()?;
        let Some(ended) = ended else { return wire::write(&mut self.out, Kind::Alive, &[]) };
        self.told = true;
        let answer = fs::read(self.place.file("answer")).unwrap_or_default();
        answer.chunks(64 << 10).try_for_each(|chunk| wire::write(&mut self.out, Kind::Answer, chunk))?;
        wire::write(&mut self.out, Kind::Ended, ended.as_bytes())?;
        let bundle = self.place.file("bundle");
        match bundle.is_dir() {
            true => files::send(&bundle, &mut self.out),
            false => wire::write(&mut self.out, Kind::BundleEnd, &[0; 16]),
        }
    }

    fn messages(&mut self) -> io::Result<()> {
        let Ok(mut file) = File::open(self.place.file("messages")) else { return Ok(()) };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut chunk = [0; 16 << 10];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(()),
                n => {
                    self.offset += n as u64;
                    wire::write(&mut self.out, Kind::Message, &chunk[..n])?;
                }
            }
        }
    }
}
