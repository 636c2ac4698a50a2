//! A process that exists, with its id, but has not executed its program yet: a tracer of its first
//! instruction can be prepared meanwhile.

use std::io::{self, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, sync_channel};

/// A process that waits before its exec.
pub struct GatedProcess {
    pub pid: u32,
    open: PipeWriter,
    spawned: Receiver<io::Result<Child>>,
}

impl GatedProcess {
    /// Creates the process. It is a copy of this one until [`GatedProcess::release_gate`]; if it is
    /// dropped instead, it ends.
    pub fn start(mut command: Command) -> io::Result<GatedProcess> {
        let (gate_read, gate_write) = pipe()?;
        let (mut said_read, said_write) = pipe()?;
        let (gate, said, kept) =
            (gate_read.as_raw_fd(), said_write.as_raw_fd(), gate_write.as_raw_fd());
        let wait = move || {
            let mut byte = [0u8];
            // SAFETY: between fork and exec only async-signal-safe calls are made
            // (signal-safety(7)), on descriptors that are open and memory on the stack. The child
            // closes its own copy of the gate's other end; otherwise it would never see that end
            // close.
            let answer = unsafe {
                libc::close(kept);
                let pid = libc::getpid().to_ne_bytes();
                libc::write(said, pid.as_ptr().cast(), pid.len());
                libc::read(gate, byte.as_mut_ptr().cast(), 1)
            };
            match answer {
                1 => Ok(()),
                0 => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: see above; the closure owns nothing that would have to be dropped.
        unsafe { command.pre_exec(wait) };
        // `spawn` returns when the program has begun, so it needs its own thread. The thread lives
        // as long as this process: a child may be killed with the thread that created it.
        let (answer, spawned) = sync_channel(1);
        std::thread::Builder::new().name("punctual-gate".to_owned()).spawn(move || {
            let child = command.spawn();
            drop((gate_read, said_write));
            let began = child.is_ok();
            let _ = answer.send(child);
            if began {
                loop {
                    std::thread::park();
                }
            }
        })?;
        let mut pid = [0; 4];
        match said_read.read_exact(&mut pid) {
            Ok(()) => Ok(GatedProcess { pid: u32::from_ne_bytes(pid), open: gate_write, spawned }),
            // It could not even be forked: the error of `spawn` is the reason.
            Err(_) => Err(receive_child(spawned)
                .err()
                .unwrap_or_else(|| io::Error::other("the new process reported nothing"))),
        }
    }

    /// Lets it begin.
    ///
    /// # Errors
    /// The program cannot be executed.
    pub fn release_gate(mut self) -> io::Result<Child> {
        self.open.write_all(&[1])?;
        receive_child(self.spawned)
    }
}

fn receive_child(spawned: Receiver<io::Result<Child>>) -> io::Result<Child> {
    spawned.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it died")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn name(pid: u32) -> String {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
    }

    #[test]
    fn a_gated_process_has_its_pid_before_exec() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::null());
        let gated = GatedProcess::start(command).unwrap();
        let pid = gated.pid;
        assert_ne!(name(pid), "cat\n");
        let mut child = gated.release_gate().unwrap();
        assert_eq!(child.id(), pid);
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn exec_errors_of_a_gated_process_are_reported_on_release() {
        let gated = GatedProcess::start(Command::new("/no/such/program")).unwrap();
        assert_eq!(gated.release_gate().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_abandoned_gated_process_ends() {
        let gated = GatedProcess::start(Command::new("cat")).unwrap();
        let GatedProcess { pid, open, spawned } = gated;
        drop(open);
        assert_eq!(receive_child(spawned).unwrap_err().raw_os_error(), Some(libc::ECANCELED));
        assert_eq!(name(pid), "");
    }
}
