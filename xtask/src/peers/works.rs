//! What is measured, against whom, and what it should come to.

use serde::Serialize;

use super::files::{self, Sample};

/// Who takes part. The plain listeners belong to the servers of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Role {
    /// linerate over TLS.
    Linerate,
    /// linerate's plain HTTP listener.
    LineratePlain,
    /// The host's nginx over plain HTTP, by sendfile: the yardstick.
    NginxPlain,
    /// The host's nginx over TLS.
    NginxHost,
    /// Debian 13's nginx over TLS.
    Nginx13,
}

/// All roles.
pub(crate) const ROLES: [Role; 5] =
    [Role::Linerate, Role::LineratePlain, Role::NginxPlain, Role::NginxHost, Role::Nginx13];

impl Role {
    /// Whether its listener speaks TLS.
    pub(crate) fn is_tls(self) -> bool {
        !matches!(self, Self::LineratePlain | Self::NginxPlain)
    }
}

/// How a server is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Load {
    /// The 2 GB file by the discarding client.
    Bulk {
        /// Connections at a time.
        connections: usize,
    },
    /// One file over and over by wrk.
    KeepAlive {
        /// The file.
        #[serde(serialize_with = "name_of_sample")]
        file: Sample,
        /// Connections at a time.
        connections: usize,
    },
    /// The 10 kB file with a full handshake each.
    Handshakes {
        /// Connections at a time.
        connections: usize,
    },
    /// The 1 MB file, read a record at a time on all connections in turn.
    Slow {
        /// Connections at a time.
        connections: usize,
    },
    /// Nothing, after one request each.
    Idle {
        /// Connections at a time.
        connections: usize,
    },
}

/// Bytes of body that the slow work fetches over its few connections.
pub(crate) const SLOW_FEW_BYTES: u64 = 2_000_000_000;
/// The few connections that the slow work compares with.
pub(crate) const SLOW_FEW_CONNECTIONS: usize = 10;

/// Descriptors that a process keeps free for other things than connections and files.
pub(crate) const SPARE_DESCRIPTORS: usize = 500;

/// What server CPU is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    /// 1,000,000,000 bytes of response bodies.
    Gigabyte,
    /// One response.
    Request,
    /// One idle connection (memory, not CPU).
    Connection,
}

/// One thing that is measured in every round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    /// Who.
    pub(crate) role: Role,
    /// How it is loaded.
    pub(crate) load: Load,
}

/// A ratio of two entries, by index.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Numerator.
    pub(crate) ours: usize,
    /// Denominator.
    pub(crate) against: usize,
    /// The ratio should not be above it.
    pub(crate) target: Option<f64>,
}

/// A row of the table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Work {
    /// For `--only`.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) title: String,
    /// What the cost is divided by.
    pub(crate) unit: Unit,
    /// What is measured.
    pub(crate) entries: Vec<Entry>,
    /// What is compared.
    pub(crate) comparisons: Vec<Comparison>,
    /// The most that an idle connection should take, in bytes.
    pub(crate) target_bytes: Option<u64>,
}

/// All works; `many` is the number of connections of the idle and the slow one, of which nginx gets fewer in the
/// slow one when it could not hold a descriptor for each connection and another for each file, as it does.
pub(crate) fn all(many: usize, descriptors: usize) -> Vec<Work> {
    use Role::{Linerate, LineratePlain, Nginx13, NginxHost, NginxPlain};
    let against_all = |plain, host, thirteen| {
        vec![(Linerate, NginxPlain, plain), (Linerate, NginxHost, host), (Linerate, Nginx13, thirteen)]
    };
    let bulk = |name, connections, targets: Vec<_>| {
        let title = format!("2 GB file, {connections} connection(s), sender-limited");
        work(name, title, Unit::Gigabyte, Load::Bulk { connections }, &ROLES, &targets)
    };
    let keep_alive = |name, size, file, targets: Vec<_>| {
        let title = format!("{size}, keep-alive, 64 connections");
        let roles = [Linerate, NginxPlain, NginxHost, Nginx13];
        work(name, title, Unit::Request, Load::KeepAlive { file, connections: 64 }, &roles, &targets)
    };
    let own_plain = (LineratePlain, NginxPlain, Some(0.95));
    vec![
        idle(many),
        bulk("bulk-8", 8, [against_all(Some(1.0), Some(0.42), Some(0.55)), vec![own_plain]].concat()),
        bulk("bulk-2", 2, [against_all(Some(1.25), None, None), vec![own_plain]].concat()),
        bulk("bulk-1", 1, [against_all(Some(1.25), None, None), vec![own_plain]].concat()),
        keep_alive("keepalive-10mb", "10 MB", files::FILE_10MB, against_all(None, None, None)),
        keep_alive("keepalive-1mb", "1 MB", files::FILE_1MB, against_all(Some(1.1), None, Some(0.55))),
        keep_alive("keepalive-100kb", "100 kB", files::FILE_100KB, against_all(None, Some(0.45), Some(0.65))),
        keep_alive("keepalive-10kb", "10 kB", files::FILE_10KB, against_all(None, None, Some(0.85))),
        work(
            "handshake",
            "10 kB, Connection: close, a full handshake each, 50 connections".to_string(),
            Unit::Request,
            Load::Handshakes { connections: 50 },
            &[Linerate, NginxHost, Nginx13],
            &[(Linerate, NginxHost, Some(0.55)), (Linerate, Nginx13, Some(0.55))],
        ),
        slow(many, many.min(descriptors.saturating_sub(SPARE_DESCRIPTORS) / 2)),
    ]
}

