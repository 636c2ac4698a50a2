//! Processes and threads by name, so that threads that only appear in switches are not mere
//! numbers.

use super::packets::PacketWriter;
use punctual_core::event::TaskName;
use punctual_core::{Names, Tid};
use std::collections::BTreeSet;
use std::io;

const AT_ONCE: usize = 1_000;

pub fn write(packets: &mut PacketWriter<'_>, names: &Names) -> io::Result<()> {
    let known: Vec<(&Tid, &TaskName)> =
        names.tasks.iter().filter(|(tid, _)| **tid != Tid::IDLE).collect();
    let processes: BTreeSet<u32> = known.iter().map(|(_, task)| task.process).collect();
    let processes: Vec<u32> = processes.into_iter().collect();
    for some in processes.chunks(AT_ONCE) {
        packets.packet(|packet| {
            packet.message(2, |tree| {
                for process in some {
                    tree.message(1, |entry| {
                        entry.uint(1, u64::from(*process)).uint(2, 0);
                        if let Some(task) = names.tasks.get(&Tid(*process)) {
                            entry.text(3, &task.comm).uint(9, 1);
                        }
                    });
                }
            });
        })?;
    }
    for some in known.chunks(AT_ONCE) {
        packets.packet(|packet| {
            packet.message(2, |tree| {
                for (tid, task) in some {
                    tree.message(2, |entry| {
                        entry
                            .uint(1, tid.0.into())
                            .uint(3, task.process.into())
                            .text(2, &task.comm);
                    });
                }
            });
        })?;
    }
    Ok(())
}
