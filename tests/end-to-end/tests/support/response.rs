//! A response as it came over the wire, taken apart without any kindness.

/// One response.
#[derive(Debug)]
pub(crate) struct Response {
    /// The status code.
    pub(crate) status: u16,
    /// The status line and all header lines, as sent.
    pub(crate) head: String,
    /// As many bytes of the body as came.
    pub(crate) body: Vec<u8>,
    /// Whether the body came whole.
    pub(crate) complete: bool,
    fields: Vec<(String, String)>,
}

impl Response {
    /// From a head with its empty line.
    #[track_caller]
    pub(crate) fn parse(head: &[u8]) -> Self {
        let head = String::from_utf8(head.to_vec()).expect("heads are ASCII");
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok())
            .unwrap_or_else(|| panic!("no status line: {status_line:?}"));
        let fields = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no header: {line:?}"));
                assert!(!name.contains(' '), "{line:?}");
                (name.to_ascii_lowercase(), value.to_owned())
            })
            .collect();
        Self { status, head: head.clone(), body: Vec::new(), complete: false, fields }
    }

    /// The only value of a header; a header that is repeated fails the test.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        let mut values =
            self.fields.iter().filter(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        let first = values.next();
        assert_eq!(values.next(), None, "{name} is repeated in\n{}", self.head);
        first
    }

    /// A header that has to be there.
    #[track_caller]
    pub(crate) fn expect(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| panic!("{name} is missing in\n{}", self.head))
    }

    /// Content-Length.
    #[track_caller]
    pub(crate) fn content_length(&self) -> Option<usize> {
        self.header("Content-Length").map(|value| value.parse().expect("a number"))
    }

    /// Whether the server says that it will close.
    pub(crate) fn closes(&self) -> bool {
        self.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The bytes that must follow the head.
    #[track_caller]
    pub(super) fn body_bytes(&self) -> usize {
        assert_eq!(self.header("Transfer-Encoding"), None, "{}", self.head);
        match self.status {
            100..=199 | 204 | 304 => 0,
            // The server never leaves the length to the connection's end.
            _ => self.content_length().unwrap_or_else(|| panic!("no Content-Length in\n{}", self.head)),
        }
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Fails unless the body came whole and is exactly this.
    #[track_caller]
    pub(crate) fn assert_is(&self, status: u16, body: &[u8]) {
        assert_eq!(self.status, status, "{}{}", self.head, self.text());
        assert!(self.complete, "the body is cut after {} bytes:\n{}", self.body.len(), self.head);
        assert_eq!(self.body.len(), body.len(), "{}", self.head);
        assert!(self.body == body, "the body differs:\n{}", self.head);
    }
}

/// One part of multipart/byteranges.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Content-Range.
    pub(crate) range: String,
    /// Content-Type.
    pub(crate) media_type: String,
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
}

/// Takes a multipart/byteranges body apart by the length that each part's Content-Range gives, so that a boundary in
/// the data means nothing.
#[track_caller]
pub(crate) fn parse_multipart(response: &Response) -> Vec<Part> {
    let media_type = response.expect("Content-Type");
    let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let mut rest = &response.body[..];
    let mut parts = Vec::new();
    let opening = format!("--{boundary}\r\n");
    let next = format!("\r\n--{boundary}\r\n");
    let closing = format!("\r\n--{boundary}--\r\n");
    loop {
        let expected = if parts.is_empty() { &opening } else { &next };
        let Some(behind) = rest.strip_prefix(expected.as_bytes()) else {
            assert_eq!(rest, closing.as_bytes(), "the end of the body");
            return parts;
        };
        let head_bytes =
            behind.windows(4).position(|window| window == b"\r\n\r\n").expect("a part's head") + 4;
        let head = std::str::from_utf8(&behind[..head_bytes]).expect("a part's head is ASCII");
        let field = |name: &str| {
            let line = head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("{name} in {head:?}")).to_owned()
        };
        let range = field("Content-Range");
        let (first, last) = range
            .strip_prefix("bytes ")
            .and_then(|range| range.split_once('/'))
            .and_then(|(range, _)| range.split_once('-'))
            .expect("a range");
        let length = last.parse::<usize>().unwrap() - first.parse::<usize>().unwrap() + 1;
        let (bytes, behind) = behind[head_bytes..].split_at(length);
        parts.push(Part { range, media_type: field("Content-Type"), bytes: bytes.to_vec() });
        rest = behind;
    }
}
