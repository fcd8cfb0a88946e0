//! Sockets of a domain: stream sockets over the Internet protocols, to and from the addresses that the policy
//! names.
//!
//! An address comes out of the domain's memory once, is compared as it is, and goes to the kernel from ours.
//! A socket can do what its descriptor's file functions do (read, write, close), and what is listed here;
//! options are few and harmless.

use crate::pieces::PIECE;
use crate::policy::Policy;
use crate::sys::{Answer, Call, File, result};
use crate::wait;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the kernel's largest address that is understood here: `sockaddr_in6`.
const LARGEST: usize = 28;
const MOST_POLLED: u64 = 64;
/// Of every socket: the domain's waiting is this runtime's.
const FLAGS: i32 = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// `sockaddr_in` or `sockaddr_in6`, as the kernel has it.
fn decode(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip = match family {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// A policy's list has the address; port 0 in it stands for every port.
fn among(list: &[SocketAddr], address: SocketAddr) -> bool {
    list.iter().any(|a| a.ip() == address.ip() && (a.port() == address.port() || a.port() == 0))
}

/// A socket's own address, or its peer's, as the kernel has it.
fn address(number: libc::c_long, socket: &File) -> Result<([u8; LARGEST], libc::socklen_t), i32> {
    let (mut bytes, mut length) = ([0u8; LARGEST], LARGEST as libc::socklen_t);
    // SAFETY: writes an address of ours, of at most this length.
    result(unsafe { libc::syscall(number, socket.fd(), bytes.as_mut_ptr(), &raw mut length) })?;
    Ok((bytes, length))
}

impl Policy {
    pub(crate) fn has_network(&self) -> bool {
        !self.connects.is_empty() || !self.listens.is_empty()
    }
}

impl Call<'_> {
    /// What a call about sockets answers; `None` if the call is not about sockets.
    pub(crate) fn network(&self, number: libc::c_long) -> Option<Answer> {
        let (a, b, c) = (self.a, self.b, self.c);
        Some(match number {
            libc::SYS_socket => self.socket(a as i32, b as i32, c as i32),
            libc::SYS_connect => self.aim(number, &self.policy().connects),
            libc::SYS_bind => self.aim(number, &self.policy().listens),
            libc::SYS_listen => self.listen(),
            libc::SYS_shutdown => self.file(a).and_then(|file| {
                // SAFETY: numbers only.
                result(unsafe { libc::syscall(number, file.fd(), b) })
            }),
            libc::SYS_accept => self.accept(0),
            libc::SYS_accept4 => self.accept(self.d as i32 & libc::SOCK_NONBLOCK),
            libc::SYS_getsockname | libc::SYS_getpeername => self.name(number),
            libc::SYS_sendto | libc::SYS_recvfrom => self.transfer(number),
            libc::SYS_setsockopt | libc::SYS_getsockopt => self.option(number),
            libc::SYS_poll => self.poll(),
            _ => return None,
        })
    }

    fn socket(&self, family: i32, kind: i32, protocol: i32) -> Answer {
        if !self.policy().has_network() {
            return Err(libc::EACCES);
        }
        let plain = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
        if !matches!(family, libc::AF_INET | libc::AF_INET6) {
            return Err(libc::EAFNOSUPPORT);
        }
        if plain != libc::SOCK_STREAM || !matches!(protocol, 0 | libc::IPPROTO_TCP) {
            return Err(libc::EPROTONOSUPPORT);
        }
        // SAFETY: numbers only.
        let fd = result(unsafe { libc::socket(family, plain | FLAGS, protocol) }.into())?;
        // SAFETY: a descriptor that is nobody else's.
        let socket = Arc::new(unsafe { OwnedFd::from_raw_fd(fd as i32) });
        self.keep(File::Stream(socket, kind & libc::SOCK_NONBLOCK != 0))
    }

    /// To an address of the list: `connect`, `bind`.
    fn aim(&self, number: libc::c_long, allowed: &[SocketAddr]) -> Answer {
        let file = self.file(self.a)?;
        let mut bytes = [0; LARGEST];
        let length = (self.c as usize).min(LARGEST);
        self.shared.read(self.b, &mut bytes[..length]).map_err(|_| libc::EFAULT)?;
        let address = decode(&bytes[..length]).ok_or(libc::EAFNOSUPPORT)?;
        if !among(allowed, address) {
            return Err(libc::EACCES);
        }
        // SAFETY: a descriptor of the domain's, and an address of ours of this length.
        match result(unsafe { libc::syscall(number, file.fd(), bytes.as_ptr(), length) }) {
            Err(libc::EINPROGRESS) if file.waits() => self.connected(&file),
            other => other,
        }
    }

    /// Only where it could have been bound to: an unbound socket the kernel would bind to every interface.
    fn listen(&self) -> Answer {
        let file = self.file(self.a)?;
        let (bytes, length) = address(libc::SYS_getsockname, &file)?;
        let bound = decode(&bytes[..LARGEST.min(length as usize)]).ok_or(libc::EAFNOSUPPORT)?;
        if bound.port() == 0 || !among(&self.policy().listens, bound) {
            return Err(libc::EACCES);
        }
        // SAFETY: numbers only.
        result(unsafe { libc::syscall(libc::SYS_listen, file.fd(), self.b) })
    }

    fn accept(&self, flags: i32) -> Answer {
        let file = self.file(self.a)?;
        let (mut bytes, mut length) = ([0u8; LARGEST], LARGEST as libc::socklen_t);
        let (to, room) = (bytes.as_mut_ptr(), &raw mut length);
        let made = self.asked(&file, libc::POLLIN, || {
            // SAFETY: writes an address of ours, of at most this length.
            result(unsafe { libc::accept4(file.fd(), to.cast(), room, FLAGS) }.into())
        })?;
        // SAFETY: a descriptor that is nobody else's.
        let socket = Arc::new(unsafe { OwnedFd::from_raw_fd(made as i32) });
        let kept = self.keep(File::Stream(socket, flags & libc::SOCK_NONBLOCK != 0))?;
        self.put_address(&bytes, length)?;
        Ok(kept)
    }

    fn name(&self, number: libc::c_long) -> Answer {
        let (bytes, length) = address(number, &self.file(self.a)?)?;
        self.put_address(&bytes, length)
    }

    /// An address to where the domain wants it, as the second and third words say, if it does.
    fn put_address(&self, bytes: &[u8; LARGEST], length: libc::socklen_t) -> Answer {
        if self.b == 0 {
            return Ok(0);
        }
        let mut room = [0; 4];
        self.shared.read(self.c, &mut room).map_err(|_| libc::EFAULT)?;
        let most = (u32::from_le_bytes(room) as usize).min(length as usize).min(LARGEST);
        self.put(self.b, &bytes[..most])?;
        self.put(self.c, &length.to_le_bytes())
    }

    /// `send` and `recv`: over a connection, so without an address.
    fn transfer(&self, number: libc::c_long) -> Answer {
        let (file, at) = (self.file(self.a)?, self.range(self.b, self.c)?);
        if self.e != 0 {
            return Err(libc::EISCONN);
        }
        let flags =
            self.d as i32 & (libc::MSG_PEEK | libc::MSG_WAITALL | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        let sends = number == libc::SYS_sendto;
        let (events, flags) =
            if sends { (libc::POLLOUT, flags | libc::MSG_NOSIGNAL) } else { (libc::POLLIN, flags) };
        // A socket may be a standard file.
        let ours = flags | libc::MSG_DONTWAIT;
        let some = |done: u64, most: u64| {
            // SAFETY: a descriptor of the domain's and a range of its segment; the kernel checks what is
            // mapped how.
            result(unsafe { libc::syscall(number, file.fd(), at + done, most, ours, 0, 0) })
        };
        if flags & libc::MSG_DONTWAIT != 0 {
            return some(0, self.c.min(PIECE));
        }
        let peeks = flags & libc::MSG_PEEK != 0;
        let all = sends || flags & libc::MSG_WAITALL != 0 && !peeks;
        // What is only looked at stays, so there is one piece.
        let bytes = if peeks { self.c.min(PIECE) } else { self.c };
        self.patiently(&file, events, bytes, all, some)
    }

    /// Options whose value is an integer, and which concern the socket alone.
    fn option(&self, number: libc::c_long) -> Answer {
        let file = self.file(self.a)?;
        let (level, option) = (self.b as i32, self.c as i32);
        let set = number == libc::SYS_setsockopt;
        match (level, option) {
            (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_KEEPALIVE)
            | (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {}
            (libc::SOL_SOCKET, libc::SO_ERROR | libc::SO_TYPE) if !set => {}
            _ => return Err(libc::ENOPROTOOPT),
        }
        let (mut value, mut length) = ([0u8; 4], 4 as libc::socklen_t);
        if set {
            if self.e < 4 {
                return Err(libc::EINVAL);
            }
            self.shared.read(self.d, &mut value).map_err(|_| libc::EFAULT)?;
            // SAFETY: four bytes of ours.
            return result(
                unsafe { libc::setsockopt(file.fd(), level, option, value.as_ptr().cast(), length) }.into(),
            );
        }
        // SAFETY: as above.
        result(
            unsafe { libc::getsockopt(file.fd(), level, option, value.as_mut_ptr().cast(), &mut length) }
                .into(),
        )?;
        self.put(self.d, &value)?;
        self.put(self.e, &length.to_le_bytes())
    }

    /// With the domain's numbers of files.
    fn poll(&self) -> Answer {
        if self.b > MOST_POLLED {
            return Err(libc::EINVAL);
        }
        if self.b == 0 {
            // There is nothing at the address: the time is all that is waited for.
            return wait::poll(self.shared, &mut [], self.patience());
        }
        let mut bytes = vec![0; self.b as usize * 8];
        self.shared.read(self.a, &mut bytes).map_err(|_| libc::EFAULT)?;
        let file = |entry: &[u8]| {
            let number = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            // What is negative is passed over.
            u64::try_from(number).ok().map(|number| self.file(number))
        };
        let files: Vec<_> = bytes.chunks_exact(8).map(file).collect();
        let one = |(entry, file): (&[u8], &Option<Result<File, i32>>)| libc::pollfd {
            fd: file.as_ref().and_then(|file| file.as_ref().ok()).map_or(-1, File::fd),
            events: i16::from_le_bytes([entry[4], entry[5]]),
            revents: 0,
        };
        let mut polled: Vec<_> = bytes.chunks_exact(8).zip(&files).map(one).collect();
        // What the domain has not got is told at once.
        let bad = |file: &Option<Result<File, i32>>| matches!(file, Some(Err(_)));
        let none = files.iter().filter(|file| bad(file)).count();
        let time = if none > 0 { Some(Duration::ZERO) } else { self.patience() };
        let ready = wait::poll(self.shared, &mut polled, time)? + none as i64;
        for ((entry, file), polled) in bytes.chunks_exact_mut(8).zip(&files).zip(&polled) {
            let events = if bad(file) { libc::POLLNVAL } else { polled.revents };
            entry[6..8].copy_from_slice(&events.to_le_bytes());
        }
        self.put(self.a, &bytes)?;
        Ok(ready)
    }

    /// How long `poll` is to wait: it is a right of its own, but for sockets.
    fn patience(&self) -> Option<Duration> {
        let may = self.policy().has_network() || self.policy().allows("sleep");
        u64::try_from(if may { self.c as i32 } else { 0 }).ok().map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_whole() {
        let v4 = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let here: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(decode(&v4), Some(here));
        assert_eq!((decode(&v4[..7]), decode(&[1, 0, 0, 0, 0, 0, 0, 0]), decode(&[])), (None, None, None));
        let mut v6 = [0; LARGEST];
        (v6[0], v6[3], v6[23]) = (10, 80, 1);
        assert_eq!(decode(&v6), Some("[::1]:80".parse().unwrap()));
        let any_port: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let other: SocketAddr = "127.0.0.2:8080".parse().unwrap();
        assert!(among(&[here], here) && among(&[any_port], here));
        assert!(!among(&[here], any_port) && !among(&[here, any_port], other) && !among(&[], here));
    }
}
