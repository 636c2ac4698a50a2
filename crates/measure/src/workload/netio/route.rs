//! The way of the data: the loopback device, a veth pair between two network namespaces of its own,
//! or a named interface with a server elsewhere.
//!
//! A namespace lives as long as its sockets: however punctual ends, the pair goes with it, and the
//! network of the host is never changed.

use punctual_plan::kinds::NetioPlan;
use punctual_record::network::NetworkEnd;
use punctual_sys::check_result;
use punctual_sys::descriptor::own_descriptor;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Network for tests between two devices (RFC 2544); only the two namespaces see it.
const TASK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Both ends are called so, each in its namespace.
const END: &str = "punctual";
const SPACE: &str = "/proc/thread-self/ns/net";

/// linux/if_link.h, linux/veth.h.
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// Where both ends are.
pub struct Route {
    pub task: Ipv4Addr,
    pub server: Ipv4Addr,
    /// The namespaces of task and server.
    spaces: Option<[File; 2]>,
    /// The interface of the task.
    pub interface: String,
}

impl Route {
    /// Makes the way of a plan. A thread that calls this for a veth pair is of another network
    /// namespace from then on.
    pub fn from_plan(plan: &NetioPlan) -> Result<Route, String> {
        let local_route = |interface: &str| Route {
            task: Ipv4Addr::LOCALHOST,
            server: Ipv4Addr::LOCALHOST,
            spaces: None,
            interface: interface.to_owned(),
        };
        match plan.interface.as_str() {
            "veth" => create_veth().map_err(|why| {
                let help = match why.kind() {
                    io::ErrorKind::PermissionDenied => ": it needs CAP_SYS_ADMIN (root)",
                    io::ErrorKind::Unsupported => ": the kernel has no veth (modprobe veth)",
                    _ => "",
                };
                format!("a veth pair in network namespaces of its own: {why}{help}")
            }),
            name => Ok(local_route(name)),
        }
    }

