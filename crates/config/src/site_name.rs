//! The names that a site answers to, as they come by SNI and Host.

use crate::Error;
use crate::choice::shortened;

/// Checks a site's name and gives it in lower case.
///
/// A name is a host name in its ASCII form (RFC 1123, RFC 5890), or one with `*` for the whole leftmost label
/// (RFC 9525 section 6.3).
pub(crate) fn parse(text: &str) -> Result<String, Error> {
    let refused = |reason: &str| Err(Error::value(format!("site name \"{}\" {reason}", shortened(text))));
    if text.parse::<std::net::IpAddr>().is_ok() {
        return refused(
            "is an IP address: SNI has none, the default site (the one without names) answers to them",
        );
    }
    if !text.is_ascii() {
        return refused("is not ASCII: write it as clients send it, with xn--");
    }
    if text == "*" {
        return refused("is no name: the site without names answers to all that no other has");
    }
    let labels = text.strip_prefix("*.").unwrap_or(text);
    if labels.contains('*') {
        return refused("has * elsewhere than as its whole first label, like *.example.org");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() > 253 || !labels.split('.').all(is_label) {
        return refused(
            "is no host name: write it without scheme, port and final dot, like media.example.org",
        );
    }
    Ok(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn host_names_are_taken_in_lower_case() {
        assert_eq!(parse("Media.Example.ORG").unwrap(), "media.example.org");
        assert_eq!(parse("*.example.org").unwrap(), "*.example.org");
        assert_eq!(parse("localhost").unwrap(), "localhost");
        assert_eq!(parse("xn--bcher-kva.example").unwrap(), "xn--bcher-kva.example");
        assert!(parse(&format!("{}.org", "a".repeat(63))).is_ok());
    }

    #[test]
    fn the_rest_is_refused_in_words() {
        for (text, words) in [
            ("", "is no host name"),
            ("example.org.", "is no host name"),
            ("example..org", "is no host name"),
            ("example.org:443", "is no host name"),
            ("https://example.org", "is no host name"),
            ("-a.org", "is no host name"),
            ("*", "is no name: the site without names"),
            ("a.*.org", "has * elsewhere"),
            ("*.*.org", "has * elsewhere"),
            ("bücher.example", "is not ASCII"),
            ("192.0.2.1", "is an IP address"),
            ("::1", "is an IP address"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
        assert!(parse(&format!("{}.org", "a".repeat(64))).is_err());
        assert!(parse(&["a"; 130].join(".")).is_err());
    }
}
