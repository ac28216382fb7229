//! The same through real curl, over TLS and in the clear.

use crate::support::{Fixture, Transport, add_at_rest};
use linerate_end_to_end::{Finished, Site, curl};
use std::fs;

struct Scene {
    fixture: Fixture,
    bytes: Vec<u8>,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let site = Site::empty();
        let bytes = add_at_rest(&site, "big.iso", 5_000_003);
        site.add("space ä.txt", b"a name");
        Self { fixture: Fixture::start(site), bytes, folder: tempfile::tempdir().unwrap() }
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        let trust = ["--cacert", self.fixture.pair.certificate.to_str().unwrap(), "--max-time", "20"];
        curl(trust.into_iter().chain(arguments.iter().copied())).run()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn whole_files_and_ranges() {
    let scene = Scene::new();
    for transport in Transport::ALL {
        let url = scene.fixture.url(transport, "big.iso");
        assert!(scene.run(&["--fail", &url]).success() == scene.bytes);
        for (range, expected) in [
            ("0-99", &scene.bytes[..100]),
            ("4999999-", &scene.bytes[4_999_999..]),
            ("-5", &scene.bytes[scene.bytes.len() - 5..]),
            ("1000000-3000000", &scene.bytes[1_000_000..=3_000_000]),
        ] {
            assert!(scene.run(&["--fail", "--range", range, &url]).success() == expected, "{range}");
        }
        let refused =
            scene.run(&["--write-out", "%{http_code}", "--output", "/dev/null", "-r", "9999999-", &url]);
        assert_eq!(refused.text(), "416");
    }
}

#[test]
fn an_interrupted_download_is_resumed() {
    let scene = Scene::new();
    for transport in Transport::ALL {
        let partial = scene.path(&format!("{transport:?}"));
        fs::write(&partial, &scene.bytes[..1_234_567]).unwrap();
        let url = scene.fixture.url(transport, "big.iso");
        let _ = scene.run(&["--fail", "--continue-at", "-", "--output", &partial, &url]).success();
        assert!(fs::read(&partial).unwrap() == scene.bytes);
    }
}

#[test]
fn what_curl_has_already_is_not_sent_again() {
    let scene = Scene::new();
    for transport in Transport::ALL {
        let url = scene.fixture.url(transport, "big.iso");
        let (tag, copy) = (scene.path("tag"), scene.path("copy"));
        let fetch = |more: &[&str]| {
            let all =
                [&["--fail", "--write-out", "%{http_code} %{size_download}", "-o", &copy], more, &[&url]];
            scene.run(&all.concat()).text()
        };
        assert_eq!(fetch(&["--etag-save", &tag]), "200 5000003");
        assert_eq!(fetch(&["--etag-compare", &tag]), "304 0");
        assert_eq!(fetch(&["--remote-time"]), "200 5000003");
        assert_eq!(fetch(&["--time-cond", &copy]), "304 0");
        fs::remove_file(&tag).unwrap();
    }
}

#[test]
fn many_at_once_by_one_command() {
    let scene = Scene::new();
    for transport in Transport::ALL {
        let url = scene.fixture.url(transport, "big.iso");
        let files: Vec<String> = (0..6).map(|index| scene.path(&format!("{transport:?}{index}"))).collect();
        let mut arguments = vec!["--fail", "--parallel"];
        for file in &files {
            arguments.extend(["--output", file, &url]);
        }
        let _ = scene.run(&arguments).success();
        for file in &files {
            assert!(fs::read(file).unwrap() == scene.bytes, "{file}");
        }
    }
}

#[test]
fn head_http_1_0_and_names() {
    let scene = Scene::new();
    for transport in Transport::ALL {
        let url = scene.fixture.url(transport, "big.iso");
        let head = scene.run(&["--fail", "--head", &url]).text();
        assert!(head.contains("Content-Length: 5000003\r\n"), "{head}");
        assert!(scene.run(&["--fail", "--http1.0", &url]).success() == scene.bytes);
        let name = scene.fixture.url(transport, "space%20%C3%A4.txt");
        assert_eq!(scene.run(&["--fail", &name, &name]).success(), b"a namea name");
        let escape = scene.fixture.url(transport, "../../../../etc/passwd");
        let refused = scene.run(&["--path-as-is", "--write-out", "%{http_code}", "-o", "/dev/null", &escape]);
        assert!(["400", "404"].contains(&refused.text().as_str()), "{}", refused.text());
    }
}

#[test]
fn a_body_sent_with_expect_is_answered_and_curl_goes_on() {
    let scene = Scene::new();
    let upload = scene.path("upload");
    fs::write(&upload, vec![b'u'; 2_000_000]).unwrap();
    for transport in Transport::ALL {
        let url = scene.fixture.url(transport, "space%20%C3%A4.txt");
        let status = scene.run(&[
            "-H",
            "Expect: 100-continue",
            "-T",
            &upload,
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            &url,
        ]);
        assert_eq!(status.text(), "405", "{}", status.stderr);
        let status = scene.run(&[
            "-H",
            "Expect:",
            "--data-binary",
            "small",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            &url,
        ]);
        assert_eq!(status.text(), "405", "{}", status.stderr);
    }
}
