//! What would run, for a person to read.

use std::fmt;

use linerate_config::{
    AccessLog, EngineChoice, Export, Listener, ListenerKind, Origin, Settings, Site, SitePolicy,
    duration_text, size_text,
};
use linerate_http::HeaderBlock;
use linerate_suite::Version;

/// Displays settings, one fact a line.
pub(crate) struct Summary<'a>(pub(crate) &'a Settings);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.0;
        for listener in &settings.listeners {
            line(formatter, "listen", listener_text(listener, settings))?;
        }
        if let Some(admin) = settings.admin {
            let reach = if admin.ip().is_loopback() { "" } else { " (other machines can reach it)" };
            line(formatter, "admin", format_args!("http://{admin}{reach}"))?;
        }
        line(formatter, "workers", workers_text(settings))?;
        line(formatter, "engine", settings.engine)?;
        if let Some(AccessLog { target, format, .. }) = &settings.access_log {
            line(formatter, "access log", format_args!("{target}, {format}"))?;
        }
        if settings.https_port().is_some() {
            write_tls(formatter, settings)?;
        }
        settings.sites.iter().try_for_each(|site| write_site(formatter, site, settings))?;
        settings.exports.iter().try_for_each(|export| write_export(formatter, export, settings))?;
        write_nfs(formatter, settings)?;
        write_bounds(formatter, settings)
    }
}

fn line(formatter: &mut fmt::Formatter<'_>, what: &str, text: impl fmt::Display) -> fmt::Result {
    writeln!(formatter, "{what:<14} {text}")
}

fn listener_text(listener: &Listener, settings: &Settings) -> String {
    let mut text = listener.to_string();
    if let (ListenerKind::Redirect, Some(port)) = (listener.kind, settings.https_port()) {
        text.push_str(&format!(" to https on port {port}"));
    }
    if listener.origin == Origin::Default {
        text.push_str(" (default)");
    }
    if !listener.required {
        text.push_str(" (where there is IPv6)");
    }
    text
}

fn workers_text(settings: &Settings) -> String {
    let count = settings.workers.map_or("one for each CPU".to_owned(), |workers| workers.to_string());
    match &settings.cpus {
        Some(cpus) => format!("{count}, on CPUs {cpus}"),
        None => count,
    }
}

fn write_tls(formatter: &mut fmt::Formatter<'_>, settings: &Settings) -> fmt::Result {
    let tls = &settings.tls;
    let versions = match tls.minimum_version {
        Version::Tls12 => "1.2, 1.3",
        Version::Tls13 => "1.3",
    };
    line(formatter, "TLS versions", versions)?;
    if let Some(suites) = &tls.cipher_suites {
        line(formatter, "cipher suites", suites)?;
    }
    if let Some(groups) = &tls.groups {
        line(formatter, "groups", groups)?;
    }
    line(formatter, "tickets", if tls.session_tickets { "yes" } else { "no" })?;
    let records =
        tls.records_per_key_limit.map_or("the cipher's limit".to_owned(), |limit| limit.to_string());
    line(
        formatter,
        "TLS limits",
        format_args!(
            "handshakes in flight {}, records per key {records}, key updates per second {}",
            tls.handshakes_in_flight_limit, tls.key_updates_per_second_limit
        ),
    )
}

fn write_site(formatter: &mut fmt::Formatter<'_>, site: &Site, settings: &Settings) -> fmt::Result {
    let names = if site.names.is_empty() { "(default)".to_owned() } else { site.names.join(", ") };
    line(formatter, "site", names)?;
    line(formatter, "  root", site.root.display())?;
    for pair in &site.certificates {
        let (certificate, key) = (pair.certificate.display(), pair.key.display());
        line(formatter, "  certificate", format_args!("{certificate}, key {key}"))?;
    }
    if settings.sites_need_development_certificate() {
        line(formatter, "  certificate", "made for development, good for localhost only")?;
    }
    write_policy(formatter, &site.policy)
}

fn write_export(formatter: &mut fmt::Formatter<'_>, export: &Export, settings: &Settings) -> fmt::Result {
    let policy = &export.policy;
    line(formatter, "export", format_args!("/{}", export.name))?;
    line(formatter, "  directory", export.directory.display())?;
    let certificate =
        if policy.needs_certificate(&settings.nfs) { ", client certificate required" } else { "" };
    line(formatter, "  TLS", format_args!("{}{certificate}", policy.tls))?;
    if !policy.clients.is_empty() {
        line(formatter, "  clients", policy.clients.join(", "))?;
    }
    let networks: Vec<_> = policy.networks.iter().map(ToString::to_string).collect();
    line(formatter, "  networks", if networks.is_empty() { "any".to_owned() } else { networks.join(", ") })?;
    line(formatter, "  identity", policy.identity)
}

