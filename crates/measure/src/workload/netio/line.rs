//! The connection: a server in its own thread that answers each request with a message, and the
//! client's end of it.

use super::route::{self, Route};
use punctual_core::{Cell, Column, Policy, Priority, Table};
use punctual_plan::kinds::{NetioPlan, RequestAt, Transport};
use punctual_record::network::{NetworkShares, NetworkTime};
use punctual_sys::attributes::{self, Scheduling};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A request is a number; the answer begins with it.
pub const REQUEST: usize = 8;
/// The time for which the task waits for an answer before it checks for a stop; a datagram that has
/// not arrived by then is lost.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The interval at which the server checks for the task's end if the connection does not report it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The kernel's counts of a TCP connection (tcp(7), TCP_INFO).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpCounts {
    /// Bytes that came in order.
    pub received: u64,
}

/// The task's end, and the server.
pub struct NetworkLine {
    file: File,
    is_tcp: bool,
    is_stream: bool,
    /// System calls made so far.
    pub calls: u64,
    pub sent: u64,
    /// As `sent`.
    pub received: u64,
    pub number: u64,
    addresses: [String; 2],
    route: Option<Route>,
    pub shares: Option<NetworkShares>,
    ended: Arc<AtomicBool>,
    /// Whether the server has SCHED_FIFO.
    is_real_time: Arc<AtomicBool>,
    server: Option<JoinHandle<u64>>,
}

/// Why there is no message.
#[derive(Debug)]
pub enum NoMessage {
    /// A datagram did not come.
    Lost,
    Stopped,
    Broken(io::Error),
}

impl NetworkLine {
    /// Starts the server and connects to it. The error names the cause.
    pub fn open(plan: &NetioPlan) -> Result<NetworkLine, String> {
        // A thread of its own: making a socket in a network namespace means to be in it.
        let opened = std::thread::scope(|scope| scope.spawn(|| open_connection(plan)).join());
        let Opened { ours, theirs, addresses, route, shares } =
            opened.map_err(|_| "the connection was not made".to_owned())??;
        let (is_tcp, is_stream) =
            (plan.transport == Transport::Tcp, plan.transport != Transport::Udp);
        let ended = Arc::new(AtomicBool::new(false));
        let server = theirs.map(|theirs| NetworkServer {
            file: File::from(theirs),
            is_stream,
            answer: answer_pattern(plan.message.get() as usize),
            ended: Arc::clone(&ended),
        });
        let is_real_time = Arc::new(AtomicBool::new(false));
        let (has_begun, ahead) = (Arc::clone(&is_real_time), plan.request == RequestAt::Last);
        let body = |server: NetworkServer| {
            move || {
                let set = |policy, priority| {
                    attributes::set_scheduling(0, &Scheduling::new(policy, priority)).is_ok()
                };
                // A message requested ahead must be ready, whatever else runs: above all
                // time-sharing tasks, below all real-time tasks.
                if ahead && set(Policy::Fifo, Priority::new(1)) {
                    has_begun.store(true, Ordering::Release);
                } else {
                    // It may have the caller's real-time policy; giving that up needs no right.
                    set(Policy::Other, None);
                }
                server.serve_requests()
            }
        };
        let server = server
            .map(|server| Builder::new().name("server".into()).spawn(body(server)))
            .transpose()
            .map_err(|why| format!("no server thread: {why}"))?;
        let file = File::from(ours);
        Ok(NetworkLine {
            file,
            is_tcp,
            is_stream,
            calls: 0,
            sent: 0,
            received: 0,
            number: 0,
            addresses,
            route,
            shares,
            ended,
            is_real_time,
            server,
        })
    }

    /// Requests the next message.
    #[inline(always)]
    pub(crate) fn send_request(&mut self) -> Result<(), NoMessage> {
        self.number += 1;
        let request = self.number.to_ne_bytes();
        loop {
            self.calls += 1;
            match self.file.write(&request) {
                Ok(REQUEST) => break,
                Ok(_) => return Err(NoMessage::Broken(ErrorKind::WriteZero.into())),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(NoMessage::Broken(why)),
            }
        }
        self.sent += REQUEST as u64;
        Ok(())
    }

