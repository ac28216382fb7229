//! A plaintext server in the test's own process, whose faults are planted.

// Each test binary uses some of it.
#![allow(dead_code, unreachable_pub)]

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use linerate_load::plan::{LoadPlan, Until};

/// A request as it came.
pub struct Request {
    pub path: String,
    pub headers: String,
    /// How many came before it, on all connections.
    pub number: u64,
}

/// Answers with these bytes, and says whether the connection goes on.
pub type Answer = dyn Fn(&Request, &mut TcpStream) -> bool + Send + Sync;

/// Listens on a port of its own until the test ends.
pub fn serve(answer: impl Fn(&Request, &mut TcpStream) -> bool + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, number): (Arc<Answer>, _) = (Arc::new(answer), Arc::new(AtomicU64::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, number) = (Arc::clone(&answer), Arc::clone(&number));
            thread::spawn(move || answer_all(stream, &*answer, &number));
        }
    });
    address
}

fn answer_all(mut stream: TcpStream, answer: &Answer, number: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(first)) = lines.next() {
        let headers: Vec<String> =
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let request = Request {
            path: first.split(' ').nth(1).unwrap_or_default().to_owned(),
            headers: headers.join("\n"),
            number: number.fetch_add(1, Ordering::SeqCst),
        };
        if !answer(&request, &mut stream) {
            return;
        }
    }
}

/// A whole response with this body.
pub fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).is_ok()
}

/// What a test changes is changed from this: one connection, one request.
pub fn plan(address: SocketAddr, path: &str) -> LoadPlan {
    let target = format!("http://{address}{path}").parse().unwrap();
    LoadPlan { command: vec!["test".to_owned()], ..LoadPlan::new(vec![target], Until::Requests(1)) }
}

/// Makes the run.
pub fn run(plan: &LoadPlan) -> linerate_load::report::LoadReport {
    linerate_load::run(plan, &AtomicBool::new(false), linerate_load::Sayings::default()).unwrap()
}
