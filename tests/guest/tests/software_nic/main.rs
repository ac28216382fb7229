//! The software adapter (`nic/`), with real servers before it and real clients behind it: every feature of it, and
//! that bytes are equal whatever happens to the connection.

mod calibrate;
mod fixture;
mod life;
mod limits;
mod nic_engine;
mod placement;
mod transfers;
mod trouble;
mod upper_devices;
