//! The page and its figures as text: whole, closed, escaped, and needing nothing from outside.

use std::{fs, path::Path};

use crate::fixtures::{self, HOSTILE};
use linerate_bench::{
    report::{self, ReportError},
    result::ExperimentRun,
};
use roxmltree::Document;

/// Every kind of run that there is.
pub(crate) fn every_kind() -> Vec<(&'static str, Vec<ExperimentRun>)> {
    vec![
        ("connections", vec![fixtures::connections(6, 1.0, 3)]),
        ("file-size", vec![fixtures::file_sizes()]),
        ("engines", vec![fixtures::engines()]),
        ("floor", vec![fixtures::with_floor()]),
        ("handshakes", vec![fixtures::handshakes()]),
        ("troubled", vec![fixtures::troubled()]),
        ("one-round", vec![fixtures::connections(1, 1.0, 3)]),
        ("empty", vec![fixtures::empty()]),
        ("several", vec![fixtures::engines(), fixtures::handshakes(), fixtures::troubled()]),
        ("none", vec![]),
    ]
}

/// The page about `runs` and the figures beside it, by name.
fn written(runs: &[ExperimentRun]) -> (String, Vec<(String, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let page = report::write(runs, folder.path()).unwrap();
    let mut figures = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == report::PAGE || name.ends_with(".svg"), "{name} is left over");
        if name.ends_with(".svg") {
            figures.push((name.clone(), fs::read_to_string(folder.path().join(&name)).unwrap()));
        }
    }
    (fs::read_to_string(page).unwrap(), figures)
}

/// The figures inside a page.
fn inline_figures(page: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(begin) = rest.find("<svg") {
        let end = begin + rest[begin..].find("</svg>").expect("a figure ends") + "</svg>".len();
        found.push(&rest[begin..end]);
        rest = &rest[end..];
    }
    found
}

/// Well-formed, with finite coordinates, and with all its words and marks inside its frame.
fn assert_sound(name: &str, figure: &str) {
    let document = Document::parse(figure).unwrap_or_else(|error| panic!("{name}: {error}\n{figure}"));
    let root = document.root_element();
    let frame: Vec<f64> =
        root.attribute("viewBox").expect("a viewBox").split(' ').map(|side| side.parse().unwrap()).collect();
    for node in root.descendants().filter(roxmltree::Node::is_element) {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{name}: {}={value}", attribute.name());
        }
        let number = |key: &str| node.attribute(key).map(|value| value.parse::<f64>().unwrap());
        for (key, limit) in
            [("x", frame[2]), ("cx", frame[2]), ("x2", frame[2]), ("y", frame[3]), ("cy", frame[3])]
        {
            if let Some(value) = number(key) {
                assert!(
                    (-0.5..=limit + 0.5).contains(&value),
                    "{name}: {key}={value} is outside of {frame:?}"
                );
            }
        }
    }
}

#[test]
fn every_figure_is_sound_xml_inside_its_frame() {
    for (name, runs) in every_kind() {
        let (page, figures) = written(&runs);
        for (file, figure) in &figures {
            assert_sound(file, figure);
            assert!(figure.contains("prefers-color-scheme:dark"), "{file} is light only");
            assert!(figure.contains("xmlns=\"http://www.w3.org/2000/svg\""), "{file} is no file of its own");
        }
        for figure in inline_figures(&page) {
            assert_sound(name, figure);
        }
        // Each is in the page twice, for desk and telephone.
        assert_eq!(inline_figures(&page).len(), 2 * figures.len(), "{name}");
    }
}

#[test]
fn the_floor_is_a_row_that_is_marked_as_computed() {
    let run = fixtures::with_floor();
    let (page, figures) = written(std::slice::from_ref(&run));
    let parts = "computed: cipher 0.0200 + copy 0.0100 + linerate plaintext 0.220 s/GB";
    // A row for each place, in the page and in the terminal.
    assert_eq!(page.matches(&format!(">{parts}<")).count(), 2);
    // A mark for each place in the figure of CPU time, and none in that of throughput.
    let figure = |quantity: &str| &figures.iter().find(|(name, _)| name.contains(quantity)).unwrap().1;
    assert_eq!(figure("server_s_per_gb").matches(parts).count(), 2);
    assert!(!figure("application_gbit_s").contains("floor"));
    assert!(page.contains("Beside the floor: server CPU per gigabyte, as a multiple of the floor"));
    let text = report::text(&run);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("  floor  ")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows.iter().all(|row| row.contains(" 0.250 ") && row.ends_with(parts)), "{rows:#?}");
    assert!(text.contains("× plaintext  × floor"), "{text}");
    // Runs without one have neither row nor column, and say why.
    let text = report::text(&fixtures::engines());
    assert!(!text.contains("× floor") && text.contains("! No floor is computed: not recorded."), "{text}");
}

