//! HTTP/1.1 without I/O: from bytes received to a request, from a request and a representation to the head of
//! the response and a plan of its body.
//!
//! Nothing here touches a socket, a file or a clock. The way of a request:
//!
//! 1. [`parse_request`] borrows a [`Request`] from the receive buffer, or says which rule was broken
//!    ([`RequestError`]).
//! 2. [`decode_path`] turns its path into a file name relative to the root.
//! 3. [`AcceptedCodings`] and [`MediaTypes`] choose the representation.
//! 4. [`Responder::file`] weighs conditions and ranges, appends the head to a buffer and returns a [`ResponsePlan`].
//! 5. [`BodyDrain`] skips the request's body, if there was one, before the next request is looked for.
//!
//! The rules are those of RFC 9110 (semantics) and RFC 9112 (HTTP/1.1); where they leave a choice, the
//! stricter one is taken for all that decides where a message ends.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod body;
mod coding;
mod conditional;
mod date;
mod error;
mod field_lines;
mod fields;
mod file_response;
mod header_block;
mod header_field;
mod media_type;
mod page;
mod path;
mod range;
mod request;
mod response;
mod setting_error;
mod status;
mod target;
mod version;

pub use body::{BodyDrain, BodyFraming, Drained, FRAMING_LIMIT_BYTES};
pub use coding::{AcceptedCodings, Coding};
pub use conditional::{Conditions, EntityTag, Precondition, Validators};
pub use date::ImfFixdate;
pub use error::RequestError;
pub use field_lines::{FIELD_LINES_LIMIT, FieldLines};
pub use file_response::Representation;
pub use header_block::HeaderBlock;
pub use header_field::{HeaderField, HeaderName};
pub use media_type::{MediaType, MediaTypes};
pub use page::escape_html;
pub use path::{DecodedPath, decode_path, encode_path};
pub use range::{ByteRange, DEFAULT_RANGES_LIMIT, RANGES_CAP, Selection, select_ranges};
pub use request::{HEADER_COUNT_CAP, Method, Request, RequestLimits, looks_like_http, parse_request};
pub use response::{Body, Multipart, Part, Responder, ResponsePlan};
pub use setting_error::{HeaderValueFault, SettingError};
pub use status::Status;
pub use target::Authority;
pub use version::Version;
