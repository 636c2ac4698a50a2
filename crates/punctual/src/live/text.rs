//! Text of a live view, written by a thread of its own: a terminal may be stopped, and a pipe may
//! not be read.

use punctual_session::frames::FrameWriter;
use std::time::Duration;

/// How long the end waits for the last frame: at 9600 baud a full screen takes two seconds.
pub const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Frames of text.
pub struct TextFrames {
    write: fn(&str),
    writer: Option<FrameWriter<String>>,
}

impl TextFrames {
    pub fn new(write: fn(&str)) -> TextFrames {
        TextFrames { write, writer: None }
    }

    /// Shows this text next. The first call starts the thread, on the CPUs of the calling one.
    pub fn show_text(&mut self, text: String) {
        if self.writer.is_none() {
            let write = self.write;
            self.writer = FrameWriter::start(move |text: String| write(&text)).ok();
        }
        if let Some(writer) = &self.writer {
            writer.put_frame(text);
        }
    }

    /// Waits until the last frame is shown.
    pub fn finish(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.finish(END_TIMEOUT);
        }
    }
}
