//! The small page that a person sees in place of a file: errors and redirects.

use crate::status::Status;

/// One page, no outside resources, light or dark as the reader's system is.
const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;margin:12vh auto;max-width:34rem;padding:0 1.5rem;\
color-scheme:light dark}h1{font-size:1.4rem;font-weight:600}b{color:#888;font-weight:600;margin-right:.6rem}";

/// The page for `status`. `explanation` and `link` are escaped here.
pub(crate) fn html_page(status: Status, explanation: &str, link: Option<&str>) -> String {
    let (code, reason) = (status.code(), status.reason());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{code} {reason}</title><style>{STYLE}</style></head>\n\
         <body><h1><b>{code}</b>{reason}</h1><p>"
    );
    page.push_str(&escape_html(explanation));
    if let Some(link) = link {
        let link = escape_html(link);
        page.push_str(&format!("</p>\n<p><a href=\"{link}\">{link}</a>"));
    }
    page.push_str("</p></body></html>\n");
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
        let page = html_page(Status::NotFound, "No <script> here.", Some("/\"><script>"));
        assert!(page.contains("<title>404 Not Found</title>"));
        assert!(page.contains("No &lt;script&gt; here."));
        assert!(!page.contains("<script>"));
    }
}
