//! The documented keys are the keys that are read, with the documented defaults.

use std::path::Path;

use linerate_config::{Flags, KEYS, Key, Section, Settings};

/// Whose certificates exports may ask for.
const EXPORT_AUTHORITIES: &str = "[nfs]\nclient_authorities = \"a\"\n";

/// A file that says `value` for `key`, and else only what has to be said.
fn file_with(key: &Key, value: &str) -> String {
    let Key { section, name, .. } = key;
    let site = "[[site]]\nroot = \"r\"\n";
    let heading = section.heading().0;
    match section {
        Section::Top => format!("{name} = {value}\n{site}"),
        Section::Site if *name == "root" => format!("[[site]]\nroot = {value}\n"),
        Section::Site => format!("{site}{name} = {value}\n"),
        Section::Certificates => {
            let other = if *name == "key" { "certificate" } else { "key" };
            format!("{site}certificates = [{{ {other} = \"other\", {name} = {value} }}]\n")
        }
        Section::Nfs => {
            format!("[nfs]\n{name} = {value}\n[[export]]\ndirectory = \"d\"\ncertificate = false\n")
        }
        Section::Export => {
            let directory = if *name == "directory" { "" } else { "directory = \"d\"\n" };
            format!("{EXPORT_AUTHORITIES}[[export]]\n{directory}{name} = {value}\n")
        }
        Section::Hsts if *name == "max_age" => format!("{site}hsts = {{ max_age = {value} }}\n"),
        Section::Hsts => {
            let include = if *name == "preload" { "include_subdomains = true, " } else { "" };
            format!("{site}hsts = {{ max_age = \"400d\", {include}{name} = {value} }}\n")
        }
        Section::Headers if *name == "path" => {
            format!("{site}headers = [{{ path = {value}, set = {{}} }}]\n")
        }
        Section::Headers if *name == "unset" => {
            format!("{site}headers = [{{ path = \"/\", set = {{}}, unset = {value} }}]\n")
        }
        Section::Headers => format!("{site}headers = [{{ path = \"/\", set = {value} }}]\n"),
        Section::CacheControl if *name == "path" => {
            format!("{site}cache_control = [{{ path = {value}, value = \"x\" }}]\n")
        }
        Section::CacheControl => format!("{site}cache_control = [{{ path = \"/\", value = {value} }}]\n"),
        _ => format!("{heading}\n{name} = {value}\n{site}"),
    }
}

/// The settings of `text`, in a form that leaves out where things were said.
fn told(text: &str) -> String {
    let settings = Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let debug = format!("{settings:#?}");
    let mut lines = Vec::new();
    let mut in_position = false;
    for line in debug.lines() {
        in_position |= line.contains("Position {");
        if !in_position {
            lines.push(line);
        }
        in_position &= !line.trim_start().starts_with("},");
    }
    lines.join("\n")
}

#[test]
fn every_default_is_what_holds_without_the_key() {
    let mut checked = 0;
    for key in KEYS.iter().filter(|key| !key.default.starts_with('(')) {
        let without = match key.section {
            Section::Hsts => {
                let include = if key.name == "preload" { "include_subdomains = true, " } else { "" };
                format!("[[site]]\nroot = \"r\"\nhsts = {{ {include}max_age = \"400d\" }}\n")
            }
            Section::Headers => "[[site]]\nroot = \"r\"\nheaders = [{ path = \"/\", set = {} }]\n".to_owned(),
            Section::Export => format!("{EXPORT_AUTHORITIES}[[export]]\ndirectory = \"d\"\n"),
            _ => "[[site]]\nroot = \"r\"\n".to_owned(),
        };
        assert_eq!(told(&file_with(key, key.default)), told(&without), "{}", key.name);
        checked += 1;
    }
    assert!(checked > 25);
}

#[test]
fn every_example_is_read_and_makes_a_difference() {
    for key in KEYS {
        let other = match key.default {
            "(required)" => {
                let replaced =
                    key.example.replace("/static", "/other").replace(".m4s", ".x").replace("pem", "x");
                replaced
                    .replace("media", "x")
                    .replace("365d", "366d")
                    .replace("3600", "1")
                    .replace("\"*\"", "\"x\"")
            }
            _ if key.default.starts_with('(') => {
                assert_ne!(
                    told(&file_with(key, key.example)),
                    told("[[site]]\nroot = \"r\"\n"),
                    "{}",
                    key.name
                );
                continue;
            }
            default => default.to_owned(),
        };
        let (example, other) = (file_with(key, key.example), file_with(key, &other));
        if key.name == "log_format" {
            let log = "access_log = \"-\"\n";
            assert_ne!(told(&format!("{log}{example}")), told(&format!("{log}{other}")));
        } else {
            assert_ne!(told(&example), told(&other), "{}", key.name);
        }
    }
}

#[test]
fn documented_ranges_are_the_ones_enforced() {
    let mut checked = 0;
    for key in KEYS {
        // "integer, 1 to 1024", "size, 1KiB to 1MiB", "duration, 1s to 1d, ..."
        let Some((kind, range)) = key.takes.split_once(", ") else { continue };
        let Some((least, most)) = range.split(", ").next().unwrap().split_once(" to ") else { continue };
        let quoted = |value: &str| if kind == "integer" { value.to_owned() } else { format!("\"{value}\"") };
        let beyond = |value: &str, step: i64| {
            let digits = value.bytes().take_while(u8::is_ascii_digit).count();
            let number: i64 = value[..digits].parse().unwrap();
            quoted(&format!("{}{}", number + step, &value[digits..]))
        };
        for value in [beyond(least, -1), beyond(most, 1)] {
            let text = file_with(key, &value);
            assert!(
                Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).is_err(),
                "{} = {value}",
                key.name
            );
        }
        for value in [quoted(least), quoted(most)] {
            let text = file_with(key, &value);
            let said = Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default());
            // The ends of a range can still contradict another key's default.
            if let Err(error) = said {
                assert!(!error.to_string().contains("range"), "{} = {value}: {error}", key.name);
            }
        }
        checked += 1;
    }
    assert!(checked > 20);
}

#[test]
fn site_defaults_take_every_key_of_a_site_but_names_and_root() {
    for key in Section::SiteDefaults.keys() {
        let text = format!("[site_defaults]\n{} = {}\n[[site]]\nroot = \"r\"\n", key.name, key.example);
        assert_eq!(told(&text), told(&file_with(key, key.example)), "{}", key.name);
    }
    assert_eq!(Section::SiteDefaults.keys().count() + 2, Section::Site.keys().count());
}
