//! The manual page: the command line's definitions and the configuration's keys, as roff.

use std::io;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use linerate_config::KEYS;

use crate::cli::Cli;
use crate::key_list::{NOTATION, SECTIONS, default_text};

/// Renders `linerate(1)`, all commands in one page.
///
/// # Errors
/// Never of itself: it writes to memory.
pub(crate) fn page() -> io::Result<Vec<u8>> {
    let mut root = Cli::command();
    root.build();
    let mut page = Vec::new();
    let manual = Man::new(root.clone()).manual("linerate manual");
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    synopsis(&root).to_writer(&mut page)?;
    let serve_flags = arguments_of(&root, "serve");
    for (name, command) in commands(&root) {
        command_section(&name, command, &serve_flags, &mut page)?;
    }
    configuration().to_writer(&mut page)?;
    conduct().to_writer(&mut page)?;
    examples(&root).to_writer(&mut page)?;
    Ok(page)
}

fn arguments_of(root: &Command, name: &str) -> Vec<String> {
    let command = root.find_subcommand(name);
    command
        .map(|command| command.get_arguments().map(|argument| argument.get_id().to_string()).collect())
        .unwrap_or_default()
}

/// Every command that does something, with its name: "serve", "bench run".
fn commands(root: &Command) -> Vec<(String, &Command)> {
    let shown = root.get_subcommands().filter(|command| !command.is_hide_set());
    shown
        .flat_map(|command| {
            let name = command.get_name().to_owned();
            if !command.has_subcommands() {
                return vec![(name, command)];
            }
            commands(command)
                .into_iter()
                .map(|(below, command)| (format!("{name} {below}"), command))
                .collect()
        })
        .collect()
}

fn synopsis(root: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for (name, command) in commands(root) {
        // "Usage: linerate serve [OPTIONS] [DIR]"
        let usage = command.clone().render_usage().to_string();
        let arguments = usage.split_once(&format!(" {name}")).map_or("", |(_, arguments)| arguments);
        roff.text([bold(format!("linerate {name}")), roman(arguments)]);
        roff.control("br", None::<&str>);
    }
    roff
}

/// A command: what it does, its options, its examples.
fn command_section(
    name: &str,
    command: &Command,
    serve_flags: &[String],
    page: &mut Vec<u8>,
) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [format!("LINERATE {}", name.to_uppercase()).as_str()]);
    roff.text([roman(format!("{}.", command.get_about().map(ToString::to_string).unwrap_or_default()))]);
    roff.to_writer(page)?;

    let mut shown = command.clone().mut_arg("help", |help| help.hide(true));
    if command.get_name() == "check" {
        // `check` has the options of `serve`, which are said once.
        for name in serve_flags {
            if command.get_arguments().any(|argument| argument.get_id() == name.as_str()) {
                shown = shown.mut_arg(name, |argument| argument.hide(true));
            }
        }
    }
    let mut options = Vec::new();
    if shown.get_arguments().any(|argument| !argument.is_hide_set()) {
        Man::new(shown).render_options_section(&mut options)?;
    }
    // clap_mangen writes sections of a page of its own; here they are parts of a section.
    page.extend_from_slice(String::from_utf8_lossy(&options).replace(".SH ", ".SS ").as_bytes());

    if let Some(after) = command.get_after_help() {
        after_help(&after.to_string()).to_writer(page)?;
    }
    Ok(())
}

/// Help texts have their own line breaks.
fn after_help(text: &str) -> Roff {
    let mut roff = Roff::new();
    for paragraph in text.split("\n\n") {
        let (heading, body) = match paragraph.split_once(":\n") {
            Some((heading, body)) if !heading.contains('\n') => (Some(heading), body),
            _ => (None, paragraph),
        };
        match heading {
            Some(heading) => {
                roff.control("SS", [heading]);
                verbatim(&mut roff, body);
            }
            None => {
                roff.control("PP", None::<&str>);
                roff.text([roman(body.replace('\n', " "))]);
            }
        }
    }
    roff
}

fn verbatim(roff: &mut Roff, text: &str) {
    roff.control("nf", None::<&str>);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", None::<&str>);
}

fn configuration() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["CONFIGURATION FILE"]);
    roff.text([roman(
        "The file is TOML. Flags win over it: a flag with one value replaces the file's; --listen, --ciphers and \
         --groups replace the whole list; DIR, --cert and --key concern the default site, the one without names, or \
         else the only one; --dotfiles, --no-listing, --symlinks and --hsts concern every site.",
    )]);
    paragraph(&mut roff, [roman(NOTATION)]);
    for section in SECTIONS {
        let (heading, about) = section.heading();
        roff.control("SS", [heading]);
        roff.text([roman(about)]);
        for key in KEYS.iter().filter(|key| key.section == section) {
            roff.control("TP", None::<&str>);
            roff.text([bold(key.name), roman(" = "), italic(key.takes)]);
            roff.text([roman(format!("{} ({})", key.meaning, default_text(key.default)))]);
        }
    }
    let (heading, about) = linerate_config::Section::SiteDefaults.heading();
    roff.control("SS", [heading]);
    roff.text([roman(about)]);
    roff
}

fn paragraph<const N: usize>(roff: &mut Roff, inlines: [Inline; N]) {
    roff.control("PP", None::<&str>);
    roff.text(inlines);
}

fn conduct() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SIGNALS"]);
    for (signal, meaning) in [
        ("HUP", "reads configuration and certificates anew; what is wrong is reported, and the old stays"),
        ("QUIT", "takes no more connections, finishes open responses, ends"),
        ("TERM, INT", "ends at once; linerate load prints what it has measured so far"),
        ("USR1", "opens log files anew"),
    ] {
        tagged(&mut roff, signal, meaning);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in [
        (
            "0",
            "it ended as it was told, the configuration is fine, every request was answered, or there is a plan",
        ),
        (
            "1",
            "the configuration is wrong, the server could not start or go on, a request failed or a byte differed, or \
             what linerate doctor was asked about could not be looked at",
        ),
        ("2", "the command line is wrong"),
        ("3", "linerate doctor found something to change"),
    ] {
        tagged(&mut roff, status, meaning);
    }
    roff
}

fn tagged(roff: &mut Roff, tag: &str, meaning: &str) {
    roff.control("TP", None::<&str>);
    roff.text([bold(tag)]);
    roff.text([roman(format!("{meaning}."))]);
}

fn examples(root: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    let text = root.get_after_help().map(ToString::to_string).unwrap_or_default();
    verbatim(&mut roff, text.trim_start_matches("Examples:\n"));
    roff
}
