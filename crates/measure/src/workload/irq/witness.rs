//! A witness outside of this machine's clock: Zephyr's latmon on another board, which raises the
//! watched line, times the answer on the driven one, and reports over TCP as to latmus
//! (subsys/net/lib/latmon/latmon.c of Zephyr, libevl's latmus).

use punctual_core::{Fact, Figure, Nanos, Tolerance, Validation};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const PORT: u16 = 2306;
/// Cells of 1 µs; the last one also has what is longer. The maximum of latmon.
const CELLS: usize = 1_000;
/// The maximum time between two messages of latmon, as latmus has it.
const SILENCE: Duration = Duration::from_secs(5);

/// Responses as the witness timed them, in ns of its own clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witnessed {
    samples: u64,
    sum: u64,
    min: u32,
    max: u32,
    /// Periods that an answer was longer than, and pulses without one.
    overruns: u64,
    /// All pulses that were answered, those of the first second included, which `samples` has not.
    cells: Vec<u32>,
}

type WitnessReader = JoinHandle<io::Result<Witnessed>>;

/// A connection to latmon.
pub struct Witness {
    address: String,
    stream: TcpStream,
    reader: Mutex<Option<WitnessReader>>,
}

impl Witness {
    /// Connects, and waits for what it sends in a thread of its own.
    pub fn connect(address: &str) -> Result<Witness, String> {
        let failed = |why: io::Error| format!("latmon at {address}: {why}");
        // A static program looks up no names.
        let with_port = || address.parse().map(|address: IpAddr| (address, PORT).into());
        let to: SocketAddr = address.parse().or_else(|_| with_port()).map_err(|_| {
            format!("latmon at {address}: this is no address, as 192.168.1.5 or 192.168.1.5:2306")
        })?;
        let stream = TcpStream::connect_timeout(&to, SILENCE).map_err(failed)?;
        let from = stream.try_clone().map_err(failed)?;
        let reader = Builder::new().name("witness".into()).spawn(move || read(from));
        let reader = Mutex::new(Some(reader.map_err(failed)?));
        Ok(Witness { address: address.to_owned(), stream, reader })
    }

    /// Has it raise the line from now on.
    pub(crate) fn start_pulses(&self, period: Nanos) -> io::Result<()> {
        self.send_request((period.ns() / 1_000) as u32, CELLS as u32)
    }

    /// Has it end, and returns what it saw.
    pub(crate) fn end_pulses(&self) -> io::Result<Witnessed> {
        let failed = |why: io::Error| io::Error::other(format!("latmon {}: {why}", self.address));
        // A period of 0: nothing more is raised, the rest is sent.
        self.send_request(0, 0).map_err(failed)?;
        self.stream.set_read_timeout(Some(SILENCE)).map_err(failed)?;
        let reader = self.reader.lock().ok().and_then(|mut reader| reader.take());
        let witnessed = reader.and_then(|reader| reader.join().ok());
        witnessed.unwrap_or_else(|| Err(io::Error::other("it has ended"))).map_err(failed)
    }

    fn send_request(&self, period_us: u32, cells: u32) -> io::Result<()> {
        let mut request = [0; 8];
        request[..4].copy_from_slice(&period_us.to_be_bytes());
        request[4..].copy_from_slice(&cells.to_be_bytes());
        (&self.stream).write_all(&request)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // Ends the reader, if it still waits.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Six numbers for each second; then six without samples, and the histogram.
fn read(mut from: impl Read) -> io::Result<Witnessed> {
    let empty_result =
        Witnessed { samples: 0, sum: 0, min: u32::MAX, max: 0, overruns: 0, cells: vec![] };
    let mut result = empty_result;
    loop {
        let mut numbers = [0; 24];
        from.read_exact(&mut numbers)?;
        let [high, low, min, max, overruns, samples] = from_network(&numbers);
        result.overruns += u64::from(overruns);
        if samples == 0 {
            break;
        }
        result.samples += u64::from(samples);
        result.sum = result.sum.saturating_add(u64::from(high) << 32 | u64::from(low));
        (result.min, result.max) = (result.min.min(min), result.max.max(max));
    }
    let mut cells = [0; 4 * CELLS];
    from.read_exact(&mut cells)?;
    result.cells = from_network::<CELLS>(&cells).to_vec();
    Ok(result)
}

fn from_network<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
        *number = bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    }
    numbers
}

