//! The end of a connection.

use super::{Link, Protection};
use crate::{
    ending::Ending,
    metrics::Engine,
    watch::{Expiry, Stage},
};
use linerate_os::socket;
use linerate_record::{AlertDescription, KeySource};

/// Whether the peer may still be sending what nobody will read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linger {
    /// It is not: close at once.
    No,
    /// It may be: read and discard until it closes, because closing on unread bytes makes the kernel reset the
    /// connection, and a reset can destroy the response before the peer reads it (RFC 9112 9.6).
    UntilPeerCloses,
}

/// Bytes that are read and discarded at most from a peer that does not stop (INV-BOUND-1).
const LINGER_LIMIT_BYTES: usize = 16 << 20;

impl<K: KeySource> Link<K> {
    /// Ends the connection as it deserves: `close_notify` and FIN after what went well, an alert where one is owed, an
    /// abrupt end where the response is broken, so that nobody takes it for whole (INV-FILE-1).
    pub(crate) async fn close(mut self, ending: &Ending, linger: Linger) {
        match ending {
            Ending::Changed(_) => return self.take_back(),
            Ending::Socket(_) | Ending::Unreadable(_) | Ending::KernelKey(_) => return,
            // A peer that took nothing for so long will not take a farewell either.
            Ending::Expired(Expiry::Deadline(Stage::Sending) | Expiry::TooSlow) => return,
            _ => {}
        }
        if let Protection::Tls(channel) = &mut self.protection
            && !channel.sending_is_closed()
            && channel.alert(AlertDescription::CloseNotify, self.unsent.behind()).is_err()
        {
            return;
        }
        self.watch.reset();
        self.begin(Stage::Closing);
        if self.flush().await.is_err()
            || self.wait_for_departure().await.is_err()
            || socket::finish_sending(&self.stream).is_err()
        {
            return;
        }
        if linger == Linger::UntilPeerCloses {
            self.discard_the_rest().await;
        }
    }

    /// Ends the connection at once, because of a file that was changed. What the user engine sealed was looked at before
    /// it left, and the client may have it; what the kernel took from the file itself may be of the changed file, and does
    /// not leave any more.
    fn take_back(&self) {
        if self.engine() != Engine::User {
            // Where that fails the connection is gone already.
            let _ = socket::reset_when_closed(&self.stream);
        }
    }

    async fn discard_the_rest(&mut self) {
        let mut discarded = 0;
        while discarded < LINGER_LIMIT_BYTES {
            let received = {
                let mut buffer = self.workplace.receive.borrow_mut();
                socket::receive(&self.stream, &mut buffer)
            };
            match received {
                Ok(0) => return,
                Ok(bytes) => discarded += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.clear_readiness(tokio::io::Interest::READABLE);
                    if self.wait(true, false).await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}
