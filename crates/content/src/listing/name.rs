//! Names as they are shown: whatever has no shape of its own, or changes how other characters are laid out, is written out
//! so that a person sees it. `U+202E` in a name turns round what follows: `ann<U+202E>txt.exe` reads as `annexe.txt`.

use linerate_http::escape_html;

/// Controls, the formatting characters of bidirectional text (Unicode Standard Annex 9), and characters of no width that
/// make two names look the same. The joiners U+200C and U+200D are no part of it: scripts and emoji need them.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
}

/// What a hidden character is shown as: its number, which every font can show. (Few have the pictures of controls.)
fn shown(character: char) -> String {
    format!("U+{:04X}", u32::from(character))
}

/// A name as HTML text, for a place of its own (`<bdi>`): hidden characters are set apart by `<b>`, so that none can be
/// mistaken for a name that is spelt that way. Bytes that are not UTF-8 are U+FFFD.
pub(super) fn html(name: &[u8]) -> String {
    replaced(name, |character| format!("<b>{}</b>", shown(character)))
}

/// A name as HTML text where there can be no elements: hidden characters stand in brackets.
pub(super) fn plain_html(name: &[u8]) -> String {
    replaced(name, |character| format!("[{}]", shown(character)))
}

fn replaced(name: &[u8], show: impl Fn(char) -> String) -> String {
    let text = String::from_utf8_lossy(name);
    let mut page = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((at, character)) = rest.char_indices().find(|(_, character)| is_hidden(*character)) {
        page.push_str(&escape_html(&rest[..at]));
        page.push_str(&show(character));
        rest = &rest[at + character.len_utf8()..];
    }
    page.push_str(&escape_html(rest));
    page
}

/// A JSON document with hidden characters escaped. They can stand in its strings only, so it says the same as before,
/// and a person who looks at it, or a terminal that it is printed on, is not deceived.
pub(super) fn escaped_json(document: String) -> String {
    if !document.contains(is_hidden) {
        return document;
    }
    let mut escaped = String::with_capacity(document.len() + 64);
    for character in document.chars() {
        if is_hidden(character) {
            // None is beyond the Basic Multilingual Plane, so four digits do.
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (name, expected) in [
            ("plain <b>.txt", "plain &lt;b&gt;.txt"),
            ("ann\u{202e}txt.exe", "ann<b>U+202E</b>txt.exe"),
            ("a\u{1b}[31m\n", "a<b>U+001B</b>[31m<b>U+000A</b>"),
            ("\u{7f}\u{85}", "<b>U+007F</b><b>U+0085</b>"),
            ("\u{2066}x\u{2069}&", "<b>U+2066</b>x<b>U+2069</b>&amp;"),
            // Scripts that run from right to left, and joined characters, are names like any other.
            ("שלום.txt", "שלום.txt"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("👨\u{200d}👩\u{200d}👧", "👨\u{200d}👩\u{200d}👧"),
        ] {
            assert_eq!(html(name.as_bytes()), expected);
        }
        assert_eq!(html(b"\xff\x01"), "\u{fffd}<b>U+0001</b>");
        assert_eq!(plain_html("a\u{202e}<".as_bytes()), "a[U+202E]&lt;");
    }

    #[test]
    fn json_says_the_same_as_before() {
        let names = ["plain", "ann\u{202e}txt.exe", "\u{1b}\u{7f}\u{85}\u{2028}", "\\u202e", "👨\u{200d}👩"];
        let document = serde_json::to_string(&names).unwrap_or_default();
        let escaped = escaped_json(document);
        assert!(!escaped.contains(is_hidden), "{escaped}");
        assert_eq!(
            serde_json::from_str::<Vec<String>>(&escaped).ok(),
            Some(names.map(str::to_owned).to_vec())
        );
    }
}
