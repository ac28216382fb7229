//! The end of a connection.

use super::{Link, Protection, secure::Secure, wire::Wire};
use crate::{
    ending::Ending,
    metrics::Engine,
    watch::{Expiry, SWEEP_INTERVAL, Stage},
};
use linerate_os::socket::{self, Follows};
use linerate_record::{AlertDescription, KeySource};

/// Whether the peer may still be sending what nobody will read. Closing on bytes that were not read makes the kernel reset
/// the connection, as do bytes that arrive when it is closed; and a reset can destroy a response before the peer has read
/// it (RFC 9112 9.6). So we end our side, read and discard what comes, and close when the peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linger {
    /// It is not, or does not deserve it: close at once.
    No,
    /// Nothing of a response is under way, but a request may be: for at most [`BRIEF_MS`].
    Briefly,
    /// It may be: as long as it takes the response, as if that were still being sent, and then for the time of
    /// [`Stage::Closing`].
    UntilPeerCloses,
}

/// Bytes that are read and discarded at most from a peer that does not stop (INV-BOUND-1).
const LINGER_LIMIT_BYTES: usize = 16 << 20;

/// A round trip of the slowest networks: a request that was under way when we closed has arrived by then. A peer that takes
/// no notice of our end delays the end of a drain by this much.
const BRIEF_MS: u64 = 1000;

impl<K: KeySource> Link<K> {
    /// Ends the connection as it deserves: `close_notify` and FIN after what went well, an alert where one is owed, an
    /// abrupt end where the response is broken, so that nobody takes it for whole (INV-FILE-1).
    pub(crate) async fn close(mut self, ending: &Ending, linger: Linger) {
        match ending {
            Ending::Changed(_) | Ending::ChangedBehind => return self.take_back(),
            Ending::Socket(_) | Ending::Unreadable(_) | Ending::KernelKey(_) => return,
            // A peer that took nothing for so long will not take a farewell either.
            Ending::Expired(Expiry::Deadline(Stage::Sending) | Expiry::TooSlow) => return,
            _ => {}
        }
        self.wire.watch.reset();
        self.begin(Stage::Closing);
        if let Protection::Tls(secure) = &mut self.protection
            && secure.finish(&mut self.wire).await.is_err()
        {
            return;
        }
        if socket::finish_sending(&self.wire.stream).is_err() {
            return;
        }
        if let Err(Ending::ChangedBehind) = self.wait_for_the_peer(linger).await {
            self.take_back();
        }
    }

    async fn wait_for_the_peer(&mut self, linger: Linger) -> Result<(), Ending> {
        match linger {
            Linger::No => {}
            Linger::Briefly => {
                self.wire.watch.begin(Stage::Closing, self.wire.workplace.now_ms().saturating_add(BRIEF_MS));
                self.discard_the_rest(true).await?;
            }
            Linger::UntilPeerCloses => {
                self.begin(Stage::Sending);
                self.discard_the_rest(false).await?;
            }
        }
        self.wire.look_after_to_the_end().await
    }

    /// Ends the connection at once, because of a file that was changed. What the user engine sealed was looked at before
    /// it left, and the client may have it; what the kernel took from the file itself may be of the changed file, and does
    /// not leave any more.
    fn take_back(&self) {
        if self.engine() != Engine::User {
            // Where that fails the connection is gone already.
            let _ = socket::reset_when_closed(&self.wire.stream);
        }
    }

    /// Reads and discards until the peer closes its side; `has_all` if it has taken all that was sent.
    async fn discard_the_rest(&mut self, mut has_all: bool) -> Result<(), Ending> {
        let mut discarded = 0;
        while discarded < LINGER_LIMIT_BYTES {
            if !has_all && self.wire.peer_has_all() {
                has_all = true;
                self.begin(Stage::Closing);
            }
            let received = {
                let mut buffer = self.wire.workplace.receive.borrow_mut();
                socket::receive(&self.wire.stream, &mut buffer)
            };
            match received {
                Ok(0) => break,
                Ok(bytes) => discarded += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.wire.clear_readiness(tokio::io::Interest::READABLE);
                    let woken = self.wire.wait(true, false);
                    if has_all {
                        woken.await?;
                    } else if let Ok(woken) = tokio::time::timeout(SWEEP_INTERVAL, woken).await {
                        // Nothing tells when the peer has all: it is looked at in between.
                        woken?;
                    }
                }
                Err(error) => return Err(Ending::Socket(error)),
            }
        }
        Ok(())
    }
}

impl<K: KeySource> Secure<K> {
    /// Seals `close_notify`, unless an alert has ended the sending side, and waits until all that is sealed has left.
    async fn finish(&mut self, wire: &mut Wire) -> Result<(), Ending> {
        if !self.channel.sending_is_closed() {
            self.channel
                .alert(AlertDescription::CloseNotify, self.unsent.behind())
                .map_err(Ending::Record)?;
        }
        // The end of our side follows, in the same segment.
        self.flush(wire, Follows::More).await?;
        self.wait_for_departure(wire).await
    }
}
