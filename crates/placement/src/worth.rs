//! What a move is worth: the set-up against what responses and bytes save.

use crate::{ConnectionSignals, Reason, costs::break_even_bytes};

/// What another engine is worth beside the one that carries the connection, for one cipher, as of the last refresh.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Worth {
    /// The move.
    pub(crate) once_ns: f64,
    /// Saved by each response beside its bytes; may be negative.
    pub(crate) saved_ns_per_response: f64,
    /// Saved by each byte; may be negative.
    pub(crate) saved_ns_per_byte: f64,
    /// What each byte has to save to be more than noise.
    pub(crate) least_ns_per_byte: f64,
}

impl Worth {
    pub(crate) fn is_cheaper(&self) -> bool {
        self.saved_ns_per_byte >= self.least_ns_per_byte && self.saved_ns_per_byte > 0.0
    }

    /// What the move is expected to save, itself deducted: the bytes that are left, and as many responses and bytes as
    /// there have been.
    pub(crate) fn gain_ns(&self, connection: &ConnectionSignals) -> f64 {
        let bytes = connection.left_bytes as f64 + connection.sent_before_bytes as f64;
        let responses = connection.responses_before as f64 + 1.0;
        bytes * self.saved_ns_per_byte + responses * self.saved_ns_per_response - self.once_ns
    }

    /// What is lost for certain if the move is not made now: what the response under way saves, as far as that is not needed
    /// to pay for the move. Responses that follow can ask again.
    pub(crate) fn at_stake_ns(&self, connection: &ConnectionSignals) -> f64 {
        let of_this = connection.left_bytes as f64 * self.saved_ns_per_byte + self.saved_ns_per_response;
        self.gain_ns(connection).min(of_this)
    }

    /// Whether it pays for itself.
    pub(crate) fn pays_for(&self, connection: &ConnectionSignals) -> bool {
        self.is_cheaper() && self.gain_ns(connection) >= 0.0 && connection.left_bytes > 0
    }

    /// Bytes from which on it pays, as often as responses came so far.
    pub(crate) fn break_even_bytes(&self, connection: &ConnectionSignals) -> u64 {
        let responses = connection.responses_before as f64 + 1.0;
        break_even_bytes(self.once_ns - responses * self.saved_ns_per_response, self.saved_ns_per_byte)
            .unwrap_or(u64::MAX)
    }

    /// This engine for a connection that has moved to `other` already: the move is to be paid again, and less is saved.
    pub(crate) fn beyond(&self, other: &Self) -> Self {
        Self {
            saved_ns_per_response: self.saved_ns_per_response - other.saved_ns_per_response,
            saved_ns_per_byte: self.saved_ns_per_byte - other.saved_ns_per_byte,
            ..*self
        }
    }

    /// Why the move pays.
    pub(crate) fn reason(&self, connection: &ConnectionSignals) -> Reason {
        let (bytes, before_bytes) = (connection.left_bytes, connection.sent_before_bytes);
        let alone = ConnectionSignals { sent_before_bytes: 0, responses_before: 0, ..*connection };
        if self.gain_ns(&alone) >= 0.0 {
            Reason::Pays { bytes, break_even_bytes: self.break_even_bytes(&alone) }
        } else {
            let break_even_bytes = self.break_even_bytes(connection);
            Reason::ExpectedToPay { bytes, before_bytes, break_even_bytes }
        }
    }
}
