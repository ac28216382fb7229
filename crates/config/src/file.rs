//! Reads the sections of a configuration file into a [`Draft`].

use std::num::NonZeroUsize;
use std::path::Path;

use linerate_http::{HEADER_COUNT_CAP, HeaderField, HeaderName, MediaTypes, RANGES_CAP};
use toml::de::DeTable;

use crate::document::{Document, FreeEntry, Table, Value};
use crate::keys::Section;
use crate::rules::{Draft, ExportDraft, Said, SiteDraft};
use crate::settings::{CalibrationFile, KernelEngine, Limits, Placement, Timeouts, Tls, UserEngine};
use crate::site::{CacheControlRule, CertificateFiles, HeaderRule, SitePolicy};
use crate::tls_names::{parse_group, parse_suite, parse_version};
use crate::{
    AdminAddress, AuthorityFile, Error, ExportPolicy, Fault, Hsts, ListenAddress, LogTarget, Nfs, Origin,
    export, site_name,
};
use linerate_faults::Unclosed;

const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600 * SECOND_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// Reads the text of a configuration file.
///
/// # Errors
/// Every fault in it: of the syntax if that is wrong, else of keys and values.
pub(crate) fn read(file: &Path, text: &[u8]) -> Result<Draft, Vec<Fault>> {
    let document = Document::new(file, text);
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            document.fault(error.valid_up_to(), "this byte is not UTF-8");
            return Err(document.into_faults());
        }
    };
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        report_syntax(&document, text, &errors);
        return Err(document.into_faults());
    }
    let draft = read_top(Table::new(&document, Section::Top, 0, root.get_ref()));
    let mut faults = document.into_faults();
    faults.sort_by_key(|fault| match &fault.origin {
        Origin::File(position) => (position.line, position.column),
        _ => (0, 0),
    });
    if faults.is_empty() { Ok(draft) } else { Err(faults) }
}

/// What is never closed, and what is wrong before it: of the rest the parser has lost the thread. Of what is wrong in a line
/// the first tells most.
fn report_syntax(document: &Document<'_>, text: &str, errors: &[toml::de::Error]) {
    let unclosed = Unclosed::find(text);
    let begin = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let mut errors: Vec<_> = errors.iter().map(|error| (begin(error), error.message().to_owned())).collect();
    errors.retain(|(offset, _)| unclosed.is_none_or(|unclosed| *offset < unclosed.offset));
    errors.extend(unclosed.map(|unclosed| (unclosed.offset, unclosed.message())));
    errors.sort_by_key(|(offset, _)| *offset);
    errors.dedup_by_key(|(offset, _)| document.position(*offset).line);
    for (offset, message) in errors {
        document.fault(offset, message);
    }
}

