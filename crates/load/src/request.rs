//! Requests as they are sent: made once, but for their range.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{plan::RangeChoice, target::Target};

/// A part of a file: first and last offset.
pub(crate) type Span = (u64, u64);

/// The request for one URL.
#[derive(Debug)]
pub(crate) struct RequestForm {
    /// Everything but the range and the empty line.
    head: Vec<u8>,
    range: Option<RangeChoice>,
    /// The file's length, once a response told it; 0 before.
    length_bytes: AtomicU64,
}

impl RequestForm {
    pub(crate) fn new(
        target: &Target,
        headers: &[(String, String)],
        range: Option<RangeChoice>,
        close: bool,
    ) -> Self {
        let mut head = format!("GET {} HTTP/1.1\r\n", target.path);
        let given = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let mut add = |name: &str, value: &str| {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        };
        if !given("host") {
            add("Host", &target.authority());
        }
        if !given("user-agent") {
            add("User-Agent", concat!("linerate/", env!("CARGO_PKG_VERSION")));
        }
        if close && !given("connection") {
            add("Connection", "close");
        }
        for (name, value) in headers {
            add(name, value);
        }
        Self { head: head.into_bytes(), range, length_bytes: AtomicU64::new(0) }
    }

    /// Appends a request to `outgoing`, and says which part it asks for.
    pub(crate) fn write(&self, random: &mut Random, outgoing: &mut Vec<u8>) -> Option<Span> {
        outgoing.extend_from_slice(&self.head);
        let span = self.span(random);
        if let Some((first, last)) = span {
            // Writing to a Vec cannot fail.
            let _ = write!(outgoing, "Range: bytes={first}-{last}\r\n");
        }
        outgoing.extend_from_slice(b"\r\n");
        span
    }

    fn span(&self, random: &mut Random) -> Option<Span> {
        match self.range? {
            RangeChoice::Fixed { first, last } => Some((first, last)),
            RangeChoice::Random { size_bytes } => {
                // As long as the length is not known, the beginning: the first response tells.
                let places = self.length_bytes.load(Ordering::Relaxed).saturating_sub(size_bytes) + 1;
                let first = random.below(places);
                Some((first, first.saturating_add(size_bytes - 1)))
            }
        }
    }

    /// Remembers the length of the whole file.
    pub(crate) fn learn_length(&self, length_bytes: u64) {
        self.length_bytes.store(length_bytes, Ordering::Relaxed);
    }
}

/// Whether a header may be sent as it is.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("{name:?} is no name of a header: write -H 'Name: value'"));
    }
    if value.bytes().any(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
        return Err(format!("the value of {name} has a control character in it"));
    }
    if ["content-length", "transfer-encoding", "expect"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return Err(format!("{name} cannot be sent: the requests have no body"));
    }
    Ok(())
}

/// Numbers that need not surprise anybody (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(number) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: &RequestForm, random: &mut Random) -> (String, Option<Span>) {
        let mut outgoing = Vec::new();
        let span = form.write(random, &mut outgoing);
        (String::from_utf8(outgoing).unwrap(), span)
    }

    #[test]
    fn a_request_has_what_it_needs_and_what_was_asked_for() {
        let target: Target = "http://h:81/f".parse().unwrap();
        let agent = concat!("User-Agent: linerate/", env!("CARGO_PKG_VERSION"), "\r\n");
        let form = RequestForm::new(&target, &[], None, false);
        let expected = format!("GET /f HTTP/1.1\r\nHost: h:81\r\n{agent}\r\n");
        assert_eq!(written(&form, &mut Random::new(1)), (expected, None));
        let headers = [("host", "other"), ("User-AGENT", "me"), ("X-A", "b")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let fixed = Some(RangeChoice::Fixed { first: 5, last: 9 });
        let form = RequestForm::new(&target, &headers, fixed, true);
        let expected = "GET /f HTTP/1.1\r\nConnection: close\r\nhost: other\r\nUser-AGENT: me\r\nX-A: b\r\n\
                        Range: bytes=5-9\r\n\r\n";
        assert_eq!(written(&form, &mut Random::new(1)), (expected.to_owned(), Some((5, 9))));
    }

    #[test]
    fn random_ranges_cover_the_file_and_stay_in_it() {
        let target: Target = "http://h/f".parse().unwrap();
        let form = RequestForm::new(&target, &[], Some(RangeChoice::Random { size_bytes: 10 }), false);
        let mut random = Random::new(7);
        assert_eq!(written(&form, &mut random).1, Some((0, 9)), "the length is not known yet");
        form.learn_length(20);
        let mut seen = [false; 11];
        for _ in 0..500 {
            let (first, last) = written(&form, &mut random).1.unwrap();
            assert_eq!(last, first + 9);
            seen[first as usize] = true;
        }
        assert_eq!(seen, [true; 11]);
        form.learn_length(3);
        assert_eq!(written(&form, &mut random).1, Some((0, 9)), "the server cuts it");
    }

    #[test]
    fn headers_that_would_break_the_request_are_refused() {
        assert!(check_header("X-Name", "any thing; ä").is_ok());
        for (name, value) in
            [("", "x"), ("a b", "x"), ("a:", "x"), ("a", "x\r\ny"), ("a", "\0"), ("Content-Length", "3")]
        {
            assert!(check_header(name, value).is_err(), "{name:?} {value:?}");
        }
    }
}
