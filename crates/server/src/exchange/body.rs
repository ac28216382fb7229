//! A request's body, which nobody here wants: it is skipped, so that none of it is ever taken for a request
//! (INV-BODY-1).

use crate::{ending::Ending, link::Link, watch::Stage};
use linerate_http::{BodyDrain, Request};
use linerate_record::KeySource;

/// A longer body is not read; the connection is closed behind the response instead.
const BODY_LIMIT_BYTES: u64 = 1 << 20;

/// What follows a request's head.
pub(super) struct RequestBody {
    drain: BodyDrain,
    /// The end of the body will never be known: it is too long, or the client waits for a `100 Continue` that it does
    /// not get and may or may not send it.
    unknown_end: bool,
}

impl RequestBody {
    pub(super) fn new(request: &Request<'_>) -> Self {
        let mut drain = BodyDrain::new(request.body, BODY_LIMIT_BYTES);
        let waits = request.expect_continue && !drain.is_done();
        let unknown_end = waits || drain.feed(&[]).is_err();
        Self { drain, unknown_end }
    }

    /// Whether the connection has to end with this response.
    pub(super) fn forbids_persistence(&self) -> bool {
        self.unknown_end
    }

    /// Whether nothing more of it is waited for.
    pub(super) fn is_over(&self) -> bool {
        self.unknown_end || self.drain.is_done()
    }

    /// Skips the body, of which `buffer` holds the beginning behind `used` bytes of head. Returns what follows it;
    /// `None` if its end cannot be known.
    pub(super) async fn drain<K: KeySource>(
        &mut self,
        link: &mut Link<K>,
        mut buffer: Vec<u8>,
        used: usize,
    ) -> Result<Option<Vec<u8>>, Ending> {
        buffer.drain(..used);
        if self.unknown_end {
            return Ok(None);
        }
        if !self.drain.is_done() {
            link.begin(Stage::Head);
        }
        loop {
            let Ok(drained) = self.drain.feed(&buffer) else { return Ok(None) };
            buffer.drain(..drained.consumed);
            if drained.done {
                return Ok(Some(buffer));
            }
            if link.arrived().is_empty() && !link.receive_some().await? {
                return Err(Ending::PeerClosed);
            }
            buffer.append(link.arrived());
        }
    }
}
