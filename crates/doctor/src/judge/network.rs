//! The network stack's settings: facts, and the few that stand in the way.

use crate::{Facts, Finding, Group, Use};

const GROUP: Group = Group::Network;

/// What linerate asks for when it listens.
const BACKLOG: u64 = 4096;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    findings.push(congestion_control(facts));
    findings.push(backlog(facts));
    findings.push(send_buffer(facts));
    findings.push(slow_start(facts));
    findings.push(ports(facts));
}

fn congestion_control(facts: &Facts) -> Finding {
    const NAME: &str = "network.congestion_control";
    match facts.told("network", "net.ipv4.tcp_congestion_control") {
        Ok(control) if control.starts_with("bbr") => Finding::note(
            GROUP,
            NAME,
            format!(
                "congestion control {control}: it spaces what it sends by timers of the kernel's, which on loopback and \
                 fast local links are a large part of what a byte costs; linerate sends a burst at a time under it"
            ),
        ),
        Ok(control) => Finding::ok(GROUP, NAME, format!("congestion control {control}")),
        Err(reason) => Finding::note(GROUP, NAME, format!("congestion control is not known: {reason}")),
    }
}

fn backlog(facts: &Facts) -> Finding {
    const NAME: &str = "network.backlog";
    let told = facts
        .told("network", "net.core.somaxconn")
        .and_then(|text| text.parse::<u64>().map_err(|_| format!("\"{text}\" is no number")));
    match told {
        Ok(most) if most < BACKLOG => Finding::change(
            GROUP,
            NAME,
            Use::Limits,
            format!(
                "net.core.somaxconn is {most}: of more connections than that at once, each worker's listener loses some, \
                 whose clients try again after a second"
            ),
        )
        .command(format!("sudo sysctl --write net.core.somaxconn={BACKLOG}"))
        .command(format!("echo net.core.somaxconn={BACKLOG} | sudo tee /etc/sysctl.d/60-linerate.conf")),
        Ok(most) => Finding::ok(GROUP, NAME, format!("listeners may queue {} connections", most.min(BACKLOG))),
        Err(reason) => Finding::note(GROUP, NAME, format!("net.core.somaxconn is not known: {reason}")),
    }
}

fn send_buffer(facts: &Facts) -> Finding {
    const NAME: &str = "network.send_buffer";
    let told = facts.told("network", "net.ipv4.tcp_wmem").and_then(|text| {
        let most = text.split(' ').nth(2).and_then(|most| most.parse::<u64>().ok());
        most.ok_or_else(|| format!("\"{text}\" is not understood"))
    });
    match told {
        Ok(most) => {
            // The kernel's own structures take about half.
            let mbit_s = most as f64 / 2.0 * 8.0 / 0.1 / 1e6;
            let text = format!(
                "a connection may have {} MiB in flight (net.ipv4.tcp_wmem), about {mbit_s:.0} Mb/s over 100 ms",
                most >> 20
            );
            Finding::ok(GROUP, NAME, text)
        }
        Err(reason) => Finding::note(GROUP, NAME, format!("net.ipv4.tcp_wmem is not known: {reason}")),
    }
}

fn slow_start(facts: &Facts) -> Finding {
    const NAME: &str = "network.slow_start_after_idle";
    match facts.told("network", "net.ipv4.tcp_slow_start_after_idle") {
        Ok("0") => Finding::ok(GROUP, NAME, "connections keep their speed between two requests"),
        Ok(_) => Finding::note(
            GROUP,
            NAME,
            "a connection that was idle for a moment starts slowly again, as players that fetch piece by piece do each time",
        )
        .command("sudo sysctl --write net.ipv4.tcp_slow_start_after_idle=0"),
        Err(reason) => Finding::note(GROUP, NAME, format!("net.ipv4.tcp_slow_start_after_idle is not known: {reason}")),
    }
}

fn ports(facts: &Facts) -> Finding {
    const NAME: &str = "network.ports";
    let told = facts.told("network", "net.ipv4.ip_local_port_range").and_then(|text| {
        let (first, last) = text.split_once(' ').ok_or_else(|| format!("\"{text}\" is not understood"))?;
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last => Ok(last - first + 1),
            _ => Err(format!("\"{text}\" is not understood")),
        }
    });
    match told {
        Ok(count) => {
            let text = format!(
                "{count} local ports towards each server, which concerns load clients here (linerate load, bench), not \
                 the server"
            );
            Finding::ok(GROUP, NAME, text)
        }
        Err(reason) => Finding::note(GROUP, NAME, format!("the range of local ports is not known: {reason}")),
    }
}
