//! What a client asks of a listing: its order and its format.

/// By what a listing is sorted. Directories always come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortKey {
    /// By name, numbers in it by their value.
    #[default]
    Name,
    /// By length in bytes.
    Size,
    /// By time of modification.
    Date,
}

/// In which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortOrder {
    /// From A, from small, from old.
    #[default]
    Ascending,
    /// The other way.
    Descending,
}

/// The form of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListingFormat {
    /// A page for people.
    #[default]
    Html,
    /// For programs.
    Json,
}

/// What a client asks of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListingView {
    /// By what it is sorted.
    pub key: SortKey,
    /// In which direction.
    pub order: SortOrder,
    /// Its form.
    pub format: ListingFormat,
}

impl ListingView {
    /// Reads `?sort=name|size|date&order=asc|desc&format=html|json`; what is unknown or missing is left at its default,
    /// as a listing is no place for error messages. Without `format` the Accept header decides, and a response must say
    /// `Vary: Accept`.
    #[must_use]
    pub fn parse(query: Option<&[u8]>, accept: Option<&[u8]>) -> Self {
        let mut view = Self::default();
        if accept.is_some_and(prefers_json) {
            view.format = ListingFormat::Json;
        }
        for parameter in query.unwrap_or_default().split(|&byte| byte == b'&') {
            match parameter {
                b"sort=name" => view.key = SortKey::Name,
                b"sort=size" => view.key = SortKey::Size,
                b"sort=date" => view.key = SortKey::Date,
                b"order=asc" => view.order = SortOrder::Ascending,
                b"order=desc" => view.order = SortOrder::Descending,
                b"format=html" => view.format = ListingFormat::Html,
                b"format=json" => view.format = ListingFormat::Json,
                _ => {}
            }
        }
        view
    }
}

/// Whether an Accept header names JSON and does not name HTML. A full comparison of weights is not worth its code:
/// browsers name HTML, and programs that want JSON name only that.
fn prefers_json(accept: &[u8]) -> bool {
    let names = |wanted: &[u8]| {
        accept.split(|&byte| byte == b',').any(|range| {
            let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
            named
                && !parts.any(|parameter| {
                    matches!(parameter, b"q=0" | b"q=0." | b"q=0.0" | b"q=0.00" | b"q=0.000")
                })
        })
    };
    names(b"application/json") && !names(b"text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str, accept: &str) -> ListingView {
        ListingView::parse(Some(query.as_bytes()), Some(accept.as_bytes()))
    }

    #[test]
    fn the_query_decides() {
        let expected =
            ListingView { key: SortKey::Size, order: SortOrder::Descending, format: ListingFormat::Html };
        assert_eq!(parse("sort=size&order=desc", ""), expected);
        assert_eq!(parse("order=desc&x=1&&sort=size&sort=", "text/html,*/*"), expected);
        assert_eq!(parse("sort=SIZE&order=up&format=xml", ""), ListingView::default());
        assert_eq!(ListingView::parse(None, None), ListingView::default());
        assert_eq!(parse("format=json", "text/html").format, ListingFormat::Json);
        assert_eq!(parse("format=html", "application/json").format, ListingFormat::Html);
    }

    #[test]
    fn accept_decides_where_the_query_is_silent() {
        for (accept, format) in [
            ("application/json", ListingFormat::Json),
            ("Application/JSON; q=0.5, */*;q=0.1", ListingFormat::Json),
            ("text/html, application/json", ListingFormat::Html),
            ("application/json;q=0", ListingFormat::Html),
            ("*/*", ListingFormat::Html),
            ("", ListingFormat::Html),
        ] {
            assert_eq!(parse("", accept).format, format, "{accept}");
        }
    }
}
