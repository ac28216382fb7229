//! What is wrong in a TOML file that serde reads, as `FILE:LINE:COLUMN: REASON`.

use crate::{nearest, unclosed::Unclosed};

/// `FILE:LINE:COLUMN: what is wrong`, with the nearest key where one is unknown.
#[must_use]
pub fn toml_fault(file: &str, text: &str, error: &toml::de::Error) -> String {
    // Only a file that the parser refused has one.
    let unclosed = Unclosed::find(text);
    let offset = unclosed.map(|unclosed| unclosed.offset).or_else(|| error.span().map(|span| span.start));
    let before = offset.and_then(|offset| text.get(..offset)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
    // serde writes: unknown field `conections`, expected one of `connections`, `files`
    let unclosed = unclosed.map(|unclosed| unclosed.message());
    let message = unclosed.as_deref().unwrap_or(error.message());
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let near = match quoted.split_first() {
        Some((unknown, allowed)) if message.starts_with("unknown field") => {
            nearest(unknown, allowed.iter().copied())
        }
        _ => None,
    };
    let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
    format!("{file}:{line}:{column}: {}{hint}", message.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_its_place() {
        let text = "a = 1\nb = = 2\n";
        let error = toml::from_str::<toml::Table>(text).unwrap_err();
        let fault = toml_fault("x.toml", text, &error);
        assert!(fault.starts_with("x.toml:2:5: "), "{fault}");
        let text = "a = [1, 2\nb = 3\n";
        let error = toml::from_str::<toml::Table>(text).unwrap_err();
        let fault = toml_fault("x.toml", text, &error);
        assert!(fault.starts_with("x.toml:1:5: this [ is never closed"), "{fault}");
    }
}
