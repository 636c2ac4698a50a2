//! Notifies the service manager, if it started this and wants it (sd_notify(3)): `READY=1` once
//! something is measured, `WATCHDOG=1` with every checkpoint.

use std::env;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names its socket: a path, or an abstract name that begins with `@`.
const VARIABLE: &str = "NOTIFY_SOCKET";

pub(crate) struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    is_ready: bool,
}

impl ServiceManager {
    /// The service manager of the environment; `None` without one, or if its socket is unusable.
    pub(crate) fn of_environment() -> Option<ServiceManager> {
        ServiceManager::from_socket_name(&env::var_os(VARIABLE)?)
    }

    fn from_socket_name(name: &OsStr) -> Option<ServiceManager> {
        let address = match name.as_bytes().split_first()? {
            (b'@', name) => SocketAddr::from_abstract_name(name),
            _ => SocketAddr::from_pathname(name),
        };
        let socket = UnixDatagram::unbound().ok()?;
        // A service manager that does not read must not stop a measurement.
        socket.set_nonblocking(true).ok()?;
        Some(ServiceManager { socket, address: address.ok()?, is_ready: false })
    }

    /// Reports that the run continues. A failed message is not repeated: the next one is near.
    pub(crate) fn report_alive(&mut self) {
        let text: &[u8] = if self.is_ready { b"WATCHDOG=1" } else { b"READY=1\nWATCHDOG=1" };
        self.is_ready |= self.socket.send_to_addr(text, &self.address).is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 100];
        let length = socket.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn readiness_is_notified_once_and_the_watchdog_repeatedly() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("notify");
        let abstract_name = format!("punctual-notify-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        let sockets = [
            (path.to_string_lossy().into_owned(), UnixDatagram::bind(&path).expect("a socket")),
            (format!("@{abstract_name}"), UnixDatagram::bind_addr(&address).expect("a socket")),
        ];
        for (name, socket) in sockets {
            let mut manager =
                ServiceManager::from_socket_name(OsStr::new(&name)).expect("it is there");
            manager.report_alive();
            assert_eq!(received(&socket), "READY=1\nWATCHDOG=1");
            manager.report_alive();
            assert_eq!(received(&socket), "WATCHDOG=1");
        }
        assert!(ServiceManager::from_socket_name(OsStr::new("")).is_none());
    }

    #[test]
    fn a_missing_service_manager_is_notified_again() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("notify");
        let mut manager = ServiceManager::from_socket_name(path.as_os_str()).expect("an address");
        manager.report_alive();
        let socket = UnixDatagram::bind(&path).expect("a socket");
        manager.report_alive();
        assert_eq!(received(&socket), "READY=1\nWATCHDOG=1");
    }
}