    /// Waits for the complete requested message.
    #[inline(always)]
    pub fn receive_message(
        &mut self,
        message: &mut [u8],
        is_stopped: impl Fn() -> bool,
    ) -> Result<(), NoMessage> {
        let mut have = 0;
        while have < message.len() {
            self.calls += 1;
            match self.file.read(&mut message[have..]) {
                Ok(0) => return Err(NoMessage::Broken(ErrorKind::UnexpectedEof.into())),
                Ok(bytes) => {
                    self.received += bytes as u64;
                    // A datagram of the previous request that came too late.
                    if self.is_stream || begins_with(message, self.number) {
                        have += bytes;
                    }
                }
                Err(why)
                    if matches!(why.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) =>
                {
                    if is_stopped() {
                        return Err(NoMessage::Stopped);
                    }
                    if !self.is_stream && why.kind() == ErrorKind::WouldBlock {
                        return Err(NoMessage::Lost);
                    }
                }
                Err(why) => return Err(NoMessage::Broken(why)),
            }
        }
        Ok(())
    }

    /// The kernel's counts for this connection; `None`: it is not TCP, or the kernel is older than
    /// 4.1.
    pub(crate) fn tcp_counts(&self) -> Option<TcpCounts> {
        // struct tcp_info (include/uapi/linux/tcp.h): eight bytes, 24 words of 32 bits, four of 64,
        // the last tcpi_bytes_received.
        const RECEIVED: usize = 8 + 24 * 4 + 3 * 8;
        let mut info = [0u8; RECEIVED + 8];
        let mut length = info.len() as libc::socklen_t;
        let to = info.as_mut_ptr().cast();
        // SAFETY: the buffer has the given length; the kernel writes no further and returns the
        // length.
        let done = unsafe {
            libc::getsockopt(
                self.file.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                to,
                &mut length,
            )
        };
        let word = info.last_chunk::<8>().map(|word| u64::from_ne_bytes(*word));
        word.filter(|_| self.is_tcp && done == 0 && length as usize == info.len())
            .map(|received| TcpCounts { received })
    }

    /// Frames of a veth pair so far: those of which `shares` know, and as both devices count them.
    pub(crate) fn frame_counts(&self) -> Option<(u64, Result<u64, String>)> {
        let (shares, route) = (self.shares.as_ref()?, self.route.as_ref()?);
        let frames_seen = || shares.totals_at(0).frames;
        let counted = || {
            let mut before = frames_seen();
            loop {
                let counted = route.sent_frames()?.map_err(|why| format!("/proc/net/dev: {why}"));
                // None was sent between the two.
                if std::mem::replace(&mut before, frames_seen()) == before {
                    return Some((before, counted));
                }
            }
        };
        std::thread::scope(|scope| scope.spawn(counted).join()).ok().flatten()
    }

    /// The network's time on all CPUs so far.
    #[inline(always)]
    pub(crate) fn network_time(&self, now: i64) -> Option<NetworkTime> {
        self.shares.as_ref().map(|shares| shares.totals_at(now))
    }

    pub(crate) fn connection_table(&self, plan: &NetioPlan) -> Table {
        let transport = match plan.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
            Transport::Unix => "Unix stream socket",
        };
        let [ours, theirs] = self.addresses.clone();
        let shown_interface = if self.route.is_some() { &plan.interface } else { "" };
        let bytes = plan.message.get().into();
        let row: Vec<Cell> =
            vec![transport.into(), ours.into(), theirs.into(), shown_interface.into(), bytes];
        let columns = ["transport", "task", "server", "interface"].map(|name| (name, ""));
        let columns = columns.into_iter().chain([("message", "bytes")]);
        Table {
            name: "connection".to_owned(),
            title: format!(
                "The connection; the server is {}",
                match (&self.server, self.is_real_time.load(Ordering::Acquire)) {
                    (None, _) => "another program",
                    (Some(_), true) => "a thread of punctual, with SCHED_FIFO 1",
                    (Some(_), false) => "a thread of punctual, with time-sharing scheduling",
                }
            ),
            columns: columns.map(|(name, unit)| Column::new(name, unit)).collect(),
            rows: vec![row],
        }
    }
}