fn write_nfs(formatter: &mut fmt::Formatter<'_>, settings: &Settings) -> fmt::Result {
    for pair in &settings.nfs.certificates {
        let (certificate, key) = (pair.certificate.display(), pair.key.display());
        line(formatter, "NFS cert.", format_args!("{certificate}, key {key}"))?;
    }
    if settings.exports_need_development_certificate() {
        line(formatter, "NFS cert.", "made for development, good for localhost only")?;
    }
    if let Some(authorities) = &settings.nfs.client_authorities {
        line(formatter, "NFS clients", format_args!("by certificates of {}", authorities.path.display()))?;
    }
    Ok(())
}

fn write_policy(formatter: &mut fmt::Formatter<'_>, policy: &SitePolicy) -> fmt::Result {
    let index = if policy.index.is_empty() { "none".to_owned() } else { policy.index.join(", ") };
    line(formatter, "  index", index)?;
    let switches =
        [("listing", policy.listing), ("dotfiles", policy.dotfiles), ("precompressed", policy.precompressed)];
    let switches = switches.map(|(name, is_on)| format!("{name} {}", if is_on { "on" } else { "off" }));
    line(formatter, "  serving", format_args!("{}, symlinks {}", switches.join(", "), policy.symlinks))?;
    if policy.immutable {
        line(formatter, "  content", "immutable: adapters may read it while it is sent")?;
    }
    if let Some(hsts) = policy.hsts {
        line(formatter, "  HSTS", hsts)?;
    }
    for (extension, media_type) in &policy.media_types {
        line(formatter, "  media type", format_args!(".{extension} is {media_type}"))?;
    }
    for field in HeaderBlock::standard().fields() {
        line(formatter, "  header", format_args!("/**: {field}"))?;
    }
    for rule in &policy.headers {
        for name in &rule.unset {
            line(formatter, "  header", format_args!("{}: no {name}", rule.path))?;
        }
        for field in &rule.set {
            line(formatter, "  header", format_args!("{}: {field}", rule.path))?;
        }
    }
    for rule in &policy.cache_control {
        line(formatter, "  header", format_args!("{}: {}", rule.path, rule.field))?;
    }
    Ok(())
}

fn write_bounds(formatter: &mut fmt::Formatter<'_>, settings: &Settings) -> fmt::Result {
    let limits = &settings.limits;
    line(
        formatter,
        "limits",
        format_args!(
            "connections {}, request head {}, request line {}, headers {}, ranges {}, listing entries {}, \
             least rate {}/s",
            limits.connections,
            size_text(limits.head_bytes as u64),
            size_text(limits.request_line_bytes as u64),
            limits.header_count,
            limits.ranges_per_request,
            limits.listing_entries,
            size_text(limits.least_rate_bytes_per_s),
        ),
    )?;
    line(
        formatter,
        "each worker",
        format_args!("open files {}, mapped {}", limits.open_files_cached, size_text(limits.mapped_bytes)),
    )?;
    let timeouts = &settings.timeouts;
    line(
        formatter,
        "timeouts",
        format_args!(
            "idle {}, header {}, write progress {}, handshake {}, drain {}",
            duration_text(timeouts.idle_ms),
            duration_text(timeouts.header_ms),
            duration_text(timeouts.write_progress_ms),
            duration_text(timeouts.handshake_ms),
            duration_text(timeouts.drain_ms),
        ),
    )?;
    let engine = &settings.user_engine;
    line(
        formatter,
        "user engine",
        format_args!(
            "batch {}, mapped from {}, quantum {}, not-sent low water {}",
            size_text(engine.batch_bytes as u64),
            size_text(engine.map_threshold_bytes),
            size_text(engine.quantum_bytes as u64),
            size_text(u64::from(engine.not_sent_low_water_bytes)),
        ),
    )?;
    let engine = &settings.kernel_engine;
    if settings.engine == EngineChoice::Auto {
        write_placement(formatter, settings)?;
    }
    if matches!(settings.engine, EngineChoice::Kernel | EngineChoice::Nic) {
        let (from, after) = (size_text(engine.from_bytes), size_text(engine.after_bytes));
        line(formatter, "kernel engine", format_args!("from responses of {from}, after {after}"))?;
    }
    Ok(())
}

fn write_placement(formatter: &mut fmt::Formatter<'_>, settings: &Settings) -> fmt::Result {
    let placement = &settings.placement;
    let set_ups = placement
        .nic_set_ups_per_second
        .map_or("all that it can do".to_owned(), |set_ups| format!("{set_ups} a second"));
    let learning = if placement.learning { "on" } else { "off" };
    let trials = match placement.trial_every {
        0 => "none".to_owned(),
        every => format!("one large response of {every}"),
    };
    line(
        formatter,
        "placement",
        format_args!(
            "adapter's set-ups {set_ups}, retransmitted at most {} %, learning {learning}, trials {trials}",
            placement.max_retransmitted_percent
        ),
    )
}
