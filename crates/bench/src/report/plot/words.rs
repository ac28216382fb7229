//! How wide words are. Fonts differ from machine to machine: the estimate is on the wide side.

/// The width of `text` in pixels at this size of letters.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(letter).sum::<f64>() * size
}

fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.32,
        'f' | 't' | 'r' | '"' | '(' | ')' | '[' | ']' | '/' | '-' | '–' | '·' => 0.46,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        '<' | '>' | '&' | '+' | '=' | '~' | '^' | '#' => 0.87,
        'A'..='Z' | '_' | '×' | '…' => 0.74,
        letter if letter.is_ascii() => 0.64,
        // Ideographs and what else is not Latin may be as wide as high.
        letter if u32::from(letter) > 0x2e80 => 1.05,
        _ => 0.7,
    }
}

/// `text`, cut short with an ellipsis where it is wider than `room`.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = width("…", size);
    for next in text.chars() {
        used += letter(next) * size;
        if used > room {
            break;
        }
        kept.push(next);
    }
    format!("{}…", kept.trim_end())
}

/// `text` in lines no wider than `room`; a longer word has a line of its own.
pub(super) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.into_iter().map(|line| fit(&line, size, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_wide_is_cut() {
        assert_eq!(fit("nginx", 12.0, 100.0), "nginx");
        let cut = fit("nginx with kernel TLS and sendfile", 12.0, 100.0);
        assert!(cut.ends_with('…') && cut.starts_with("nginx with") && width(&cut, 12.0) <= 100.0, "{cut}");
        assert!(width(&fit("日本語のサーバーの名前", 12.0, 60.0), 12.0) <= 60.0);
    }

    #[test]
    fn lines_stay_within_the_room() {
        let lines = wrap("Bodies were thrown away unread: the sender is what was measured", 11.0, 120.0);
        assert!(lines.len() >= 3 && lines.iter().all(|line| width(line, 11.0) <= 120.0), "{lines:?}");
        assert!(wrap("", 11.0, 100.0).is_empty());
    }
}