impl Drop for NetworkLine {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // SAFETY: shutdown takes only numbers; its effect on a connection that is about to be
        // closed is intended.
        unsafe { libc::shutdown(self.file.as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(server) = self.server.take() {
            // It cannot panic; nothing could be done about it.
            let _ = server.join();
        }
    }
}

/// Both ends; there is no server's end if the server is another program.
struct Opened {
    ours: OwnedFd,
    theirs: Option<OwnedFd>,
    addresses: [String; 2],
    route: Option<Route>,
    shares: Option<NetworkShares>,
}

fn open_connection(plan: &NetioPlan) -> Result<Opened, String> {
    if plan.transport == Transport::Unix {
        let describe = |why| format!("a pair of Unix sockets: {why}");
        let (ours, theirs) = UnixStream::pair().map_err(describe)?;
        ours.set_read_timeout(Some(TIMEOUT)).map_err(describe)?;
        let addresses = ["unnamed".to_owned(), "unnamed".to_owned()];
        let (ours, theirs) = (ours.into(), Some(theirs.into()));
        return Ok(Opened { ours, theirs, addresses, route: None, shares: None });
    }
    let route = Route::from_plan(plan)?;
    let (ours, theirs, addresses) = match (plan.is_elsewhere(), plan.transport) {
        (true, _) => connect_elsewhere(plan)?,
        (_, Transport::Tcp) => connect_tcp(plan.port, &route)?,
        _ => connect_udp(plan.port, &route)?,
    };
    let shares = plan.shares.then(|| {
        let ends = route.network_ends().map_err(|why| format!("{}: {why}", plan.interface))?;
        NetworkShares::start(ends).map_err(|why| format!("`shares`: {why}"))
    });
    Ok(Opened { ours, theirs, addresses, shares: shares.transpose()?, route: Some(route) })
}

type Ends = (OwnedFd, Option<OwnedFd>, [String; 2]);

/// A connection with a server that punctual did not start, by a named interface alone.
fn connect_elsewhere(plan: &NetioPlan) -> Result<Ends, String> {
    let server = plan.server.as_deref().unwrap_or_default();
    let describe = |why: io::Error| {
        let help = match why.raw_os_error() {
            Some(libc::ENODEV) => ": there is no such interface (ip link)",
            Some(libc::EPERM) => ": kernels before 5.7 need CAP_NET_RAW to choose an interface",
            Some(libc::EINPROGRESS | libc::EAGAIN) => ": no answer within 5 s",
            _ => "",
        };
        format!("server {server} by {}: {why}{help}", plan.interface)
    };
    let to = server.parse().map_err(|_| describe(ErrorKind::InvalidInput.into()))?;
    let is_tcp = plan.transport == Transport::Tcp;
    let kind = if is_tcp { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
    let ours = route::connect_socket(kind, &plan.interface, to).map_err(describe)?;
    let (ours, address) = if is_tcp {
        let ours = TcpStream::from(ours);
        ours.set_nodelay(true).map_err(describe)?;
        ours.set_read_timeout(Some(TIMEOUT)).map_err(describe)?;
        let address = ours.local_addr().map_err(describe)?;
        (ours.into(), address)
    } else {
        let ours = UdpSocket::from(ours);
        ours.set_read_timeout(Some(TIMEOUT)).map_err(describe)?;
        let address = ours.local_addr().map_err(describe)?;
        (ours.into(), address)
    };
    Ok((ours, None, [address.to_string(), server.to_owned()]))
}

/// Why a port is unavailable, and the remedy.
fn no_port(port: u16, what: &str, route: &Route, why: &io::Error) -> String {
    let help = match why.kind() {
        ErrorKind::AddrInUse => {
            ": another program uses it: choose another `port`, or 0 for a free one"
        }
        ErrorKind::PermissionDenied => {
            ": ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one"
        }
        ErrorKind::AddrNotAvailable => ": is the loopback device up (ip link set lo up)?",
        _ => "",
    };
    format!("{what} port {port} of {}: {why}{help}", route.server)
}

fn connect_tcp(port: u16, route: &Route) -> Result<Ends, String> {
    let describe = |why: io::Error| no_port(port, "TCP", route, &why);
    route.enter_namespace(1).map_err(describe)?;
    let listener = TcpListener::bind((route.server, port)).map_err(describe)?;
    let address = listener.local_addr().map_err(describe)?;
    route.enter_namespace(0).map_err(describe)?;
    let ours = TcpStream::connect(address).map_err(describe)?;
    let our_address = ours.local_addr().map_err(describe)?;
    // Another local program may have connected first.
    let theirs = loop {
        let (theirs, peer) = listener.accept().map_err(describe)?;
        if peer == our_address {
            break theirs;
        }
    };
    for end in [&ours, &theirs] {
        end.set_nodelay(true).map_err(describe)?;
    }
    ours.set_read_timeout(Some(TIMEOUT)).map_err(describe)?;
    Ok((ours.into(), Some(theirs.into()), [our_address.to_string(), address.to_string()]))
}

fn connect_udp(port: u16, route: &Route) -> Result<Ends, String> {
    let describe = |why: io::Error| no_port(port, "UDP", route, &why);
    route.enter_namespace(1).map_err(describe)?;
    let theirs = UdpSocket::bind((route.server, port)).map_err(describe)?;
    route.enter_namespace(0).map_err(describe)?;
    let ours = UdpSocket::bind((route.task, 0)).map_err(describe)?;
    let (our_address, address) =
        (ours.local_addr().map_err(describe)?, theirs.local_addr().map_err(describe)?);
    // From then on each end accepts only datagrams of the other.
    ours.connect(address).map_err(describe)?;
    theirs.connect(our_address).map_err(describe)?;
    ours.set_read_timeout(Some(TIMEOUT)).map_err(describe)?;
    theirs.set_read_timeout(Some(POLL_INTERVAL)).map_err(describe)?;
    Ok((ours.into(), Some(theirs.into()), [our_address.to_string(), address.to_string()]))
}

/// The content of every answer after its number.
pub(crate) fn answer_pattern(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Puts the number of a request at the beginning of its answer.
pub(crate) fn number_answer(answer: &mut [u8], number: u64) {
    answer.iter_mut().zip(number.to_ne_bytes()).for_each(|(place, byte)| *place = byte);
}

fn begins_with(answer: &[u8], number: u64) -> bool {
    answer.iter().zip(number.to_ne_bytes()).all(|(have, wanted)| *have == wanted)
}

struct NetworkServer {
    file: File,
    is_stream: bool,
    answer: Vec<u8>,
    ended: Arc<AtomicBool>,
}

impl NetworkServer {
    /// Answers until the task has ended; returns the number of answers.
    fn serve_requests(mut self) -> u64 {
        let mut answered = 0;
        let mut request = [0; REQUEST];
        loop {
            let request_read = if self.is_stream {
                self.file.read_exact(&mut request).map(|()| true)
            } else {
                self.file.read(&mut request).map(|bytes| bytes == REQUEST)
            };
            let done = match request_read {
                Ok(true) => {
                    number_answer(&mut self.answer, u64::from_ne_bytes(request));
                    if self.is_stream {
                        self.file.write_all(&self.answer)
                    } else {
                        self.file.write(&self.answer).map(drop)
                    }
                }
                Ok(false) => Ok(()),
                Err(why) => Err(why),
            };
            answered += u64::from(done.is_ok());
            // A refused or missing datagram is ignored; a broken connection is the end.
            if self.ended.load(Ordering::Acquire) || (done.is_err() && self.is_stream) {
                return answered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_complete_over_every_transport() {
        for (transport, message) in [
            (Transport::Tcp, 100_000),
            (Transport::Udp, 65_507),
            (Transport::Unix, 1 << 20),
            (Transport::Tcp, 3),
            (Transport::Udp, 1),
        ] {
            let plan = NetioPlan {
                transport,
                message: punctual_core::Bytes(message as u64),
                ..NetioPlan::default()
            };
            let mut line = NetworkLine::open(&plan).unwrap();
            let mut bytes = vec![0; message];
            let mut expected = answer_pattern(message);
            for round in 1..=5 {
                line.send_request().unwrap();
                line.receive_message(&mut bytes, || false).unwrap();
                number_answer(&mut expected, round);
                assert!(bytes == expected, "{transport:?} {message}");
            }
            assert_eq!((line.sent, line.received), (40, 5 * message as u64));
            let counted = line.tcp_counts().map(|counts| counts.received);
            assert_eq!(counted, (transport == Transport::Tcp).then_some(line.received));
        }
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let plan = NetioPlan { port, ..NetioPlan::default() };
        let why = NetworkLine::open(&plan).err().unwrap();
        assert!(
            why.contains(&port.to_string()) && why.contains("another program uses it"),
            "{why}"
        );
    }
}
