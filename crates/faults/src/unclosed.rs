//! The bracket or quote that a TOML file never closes. The parser takes the text behind it for part of it and reports faults
//! there, line after line. It does not say where the fault begins.

/// What is never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclosed {
    /// Where it stands in the text, in bytes.
    pub offset: usize,
    opening: &'static str,
    closing: &'static str,
}

impl Unclosed {
    /// What is wrong, and what to do.
    #[must_use]
    pub fn message(self) -> String {
        let Unclosed { opening, closing, .. } = self;
        if opening == closing {
            format!("the string that begins here does not end: {closing} is missing")
        } else {
            format!(
                "this {opening} is never closed: {closing} is missing, and what follows was read as part of it"
            )
        }
    }

    /// Finds the first, where the parser found `text` wrong.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let mut open = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let offset = text.len() - rest.len();
            let length = match first {
                '#' => line_bytes(rest),
                '"' | '\'' => match Quotes::of(rest).length(rest) {
                    Ok(length) => length,
                    Err(quote) => return Some(Unclosed { offset, opening: quote, closing: quote }),
                },
                '[' | '{' => {
                    let (opening, closing) = if first == '[' { ("[", "]") } else { ("{", "}") };
                    open.push(Unclosed { offset, opening, closing });
                    1
                }
                _ => {
                    if open.last().is_some_and(|unclosed: &Unclosed| rest.starts_with(unclosed.closing)) {
                        open.pop();
                    }
                    first.len_utf8()
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        open.first().copied()
    }
}

/// How a string is quoted (TOML 1.0, "String").
#[derive(Clone, Copy)]
struct Quotes {
    quote: &'static str,
    has_escapes: bool,
    has_lines: bool,
}

impl Quotes {
    /// Those that `text` begins with: a quote of either kind.
    fn of(text: &str) -> Self {
        let has_escapes = text.starts_with('"');
        let (quote, three) = if has_escapes { ("\"", "\"\"\"") } else { ("'", "'''") };
        let has_lines = text.starts_with(three);
        Quotes { quote: if has_lines { three } else { quote }, has_escapes, has_lines }
    }

    /// The length of the string that `text` begins with, its quotes included.
    ///
    /// # Errors
    /// It has no end; that is the quote that is missing.
    fn length(self, text: &str) -> Result<usize, &'static str> {
        let begin = self.quote.len();
        let mut characters = text.char_indices().skip_while(|(offset, _)| *offset < begin);
        while let Some((offset, character)) = characters.next() {
            if text[offset..].starts_with(self.quote) {
                return Ok(offset + self.quote.len());
            }
            match character {
                '\n' if !self.has_lines => break,
                '\\' if self.has_escapes => _ = characters.next(),
                _ => {}
            }
        }
        Err(self.quote)
    }
}

fn line_bytes(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_never_closed_is_found() {
        for (text, offset, missing) in [
            ("listen = [\"a\", \"b\"\nadmin = \"c\"\n[[site]]\nindex = [\"x\"]\n", 9, "] is missing"),
            ("[timeouts\nidle = \"1m\"\n", 0, "] is missing"),
            ("[[site]\nroot = \"/\"\n", 0, "] is missing"),
            ("a = [1, 2}\n", 4, "] is missing"),
            ("a = { b = [1, 2] # }\n", 4, "} is missing"),
            ("a = [\"x]\nb = \"y\"\n", 5, "\" is missing"),
            ("a = 'x\\'\nb = 'y\n", 13, "' is missing"),
            ("a = \"\"\"x\n\"\" [\n", 4, "\"\"\" is missing"),
            ("a = \"\\\"", 4, "\" is missing"),
            ("ä = [ö", 5, "] is missing"),
        ] {
            let unclosed = Unclosed::find(text).unwrap();
            assert_eq!(unclosed.offset, offset, "{text}");
            assert!(unclosed.message().contains(missing), "{text}: {}", unclosed.message());
        }
    }

    #[test]
    fn what_is_closed_is_not_found() {
        for text in [
            "",
            "a = [1, [2, { b = \"]\" }], '[']\n[t]\n[[u]]\n",
            "a = \"\\\"[\" # [\nb = 'C:\\'\n",
            "a = \"\"\"[\n\" \\\"\"\" [\"\"\"\nb = '''\n{'''\n",
            "a = ]",
        ] {
            assert_eq!(Unclosed::find(text), None, "{text}");
        }
    }
}