impl Witnessed {
    /// Pulses that were answered.
    fn answered_count(&self) -> u64 {
        self.cells.iter().map(|count| u64::from(*count)).sum()
    }

    /// The figures of its clock.
    pub(crate) fn clock_figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let mut figure = |name: &str, title: &str, value: f64, unit, count| {
            let figure = Figure::new(&format!("witness-{name}"), title, value, unit);
            figures.push(Figure { count: Some(count), ..figure });
        };
        if self.samples > 0 {
            let mean = self.sum as f64 / self.samples as f64;
            for (name, value) in
                [("min", self.min.into()), ("mean", mean), ("max", f64::from(self.max))]
            {
                let title = format!("from pulse to answer by the witness's clock, {name}");
                figure(name, &title, value, "ns", self.samples);
            }
        }
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            if let Some(cell) = self.quantile_cell(share) {
                let title = format!("the same with its first second, at most, {name}");
                figure(name, &title, (cell + 1) as f64 * 1_000.0, "ns", self.answered_count());
            }
        }
        let title = "periods that passed without an answer, by the witness";
        figure("overruns", title, self.overruns as f64, "count", self.answered_count());
        figures
    }

    /// The cell of a quantile; `None`: there is none, or it is the last one, which has no end.
    fn quantile_cell(&self, share: f64) -> Option<usize> {
        let rank = (share * self.answered_count() as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let of_rank = |count: &u32| {
            sum += u64::from(*count);
            sum >= rank
        };
        self.cells.iter().position(of_rank).filter(|cell| cell + 1 < CELLS)
    }

    /// Its count against that of the thread that answered.
    pub(crate) fn validate_count(&self, taken: u64) -> Validation {
        let tolerance = Tolerance::EXACT.allow_either(1, "one may be in flight at the end");
        let source = "the witness's histogram";
        let what = "pulses that were answered";
        Validation::compare_counts(
            what,
            taken,
            Fact::Known(self.answered_count()),
            source,
            tolerance,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What latmon sends: two seconds, a rest, the end, 1,000 cells.
    #[test]
    fn what_latmon_sends_is_added_up() {
        let mut bytes = Vec::new();
        for numbers in [
            [0, 3_000_000, 900, 4_000, 0, 1_000],
            [1, 0, 800, 2_500_000, 2, 999],
            [0, 7_000, 7_000, 7_000, 1, 1],
            [0, 0, u32::MAX, 0, 1, 0],
        ] {
            bytes.extend(numbers.iter().flat_map(|number: &u32| number.to_be_bytes()));
        }
        let mut cells = [0_u32; CELLS];
        (cells[0], cells[2], cells[7], cells[999]) = (10, 2_500, 489, 1);
        bytes.extend(cells.iter().flat_map(|count| count.to_be_bytes()));
        let seen = read(&bytes[..]).unwrap();
        assert_eq!((seen.samples, seen.min, seen.max, seen.overruns), (2_000, 800, 2_500_000, 4));
        assert_eq!(seen.sum, 3_000_000 + (1 << 32) + 7_000);
        assert_eq!((seen.quantile_cell(0.5), seen.quantile_cell(0.99)), (Some(2), Some(7)));
        assert_eq!(seen.quantile_cell(1.0), None, "the last cell has no end");
        assert_eq!(seen.validate_count(3_000).agrees, Some(true));
        assert_eq!(seen.validate_count(3_002).agrees, Some(false));
        let figures = seen.clock_figures();
        let p99 = figures.iter().find(|figure| figure.name == "witness-p99").unwrap();
        assert_eq!((p99.value, p99.count), (8_000.0, Some(3_000)));
        assert!(read(&bytes[..bytes.len() - 1]).is_err());
    }
}
