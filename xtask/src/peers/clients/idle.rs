//! Opens very many connections, fetches a small file once on each, and keeps them open and idle.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::channel::{Channel, Dialer, Shape};
use super::response;

/// The order for idle connections.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Idle {
    /// Request target.
    pub(crate) path: String,
    /// How many connections.
    pub(crate) connections: usize,
}

/// Connections that only make the server allocate what it allocates once.
const WARM_UP_CONNECTIONS: usize = 50;

impl Idle {
    /// Makes the server allocate what it keeps, however many connections there are.
    pub(crate) fn prepare(&self, dialer: &Dialer) -> Result<()> {
        open_kept(dialer, &self.path, WARM_UP_CONNECTIONS, Shape::default()).map(drop)
    }

    /// Opens the connections; they come back to be kept.
    pub(crate) fn run(&self, dialer: &Dialer) -> Result<(Outcome, Vec<Channel>)> {
        let mut channels = open_kept(dialer, &self.path, self.connections, Shape::default())?;
        // The sessions' own memory is of no use any more, and 10,000 of them are a lot.
        channels.iter_mut().for_each(|channel| channel.tls = None);
        Ok((Outcome { requests: channels.len() as u64, ..Outcome::default() }, channels))
    }
}

/// Opens `count` connections and completes one keep-alive request on each.
pub(crate) fn open_kept(dialer: &Dialer, path: &str, count: usize, shape: Shape) -> Result<Vec<Channel>> {
    let request = response::request(&dialer.host(), path, None, false);
    let mut scratch = vec![0; 32 * 1024];
    (0..count)
        .map(|index| {
            let mut channel = dialer.connect_nth(index, shape)?;
            channel.send(request.as_bytes()).with_context(|| format!("connection {index} was cut"))?;
            let head = response::receive(&mut channel, &mut scratch, |_, _| Ok(()))
                .with_context(|| format!("connection {index} was not served"))?;
            if head.status != 200 {
                bail!("connection {index} was answered with status {}", head.status);
            }
            Ok(channel)
        })
        .collect()
}
