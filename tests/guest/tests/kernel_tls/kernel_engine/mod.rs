//! linerate's kernel engine, where there is a kernel for it.

mod calibrate;
mod faults;
mod fixture;
mod key_updates;
mod load;
mod matrix;
mod operation;
mod placement;
mod record_limit;
mod records;