fn read_top(table: Table<'_>) -> Draft {
    let mut draft = Draft::new(table.origin());
    draft.listeners = table.value("listen").and_then(|value| {
        let listeners =
            value.list(|address| Some(address.parsed::<ListenAddress>()?.listeners(&address.origin())))?;
        if listeners.is_empty() {
            value.fault("the list is empty: name an address, or leave the key away");
        }
        Some(listeners.concat())
    });
    draft.admin = table.value("admin").and_then(|value| said(value, value.parsed::<AdminAddress>()?.0));
    draft.workers =
        table.value("workers").and_then(|value| said(value, NonZeroUsize::new(value.integer(1..=1024)?)?));
    draft.cpus = table.value("cpus").and_then(|value| said(value, value.parsed()?));
    table.set("engine", &mut draft.engine, Value::parsed);
    draft.access_log = table.value("access_log").and_then(|value| said(value, read_log_target(value)?));
    table.set("log_format", &mut draft.log_format, Value::parsed);

    let section = |name, section| table.value(name).and_then(|value: Value<'_>| value.table(section));
    if let Some(tls) = section("tls", Section::Tls) {
        draft.cipher_suites_origin = tls.value("cipher_suites").map(Value::origin);
        read_tls(tls, &mut draft.tls);
    }
    if let Some(limits) = section("limits", Section::Limits) {
        read_limits(limits, &mut draft.limits);
    }
    if let Some(timeouts) = section("timeouts", Section::Timeouts) {
        read_timeouts(timeouts, &mut draft.timeouts);
    }
    if let Some(user_engine) = section("user_engine", Section::UserEngine) {
        read_user_engine(user_engine, &mut draft.user_engine);
    }
    if let Some(kernel_engine) = section("kernel_engine", Section::KernelEngine) {
        read_kernel_engine(kernel_engine, &mut draft.kernel_engine);
    }
    if let Some(placement) = section("placement", Section::Placement) {
        read_placement(placement, &mut draft.placement);
    }
    let mut default_certificates = Vec::new();
    if let Some(defaults) = section("site_defaults", Section::SiteDefaults) {
        table_certificates(defaults, &mut default_certificates);
        read_policy(defaults, &mut draft.default_policy);
    }
    let sites = table.value("site").and_then(|sites| {
        sites.list(|site| {
            Some(read_site(site.table(Section::Site)?, &draft.default_policy, &default_certificates))
        })
    });
    draft.sites = sites.unwrap_or_default();
    if let Some(nfs) = section("nfs", Section::Nfs) {
        read_nfs(nfs, &mut draft.nfs);
    }
    let exports = table
        .value("export")
        .and_then(|exports| exports.list(|export| Some(read_export(export.table(Section::Export)?))));
    draft.exports = exports.unwrap_or_default();
    draft.default_certificates = default_certificates;
    draft
}

fn said<T>(value: Value<'_>, read: T) -> Option<Said<T>> {
    Some(Said { value: read, origin: value.origin() })
}

fn read_log_target(value: Value<'_>) -> Option<LogTarget> {
    match value.parsed()? {
        LogTarget::Stdout => Some(LogTarget::Stdout),
        LogTarget::File(_) => value.path().map(LogTarget::File),
    }
}

fn read_tls(table: Table<'_>, tls: &mut Tls) {
    table.set("minimum_version", &mut tls.minimum_version, |value| value.parsed_by(parse_version));
    table.set("cipher_suites", &mut tls.cipher_suites, |value| {
        value.kept(value.list(|name| name.parsed_by(parse_suite))?.try_into()).map(Some)
    });
    table.set("groups", &mut tls.groups, |value| {
        value.kept(value.list(|name| name.parsed_by(parse_group))?.try_into()).map(Some)
    });
    table.set("session_tickets", &mut tls.session_tickets, Value::boolean);
    table.set("handshakes_in_flight", &mut tls.handshakes_in_flight_limit, |value| {
        value.integer(1..=1_000_000)
    });
    table.set("handshakes_per_address", &mut tls.handshakes_per_address_limit, |value| {
        value.integer(0..=1_000_000)
    });
    // 2^24 records: what RFC 8446 section 5.5 leaves to AES-GCM, rounded down.
    table
        .set("records_per_key", &mut tls.records_per_key_limit, |value| value.integer(4..=1 << 24).map(Some));
    table.set("key_updates_per_second", &mut tls.key_updates_per_second_limit, |value| {
        value.integer(1..=100_000)
    });
}

fn read_limits(table: Table<'_>, limits: &mut Limits) {
    table.set("connections", &mut limits.connections, |value| value.integer(1..=10_000_000));
    table.set("connections_per_address", &mut limits.connections_per_address, |value| {
        value.integer(0..=10_000_000)
    });
    table.set("exempt_addresses", &mut limits.exempt_addresses, |value| value.list(Value::parsed));
    table.set("head", &mut limits.head_bytes, |value| value.size_bytes(KIB..=MIB));
    table.set("request_line", &mut limits.request_line_bytes, |value| value.size_bytes(256..=64 * KIB));
    table.set("header_count", &mut limits.header_count, |value| value.integer(1..=HEADER_COUNT_CAP as u64));
    table.set("ranges_per_request", &mut limits.ranges_per_request, |value| {
        value.integer(1..=RANGES_CAP as u64)
    });
    table.set("listing_entries", &mut limits.listing_entries, |value| value.integer(1..=1_000_000));
    table.set("open_files_cached", &mut limits.open_files_cached, |value| value.integer(0..=1_000_000));
    table.set("mapped", &mut limits.mapped_bytes, |value| value.size_bytes(0..=64 * TIB));
    table.set("least_rate", &mut limits.least_rate_bytes_per_s, |value| value.size_bytes(0..=MIB));
    if limits.request_line_bytes > limits.head_bytes
        && let Some(value) = table.value("request_line").or(table.value("head"))
    {
        value.fault(format!(
            "request_line ({}) cannot be larger than head ({})",
            crate::size_text(limits.request_line_bytes as u64),
            crate::size_text(limits.head_bytes as u64)
        ));
    }
}

fn read_timeouts(table: Table<'_>, timeouts: &mut Timeouts) {
    table.set("idle", &mut timeouts.idle_ms, |value| value.duration_ms(SECOND_MS..=DAY_MS));
    table.set("header", &mut timeouts.header_ms, |value| value.duration_ms(100..=HOUR_MS));
    table.set("write_progress", &mut timeouts.write_progress_ms, |value| value.duration_ms(100..=HOUR_MS));
    table.set("handshake", &mut timeouts.handshake_ms, |value| value.duration_ms(100..=HOUR_MS));
    table.set("drain", &mut timeouts.drain_ms, |value| value.duration_ms(0..=DAY_MS));
}

fn read_user_engine(table: Table<'_>, engine: &mut UserEngine) {
    table.set("batch", &mut engine.batch_bytes, |value| value.size_bytes(16 * KIB..=16 * MIB));
    table.set("map_threshold", &mut engine.map_threshold_bytes, |value| value.size_bytes(0..=64 * TIB));
    table.set("quantum", &mut engine.quantum_bytes, |value| value.size_bytes(16 * KIB..=64 * MIB));
    table.set("not_sent_low_water", &mut engine.not_sent_low_water_bytes, |value| {
        value.size_bytes(KIB..=64 * MIB)
    });
    if engine.quantum_bytes < engine.batch_bytes
        && let Some(value) = table.value("quantum").or(table.value("batch"))
    {
        value.fault(format!(
            "quantum ({}) cannot be smaller than batch ({})",
            crate::size_text(engine.quantum_bytes as u64),
            crate::size_text(engine.batch_bytes as u64)
        ));
    }
}

fn read_kernel_engine(table: Table<'_>, engine: &mut KernelEngine) {
    table.set("from", &mut engine.from_bytes, |value| value.size_bytes(0..=64 * TIB));
    table.set("after", &mut engine.after_bytes, |value| value.size_bytes(0..=64 * TIB));
}

fn read_placement(table: Table<'_>, placement: &mut Placement) {
    table.set("calibration", &mut placement.calibration, |value| {
        Some(Some(CalibrationFile { path: value.path()?, origin: value.origin() }))
    });
    table.set("nic_set_ups_per_second", &mut placement.nic_set_ups_per_second, |value| {
        value.integer(0..=10_000_000).map(Some)
    });
    table.set("max_retransmitted_percent", &mut placement.max_retransmitted_percent, |value| {
        value.integer(0..=100)
    });
    table.set("learning", &mut placement.learning, Value::boolean);
    table.set("trial_every", &mut placement.trial_every, |value| value.integer(0..=1_000_000_000));
}

fn read_site(table: Table<'_>, policy: &SitePolicy, certificates: &[CertificateFiles]) -> SiteDraft {
    let mut site = SiteDraft::new(table.origin(), policy.clone(), certificates.to_vec());
    table.set("names", &mut site.names, |value| {
        value.list(|name| said(name, name.kept(site_name::parse(name.text()?))?))
    });
    site.root = table.value("root").and_then(|value| said(value, value.path()?));
    table_certificates(table, &mut site.certificates);
    read_policy(table, &mut site.policy);
    site
}

fn read_nfs(table: Table<'_>, nfs: &mut Nfs) {
    table_certificates(table, &mut nfs.certificates);
    table.set("client_authorities", &mut nfs.client_authorities, |value| {
        Some(Some(AuthorityFile { path: value.path()?, origin: value.origin() }))
    });
}

fn read_export(table: Table<'_>) -> ExportDraft {
    let mut policy = ExportPolicy::default();
    table.set("tls", &mut policy.tls, Value::parsed);
    table.set("networks", &mut policy.networks, |value| value.list(Value::parsed));
    table.set("certificate", &mut policy.certificate, |value| value.boolean().map(Some));
    table
        .set("clients", &mut policy.clients, |value| value.list(|name| name.parsed_by(export::parse_client)));
    table.set("identity", &mut policy.identity, Value::parsed);
    let name = table.value("name").and_then(|value| said(value, value.parsed_by(export::parse_name)?));
    let directory = table.value("directory").and_then(|value| said(value, value.path()?));
    ExportDraft { origin: table.origin(), name, directory, policy }
}

fn table_certificates(table: Table<'_>, certificates: &mut Vec<CertificateFiles>) {
    table.set("certificates", certificates, |value| {
        value.list(|pair| {
            let pair = pair.table(Section::Certificates)?;
            let (certificate, key) = (pair.required("certificate"), pair.required("key"));
            let (certificate, key) = (certificate?, key?);
            let (origin, key_origin) = (certificate.origin(), key.origin());
            Some(CertificateFiles { certificate: certificate.path()?, key: key.path()?, origin, key_origin })
        })
    });
}

fn read_policy(table: Table<'_>, policy: &mut SitePolicy) {
    table.set("index", &mut policy.index, |value| value.list(read_index_name));
    table.set("listing", &mut policy.listing, Value::boolean);
    table.set("dotfiles", &mut policy.dotfiles, Value::boolean);
    table.set("symlinks", &mut policy.symlinks, Value::parsed);
    table.set("precompressed", &mut policy.precompressed, Value::boolean);
    table.set("immutable", &mut policy.immutable, Value::boolean);
    table.set("charset", &mut policy.charset, read_charset);
    table.set("media_types", &mut policy.media_types, |value| {
        let types = value.free_entries()?.into_iter().map(read_media_type);
        types.collect::<Vec<_>>().into_iter().collect()
    });
    table.set("hsts", &mut policy.hsts, |value| read_hsts(value).map(Some));
    table.set("headers", &mut policy.headers, |value| value.list(read_header_rule));
    table.set("cache_control", &mut policy.cache_control, |value| value.list(read_cache_control_rule));
}

fn read_index_name(value: Value<'_>) -> Option<String> {
    let name = value.text()?;
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        value.fault("a file name without / is needed");
        return None;
    }
    Some(name.to_owned())
}

