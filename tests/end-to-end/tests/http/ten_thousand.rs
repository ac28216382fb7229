//! Ten thousand files, fetched at random ranges over several connections, every byte compared.

use crate::support::{Connection, Fixture, Transport};
use linerate_end_to_end::{Site, pattern};
use std::{fs, thread};

const FILES: usize = 10_000;
const CONNECTIONS: usize = 4;
/// Requests that are under way at once on a connection.
const PIPELINED: usize = 8;

fn name(index: usize) -> String {
    format!("{:02}/{index}.bin", index % 100)
}

/// Most are tiny; some span records.
fn length_bytes(index: usize) -> usize {
    match index % 50 {
        0 => 40_000 + index,
        1 => 0,
        2 => 16_384,
        _ => 1 + index % 3000,
    }
}

/// What a request is for: the header and the bytes that must come.
struct Wanted {
    index: usize,
    range: Option<(usize, usize)>,
}

impl Wanted {
    fn new(index: usize, random: u64) -> Self {
        let length = length_bytes(index);
        let range = (length > 0 && !random.is_multiple_of(8)).then(|| {
            let first = (random >> 8) as usize % length;
            (first, first + (random >> 32) as usize % (length - first))
        });
        Self { index, range }
    }

    fn request(&self) -> String {
        let range =
            self.range.map_or(String::new(), |(first, last)| format!("Range: bytes={first}-{last}\r\n"));
        crate::support::get(&format!("/{}", name(self.index)), &range)
    }

    fn check(&self, connection: &mut Connection) {
        let bytes = pattern(&name(self.index), length_bytes(self.index));
        let response = connection.response();
        match self.range {
            Some((first, last)) => response.assert_is(206, &bytes[first..=last]),
            None => response.assert_is(200, &bytes),
        }
    }
}

/// Every file once, in an order that jumps about.
fn fetch_all(connection: &mut Connection, offset: usize) {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ offset as u64;
    // 7919 has no factor in common with the number of files: all are visited.
    let order: Vec<Wanted> = (offset..FILES)
        .step_by(CONNECTIONS)
        .map(|step| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            Wanted::new(step * 7919 % FILES, random)
        })
        .collect();
    for group in order.chunks(PIPELINED) {
        connection.send(group.iter().map(Wanted::request).collect::<String>());
        group.iter().for_each(|wanted| wanted.check(connection));
    }
}

#[test]
fn ten_thousand_files_at_random_ranges() {
    let site = Site::empty();
    for folder in 0..100 {
        fs::create_dir(site.path().join(format!("{folder:02}"))).unwrap();
    }
    for index in 0..FILES {
        fs::write(site.path().join(name(index)), pattern(&name(index), length_bytes(index))).unwrap();
    }
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        thread::scope(|scope| {
            for offset in 0..CONNECTIONS {
                let mut connection = fixture.connect(transport);
                scope.spawn(move || fetch_all(&mut connection, offset));
            }
        });
    }
    let answered = fixture.server.metric("linerate_http_requests_total", "status=\"20");
    assert_eq!(answered, (2 * FILES) as f64);
}