    /// The calling thread makes sockets at this end from now on: 0, of the task; 1, of the server.
    pub(crate) fn enter_namespace(&self, end: usize) -> io::Result<()> {
        let Some(space) = self.spaces.as_ref().and_then(|spaces| spaces.get(end)) else {
            return Ok(());
        };
        // SAFETY: takes a descriptor that is open and a number.
        check_result(unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
    }

    /// The interfaces whose driver sends.
    pub(crate) fn network_ends(&self) -> io::Result<[NetworkEnd; 2]> {
        let mut ends = [NetworkEnd::default(); 2];
        let used_ends = ends.iter_mut().take(if self.spaces.is_some() { 2 } else { 1 });
        used_ends.enumerate().try_for_each(|(number, end)| {
            self.enter_namespace(number)?;
            let space = std::fs::metadata(SPACE)?.ino() as u32;
            *end = NetworkEnd { index: index(&self.interface)?, space };
            Ok::<(), io::Error>(())
        })?;
        Ok(ends)
    }

    /// The frames that both ends of a veth pair have sent, by /proc/net/dev; `None` if this is
    /// none. Changes the calling thread's namespace.
    pub(crate) fn sent_frames(&self) -> Option<io::Result<u64>> {
        self.spaces.as_ref()?;
        let sent = |end| {
            self.enter_namespace(end)?;
            let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
            let line = text.lines().find_map(|line| {
                line.trim_start().strip_prefix(&self.interface)?.strip_prefix(':')
            });
            // Eight columns of what was received, then bytes and frames sent.
            let field = line.and_then(|line| line.split_whitespace().nth(9)?.parse::<u64>().ok());
            field.ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        Some(sent(0).and_then(|task| Ok(task + sent(1)?)))
    }
}

fn index(interface: &str) -> io::Result<u32> {
    let name = CString::new(interface)?;
    // SAFETY: the name ends with a NUL.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The calling thread is alone in a new network namespace.
fn new_space() -> io::Result<File> {
    // SAFETY: takes a number.
    check_result(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    File::open(SPACE)
}

fn create_veth() -> io::Result<Route> {
    let spaces = [new_space()?, new_space()?];
    let peer_space = spaces[0].as_raw_fd().to_ne_bytes();
    let name = encode_attribute(IFLA_IFNAME, format!("{END}\0").as_bytes());
    let peer = [vec![0; 16], name.clone(), encode_attribute(IFLA_NET_NS_FD, &peer_space)].concat();
    let data = encode_attribute(IFLA_INFO_DATA, &encode_attribute(VETH_INFO_PEER, &peer));
    let info = [encode_attribute(IFLA_INFO_KIND, b"veth\0"), data].concat();
    // `struct ifinfomsg` of zeroes: a new link.
    new_link(&[vec![0; 16], name, encode_attribute(IFLA_LINKINFO, &info)].concat())?;
    let route =
        Route { task: TASK, server: SERVER, spaces: Some(spaces), interface: END.to_owned() };
    for (end, address) in [(1, SERVER), (0, TASK)] {
        route.enter_namespace(end)?;
        raise_interface(END, address)?;
    }
    Ok(route)
}

/// `struct nlattr` with its content, padded.
fn encode_attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = ((content.len() + 4) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// RTM_NEWLINK (rtnetlink(7)).
fn new_link(content: &[u8]) -> io::Result<()> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers alone, and makes a descriptor.
    let socket =
        unsafe { own_descriptor(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)) }?;
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut bytes = ((content.len() + 16) as u32).to_ne_bytes().to_vec();
    bytes.extend(libc::RTM_NEWLINK.to_ne_bytes());
    bytes.extend((flags as u16).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(content);
    let mut answer = [0u8; 4096];
    // SAFETY: the bytes are as long as stated.
    let length = unsafe {
        check_result(libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) as i64)?;
        check_result(
            libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) as i64
        )?
    };
    // `struct nlmsghdr`, then `struct nlmsgerr` with the negative errno.
    let errno = answer[..length as usize].get(16..20).and_then(|word| word.first_chunk::<4>());
    match errno.map(|word| -i32::from_ne_bytes(*word)) {
        Some(0) => Ok(()),
        Some(libc::EOPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Gives an interface its address in a network of 30 bits and switches it on (netdevice(7)).
fn raise_interface(interface: &str, address: Ipv4Addr) -> io::Result<()> {
    let socket = open_socket(libc::SOCK_DGRAM)?;
    let set = |request, fill: &dyn Fn(&mut libc::ifreq)| {
        // SAFETY: integers and arrays alone; zeroes are valid.
        let mut wanted: libc::ifreq = unsafe { std::mem::zeroed() };
        let name = wanted.ifr_name.iter_mut().zip(interface.bytes());
        name.for_each(|(to, byte)| *to = byte as libc::c_char);
        fill(&mut wanted);
        // SAFETY: the structure is that of these requests, and longer-lived than the call.
        check_result(unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut wanted) })
    };
    let fill_address = |address: Ipv4Addr| {
        move |wanted: &mut libc::ifreq| {
            let place = (&raw mut wanted.ifr_ifru.ifru_addr).cast::<libc::sockaddr_in>();
            // SAFETY: both are addresses of 16 bytes; it may be less aligned than its new type.
            unsafe { place.write_unaligned(to_sockaddr(SocketAddrV4::new(address, 0))) };
        }
    };
    set(libc::SIOCSIFADDR, &fill_address(address))?;
    set(libc::SIOCSIFNETMASK, &fill_address(Ipv4Addr::new(255, 255, 255, 252)))?;
    set(libc::SIOCSIFFLAGS, &|wanted| wanted.ifr_ifru.ifru_flags = libc::IFF_UP as i16)?;
    Ok(())
}

fn open_socket(kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers alone, and makes a descriptor.
    unsafe { own_descriptor(libc::socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC, 0)) }
}

fn to_sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: integers alone; zeroes are valid.
    let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    raw.sin_family = libc::AF_INET as libc::sa_family_t;
    raw.sin_port = address.port().to_be();
    raw.sin_addr.s_addr = u32::from(*address.ip()).to_be();
    raw
}

/// A socket of this kind that sends and receives by this interface alone, connected within a few
/// seconds.
pub(super) fn connect_socket(
    kind: libc::c_int,
    interface: &str,
    to: SocketAddrV4,
) -> io::Result<OwnedFd> {
    let limit = libc::timeval { tv_sec: 5, tv_usec: 0 };
    let (socket, to) = (open_socket(kind)?, to_sockaddr(to));
    let set = |option, value: *const libc::c_void, length| {
        let length = length as libc::socklen_t;
        // SAFETY: the value is as long as stated.
        check_result(unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
        })
    };
    set(libc::SO_BINDTODEVICE, interface.as_ptr().cast(), interface.len())?;
    set(libc::SO_SNDTIMEO, (&raw const limit).cast(), size_of_val(&limit))?;
    let length = size_of_val(&to) as libc::socklen_t;
    // SAFETY: an address of the stated length.
    check_result(unsafe { libc::connect(socket.as_raw_fd(), (&raw const to).cast(), length) })?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_their_length_and_are_padded() {
        assert_eq!(encode_attribute(3, b"ab\0"), [&[7, 0, 3, 0][..], b"ab\0\0"].concat());
    }
}