fn read_charset(value: Value<'_>) -> Option<Option<String>> {
    let name = value.text()?;
    if name.len() > 64 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte)) {
        value.fault("a charset's name is needed, like \"utf-8\", or \"\" for none");
        return None;
    }
    Some((!name.is_empty()).then(|| name.to_owned()))
}

fn read_media_type(entry: FreeEntry<'_>) -> Option<(String, String)> {
    let FreeEntry { name: extension, value, .. } = entry;
    if extension.is_empty() || extension.contains(['.', '/', '\0']) || extension.to_lowercase() != extension {
        let message = "extensions are written in lower case and without dots, like m4s";
        return entry.name_kept(Err(Error::value(message)));
    }
    let media_type = value.text()?;
    let essence = media_type.split(';').next().unwrap_or_default().trim_end();
    let is_token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    if !essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype)) {
        value.fault("a media type is needed, like \"video/mp4\"");
        return None;
    }
    value.kept(MediaTypes::with_overrides([(extension, media_type)]).map_err(Error::from))?;
    Some((extension.to_owned(), media_type.to_owned()))
}

fn read_hsts(value: Value<'_>) -> Option<Hsts> {
    let table = value.table(Section::Hsts)?;
    let max_age = table.required("max_age")?;
    let mut hsts = Hsts {
        max_age_s: max_age
            .kept(Hsts::parse_max_age_s(max_age.text_or("a duration with its unit, like \"365d\",")?))?,
        include_subdomains: false,
        preload: false,
    };
    table.set("include_subdomains", &mut hsts.include_subdomains, Value::boolean);
    table.set("preload", &mut hsts.preload, Value::boolean);
    value.kept(hsts.checked())
}

