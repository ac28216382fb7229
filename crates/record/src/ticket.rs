//! What a server says to a client after the handshake: session tickets (RFC 8446 4.6.1) beside key updates.

use crate::{
    KeySource, KeyUpdateRequest, RecordError,
    key_update::{KEY_UPDATE, KeyUpdateReader},
};

/// `HandshakeType.new_session_ticket`
const NEW_SESSION_TICKET: u8 = 4;
/// `HandshakeType`, then a length of three bytes.
const HEADER_BYTES: usize = 4;
/// A ticket and its extensions may each be of nearly 64 KiB; those of real servers are below 2 KiB.
const MESSAGE_LIMIT_BYTES: usize = 1 << 17;

/// Collects tickets from the handshake records they come in, several to a record or one over several, and leaves key
/// updates to their own reader.
#[derive(Debug, Default)]
pub(crate) struct TicketReader {
    /// The beginning of a ticket whose rest is to come.
    partial: Vec<u8>,
}

impl TicketReader {
    /// Whether a ticket has begun and not ended.
    pub(crate) fn is_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Takes the payload of a handshake record; tickets go to `keys`.
    pub(crate) fn read<K: KeySource>(
        &mut self,
        mut payload: &[u8],
        key_updates: &mut KeyUpdateReader,
        keys: &mut K,
    ) -> Result<Option<KeyUpdateRequest>, RecordError> {
        while let Some(&first) = payload.first() {
            if key_updates.is_partial() || (!self.is_partial() && first == KEY_UPDATE) {
                // A key update is the last in its record: its reader sees to that.
                return key_updates.read(payload);
            }
            let missing = self.missing_bytes()?;
            let (taken, rest) = payload.split_at(missing.min(payload.len()));
            self.partial.extend_from_slice(taken);
            payload = rest;
            if self.missing_bytes()? == 0 {
                keys.take_ticket(&self.partial[HEADER_BYTES..])?;
                self.partial = Vec::new();
            }
        }
        Ok(None)
    }

    /// How many bytes of the header, and then of the message, are missing.
    fn missing_bytes(&self) -> Result<usize, RecordError> {
        if self.partial.first().is_some_and(|&message_type| message_type != NEW_SESSION_TICKET) {
            return Err(RecordError::UnexpectedMessage(
                "a handshake message other than NewSessionTicket and KeyUpdate",
            ));
        }
        let Some(&[_, high, middle, low]) = self.partial.first_chunk::<HEADER_BYTES>() else {
            return Ok(HEADER_BYTES - self.partial.len());
        };
        let message_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
        if message_bytes > MESSAGE_LIMIT_BYTES {
            return Err(RecordError::Malformed("NewSessionTicket"));
        }
        Ok(HEADER_BYTES + message_bytes - self.partial.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrafficKey;

    #[derive(Default)]
    struct Tickets(Vec<Vec<u8>>);

    impl KeySource for Tickets {
        fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
            Err(RecordError::Crypto)
        }

        fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
            Err(RecordError::Crypto)
        }

        fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), RecordError> {
            self.0.push(ticket.to_vec());
            Ok(())
        }
    }

    #[test]
    fn tickets_and_key_updates_are_read_however_they_are_split() {
        let mut wire = vec![4, 0, 0, 0];
        wire.extend([4, 0, 0, 5]);
        wire.extend(*b"first");
        wire.extend([4, 0, 1, 0]);
        wire.extend([7; 256]);
        wire.extend(KeyUpdateRequest::Requested.encode());
        for step in [1, 3, 4, 5, 9, 100, wire.len()] {
            let (mut reader, mut key_updates) = (TicketReader::default(), KeyUpdateReader::default());
            let mut keys = Tickets::default();
            let mut found = Vec::new();
            for piece in wire.chunks(step) {
                found.extend(reader.read(piece, &mut key_updates, &mut keys).unwrap());
            }
            assert_eq!(found, [KeyUpdateRequest::Requested], "{step}");
            assert_eq!(keys.0, [Vec::new(), b"first".to_vec(), vec![7; 256]], "{step}");
            assert!(!reader.is_partial() && !key_updates.is_partial());
        }
    }

    #[test]
    fn other_messages_and_endless_ones_are_refused() {
        for bad in [&[1u8, 0, 0, 0][..], &[13, 0], &[4, 2, 0, 1], &[4, 0, 0, 0, 24, 0, 0, 2]] {
            let (mut reader, mut key_updates) = (TicketReader::default(), KeyUpdateReader::default());
            assert!(reader.read(bad, &mut key_updates, &mut Tickets::default()).is_err(), "{bad:?}");
        }
        let mut reader = TicketReader::default();
        let longest = [4, 2, 0, 0];
        let read = reader.read(&longest, &mut KeyUpdateReader::default(), &mut Tickets::default());
        assert!(read == Ok(None) && reader.is_partial(), "the longest that is waited for");
    }
}
