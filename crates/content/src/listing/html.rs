//! The page: one self-contained document without a script, so that any Content-Security-Policy can be kept.

use std::fmt::{self, Write};

use linerate_figures::{binary_bytes, count};
use linerate_http::encode_path;

use super::icon::SYMBOLS;
use super::times::{ShortTimestamp, Timestamp};
use super::view::{ListingView, SortKey, SortOrder};
use super::{ListedEntry, Listing, name};

const STYLE: &str = include_str!("style.css");

/// The Content-Security-Policy a listing is to be sent with: its own style sheet (by its SHA-256) and nothing else.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; \
     style-src 'sha256-b5mhIJNRZ3k0ZaF+VhSEacnhPopoVJUZWbWmzAQwGMQ='; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A typical row, to reserve memory by.
const ROW_BYTES: usize = 320;

pub(super) fn render(listing: &Listing, view: ListingView) -> String {
    let mut page =
        String::with_capacity(STYLE.len() + SYMBOLS.len() + 2048 + listing.entries.len() * ROW_BYTES);
    // Writing to a String cannot fail.
    let _ = write_page(&mut page, listing, view);
    page
}

fn write_page(page: &mut String, listing: &Listing, view: ListingView) -> fmt::Result {
    page.write_str("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n")?;
    page.write_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")?;
    // An icon of nothing: the browser asks the server for /favicon.ico otherwise.
    page.write_str("<link rel=\"icon\" href=\"data:,\">\n")?;
    writeln!(page, "<title>Index of /{}</title>", name::plain_html(&listing.relative))?;
    write!(page, "<style>{STYLE}</style>\n{SYMBOLS}<main>\n")?;
    write_breadcrumb(page, listing)?;
    page.write_str("<table>\n<thead><tr>")?;
    write_column(page, view, SortKey::Name, "Name", "name")?;
    write_column(page, view, SortKey::Size, "Size", "size")?;
    write_column(page, view, SortKey::Date, "Modified", "date")?;
    page.write_str("</tr></thead>\n<tbody>\n")?;
    if !listing.relative.is_empty() {
        page.write_str(
            "<tr class=\"parent\"><td><a href=\"../\"><svg aria-hidden=\"true\"><use href=\"#up\"/></svg>",
        )?;
        page.write_str(
            "<bdi>Parent directory</bdi></a></td><td class=\"size\"></td><td class=\"date\"></td></tr>\n",
        )?;
    }
    for entry in &listing.entries {
        write_row(page, entry)?;
    }
    if listing.entries.is_empty() {
        page.write_str("<tr><td class=\"empty\" colspan=\"3\">This directory is empty.</td></tr>\n")?;
    }
    page.write_str("</tbody>\n</table>\n")?;
    write_totals(page, listing)?;
    page.write_str("</main>\n</html>\n")
}

/// The path, each directory a link. The links are relative, so they hold under whatever prefix the root is served.
fn write_breadcrumb(page: &mut String, listing: &Listing) -> fmt::Result {
    let depth = listing.segments().count();
    write!(page, "<h1><a href=\"./{}\">Index</a>", "../".repeat(depth))?;
    for (position, segment) in listing.segments().enumerate() {
        let up = depth - position - 1;
        page.write_str("<i>/</i>")?;
        if up == 0 {
            write!(page, "<bdi>{}</bdi>", name::html(segment))?;
        } else {
            write!(page, "<a href=\"{}\"><bdi>{}</bdi></a>", "../".repeat(up), name::html(segment))?;
        }
    }
    page.write_str("</h1>\n")
}

/// The head of a column: a link that sorts by it, or turns the order round if the page is sorted by it already.
fn write_column(page: &mut String, view: ListingView, key: SortKey, title: &str, name: &str) -> fmt::Result {
    let sorted_by_this = view.key == key;
    // The first click shows what people look for: A first, the largest, the newest.
    let descending = match (sorted_by_this, view.order) {
        (true, SortOrder::Ascending) => true,
        (true, SortOrder::Descending) => false,
        (false, _) => key != SortKey::Name,
    };
    let order = if descending { "desc" } else { "asc" };
    let sort = match (sorted_by_this, view.order) {
        (false, _) => "",
        (true, SortOrder::Ascending) => " aria-sort=\"ascending\"",
        (true, SortOrder::Descending) => " aria-sort=\"descending\"",
    };
    write!(page, "<th class=\"{name}\" scope=\"col\"{sort}>")?;
    write!(page, "<a href=\"?sort={name}&amp;order={order}\" rel=\"nofollow\">{title}</a></th>")
}

fn write_row(page: &mut String, entry: &ListedEntry) -> fmt::Result {
    let (class, slash) = if entry.is_directory { (" class=\"directory\"", "/") } else { ("", "") };
    write!(page, "<tr{class}><td><a href=\"{}{slash}\">{}", encode_path(&entry.name), entry.icon)?;
    write!(page, "<bdi>{}{slash}</bdi></a></td>", name::html(&entry.name))?;
    if entry.is_directory {
        page.write_str("<td class=\"size\"></td>")?;
    } else {
        let (size, exact) = (binary_bytes(entry.length_bytes as f64, 3), count(entry.length_bytes));
        write!(page, "<td class=\"size\" title=\"{exact} bytes\">{size}</td>")?;
    }
    let (short, exact) = (ShortTimestamp(entry.modified), Timestamp(entry.modified));
    writeln!(page, "<td class=\"date\"><time datetime=\"{exact}\" title=\"{exact}\">{short}</time></td></tr>")
}

fn write_totals(page: &mut String, listing: &Listing) -> fmt::Result {
    let shown = count(listing.entries.len() as u64);
    if listing.left_out > 0 {
        let left_out = count(listing.left_out as u64);
        writeln!(
            page,
            "<p class=\"cut\">Only the first {shown} names are shown; {left_out} or more are not.</p>"
        )?;
    }
    let (files, directories) = (listing.file_count(), listing.directory_count());
    let total = listing.total_bytes();
    let plural = |count| if count == 1 { "" } else { "s" };
    write!(
        page,
        "<p><span title=\"{} bytes\">{} file{}, ",
        count(total),
        count(files as u64),
        plural(files)
    )?;
    write!(page, "{}</span>", binary_bytes(total as f64, 3))?;
    if directories > 0 {
        let noun = if directories == 1 { "directory" } else { "directories" };
        write!(page, " · {} {noun}", count(directories as u64))?;
    }
    page.write_str(" · times are UTC · <a href=\"?format=json\" rel=\"nofollow\">JSON</a></p>\n")
}
