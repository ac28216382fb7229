//! Which tokens are awaited, and how many streams there are.

use crate::control::preamble::Token;
use std::{
    collections::HashMap,
    net::TcpStream,
    sync::{Mutex, MutexGuard, PoisonError, mpsc::Sender},
};

/// A stream that has come: its number, and its connection.
pub(super) type Arrival = (u32, TcpStream);

/// Awaited streams of all runs.
#[derive(Debug, Default)]
pub(super) struct Registry(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    awaited: HashMap<Token, (u32, Sender<Arrival>)>,
    streams: u32,
}

/// The places of a run's streams, which are free again when it is dropped.
pub(super) struct Places<'a> {
    registry: &'a Registry,
    tokens: Vec<Token>,
}

impl Registry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits streams with these tokens, numbered from 0, and hands them to `to`.
    ///
    /// # Errors
    /// There is room for so many streams only, of `limit`.
    pub(super) fn expect(
        &self,
        tokens: Vec<Token>,
        to: &Sender<Arrival>,
        limit: u32,
    ) -> Result<Places<'_>, u32> {
        let mut state = self.state();
        let room = limit.saturating_sub(state.streams);
        let streams = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        if streams > room {
            return Err(room);
        }
        state.streams += streams;
        for (number, token) in (0..).zip(&tokens) {
            state.awaited.insert(*token, (number, to.clone()));
        }
        drop(state);
        Ok(Places { registry: self, tokens })
    }

    /// A stream has come with this token, which is good once. One that nobody awaits is dropped.
    pub(super) fn arrived(&self, token: &Token, socket: TcpStream) {
        let awaited = self.state().awaited.remove(token);
        if let Some((number, to)) = awaited {
            // A session that has ended meanwhile wants no streams.
            let _ = to.send((number, socket));
        }
    }
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        let mut state = self.registry.state();
        state.streams -= u32::try_from(self.tokens.len()).unwrap_or(u32::MAX);
        for token in &self.tokens {
            state.awaited.remove(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_os::socket::connected_pair;
    use std::sync::mpsc::channel;

    #[test]
    fn a_token_is_good_once_and_while_its_run_lasts() {
        let registry = Registry::default();
        let (to, arrivals) = channel();
        let socket = || connected_pair(None).unwrap().0;
        let places = registry.expect(vec![[1; 16], [2; 16]], &to, 2).unwrap();
        registry.arrived(&[2; 16], socket());
        registry.arrived(&[2; 16], socket());
        registry.arrived(&[3; 16], socket());
        assert_eq!(arrivals.try_iter().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
        drop(places);
        registry.arrived(&[1; 16], socket());
        assert!(arrivals.try_recv().is_err());
    }

    #[test]
    fn there_are_no_more_streams_than_are_allowed() {
        let registry = Registry::default();
        let (to, _arrivals) = channel();
        let first = registry.expect(vec![[1; 16], [2; 16]], &to, 3).unwrap();
        assert_eq!(registry.expect(vec![[3; 16], [4; 16]], &to, 3).err(), Some(1));
        let second = registry.expect(vec![[3; 16]], &to, 3).unwrap();
        drop(first);
        assert!(registry.expect(vec![[5; 16], [6; 16]], &to, 3).is_ok());
        drop(second);
    }
}
