//! Kernel, `tls` module, and what keeps this process from using them.

use linerate_environment::{Reading, ZEROES_PAGES};
use linerate_placement::Release;

use crate::{
    Facts, Finding, Group, Use,
    facts::{Module, NET_ADMIN, NET_BIND_SERVICE},
    judge::{engines, on_the_host},
};

const GROUP: Group = Group::System;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    findings.push(kernel(facts));
    findings.extend(zeroed_pages(facts));
    findings.push(module(facts));
    findings.extend(statistics(facts));
    findings.push(network_namespace(facts));
    findings.extend(container(facts));
    findings.extend(capabilities(facts));
    findings.push(sandbox(facts));
}

fn kernel(facts: &Facts) -> Finding {
    let distribution =
        facts.told("kernel", "distribution").map_or_else(|_| String::new(), |name| format!(", {name}"));
    match (facts.told("kernel", "release"), facts.release()) {
        (Ok(release), Some(numbers)) if numbers < Release { major: 5, minor: 12 } => Finding::note(
            GROUP,
            "kernel.release",
            format!(
                "Linux {release}{distribution}: kernels before 5.12 cannot tell which names are in memory, which costs \
                 a detour for every file that is not kept open"
            ),
        ),
        (Ok(release), _) => Finding::ok(GROUP, "kernel.release", format!("Linux {release}{distribution}")),
        (Err(reason), _) => Finding::note(GROUP, "kernel.release", format!("not known: {reason}")),
    }
}

/// What the kernel does with the pages of socket buffers before anything is copied into them.
fn zeroed_pages(facts: &Facts) -> Option<Finding> {
    const NAME: &str = "kernel.init_on_alloc";
    match facts.told("kernel", ZEROES_PAGES) {
        Ok("yes") => Some(Finding::note(
            GROUP,
            NAME,
            "the kernel zeroes each page that it allocates (init_on_alloc, as Debian and Ubuntu configure it): what is \
             copied into a socket is written twice; init_on_alloc=0 on the kernel's command line ends that, and a \
             protection against faults of the kernel's own",
        )),
        Ok(_) => Some(Finding::ok(
            GROUP,
            NAME,
            "pages are not zeroed before bytes are copied into them (init_on_alloc)",
        )),
        Err(_) => None,
    }
}

fn module(facts: &Facts) -> Finding {
    const NAME: &str = "kernel_tls.module";
    // Without an adapter that encrypts, the module serves the kernel engine only; with one, the adapter needs it.
    let what_for = match engines::routes(facts).is_empty() {
        false => Use::Adapter,
        true => Use::KernelTls,
    };
    let what_for_in_words = match what_for {
        Use::Adapter => "an adapter that encrypts is reached through it",
        _ => "for the kernel engine; the user engine needs none",
    };
    let place = on_the_host(facts);
    let to_load = |text: String| {
        Finding::change(GROUP, NAME, what_for, text)
            .command(format!("sudo modprobe tls{place}"))
            .command(format!("echo tls | sudo tee /etc/modules-load.d/linerate.conf{place}"))
    };
    // The kernel loads it for a socket of a process with the privilege (net/ipv4/tcp_ulp.c, __tcp_ulp_find_autoload).
    let may_load = facts.confinement.has(NET_ADMIN) == Some(true)
        && facts.confinement.first_user.value().is_some_and(|is_first| *is_first);
    match &facts.module {
        Module::Loaded => Finding::ok(GROUP, NAME, "the tls module is loaded"),
        Module::Installed if may_load => to_load(format!(
            "the tls module is installed, and was not loaded although this process may ask for it: {what_for_in_words}"
        )),
        Module::Installed => to_load(format!(
            "the tls module is not loaded, and this process may not have it loaded (it lacks CAP_NET_ADMIN): \
             {what_for_in_words}"
        )),
        Module::NoModules if facts.confinement.container.is_some() => to_load(format!(
            "the tls module is not loaded, and a container cannot load it: {what_for_in_words}"
        )),
        Module::NoModules => Finding::note(
            GROUP,
            NAME,
            "the tls module is not loaded, and no modules of this kernel are installed to load it from: everything stays \
             on the user engine",
        ),
        Module::NotInKernel => Finding::note(
            GROUP,
            NAME,
            "this kernel has no tls module (CONFIG_TLS): everything stays on the user engine",
        ),
        Module::NotKnown(reason) => {
            Finding::note(GROUP, NAME, format!("whether there is a tls module is not known: {reason}"))
        }
    }
}

