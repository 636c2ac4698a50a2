//! `self-ipi`: an interrupt that the CPU sends to itself. A BPF program submits to a ring buffer
//! with a wake-up, which the kernel defers to such an interrupt (irq_work, kernel/bpf/ringbuf.c);
//! the thread that polls the ring buffer is woken.

use super::raiser::AwaitableInterrupt;
use punctual_record::interrupt::InterruptStamps;
use punctual_sys::descriptor::poll_readable;
use std::io;
use std::sync::Arc;

pub(crate) struct DoorbellIrq(pub Arc<InterruptStamps>);

impl AwaitableInterrupt for DoorbellIrq {
    #[inline(always)]
    fn raise_interrupt(&self) -> io::Result<()> {
        self.0.raise_interrupt()
    }
    fn raise_time(&self) -> Option<i64> {
        Some(self.0.raised_at())
    }
    #[inline(always)]
    fn await_interrupt(&self) -> io::Result<bool> {
        let Some(ring) = self.0.doorbell_fd() else { return Ok(false) };
        poll_readable([ring], -1).map(|[rang]| rang)
    }
    fn rearm(&self) -> io::Result<()> {
        self.0.clear_doorbell();
        Ok(())
    }
}
