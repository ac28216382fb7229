//! The metrics of all workers as Prometheus reads them (text exposition format 0.0.4).

use super::{Counter, Family, Histogram, Label, Metrics};
use linerate_os::kernel_tls::Statistic;
use std::{collections::BTreeMap, fmt::Write, sync::Arc};

/// A number of the server as a whole.
pub(crate) struct Single {
    pub(crate) name: &'static str,
    /// `counter` or `gauge`.
    pub(crate) kind: &'static str,
    pub(crate) help: &'static str,
    pub(crate) value: u64,
}

/// Adds up the workers' metrics and writes them out, then those of the server as a whole, then the kernel's own counts
/// where it has any.
pub(crate) fn render(
    workers: &[Arc<Metrics>],
    singles: &[Single],
    nfs_refusals: &[(&str, u64)],
    kernel_statistics: Option<&[Statistic]>,
) -> String {
    let mut page = Page { text: String::with_capacity(8192), workers };
    page.sum("linerate_connections_total", "counter", "Connections accepted.", |worker| {
        &worker.connections_accepted
    });
    page.sum("linerate_connections_active", "gauge", "Connections open now.", |worker| {
        &worker.connections_active
    });
    page.sum("linerate_tls_handshakes_in_flight", "gauge", "Handshakes under way now.", |worker| {
        &worker.handshakes_in_flight
    });
    page.by_label("linerate_refused_total", "Connections refused, by reason.", |worker| &worker.refused);
    page.by_label("linerate_connections_closed_total", "Connections ended, by reason.", |worker| {
        &worker.closed
    });
    page.handshakes();
    page.requests();
    page.by_label(
        "linerate_http_response_bytes_total",
        "Bytes of responses and of replies to NFS clients (before encryption), by the engine that carried them.",
        |worker| &worker.response_bytes,
    );
    page.by_label("linerate_tls_key_updates_total", "TLS 1.3 key updates, by direction.", |worker| {
        &worker.key_updates
    });
    page.by_label(
        "linerate_http_responses_total",
        "Responses, by the engine that sent their last byte.",
        |worker| &worker.responses_by_engine,
    );
    page.placements();
    page.kernel();
    page.sum(
        "linerate_cold_reads_total",
        "counter",
        "Reads handed to other threads because a file was not in memory.",
        |worker| &worker.cold_reads,
    );
    page.by_label(
        "linerate_nfs_calls_total",
        "Calls of NFS clients: answered, answered by a thread that may wait for the disk, denied, or no calls at all.",
        |worker| &worker.nfs_calls,
    );
    page.by_label("linerate_nfs_tls_total", "NFS clients that asked for TLS, by the answer.", |worker| {
        &worker.nfs_tls
    });
    page.histogram(
        "linerate_tls_handshake_duration_seconds",
        "From accept to the handshake's end.",
        |worker| &worker.handshake_seconds,
    );
    page.histogram(
        "linerate_http_request_duration_seconds",
        "From a request's last byte to its response's.",
        |worker| &worker.request_seconds,
    );
    for Single { name, kind, help, value } in singles {
        page.heading(name, kind, help);
        let _ = writeln!(page.text, "{name} {value}");
    }
    page.nfs_refusals(nfs_refusals);
    if let Some(statistics) = kernel_statistics {
        page.kernel_statistics(statistics);
    }
    page.text
}

fn page_sum(workers: &[Arc<Metrics>], counter: impl Fn(&Metrics) -> &Counter) -> u64 {
    workers.iter().fold(0, |sum, worker| sum.wrapping_add(counter(worker).value()))
}

struct Page<'a> {
    text: String,
    workers: &'a [Arc<Metrics>],
}