#[test]
fn every_measured_point_is_in_the_figure_with_its_value() {
    let run = fixtures::connections(6, 1.0, 3);
    let (_, figures) = written(std::slice::from_ref(&run));
    let figure = &figures.iter().find(|(name, _)| name == "t7-connections-server_s_per_gb.svg").unwrap().1;
    let document = Document::parse(figure).unwrap();
    let titles: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")))
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(titles.iter().filter(|title| title.contains("(quartiles ")).count(), run.points.len());
    assert_eq!(titles.iter().filter(|title| title.starts_with("Published: ")).count(), 3);
    assert_eq!(
        titles.iter().filter(|title| title.contains("client-limited: the client used 99 %")).count(),
        4
    );
    let expected = "linerate user at 100 connections: 0.29";
    assert!(titles.iter().any(|title| title.starts_with(expected)), "{expected} is missing in {titles:#?}");
    // What was measured higher stands higher.
    let height = |name: &str| {
        let group = document.descendants().find(|node| {
            node.children()
                .any(|child| child.text().is_some_and(|text| text.starts_with(&format!("{name} at 50 "))))
        });
        let circle = group.unwrap().descendants().find(|node| node.attribute("cy").is_some()).unwrap();
        circle.attribute("cy").unwrap().parse::<f64>().unwrap()
    };
    let heights = ["nginx TLS", "linerate kernel", "linerate user", "nginx plaintext"].map(height);
    assert!(heights.is_sorted() && heights[0] < heights[3], "{heights:?}");
}

#[test]
fn the_page_needs_nothing_from_outside() {
    for (name, runs) in every_kind() {
        let (page, figures) = written(&runs);
        for text in figures.iter().map(|(_, figure)| figure).chain([&page]) {
            for forbidden in ["<script", "<link", "<img", "<iframe", " src=", "@import", "url("] {
                let found = text.replace("&lt;img src=", "").find(forbidden);
                assert!(found.is_none(), "{name}: {forbidden} at {found:?}");
            }
            for reference in text.split("href=").skip(1) {
                assert!(reference.starts_with("\"#"), "{name}: {}", &reference[..40]);
            }
        }
        assert!(page.contains("default-src 'none'"), "{name}: scripts are not forbidden");
    }
}

#[test]
fn names_and_logs_are_escaped_wherever_they_stand() {
    let (page, figures) = written(&[fixtures::troubled()]);
    let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=";
    // Title, heading, server, environment, configuration, log, skipped, published, errors: at least.
    assert!(page.matches(escaped).count() >= 9, "{}", page.matches(escaped).count());
    assert!(!page.contains(HOSTILE) && !page.contains("<script") && !page.contains("# </pre>"));
    assert!(figures.len() >= 3);
    for (name, figure) in &figures {
        let document = Document::parse(figure).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!document.descendants().any(|node| node.tag_name().name() == "script"), "{name}");
        assert!(
            document.descendants().any(|node| node.text().is_some_and(|text| text.contains(HOSTILE))),
            "{name}"
        );
    }
}

#[test]
fn file_names_are_safe_whatever_an_experiment_is_called() {
    let mut run = fixtures::engines();
    run.name = "../../etc/passwd <x>".to_owned();
    let (_, figures) = written(&[run]);
    for (name, _) in figures {
        assert!(name.starts_with("------etc-passwd--x-"), "{name}");
    }
}

