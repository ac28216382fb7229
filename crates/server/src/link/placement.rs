//! The engine of each response: decided when the response begins, moved to at a record boundary, reported at its end.

use super::{kernel::Promotion, secure::Secure, wire::Wire};
use crate::ending::Ending;
use linerate_os::socket;
use linerate_placement::{Again, ConnectionSignals, Decision, Engine, Reason};
use linerate_record::KeySource;

/// What is to be done at the next record boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    Nothing,
    /// To decide anew: what stood against a move may have passed.
    Decide,
    /// To move there.
    Move(Engine),
}

/// A connection's placement.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Of the response under way, or the last.
    reason: Option<Reason>,
    /// The reason holds for all that is still to come: nothing is asked any more.
    is_settled: bool,
    /// The kernel's refusal to take it is in the metrics.
    is_refusal_counted: bool,
    next: Next,
    /// Bytes of the response under way, head included.
    response_bytes: u64,
    /// Bytes of those before it.
    sent_before_bytes: u64,
    responses_before: u64,
    /// The connection moved within the response under way, or the last: the user engine had sent some of it.
    moved_within: bool,
}

impl Placement {
    /// Whether, with so many bytes of the response under way left, nothing of any response has been sent.
    pub(super) fn has_sent_nothing(&self, left_bytes: u64) -> bool {
        self.sent_before_bytes == 0 && left_bytes == self.response_bytes
    }
}

impl<K: KeySource> Secure<K> {
    /// A response of so many bytes begins: its engine is decided, and moved to at the first record boundary.
    pub(super) fn begin_placement(&mut self, wire: &Wire, response_bytes: u64) {
        self.placement.response_bytes = response_bytes;
        self.placement.next = Next::Nothing;
        self.placement.moved_within = false;
        if !self.placement.is_settled {
            self.decide(wire, response_bytes);
        }
    }

    /// A response has ended, with so many of its bytes unsent.
    pub(super) fn end_placement(&mut self, left_bytes: u64) {
        let placement = &mut self.placement;
        placement.sent_before_bytes += placement.response_bytes.saturating_sub(left_bytes);
        placement.responses_before += 1;
    }

    /// At a record boundary, everything sealed having been written to the socket: moves the connection, if that was
    /// decided.
    ///
    /// # Errors
    /// The connection cannot go on at all.
    pub(super) async fn place(&mut self, wire: &Wire, left_bytes: u64) -> Result<(), Ending> {
        if self.placement.next == Next::Decide {
            self.decide(wire, left_bytes);
        }
        match self.placement.next {
            Next::Move(engine) => self.move_to(wire, engine, left_bytes).await,
            Next::Nothing | Next::Decide => Ok(()),
        }
    }

    /// Which engine carried the last byte of the response that has just ended, and why.
    pub(super) fn decision(&self) -> Decision {
        let reason = match self.placement.next {
            // The response ended before there was a record boundary to move at.
            Next::Move(_) => Reason::NotReady,
            _ => self.placement.reason.unwrap_or(Reason::NotReady),
        };
        Decision { engine: self.placed(), reason }
    }

    /// The engine, as placement calls it.
    pub(super) fn placed(&self) -> Engine {
        self.engine().placed().unwrap_or(Engine::User)
    }

    /// Whether another engine carried the beginning of the response that has just ended.
    pub(super) fn moved_within_response(&self) -> bool {
        self.placement.moved_within
    }

    fn decide(&mut self, wire: &Wire, left_bytes: u64) {
        let signals = self.signals(left_bytes);
        let placer = &wire.workplace.placer;
        let can = self.capabilities(wire, placer.may_move(&signals));
        let decision = placer.decide(&can, &signals, || socket::retransmitted_share(&wire.stream));
        let again = decision.reason.again();
        let placement = &mut self.placement;
        let stays = decision.engine == signals.engine;
        if placement.next == Next::Decide && stays && again != Again::NextRecord {
            // So little is left by now that a move pays no more. What stood against it when it would have is the reason.
            placement.next = Next::Nothing;
            return;
        }
        placement.reason = Some(decision.reason);
        placement.next = if !stays {
            Next::Move(decision.engine)
        } else if again == Again::NextRecord {
            Next::Decide
        } else {
            Next::Nothing
        };
        if placement.next == Next::Nothing && again == Again::Never {
            placement.is_settled = true;
        }
        if placer.is_refusal(&decision.reason) {
            self.count_refusal(wire, &decision.reason);
        }
    }

    /// A connection that was meant for kernel or adapter and stays is counted once.
    pub(super) fn count_refusal(&mut self, wire: &Wire, reason: &Reason) {
        if !std::mem::replace(&mut self.placement.is_refusal_counted, true) {
            wire.workplace.metrics.refuse_kernel(reason.into());
        }
    }

    fn signals(&self, left_bytes: u64) -> ConnectionSignals {
        let placement = &self.placement;
        ConnectionSignals {
            combination: self.combination(),
            engine: self.placed(),
            response_bytes: placement.response_bytes,
            left_bytes,
            sent_before_bytes: placement.sent_before_bytes,
            responses_before: placement.responses_before,
            records_left: Some(self.channel.remaining_records()),
        }
    }

    async fn move_to(&mut self, wire: &Wire, engine: Engine, left_bytes: u64) -> Result<(), Ending> {
        debug_assert_ne!(engine, Engine::User, "there is no way back");
        if engine == Engine::Nic {
            self.take_set_up();
        }
        let promotion = self.promote(wire, engine, left_bytes).await?;
        self.give_back_set_up(wire);
        let placement = &mut self.placement;
        placement.next = Next::Nothing;
        match promotion {
            // From the next response on it has moved before.
            Promotion::Done(other) => {
                placement.reason = other.or(placement.reason);
                placement.moved_within = left_bytes < placement.response_bytes;
            }
            Promotion::NotNow => {
                placement.reason = Some(Reason::NotReady);
                placement.next = Next::Decide;
            }
            Promotion::NotThisTime(reason) => placement.reason = Some(reason),
            Promotion::Never(reason) => {
                placement.reason = Some(reason);
                placement.is_settled = true;
            }
        }
        Ok(())
    }
}
