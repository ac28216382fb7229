//! Streams are connected: many at once, by few threads.

use crate::{
    control::{
        message::Request,
        preamble::{preamble, token},
    },
    data::Protected,
    group::{Lane, Opened},
    handshake, wait,
};
use linerate_os::socket;
use linerate_tls::Connector;
use rustix::{event::PollFlags, net::sockopt};
use std::{
    io,
    net::{SocketAddr, TcpStream},
    os::fd::AsFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Threads that connect.
pub(crate) const OPENERS: usize = 8;
/// A stream is connected, its handshake included, in this time, or there is no run.
pub(crate) const OPENING_TIME: Duration = Duration::from_secs(40);

/// What all streams of a client are opened by.
pub(crate) struct Opening<'a> {
    pub(crate) listener: SocketAddr,
    pub(crate) run_key: &'a [u8; 32],
    pub(crate) request: &'a Request,
    /// Present for TLS.
    pub(crate) connector: Option<&'a Connector>,
}

impl Opening<'_> {
    /// Connects all streams.
    ///
    /// # Errors
    /// The first one's that cannot be connected, in words.
    pub(crate) fn all(&self) -> Result<Vec<Opened>, String> {
        let streams = self.request.direction.connections(self.request.streams);
        let next = AtomicU32::new(0);
        let opened: Mutex<Result<Vec<Opened>, String>> = Mutex::new(Ok(Vec::new()));
        let is_failed = || opened.lock().unwrap_or_else(PoisonError::into_inner).is_err();
        thread::scope(|scope| {
            for _ in 0..OPENERS.min(streams as usize) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= streams || is_failed() {
                            return;
                        }
                        let one = self.one(number);
                        let mut all = opened.lock().unwrap_or_else(PoisonError::into_inner);
                        match (one, all.as_mut()) {
                            (Ok(one), Ok(all)) => all.push(one),
                            (Err(reason), Ok(_)) => *all = Err(reason),
                            (_, Err(_)) => return,
                        }
                    }
                });
            }
        });
        let mut opened = opened.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        opened.sort_by_key(|opened| opened.lane.number);
        Ok(opened)
    }

    fn one(&self, number: u32) -> Result<Opened, String> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            format!("stream {number} cannot be opened: {what}: {error}")
        };
        let deadline = Instant::now() + OPENING_TIME;
        let socket = self.connect(deadline).map_err(|error| cannot("connecting", &error))?;
        let mut first = preamble(&token(self.run_key, number)).to_vec();
        handshake::send(&socket, &mut first, deadline).map_err(|error| cannot("its preamble", &error))?;
        let sends = self.request.direction.client_sends(number, self.request.streams);
        let engines = self.request.engines();
        let protected = match self.connector {
            None => Protected::plain(),
            Some(connector) => {
                let secured = handshake::connect(&socket, connector, self.request.key_use(sends), deadline)
                    .map_err(|error| cannot("its handshake", &error))?;
                let stream_bytes = self.request.stream_bytes(number);
                Protected::by_engine(&socket, secured, engines, sends, stream_bytes)?
            }
        };
        Ok(Opened { lane: Arc::new(Lane::new(number, sends, socket)), protected })
    }

    fn connect(&self, deadline: Instant) -> io::Result<TcpStream> {
        let wanted = self.request.congestion.as_deref();
        // Before connecting: that is when the window's scale is agreed, and when the congestion control begins.
        let socket = socket::connect_prepared(self.listener, None, |socket| {
            shape_socket(socket, self.request, wanted)
        })?;
        if !wait::until(&socket, PollFlags::OUT, deadline)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket::connect_result(&socket)?;
        Ok(socket.into())
    }
}

/// Gives a stream's socket the buffers and the congestion control that were asked for. In the clear small segments wait for
/// more, as they do in iperf3 and netperf (Nagle's algorithm). Over TLS they do not, as in the server: a sender that seals only
/// for a socket that has sent nearly all would wait for a receiver that waits for more.
pub(crate) fn shape_socket(
    socket: &impl AsFd,
    request: &Request,
    congestion: Option<&str>,
) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, request.engine.is_tls())?;
    if let Some(bytes) = request.socket_buffer_bytes {
        sockopt::set_socket_send_buffer_size(socket, bytes as usize)?;
        sockopt::set_socket_recv_buffer_size(socket, bytes as usize)?;
    }
    congestion.map_or(Ok(()), |name| set_congestion(socket, name))
}

/// Gives a socket a congestion control, unless it has it.
pub(crate) fn set_congestion(socket: &impl AsFd, name: &str) -> io::Result<()> {
    if sockopt::tcp_congestion(socket).is_ok_and(|current| current == name) {
        return Ok(());
    }
    sockopt::set_tcp_congestion(socket, name).map_err(|error| {
        io::Error::other(format!(
            "the congestion control \"{name}\": {error} (see /proc/sys/net/ipv4/tcp_available_congestion_control)"
        ))
    })
}