#[test]
fn what_failed_and_what_was_left_out_is_said_with_its_reason() {
    let (page, figures) = written(&[fixtures::troubled()]);
    for expected in [
        "What failed",
        "the server died: killed by signal 11 (SIGSEGV)",
        "worker process 4712 exited on signal 11",
        "the load client gave up: 1000 connections timed out",
        "Left out: linerate kernel: this kernel has no TLS module (modprobe tls)",
        "Left out: h2o: not installed (apt-get install h2o)",
        "The run was interrupted: points are missing.",
        "The load client saw errors: ",
        "Rounds differ by more than a fifth in CPU per byte",
        "1 round failed",
    ] {
        assert!(page.contains(expected), "{expected} is missing");
    }
    let (name, figure) = &figures[0];
    assert!(
        figure.contains("nginx TLS at 100 connections: failed: the server died"),
        "{name} does not mark it"
    );
}

#[test]
fn what_a_machine_cannot_tell_is_not_available_and_never_zero() {
    let (page, _) = written(&[fixtures::connections(5, 1.0, 3)]);
    for expected in [
        "no RAPL in this virtual machine (/sys/class/powercap is empty)",
        "no perf events in this virtual machine (perf_event_open: ENOENT)",
        "not available: /sys/devices/system/cpu/cpu0/cpufreq is missing: the hypervisor governs",
    ] {
        assert!(page.contains(expected), "{expected} is missing");
    }
    assert!(!page.contains("J/GB"), "a column for energy that nobody read");
    assert!(page.contains("TlsTxSw 500"), "the kernel's own count proves the engine");
}

#[test]
fn commands_and_configurations_are_shown_exactly() {
    let (page, _) = written(&[fixtures::connections(5, 1.0, 3)]);
    for expected in [
        "linerate bench run t7-connections --out results",
        "nginx -c nginx.conf -g &#39;daemon off;&#39;",
        "worker_processes 1;\nevents { worker_connections 4096; }",
        "linerate load https://127.0.0.1:8443/2g.bin -c 10",
        "2026-11-21 13:45 UTC",
        "nginx/1.26.3, OpenSSL 3.5.1",
    ] {
        let unquoted = expected.replace("&#39;", "'");
        assert!(page.contains(expected) || page.contains(&unquoted), "{expected} is missing");
    }
}

#[test]
fn a_plaintext_server_is_beside_every_cipher() {
    // Its points have no TLS version, and stand in both panels all the same.
    let (page, _) = written(&[fixtures::file_sizes()]);
    for panel in page.split("<section class=\"panel\">").skip(1) {
        assert!(panel.contains("nginx plaintext at 10 kB: "), "{}", &panel[..200]);
    }
    assert_eq!(page.split("<section class=\"panel\">").count(), 3);
    assert!(page.contains("<h3>TLS 1.2</h3>") && page.contains("<h3>TLS 1.3</h3>"));
}

#[test]
fn discarded_bodies_and_verified_ones_are_marked() {
    let (page, figures) = written(&[fixtures::engines()]);
    assert!(page.contains("thrown away unread") && page.contains("discarded unread"));
    assert!(figures[0].1.contains("thrown away unread"), "a figure on its own says it as well");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = report::write(&[fixtures::empty()], &file).unwrap_err();
    let ReportError::NotWritten { path, .. } = &error else { panic!("{error:?}") };
    assert_eq!(path, &file);
    assert!(error.to_string().contains("`linerate bench report` writes the report again"), "{error}");
    assert!(report::write(&[fixtures::empty()], Path::new("/proc/nowhere")).is_err());
}

#[test]
fn a_report_is_written_over_an_older_one() {
    let folder = tempfile::tempdir().unwrap();
    report::write(&[fixtures::engines()], folder.path()).unwrap();
    let page = report::write(&[fixtures::empty()], folder.path()).unwrap();
    assert!(fs::read_to_string(page).unwrap().contains("port 8443 is taken"));
}

#[test]
fn the_terminal_shows_every_point_in_columns() {
    let run = fixtures::troubled();
    let text = report::text(&run);
    let rows: Vec<&str> =
        text.lines().filter(|line| line.contains("nginx ") && !line.starts_with(['•', '!', ' '])).collect();
    assert_eq!(rows.len(), 10, "{text}");
    let row = rows.iter().find(|row| row.starts_with("100 ") && row.contains("TLS")).unwrap();
    assert!(row.ends_with("failed: the server died: killed by signal 11 (SIGSEGV)"), "{row}");
    let columns: Vec<usize> = rows.iter().map(|row| row.find("nginx").unwrap()).collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    assert!(text.contains("! The run was interrupted"), "{text}");
}