// Writing to a String cannot fail: the results of `writeln!` are dropped on purpose.
impl Page<'_> {
    fn heading(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sum(&mut self, name: &str, kind: &str, help: &str, counter: impl Fn(&Metrics) -> &Counter) {
        self.heading(name, kind, help);
        let value = page_sum(self.workers, counter);
        let _ = writeln!(self.text, "{name} {value}");
    }

    fn by_label<L: Label, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        family: impl Fn(&Metrics) -> &Family<L, N>,
    ) {
        self.heading(name, "counter", help);
        for &value in L::ALL {
            let count = page_sum(self.workers, |worker| family(worker).of(value));
            let _ = writeln!(self.text, "{name}{{{}=\"{}\"}} {count}", L::NAME, value.label());
        }
    }

    fn handshakes(&mut self) {
        let name = "linerate_tls_handshakes_total";
        self.heading(name, "counter", "Handshakes ended, by version and result.");
        for (version, label) in ["TLSv1.2", "TLSv1.3"].into_iter().enumerate() {
            for (resumed, result) in ["full", "resumed"].into_iter().enumerate() {
                let count = page_sum(self.workers, |worker| &worker.handshakes[version][resumed]);
                let _ = writeln!(self.text, "{name}{{version=\"{label}\",result=\"{result}\"}} {count}");
            }
        }
        let mut failures = BTreeMap::<&str, u64>::new();
        for worker in self.workers {
            let counts = worker.handshake_failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for (reason, count) in &*counts {
                *failures.entry(reason).or_default() += count;
            }
        }
        for (reason, count) in failures {
            let _ = writeln!(self.text, "{name}{{version=\"none\",result=\"{reason}\"}} {count}");
        }
    }

    /// Where nothing is exported there are none.
    fn nfs_refusals(&mut self, refusals: &[(&str, u64)]) {
        if refusals.is_empty() {
            return;
        }
        let name = "linerate_nfs_refused_total";
        self.heading(name, "counter", "What NFS clients did not get, by reason.");
        for (reason, count) in refusals {
            let _ = writeln!(self.text, "{name}{{reason=\"{reason}\"}} {count}");
        }
    }

    /// Combinations that never occurred are left out: there are about ninety.
    fn placements(&mut self) {
        let name = "linerate_placement_total";
        let help = "Responses over TLS, by the engine that sent their last byte and the reason for it.";
        self.heading(name, "counter", help);
        for engine in linerate_placement::Engine::ALL {
            for (index, reason) in linerate_placement::Reason::LABELS.iter().enumerate() {
                let count: u64 = self.workers.iter().map(|worker| worker.placements(engine, index)).sum();
                if count > 0 {
                    let _ = writeln!(self.text, "{name}{{engine=\"{engine}\",reason=\"{reason}\"}} {count}");
                }
            }
        }
    }

    fn kernel(&mut self) {
        self.sum(
            "linerate_kernel_tls_promotions_total",
            "counter",
            "Connections whose sending side moved to kernel TLS.",
            |worker| &worker.kernel_promotions,
        );
        self.by_label(
            "linerate_kernel_tls_refused_total",
            "Connections that kernel TLS was meant for and that stayed on the user engine, by reason.",
            |worker| &worker.kernel_refused,
        );
        self.sum(
            "linerate_kernel_tls_key_updates_total",
            "counter",
            "Keys that the kernel took in place of another (among linerate_tls_key_updates_total, sent).",
            |worker| &worker.kernel_key_updates,
        );
        self.by_label(
            "linerate_nic_set_ups_total",
            "Connections that an adapter was to take: who has them, as proved, and switches refused.",
            |worker| &worker.nic_set_ups,
        );
        self.by_label(
            "linerate_nic_left_total",
            "Connections that an adapter had and that went on in the kernel's software, by reason (FreeBSD).",
            |worker| &worker.nic_left,
        );
        self.histogram(
            "linerate_nic_set_up_duration_seconds",
            "How long connections were parked for a set-up on an adapter.",
            |worker| &worker.nic_set_up_seconds,
        );
    }

    /// `/proc/net/tls_stat`, some of whose lines go down again: all are gauges to a scraper.
    fn kernel_statistics(&mut self, statistics: &[Statistic]) {
        let name = "linerate_kernel_tls_stat";
        self.heading(name, "gauge", "The kernel's own counts, /proc/net/tls_stat of this network namespace.");
        for Statistic { name: counter, value } in statistics {
            let _ = writeln!(self.text, "{name}{{counter=\"{counter}\"}} {value}");
        }
        let promotions = page_sum(self.workers, |worker| &worker.kernel_promotions);
        let counted: u64 = statistics
            .iter()
            .filter(|statistic| ["TlsTxSw", "TlsTxDevice"].contains(&statistic.name.as_str()))
            .map(|statistic| statistic.value)
            .sum();
        if promotions > 0 && counted == 0 {
            let _ = writeln!(
                self.text,
                "# {name}: {promotions} connections were promoted, and the kernel's counts read zero: they are of the \
                 network namespace that this process is in, and its sockets were made in another."
            );
        }
    }

    fn requests(&mut self) {
        let name = "linerate_http_requests_total";
        self.heading(name, "counter", "Requests answered, by status.");
        for status in 0..super::STATUS_SLOTS {
            let count = page_sum(self.workers, |worker| &worker.responses[status]);
            if count > 0 {
                let _ = writeln!(self.text, "{name}{{status=\"{status}\"}} {count}");
            }
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: impl Fn(&Metrics) -> &Histogram) {
        self.heading(name, "histogram", help);
        let Some(first) = self.workers.first() else { return };
        let bounds_us = histogram(first).bounds_us();
        let mut counts = vec![0; bounds_us.len() + 1];
        let mut sum_us = 0u64;
        for worker in self.workers {
            let histogram = histogram(worker);
            counts.iter_mut().zip(histogram.counts()).for_each(|(total, count)| *total += count);
            sum_us += histogram.sum_us();
        }
        let mut cumulated = 0;
        for (bound_us, count) in bounds_us.iter().zip(&counts) {
            cumulated += count;
            let _ = writeln!(self.text, "{name}_bucket{{le=\"{}\"}} {cumulated}", *bound_us as f64 / 1e6);
        }
        cumulated += counts[bounds_us.len()];
        let _ = writeln!(self.text, "{name}_bucket{{le=\"+Inf\"}} {cumulated}");
        let _ = writeln!(self.text, "{name}_sum {}\n{name}_count {cumulated}", sum_us as f64 / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Direction, Engine, KernelRefused, Refused};
    use std::time::Duration;

    #[test]
    fn workers_are_added_up() {
        let workers = [Arc::new(Metrics::default()), Arc::new(Metrics::default())];
        for worker in &workers {
            worker.connections_active.increment();
            worker.respond(206, Engine::Kernel);
            worker.refuse_kernel(KernelRefused::Cipher);
            worker.place(&linerate_placement::Decision {
                engine: linerate_placement::Engine::Kernel,
                reason: linerate_placement::Reason::MovedBefore,
            });
            worker.send(Engine::User, 1000);
            worker.handshake(linerate_record::Version::Tls13, false);
            worker.handshake_failed("no_shared_cipher");
            worker.request_seconds.observe(Duration::from_micros(60));
            worker.refuse(Refused::Descriptors);
            worker.key_updates.of(Direction::Sent).increment();
        }
        workers[0].connections_active.decrement();
        let example = Single { name: "linerate_example", kind: "gauge", help: "An example.", value: 7 };
        let text = render(&workers, &[example], &[("network", 3)], None);
        for line in [
            "linerate_connections_active 1",
            "linerate_http_requests_total{status=\"206\"} 2",
            "linerate_http_response_bytes_total{engine=\"user\"} 2000",
            "linerate_http_responses_total{engine=\"kernel\"} 2",
            "linerate_placement_total{engine=\"kernel\",reason=\"moved_before\"} 2",
            "linerate_kernel_tls_refused_total{reason=\"cipher\"} 2",
            "linerate_kernel_tls_promotions_total 0",
            "linerate_tls_handshakes_total{version=\"TLSv1.3\",result=\"full\"} 2",
            "linerate_tls_handshakes_total{version=\"none\",result=\"no_shared_cipher\"} 2",
            "linerate_http_request_duration_seconds_bucket{le=\"0.00005\"} 0",
            "linerate_http_request_duration_seconds_bucket{le=\"0.0001\"} 2",
            "linerate_http_request_duration_seconds_count 2",
            "linerate_refused_total{reason=\"descriptors\"} 2",
            "linerate_tls_key_updates_total{direction=\"sent\"} 2",
            "linerate_tls_key_updates_total{direction=\"received\"} 0",
            "# TYPE linerate_example gauge",
            "linerate_example 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn the_kernels_counts_are_told_with_a_note_where_they_mislead() {
        let workers = [Arc::new(Metrics::default())];
        let statistic = |name: &str, value| Statistic { name: name.to_owned(), value };
        let page = |value| {
            render(&workers, &[], &[], Some(&[statistic("TlsTxSw", value), statistic("TlsTxDevice", 0)]))
        };
        let note = |text: &str| text.lines().any(|line| line.starts_with("# linerate_kernel_tls_stat: "));
        assert!(page(0).contains("linerate_kernel_tls_stat{counter=\"TlsTxSw\"} 0\n"));
        assert!(!note(&page(0)), "nothing was promoted");
        workers[0].kernel_promotions.increment();
        assert!(note(&page(0)));
        assert!(!note(&page(1)));
    }
}
