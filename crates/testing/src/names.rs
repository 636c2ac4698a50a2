//! The names of the numbers in events, as text.

use punctual_core::event::{FunctionName, TaskName, Tid};
use punctual_core::{Names, Nanos};

/// The names of a text, one on a line or between semicolons: the kind of the number, the number,
/// and the name. Points and functions are numbered from 0, a function has the name of its file, and
/// a task its process.
///
/// ```
/// let names = punctual_testing::parse_names(
///     "task 7 in 7 control SCHED_FIFO 80; syscall 230 clock_nanosleep; point cycle
///     idle_latency 1 2000; function /usr/bin/control parse(char const*)",
/// );
/// assert_eq!((names.points.len(), names.syscalls[&230].as_str()), (1, "clock_nanosleep"));
/// ```
///
/// # Panics
/// A line is none of a name.
pub fn parse_names(text: &str) -> Names {
    let mut names = Names::default();
    for line in text.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, rest) = line.split_once(' ').expect(line);
        let (key, name) = rest.split_once(' ').unwrap_or((rest, rest));
        let number = |text: &str| text.parse::<u32>().expect(line);
        match kind {
            "task" => {
                let (process, comm) = name[3..].split_once(' ').expect(line);
                let (comm, scheduling) = match comm.find(" SCHED_") {
                    Some(end) => (&comm[..end], Some(comm[end + 1..].to_owned())),
                    None => (comm, None),
                };
                let (process, comm) = (number(process), comm.to_owned());
                names.tasks.insert(Tid(number(key)), TaskName { process, comm, scheduling });
            }
            "irq" => _ = names.irqs.insert(number(key), name.to_owned()),
            "vector" => _ = names.vectors.insert(number(key) as u8, name.to_owned()),
            "softirq" => _ = names.softirqs.insert(number(key) as u8, name.to_owned()),
            "syscall" => _ = names.syscalls.insert(number(key), name.to_owned()),
            "device" => _ = names.devices.insert(number(key), name.to_owned()),
            "idle_state" => _ = names.idle_states.insert(number(key), name.to_owned()),
            "idle_latency" => {
                let latency = Nanos(name.parse().expect(line));
                names.idle_latencies.insert(number(key), latency);
            }
            "point" => names.points.push(rest.to_owned()),
            "function" => names.functions.push(FunctionName {
                name: name.to_owned(),
                object: key.to_owned(),
                offset: 0x1000,
                site: "push".to_owned(),
            }),
            _ => panic!("no name: {line}"),
        }
    }
    names
}
