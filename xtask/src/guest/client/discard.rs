//! Throwing a stream away unread: `recv` with MSG_TRUNC discards without copying (tcp(7)).

use std::os::fd::AsFd;

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::net::RecvFlags;

/// Discards until the peer's end of the stream, and says how many bytes came. `scratch` is never written to.
pub(in crate::guest) fn discard_all(socket: &impl AsFd, scratch: &mut [u8]) -> Result<u64> {
    let mut bytes = 0;
    loop {
        match rustix::net::recv(socket, &mut *scratch, RecvFlags::TRUNC) {
            Ok((_, 0)) => return Ok(bytes),
            Ok((_, received)) => bytes += received as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("the transfer broke off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn discarded_bytes_are_counted_and_not_written() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sender = std::thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            socket.write_all(&[7; 300_001]).unwrap();
        });
        let receiver = TcpStream::connect(address).unwrap();
        let mut scratch = vec![0; 100_000];
        assert_eq!(discard_all(&receiver, &mut scratch).unwrap(), 300_001);
        assert!(scratch.iter().all(|&byte| byte == 0));
        sender.join().unwrap();
    }
}
