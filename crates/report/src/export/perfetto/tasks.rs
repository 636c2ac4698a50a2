//! Processes and threads by name, so that threads that only appear in switches are not mere
//! numbers.

use super::packets::PacketWriter;
use punctual_core::event::TaskName;
use punctual_core::{Names, Tid};
use std::collections::BTreeSet;
use std::io;

const AT_ONCE: usize = 1_000;

pub fn write(packets: &mut PacketWriter<'_>, names: &Names) -> io::Result<()> {
    let named_tasks: Vec<(&Tid, &TaskName)> =
        names.tasks.iter().filter(|(tid, _)| **tid != Tid::IDLE).collect();
    let processes: BTreeSet<u32> = named_tasks.iter().map(|(_, task)| task.process).collect();
    let processes: Vec<u32> = processes.into_iter().collect();
    for some in processes.chunks(AT_ONCE) {
        packets.write_packet(|packet| {
            packet.write_message(2, |tree| {
                for process in some {
                    tree.write_message(1, |entry| {
                        entry.write_uint(1, u64::from(*process)).write_uint(2, 0);
                        if let Some(task) = names.tasks.get(&Tid(*process)) {
                            entry.write_text(3, &task.comm).write_uint(9, 1);
                        }
                    });
                }
            });
        })?;
    }
    for some in named_tasks.chunks(AT_ONCE) {
        packets.write_packet(|packet| {
            packet.write_message(2, |tree| {
                for (tid, task) in some {
                    tree.write_message(2, |entry| {
                        entry
                            .write_uint(1, tid.0.into())
                            .write_uint(3, task.process.into())
                            .write_text(2, &task.comm);
                    });
                }
            });
        })?;
    }
    Ok(())
}
