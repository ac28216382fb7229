//! `getdents64`, whose entries have a cookie each (`d_off`).

pub use rustix::fs::RawDir as Entries;
