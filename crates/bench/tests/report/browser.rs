//! The page in a real browser: on a desk, on a telephone, in the dark and on paper.

use std::{fs, path::PathBuf, time::Duration};

use crate::{fixtures, pages::every_kind};
use linerate_bench::{report, result::ExperimentRun};
use linerate_end_to_end::{Program, is_installed, skip};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Kept for people to look at.
fn kept() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder).unwrap();
    folder
}

struct Browser {
    program: &'static str,
    profile: tempfile::TempDir,
}

impl Browser {
    /// `None`, said loudly, where there is none.
    fn find(test: &str) -> Option<Self> {
        let Some(program) = BROWSERS.into_iter().find(|name| is_installed(name)) else {
            skip(test, "no Chromium is installed (apt-get install chromium)");
            return None;
        };
        Some(Self { program, profile: tempfile::tempdir().unwrap() })
    }

    /// Opens a page and returns what `arguments` have it print.
    fn open(&self, arguments: &[&str], page: &str) -> String {
        let profile = format!("--user-data-dir={}", self.profile.path().display());
        let own = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            &profile,
        ];
        let all = own.into_iter().chain(arguments.iter().copied()).chain([page]);
        let finished = Program::new(self.program, all).limit(Duration::from_secs(90)).run();
        String::from_utf8_lossy(&finished.success()).into_owned()
    }

    fn screenshot(&self, name: &str, size: &str, scheme: &str, page: &str) {
        let file = kept().join(format!("{name}.png"));
        let _ = fs::remove_file(&file);
        let (screenshot, size) =
            (format!("--screenshot={}", file.display()), format!("--window-size={size}"));
        self.open(&[&screenshot, &size, scheme], page);
        let image = fs::read(&file).expect("a screenshot");
        assert!(
            image.starts_with(b"\x89PNG\r\n\x1a\n") && image.len() > 20_000,
            "{name}: {} bytes",
            image.len()
        );
    }
}

const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
const DARK: &str = "--blink-settings=preferredColorScheme=0";

fn address(path: &std::path::Path) -> String {
    format!("file://{}", path.display())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;")
}

/// Pages in frames of a width, and a script outside of them that looks: the pages themselves run none.
fn frames(pages: &[(String, String)], width: u32) -> String {
    let mut html = String::from("<!doctype html><meta charset=utf-8><body style=margin:0>");
    for (name, page) in pages {
        html.push_str(&format!(
            "<iframe id=\"{name}\" style=\"border:0;width:{width}px;height:3000px\" srcdoc=\"{}\"></iframe>",
            escaped(page)
        ));
    }
    html.push_str(
        "<pre id=found></pre><script>onload=()=>{for(const frame of document.querySelectorAll('iframe')){\
         const page=frame.contentDocument,root=page.documentElement,wide=[];\
         for(const part of page.body.querySelectorAll('*')){\
         if(part.closest('.scroll')&&!part.matches('.scroll'))continue;\
         if(part.ownerSVGElement)continue;\
         const box=part.getBoundingClientRect();if(box.width&&box.right>root.clientWidth+1)wide.push(part.tagName+'.'+part.className)}\
         const shown=[...page.querySelectorAll('figure svg')].filter(svg=>svg.getBoundingClientRect().width>0);\
         const cut=shown.flatMap(svg=>{const frame=svg.getBoundingClientRect();\
         return [...svg.querySelectorAll('text')].filter(text=>{const box=text.getBoundingClientRect();\
         return box.left<frame.left-3||box.right>frame.right+3||box.top<frame.top-3||box.bottom>frame.bottom+3})\
         .map(text=>text.textContent)});\
         found.textContent+=frame.id+' width='+root.scrollWidth+' figures='+shown.length+' wide='+wide.join(',')\
         +' cut='+cut.join(',')+'\\n'}}</script>",
    );
    html
}

fn page_of(runs: &[ExperimentRun]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::read_to_string(report::write(runs, folder.path()).unwrap()).unwrap()
}

#[test]
fn no_page_is_wider_than_desk_or_telephone() {
    let Some(browser) = Browser::find("no_page_is_wider_than_desk_or_telephone") else { return };
    let mut pages: Vec<(String, String)> =
        every_kind().into_iter().map(|(name, runs)| (name.to_owned(), page_of(&runs))).collect();
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (fixtures::connections(6, 1.0, 3), fixtures::connections(6, 1.1, 4));
    let comparison = linerate_bench::compare(&before, &after, None).unwrap();
    let comparison = report::write_comparison(&before, &after, &comparison, folder.path()).unwrap();
    pages.push(("comparison".to_owned(), fs::read_to_string(comparison).unwrap()));
    for width in [390, 1280] {
        let file = folder.path().join("frames.html");
        fs::write(&file, frames(&pages, width)).unwrap();
        let dumped = browser.open(&["--dump-dom", "--virtual-time-budget=20000"], &address(&file));
        let found = dumped.split("<pre id=\"found\">").nth(1).and_then(|rest| rest.split("</pre>").next());
        let found: Vec<&str> = found.unwrap_or_default().lines().collect();
        assert_eq!(found.len(), pages.len(), "{found:#?}");
        for line in found {
            assert!(line.contains(&format!(" width={width} ")), "wider than {width}: {line}");
            assert!(line.ends_with(" cut="), "words are cut off at {width}: {line}");
            assert!(line.contains(" wide= "), "parts reach out of the page at {width}: {line}");
        }
    }
}

#[test]
fn the_page_is_seen_in_light_in_dark_and_on_paper() {
    let Some(browser) = Browser::find("the_page_is_seen_in_light_in_dark_and_on_paper") else { return };
    for (name, runs) in every_kind() {
        let folder = kept().join(name);
        let page = address(&report::write(&runs, &folder).unwrap());
        browser.screenshot(&format!("{name}-light"), "1280,3200", LIGHT, &page);
        if name == "connections" {
            browser.screenshot(&format!("{name}-dark"), "1280,3200", DARK, &page);
            let figure = address(&folder.join("t7-connections-application_gbit_s.svg"));
            browser.screenshot("figure-light", "600,500", LIGHT, &figure);
            browser.screenshot("figure-dark", "600,500", DARK, &figure);
            let (light, dark) = (kept().join("figure-light.png"), kept().join("figure-dark.png"));
            assert_ne!(fs::read(light).unwrap(), fs::read(dark).unwrap(), "dark looks like light");
        }
        let framed = kept().join(format!("{name}-telephone.html"));
        let text = fs::read_to_string(folder.join(report::PAGE)).unwrap();
        fs::write(&framed, frames(&[(name.to_owned(), text)], 390)).unwrap();
        browser.screenshot(&format!("{name}-telephone"), "390,3000", LIGHT, &address(&framed));
    }
    let paper = kept().join("connections.pdf");
    let print = format!("--print-to-pdf={}", paper.display());
    browser
        .open(&[&print, "--no-pdf-header-footer"], &address(&kept().join("connections").join(report::PAGE)));
    assert!(fs::read(paper).unwrap().starts_with(b"%PDF-"));
}
