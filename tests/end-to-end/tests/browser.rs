//! A real browser: the listing as a person sees it, and a video that is played and sought in.

#[path = "support/mod.rs"]
mod support;

use linerate_end_to_end::{Program, Signal, Site, is_installed, openssl, skip, wait_until};
use rustix::process::{Pid, kill_process_group};
use serde_json::Value;
use std::{
    fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};
use support::{Fixture, Transport};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Eight seconds of a moving pattern and a tone: see `media/README.md`.
const VIDEO: &[u8] = include_bytes!("../media/pattern.mp4");
/// More than a player reads ahead.
const PADDING_BYTES: u32 = 16 << 20;

/// The page that plays: it seeks to and fro and tells what it saw by asking for `report?...`.
const PLAYER: &str = include_str!("browser/player.html");

struct Browser {
    program: &'static str,
    profile: tempfile::TempDir,
    key_hash: String,
}

impl Browser {
    /// `None`, said loudly, where there is none.
    fn find(test: &str, fixture: &Fixture) -> Option<Self> {
        let Some(program) = BROWSERS.into_iter().find(|name| is_installed(name)) else {
            skip(test, "no Chromium is installed (apt-get install chromium)");
            return None;
        };
        Some(Self { program, profile: tempfile::tempdir().unwrap(), key_hash: key_hash(fixture) })
    }

    /// What every run is started with.
    fn arguments(&self) -> Vec<String> {
        let profile = format!("--user-data-dir={}", self.profile.path().display());
        // This certificate and no other is taken without an authority behind it.
        let trust = format!("--ignore-certificate-errors-spki-list={}", self.key_hash);
        let own = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--autoplay-policy=no-user-gesture-required",
            "--mute-audio",
            &profile,
            &trust,
        ];
        own.map(str::to_owned).into()
    }

    /// Opens `url` and returns what `arguments` have it print.
    fn open(&self, arguments: &[&str], url: &str) -> String {
        let own = self.arguments();
        let all = own.iter().map(String::as_str).chain(arguments.iter().copied()).chain([url]);
        let finished = Program::new(self.program, all).limit(Duration::from_secs(90)).run();
        let stderr = finished.stderr.clone();
        let stdout = String::from_utf8_lossy(&finished.success()).into_owned();
        assert!(!stderr.contains("ERR_CERT"), "{stderr}");
        stdout
    }

    /// Opens `url` and stays there until dropped.
    fn stay(&self, url: &str) -> Staying {
        let child = Command::new(self.program)
            .args(self.arguments())
            .args(["--remote-debugging-port=0", url])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        Staying(child.expect("a browser that is installed starts"))
    }
}

/// A browser and the processes it has started: ended together.
struct Staying(Child);

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// The SHA-256 of the certificate's public key in base64, as Chromium wants it.
fn key_hash(fixture: &Fixture) -> String {
    let certificate = fixture.pair.certificate.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| openssl(arguments).run().success();
    let (pem, der, hash) = (file("pem"), file("der"), file("hash"));
    fs::write(&pem, run(&["x509", "-in", certificate, "-pubkey", "-noout"])).unwrap();
    fs::write(&der, run(&["pkey", "-pubin", "-in", &pem, "-outform", "der"])).unwrap();
    fs::write(&hash, run(&["dgst", "-sha256", "-binary", &der])).unwrap();
    String::from_utf8(run(&["base64", "-in", &hash])).unwrap().trim().to_owned()
}

/// `https://localhost:PORT/NAME`
fn url(fixture: &Fixture, name: &str) -> String {
    format!("https://localhost:{}/{name}", fixture.address(Transport::Tls).port())
}

#[test]
fn a_listing_is_shown() {
    let site = Site::empty();
    for (name, length) in [("A film (2024).mp4", 7_340_032), ("notes.txt", 12), ("Übersicht <1>.pdf", 81_920)]
    {
        site.add_pattern(name, length);
    }
    site.add("Holiday pictures/one.jpg", b"");
    let fixture = Fixture::start(site);
    let Some(browser) = Browser::find("a_listing_is_shown", &fixture) else { return };
    let page = browser.open(&["--dump-dom", "--virtual-time-budget=5000"], &url(&fixture, ""));
    for expected in ["A film (2024).mp4", "Übersicht &lt;1&gt;.pdf", "Holiday pictures/", "7 MiB", "<table>"]
    {
        assert!(page.contains(expected), "{expected} is missing in\n{page}");
    }
    // Kept for people to look at.
    let shot = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("listing.png");
    let _ = fs::remove_file(&shot);
    let screenshot = format!("--screenshot={}", shot.display());
    browser.open(&[&screenshot, "--window-size=900,700", "--hide-scrollbars"], &url(&fixture, ""));
    let image = fs::read(&shot).expect("a screenshot");
    assert!(image.starts_with(b"\x89PNG\r\n\x1a\n") && image.len() > 10_000, "{} bytes", image.len());
    // The page brings all it needs: nothing else was asked for, not even an icon.
    assert_eq!(fixture.server.metric("linerate_http_requests_total", "status=\"404\""), 0.0);
    assert_eq!(fixture.server.metric("linerate_http_requests_total", "status=\"200\""), 2.0);
}

/// The video with so much nothing before its index (`moov`, at the end) that a player has to ask for ranges.
fn padded_video() -> Vec<u8> {
    let index = VIDEO.windows(4).rposition(|window| window == b"moov").expect("an index") - 4;
    let (media, index) = VIDEO.split_at(index);
    let padding_bytes = PADDING_BYTES.to_be_bytes();
    let padding = vec![0; PADDING_BYTES as usize - 8];
    [media, &padding_bytes, b"free", &padding, index].concat()
}

#[test]
fn a_video_is_played_with_seeks() {
    let site = Site::empty();
    site.add("player.html", PLAYER.as_bytes());
    site.add("pattern.mp4", &padded_video());
    let fixture =
        Fixture::start_with(site, |setup| setup.flags(["--access-log", "-", "--log-format", "json"]));
    let Some(browser) = Browser::find("a_video_is_played_with_seeks", &fixture) else { return };
    let _running = browser.stay(&url(&fixture, "player.html"));
    let log = || -> Vec<Value> {
        let whole_lines =
            fixture.server.stdout().rsplit_once('\n').map_or(String::new(), |(lines, _)| lines.to_owned());
        whole_lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let report =
        || log().iter().find_map(|line| Some(line["target"].as_str()?.strip_prefix("/report?")?.to_owned()));
    wait_until("the player's report", || report().is_some());
    let report = report().expect("it was there just now");
    assert_eq!(report, "size=320x180&duration=8&seeks=6.5_1.25_7.5_0.5_4&pictures=5&played=yes");
    let ranges =
        log().iter().filter(|line| line["target"] == "/pattern.mp4" && line["status"] == 206).count();
    assert!(
        ranges >= 2,
        "the index at the end and the pictures before it were asked for by ranges: {:?}",
        log()
    );
}
