//! Owners of the Unix sockets of this network namespace, by sock_diag(7) since Linux 5.3:
//! /proc/net/unix has no owners.

use crate::check_result;
use crate::descriptor::own_descriptor;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The users by the sockets' inodes; `None` where the kernel is too old for an answer.
pub type Owners = BTreeMap<u32, Option<u32>>;

/// linux/sock_diag.h, linux/unix_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UDIAG_SHOW_UID: u32 = 0x40;
const UNIX_DIAG_UID: u16 = 7;
/// `struct nlmsghdr`, `struct unix_diag_msg`, `struct nlattr`.
const HEADER: usize = 16;
const SOCKET: usize = 16;
const ATTRIBUTE: usize = 4;
/// More than the kernel puts into one datagram of an answer.
const BUFFER: usize = 64 << 10;

/// The owners of all sockets. Always of all: kernels from 5.3 to 6.0 crash where the owner of a
/// single one is asked for (Linux commit b3abe42e9490).
///
/// # Errors
/// The kernel lacks unix_diag, or refuses to answer.
pub fn read() -> io::Result<Owners> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers alone, and makes a descriptor.
    let socket =
        unsafe { own_descriptor(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG)) }?;
    let request = build_request();
    // SAFETY: the bytes are as long as stated.
    check_result(unsafe {
        libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) as i64
    })?;
    let (mut owners, mut buffer) = (Owners::new(), vec![0; BUFFER]);
    while !add(receive_message(&socket, &mut buffer)?, &mut owners)? {}
    Ok(owners)
}

fn receive_message<'b>(socket: &OwnedFd, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    // SAFETY: the buffer is as long as stated.
    let length = check_result(unsafe {
        libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_TRUNC)
            as i64
    })?;
    buffer.get(..length as usize).ok_or_else(malformed_answer)
}

fn build_request() -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut bytes = Vec::new();
    bytes.extend(40_u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    // Sockets in all states, with any inode, and of each its user.
    [u32::MAX, 0, UDIAG_SHOW_UID, 0, 0].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
    bytes
}

/// Takes the messages of a datagram; whether the answer is complete.
fn add(mut bytes: &[u8], owners: &mut Owners) -> io::Result<bool> {
    if bytes.is_empty() {
        return Err(malformed_answer());
    }
    while !bytes.is_empty() {
        let length = read_u32(bytes, 0)? as usize;
        let body = bytes.get(HEADER..length).ok_or_else(malformed_answer)?;
        match i32::from(read_u16(bytes, 4)?) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                return Err(io::Error::from_raw_os_error(
                    (read_u32(body, 0)? as i32).wrapping_neg(),
                ));
            }
            _ if body.len() >= SOCKET => {
                owners.insert(read_u32(body, 4)?, read_owner(&body[SOCKET..])?);
            }
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The user among the attributes of a socket.
fn read_owner(mut attributes: &[u8]) -> io::Result<Option<u32>> {
    while !attributes.is_empty() {
        let length = usize::from(read_u16(attributes, 0)?);
        let value = attributes.get(ATTRIBUTE..length).ok_or_else(malformed_answer)?;
        if read_u16(attributes, 2)? == UNIX_DIAG_UID {
            return read_u32(value, 0).map(Some);
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(None)
}

fn read_u32(bytes: &[u8], at: usize) -> io::Result<u32> {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map(|part| u32::from_ne_bytes(*part)).ok_or_else(malformed_answer)
}

fn read_u16(bytes: &[u8], at: usize) -> io::Result<u16> {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map(|part| u16::from_ne_bytes(*part)).ok_or_else(malformed_answer)
}

fn malformed_answer() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer about sockets is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = (HEADER + body.len()) as u32;
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat()
    }

    fn socket(inode: u32, uid: Option<u32>) -> Vec<u8> {
        let mut body = [&[1, 2, 7, 0][..], &inode.to_ne_bytes(), &[0; 8]].concat();
        // Another attribute, of a byte and three that fill it up.
        body.extend([&5_u16.to_ne_bytes()[..], &6_u16.to_ne_bytes(), &[1, 0, 0, 0]].concat());
        if let Some(uid) = uid {
            let head = [8_u16.to_ne_bytes(), UNIX_DIAG_UID.to_ne_bytes()].concat();
            body.extend([&head[..], &uid.to_ne_bytes()].concat());
        }
        message(SOCK_DIAG_BY_FAMILY, &body)
    }

    #[test]
    fn socket_owners_are_decoded_from_netlink_messages() {
        let answer = [socket(7, Some(1_000)), socket(8, None), socket(9, Some(0))].concat();
        let mut owners = Owners::new();
        assert!(!add(&answer, &mut owners).expect("it is whole"));
        assert_eq!(owners, Owners::from([(7, Some(1_000)), (8, None), (9, Some(0))]));
        assert!(add(&message(libc::NLMSG_DONE as u16, &[0; 4]), &mut owners).expect("its end"));
        let refused = message(libc::NLMSG_ERROR as u16, &(-libc::ENOENT).to_ne_bytes());
        let why = add(&refused, &mut owners).expect_err("the kernel has no unix_diag");
        assert_eq!(why.raw_os_error(), Some(libc::ENOENT));
        for end in 0..answer.len() {
            let _ = add(&answer[..end], &mut owners);
        }
        assert!(add(&[0; 16], &mut owners).is_err(), "a message of no length has no end");
    }
}