/// What kernel TLS has done so far; of a module that is not loaded there is nothing to tell.
fn statistics(facts: &Facts) -> Option<Finding> {
    const NAME: &str = "kernel_tls.statistics";
    match &facts.statistics {
        Reading::Value(counters) => {
            let moved: Vec<String> = counters
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            let moved = if moved.is_empty() { "all zero".to_owned() } else { moved.join(", ") };
            Some(Finding::ok(GROUP, NAME, format!("/proc/net/tls_stat, of this network namespace: {moved}")))
        }
        Reading::NotAvailable(reason) if facts.module == Module::Loaded => {
            Some(Finding::note(GROUP, NAME, format!("what kernel TLS has done is not known: {reason}")))
        }
        Reading::NotAvailable(_) => None,
    }
}

fn network_namespace(facts: &Facts) -> Finding {
    const NAME: &str = "namespace.network";
    match facts.confinement.own_network {
        Reading::Value(false) => Finding::ok(GROUP, NAME, "in the machine's first network namespace"),
        Reading::Value(true) => Finding::note(
            GROUP,
            NAME,
            "in a network namespace of its own: /proc/net/tls_stat counts only sockets that were made in it and reads \
             zero for all others, and adapters of the machine are out of sight",
        )
        .command(format!("sudo nsenter --target 1 --net linerate doctor{}", on_the_host(facts))),
        Reading::NotAvailable(ref reason) => {
            Finding::note(GROUP, NAME, format!("whether this network namespace is the first is not known: {reason}"))
        }
    }
}

fn container(facts: &Facts) -> Option<Finding> {
    let kind = facts.confinement.container.as_deref()?;
    Some(Finding::note(
        GROUP,
        "container",
        format!(
            "in a container ({kind}): kernel, modules, adapters and most settings are the host's to change"
        ),
    ))
}

fn capabilities(facts: &Facts) -> Vec<Finding> {
    const NET: &str = "capability.net_admin";
    const BIND: &str = "capability.net_bind_service";
    let confinement = &facts.confinement;
    let Some(net_admin) = confinement.has(NET_ADMIN) else {
        let reason = match &confinement.capabilities {
            Reading::NotAvailable(reason) => reason.as_str(),
            Reading::Value(_) => "",
        };
        return vec![Finding::note(GROUP, NET, format!("capabilities are not known: {reason}"))];
    };
    let is_first_user = confinement.first_user.value().is_none_or(|is_first| *is_first);
    let mut findings = vec![match (net_admin, is_first_user) {
        (true, true) => Finding::ok(GROUP, NET, "CAP_NET_ADMIN: yes"),
        (true, false) => Finding::note(
            GROUP,
            NET,
            "CAP_NET_ADMIN: only within a user namespace; modules and the machine's adapters are out of reach",
        ),
        (false, _) if facts.module == Module::Loaded => Finding::ok(
            GROUP,
            NET,
            "CAP_NET_ADMIN: no; the server does not need it, as the tls module is loaded",
        ),
        (false, _) => Finding::note(
            GROUP,
            NET,
            "CAP_NET_ADMIN: no; the server does not need it, but nothing loads the tls module by itself, and adapters \
             cannot be set from here",
        ),
    }];
    let first_open_port = confinement.first_open_port.value().copied().unwrap_or(1024);
    findings.push(match confinement.has(NET_BIND_SERVICE) == Some(true) || first_open_port <= 443 {
        true => Finding::ok(GROUP, BIND, "port 443 can be listened on"),
        false => Finding::note(
            GROUP,
            BIND,
            format!(
                "ports below {first_open_port} cannot be listened on by this user; the systemd unit in deploy/ has \
                 CAP_NET_BIND_SERVICE"
            ),
        )
        .command("sudo setcap cap_net_bind_service=+ep \"$(command -v linerate)\""),
    });
    findings
}

fn sandbox(facts: &Facts) -> Finding {
    let seccomp = match &facts.confinement.seccomp {
        Reading::Value(mode) if mode == "none" => "no seccomp filter".to_owned(),
        Reading::Value(mode) => format!("seccomp: {mode}"),
        Reading::NotAvailable(reason) => format!("seccomp is not known ({reason})"),
    };
    let io_uring = match &facts.confinement.io_uring {
        Ok(()) => "io_uring is permitted".to_owned(),
        Err(error) => format!("io_uring is not permitted ({error})"),
    };
    Finding::ok(GROUP, "seccomp", format!("{seccomp}; {io_uring}, and linerate does not use it"))
}
