//! Places for connections and handshakes: counted for the whole server and for each address, and the handshakes that hold
//! some.

pub(crate) mod addresses;
pub(crate) mod handshakes;
pub(crate) mod totals;

/// What a handshake holds: a place of the server's, and one of its address where that has a limit.
pub(crate) type HandshakePlaces = (totals::Place, Option<addresses::AddressPlace>);
