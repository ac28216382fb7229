//! The small page that a person sees in place of a file: errors and redirects.

use crate::status::Status;

/// One page, no outside resources, light or dark as the reader's system is.
const STYLE: &str = include_str!("page.css");

/// What the page may load: its own style sheet (by its SHA-256) and an icon of nothing.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; \
     style-src 'sha256-e5+EbwUYfvoIty5iwEG7lDmuKVvAhRWf4SpMGWtH1U4='; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Where the page leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link<'a> {
    /// Nowhere: the reader is there already, or nothing here answers.
    None,
    /// To the root of the site.
    Home,
    /// To this address.
    To(&'a str),
}

/// The page for `status`. `explanation` and `link` are escaped here.
pub(crate) fn html_page(status: Status, explanation: &str, link: Link<'_>) -> String {
    let (code, reason) = (status.code(), status.reason());
    // An icon of nothing: the browser asks the server for /favicon.ico otherwise.
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{code} {reason}</title>\n<style>{STYLE}</style>\n\
         <main>\n<h1><b>{code}</b>{reason}</h1>\n<p>{}</p>\n",
        escape_html(explanation)
    );
    match link {
        Link::None => {}
        Link::Home => page.push_str("<p><a href=\"/\">Home</a></p>\n"),
        Link::To(address) => {
            let address = escape_html(address);
            page.push_str(&format!("<p><a href=\"{address}\">{address}</a></p>\n"));
        }
    }
    page.push_str("</main>\n</html>\n");
    page
}

/// `text` with the five characters replaced that mean something in HTML text and in quoted attributes.
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_all_that_html_would_read() {
        assert_eq!(escape_html("<a href=\"x\">'&ä"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;ä");
        let page = html_page(Status::NotFound, "No <script> here.", Link::To("/\"><script>"));
        assert!(page.contains("<title>404 Not Found</title>"));
        assert!(page.contains("No &lt;script&gt; here."));
        assert!(!page.contains("<script>"));
    }
    #[test]
    fn a_page_leads_home_where_there_is_one() {
        let page = |link| html_page(Status::NotFound, "", link);
        assert!(page(Link::Home).contains("<a href=\"/\">Home</a>"));
        assert!(!page(Link::None).contains("<a "));
    }

    #[test]
    fn the_policy_allows_the_style_sheet_that_is_there() {
        let page = html_page(Status::NotFound, "", Link::Home);
        let (_, rest) = page.split_once("<style>").unwrap();
        let (style, _) = rest.split_once("</style>").unwrap();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, style.as_bytes());
        let allowed = CONTENT_SECURITY_POLICY.split("'sha256-").nth(1).unwrap().split('\'').next().unwrap();
        assert_eq!(allowed, base64(digest.as_ref()));
        assert!(!page.contains(" style="), "the policy allows no other style");
    }

    /// RFC 4648 section 4.
    fn base64(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - group.len()));
            for place in 0..4 {
                let letter = if place <= group.len() {
                    ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]
                } else {
                    b'='
                };
                text.push(char::from(letter));
            }
        }
        text
    }
}