fn read_header_rule(value: Value<'_>) -> Option<HeaderRule> {
    let table = value.table(Section::Headers)?;
    let path = table.required("path").and_then(Value::parsed);
    let unset = table.value("unset").map(|names| names.list(read_header_name));
    // A rule that only takes headers away sets none.
    let set = if unset.is_some() { table.value("set") } else { Some(table.required("set")?) };
    let set = set.map_or(Some(Vec::new()), read_headers);
    Some(HeaderRule { path: path?, set: set?, unset: unset.unwrap_or(Some(Vec::new()))? })
}

fn read_headers(value: Value<'_>) -> Option<Vec<HeaderField>> {
    let mut fields: Vec<HeaderField> = Vec::new();
    let mut all_are_read = true;
    for entry in value.free_entries()? {
        match read_header(entry) {
            // TOML tells X-A and x-a apart, HTTP does not.
            Some(field) if fields.iter().any(|known| known.name() == field.name()) => {
                entry.name_kept::<()>(Err(Error::value(format!("{} is set twice", field.name()))));
                all_are_read = false;
            }
            Some(field) => fields.push(field),
            None => all_are_read = false,
        }
    }
    all_are_read.then_some(fields)
}

fn read_header(entry: FreeEntry<'_>) -> Option<HeaderField> {
    let name = entry.name_kept(HeaderName::parse(entry.name).map_err(Error::from))?;
    let text = entry.value.text()?;
    entry.value.kept(HeaderField::new(name, text).map_err(Error::from))
}

fn read_header_name(value: Value<'_>) -> Option<HeaderName> {
    value.kept(HeaderName::parse(value.text()?).map_err(Error::from))
}

fn read_cache_control_rule(value: Value<'_>) -> Option<CacheControlRule> {
    let table = value.table(Section::CacheControl)?;
    let (path, directives) = (table.required("path").and_then(Value::parsed), table.required("value"));
    let directives = directives?;
    let text = directives.text()?;
    if text.is_empty() {
        directives.fault("directives are needed, like \"max-age=3600\"");
        return None;
    }
    let field = directives.kept(HeaderField::new(HeaderName::CACHE_CONTROL, text).map_err(Error::from))?;
    Some(CacheControlRule { path: path?, field })
}
