//! NFS connections: TLS on the same connection, who is refused and how, keys, reloads. The client is of these tests' own; what Linux'
//! client makes of the server is tested in guests (`tests/guest/tests/nfs`).

mod calls;
mod clients;
mod keys;
mod load;
mod peer;
mod reloads;
