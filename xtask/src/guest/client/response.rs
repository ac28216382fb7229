//! Requests, and the heads of their responses.

use std::io::{self, Read};

use anyhow::{Context, Result, bail};

/// The longest head that is accepted.
const HEAD_LIMIT_BYTES: usize = 16 * 1024;

/// A GET request.
pub(in crate::guest) fn request(host: &str, path: &str, close: bool) -> String {
    let close = if close { "Connection: close\r\n" } else { "" };
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{close}\r\n")
}

/// What is needed of a response's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::guest) struct Head {
    /// The status.
    pub(in crate::guest) status: u16,
    /// Length of the body.
    pub(in crate::guest) content_length: u64,
    /// Bytes of the head itself.
    pub(in crate::guest) head_bytes: usize,
}

impl Head {
    /// Parses the head at the beginning of `bytes`; `None` when it is not whole.
    pub(in crate::guest) fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head_bytes) =
            response.parse(bytes).context("that is no HTTP response")?
        else {
            if bytes.len() > HEAD_LIMIT_BYTES {
                bail!("the response's head is longer than {HEAD_LIMIT_BYTES} bytes");
            }
            return Ok(None);
        };
        let length =
            response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok());
        let content_length = length.context("the response has no Content-Length")?;
        Ok(Some(Self { status: response.code.unwrap_or(0), content_length, head_bytes }))
    }
}

/// Reads a response whole; `body` gets its bytes with their offsets. Nothing may follow it.
pub(in crate::guest) fn receive(
    source: &mut impl Read,
    scratch: &mut [u8],
    mut body: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Head> {
    let mut head_bytes = Vec::new();
    let head = loop {
        let received = source.read(scratch).context("the response did not come")?;
        if received == 0 {
            bail!("the connection was closed before the response");
        }
        head_bytes.extend_from_slice(&scratch[..received]);
        if let Some(head) = Head::parse(&head_bytes)? {
            break head;
        }
    };
    let first = &head_bytes[head.head_bytes..];
    body(0, first)?;
    let mut offset = first.len() as u64;
    while offset < head.content_length {
        let received = source.read(scratch).context("the body did not come")?;
        if received == 0 {
            bail!("the body ended after {offset} of {} bytes", head.content_length);
        }
        body(offset, &scratch[..received])?;
        offset += received as u64;
    }
    if offset > head.content_length {
        bail!("{} bytes follow the body", offset - head.content_length);
    }
    Ok(head)
}

/// Nothing may follow. nginx closes without close_notify at times; the length of what came has been checked already.
pub(in crate::guest) fn expect_end(source: &mut impl Read, scratch: &mut [u8]) -> Result<()> {
    match source.read(scratch) {
        Ok(0) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Ok(_) => bail!("bytes follow the body"),
        Err(error) => Err(error).context("the connection was not closed in order"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_whether_it_is_the_last() {
        let text = request("h:1", "/f", true);
        assert_eq!(text, "GET /f HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n");
        assert_eq!(request("h:1", "/f", false), "GET /f HTTP/1.1\r\nHost: h:1\r\n\r\n");
    }

    #[test]
    fn a_head_is_parsed_when_it_is_whole() {
        let text = b"HTTP/1.1 206 Partial Content\r\ncontent-LENGTH: 12\r\n\r\nbody";
        assert_eq!(Head::parse(&text[..20]).unwrap(), None);
        let head = Head::parse(text).unwrap().unwrap();
        assert_eq!(head, Head { status: 206, content_length: 12, head_bytes: text.len() - 4 });
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(Head::parse(b"\x15\x03\x03\x00").is_err());
    }

    #[test]
    fn a_body_is_received_in_pieces_and_checked_for_its_length() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for step in [1, 7, 100] {
            let mut found = Vec::new();
            let mut scratch = vec![0; step];
            receive(&mut &whole[..], &mut scratch, |offset, bytes| {
                assert_eq!(offset, found.len() as u64);
                found.extend_from_slice(bytes);
                Ok(())
            })
            .unwrap();
            assert_eq!(found, b"hello");
        }
        let mut scratch = [0; 64];
        assert!(receive(&mut &whole[..whole.len() - 1], &mut scratch, |_, _| Ok(())).is_err());
        let more = [whole.as_slice(), b"!"].concat();
        assert!(receive(&mut &more[..], &mut scratch, |_, _| Ok(())).is_err());
    }
}
