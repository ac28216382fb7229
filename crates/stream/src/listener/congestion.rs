//! The congestion control that streams begin with.
//!
//! A connection has to begin with it. Linux paces a connection that began with bbr for good, by a timer for what each write sends,
//! whatever control it is given later (`sk_pacing_status`; `bbr_init`, net/ipv4/tcp_bbr.c), and that costs several times what is measured.
//! So the listening socket has a client's choice while its streams are awaited, and connections inherit it. Where two clients choose at
//! the same time, the later one's choice stands, and streams of the other are changed when they have come.

use crate::opening::set_congestion;
use rustix::net::sockopt;
use std::{io, net::TcpListener};

/// The listening socket's congestion control.
#[derive(Debug)]
pub(super) struct Congestion {
    listening: TcpListener,
    /// What the system gave it.
    usual: Option<String>,
}

/// A choice, until it is dropped.
pub(super) struct Chosen<'a>(&'a Congestion);

impl Congestion {
    pub(super) fn of(listening: &TcpListener) -> io::Result<Self> {
        let usual = sockopt::tcp_congestion(listening).ok();
        Ok(Self { listening: listening.try_clone()?, usual })
    }

    /// What a stream is to have, for which `wanted` was asked.
    pub(super) fn of_stream<'a>(&'a self, wanted: Option<&'a str>) -> Option<&'a str> {
        wanted.or(self.usual.as_deref())
    }

    /// Has connections that are made from now on begin with it.
    ///
    /// # Errors
    /// The kernel's, with the name.
    pub(super) fn choose(&self, wanted: Option<&str>) -> io::Result<Option<Chosen<'_>>> {
        let Some(name) = wanted else { return Ok(None) };
        set_congestion(&self.listening, name)?;
        Ok(Some(Chosen(self)))
    }
}

impl Drop for Chosen<'_> {
    fn drop(&mut self) {
        if let Some(usual) = &self.0.usual {
            // It had it before; a stream that comes with another is changed.
            let _ = set_congestion(&self.0.listening, usual);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    /// reno is in every kernel, and everybody may choose it.
    #[test]
    fn connections_begin_with_what_was_chosen_and_later_ones_with_what_is_usual() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let congestion = Congestion::of(&listening).unwrap();
        let usual = congestion.usual.clone().unwrap();
        let begun = || {
            let _client = TcpStream::connect(listening.local_addr().unwrap()).unwrap();
            sockopt::tcp_congestion(listening.accept().unwrap().0).unwrap()
        };
        let chosen = congestion.choose(Some("reno")).unwrap();
        assert_eq!(begun(), "reno");
        drop(chosen);
        assert_eq!(begun(), usual);
        assert!(congestion.choose(None).unwrap().is_none());
        assert_eq!(
            (congestion.of_stream(None), congestion.of_stream(Some("reno"))),
            (Some(&*usual), Some("reno"))
        );
        let error = congestion.choose(Some("nonesuch")).err().unwrap().to_string();
        assert!(error.contains("\"nonesuch\""), "{error}");
    }
}