fn work(
    name: &'static str,
    title: String,
    unit: Unit,
    load: Load,
    roles: &[Role],
    comparisons: &[(Role, Role, Option<f64>)],
) -> Work {
    let index = |role| roles.iter().position(|&other| other == role);
    let comparisons = comparisons
        .iter()
        .filter_map(|&(ours, against, target)| {
            Some(Comparison { ours: index(ours)?, against: index(against)?, target })
        })
        .collect();
    let entries = roles.iter().map(|&role| Entry { role, load }).collect();
    Work { name, title, unit, entries, comparisons, target_bytes: None }
}

fn idle(many: usize) -> Work {
    let title = format!("{many} idle keep-alive TLS connections: resident memory of each");
    let roles = [Role::Linerate, Role::NginxHost, Role::Nginx13];
    let work = work("idle", title, Unit::Connection, Load::Idle { connections: many }, &roles, &[]);
    Work { target_bytes: Some(10 * 1024), ..work }
}

/// Every server against itself: many connections against few.
fn slow(many: usize, many_of_nginx: usize) -> Work {
    let mut entries = Vec::new();
    let mut comparisons = Vec::new();
    for role in [Role::Linerate, Role::NginxHost, Role::Nginx13] {
        let target = (role == Role::Linerate).then_some(1.3);
        comparisons.push(Comparison { ours: entries.len(), against: entries.len() + 1, target });
        let many = if role == Role::Linerate { many } else { many_of_nginx };
        entries.extend([many, SLOW_FEW_CONNECTIONS].map(|count| Entry { role, load: slow_load(count) }));
    }
    Work {
        name: "slow",
        title: format!("1 MB fetched slowly on {many} connections, against {SLOW_FEW_CONNECTIONS}"),
        unit: Unit::Gigabyte,
        entries,
        comparisons,
        target_bytes: None,
    }
}

fn slow_load(connections: usize) -> Load {
    Load::Slow { connections }
}

impl Work {
    /// The work without the entries of roles that do not take part; `None` when nothing is left.
    pub(crate) fn restricted_to(&self, present: impl Fn(Role) -> bool) -> Option<Self> {
        let kept: Vec<usize> = (0..self.entries.len()).filter(|&at| present(self.entries[at].role)).collect();
        let place = |old: usize| kept.iter().position(|&index| index == old);
        let entries: Vec<Entry> = kept.iter().map(|&index| self.entries[index]).collect();
        let comparisons = self
            .comparisons
            .iter()
            .filter_map(|comparison| {
                let (ours, against) = (place(comparison.ours)?, place(comparison.against)?);
                Some(Comparison { ours, against, target: comparison.target })
            })
            .collect();
        (!entries.is_empty()).then(|| Self { entries, comparisons, ..self.clone() })
    }

    /// The work without targets against `role`.
    pub(crate) fn without_targets_against(&self, role: Role) -> Self {
        let mut work = self.clone();
        for comparison in &mut work.comparisons {
            if work.entries[comparison.against].role == role && work.entries[comparison.ours].role != role {
                comparison.target = None;
            }
        }
        work
    }

    /// The most connections at a time.
    pub(crate) fn connections(&self) -> usize {
        self.entries.iter().map(|entry| entry.load.connections()).max().unwrap_or(0)
    }
}

impl Load {
    /// Connections at a time.
    pub(crate) fn connections(self) -> usize {
        match self {
            Self::Bulk { connections }
            | Self::KeepAlive { connections, .. }
            | Self::Handshakes { connections }
            | Self::Slow { connections }
            | Self::Idle { connections } => connections,
        }
    }
}

fn name_of_sample<S: serde::Serializer>(sample: &Sample, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(sample.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_comparisons_point_at_entries() {
        let works = all(10_000, 65_536);
        for (at, work) in works.iter().enumerate() {
            assert!(works[..at].iter().all(|other| other.name != work.name));
            for comparison in &work.comparisons {
                assert!(comparison.ours < work.entries.len() && comparison.against < work.entries.len());
                assert_ne!(comparison.ours, comparison.against);
            }
        }
    }

    #[test]
    fn a_missing_server_takes_its_comparisons_along() {
        let works = all(10_000, 65_536);
        let bulk = works.iter().find(|work| work.name == "bulk-8").unwrap();
        let without = bulk.restricted_to(|role| role != Role::NginxHost).unwrap();
        assert_eq!(without.entries.len(), bulk.entries.len() - 1);
        assert_eq!(without.comparisons.len(), bulk.comparisons.len() - 1);
        let thirteen = without.comparisons.iter().find(|comparison| comparison.target == Some(0.55)).unwrap();
        assert_eq!(without.entries[thirteen.ours].role, Role::Linerate);
        assert_eq!(without.entries[thirteen.against].role, Role::Nginx13);
        assert!(bulk.restricted_to(|_| false).is_none());
    }

    #[test]
    fn nginx_reads_slowly_on_as_many_connections_as_it_has_descriptors_for() {
        let works = all(10_000, 20_000);
        let slow = works.iter().find(|work| work.name == "slow").unwrap();
        let counts: Vec<usize> = slow.entries.iter().map(|entry| entry.load.connections()).collect();
        assert_eq!(counts, [10_000, 10, 9_750, 10, 9_750, 10]);
        assert_eq!(slow.connections(), 10_000);
    }

    #[test]
    fn targets_against_one_role_can_be_taken_back() {
        let works = all(10_000, 65_536);
        let bulk = works.iter().find(|work| work.name == "bulk-8").unwrap();
        let changed = bulk.without_targets_against(Role::NginxHost);
        let targets = |work: &Work| -> Vec<Option<f64>> {
            work.comparisons.iter().map(|comparison| comparison.target).collect()
        };
        assert_eq!(targets(bulk), [Some(1.0), Some(0.42), Some(0.55), Some(0.95)]);
        assert_eq!(targets(&changed), [Some(1.0), None, Some(0.55), Some(0.95)]);
    }
}
