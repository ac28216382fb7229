//! Signals that come while the server starts: a script that rotates logs or renews certificates does not wait for it.

use std::{fs, io::Write, thread, time::Duration};

use anyhow::Result;
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::Signal,
};

use crate::{Arena, Findings, Launcher, Row, Server, Wishes, linerate};

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Some(why) = arena.why_not_started() {
        findings.skip("all of it", why);
        return Ok(findings);
    }
    for (signal, name) in [(Signal::HUP, "HUP"), (Signal::USR1, "USR1")] {
        let mut survived = 0;
        let delays: Vec<u64> =
            (1..=arena.form.pick(6, 12)).map(|step| step * 150 / arena.form.pick(6, 12)).collect();
        for delay_ms in &delays {
            let mut server = arena.spawn(&Wishes::default(), arena.ports()?)?;
            thread::sleep(Duration::from_millis(*delay_ms));
            server.signal(signal);
            survived += usize::from(server.wait_until_it_serves().is_ok());
        }
        // How far a start has come after so long depends on the machine: reported only.
        let did = format!("{survived} of {} survive and serve", delays.len());
        findings
            .row(Row::new(format!("{name} within 150 ms of the start"), did).figure("survived", survived));
        if matches!(arena.launcher, Launcher::Linerate(_)) {
            findings.row(while_it_reads(arena, signal, name)?);
        }
    }
    Ok(findings)
}

/// The configuration is a FIFO: once that can be opened for writing, the server reads it, and has not started yet.
fn while_it_reads(arena: &Arena, signal: Signal, name: &str) -> Result<Row> {
    let wishes = Wishes::default();
    let ports = arena.ports()?;
    // spawn writes the configuration, so a server is made that cannot read it yet.
    let fifo = arena.folder().join(format!("fifo-{name}"));
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let mut server = arena.spawn_with(&wishes, ports, |folder| {
        let file = folder.join(linerate::CONFIGURATION);
        fs::rename(&file, folder.join("kept.toml"))?;
        fs::rename(&fifo, &file)
    })?;
    let folder = server.folder.clone();
    let file = folder.join(linerate::CONFIGURATION);
    let kept = fs::read(folder.join("kept.toml"))?;
    let mut writer = open_once_it_reads(&file, &mut server)?;
    server.signal(signal);
    // A reload, if one follows, reads a file.
    fs::rename(folder.join("kept.toml"), &file)?;
    let _ = writer.write_all(&kept);
    drop(writer);
    let result = server.wait_until_it_serves();
    let did = match (&result, server.ended_by()) {
        (Ok(_), _) => "starts and serves".to_owned(),
        (Err(_), Some(by)) => format!("ended by signal {by}"),
        (Err(error), None) => format!("does not serve: {error}"),
    };
    Ok(Row::new(format!("{name} while it reads its configuration"), did)
        .expects("it starts and serves", result.is_ok()))
}

/// A FIFO opens for writing without waiting only while somebody reads it.
fn open_once_it_reads(file: &std::path::Path, server: &mut Server) -> Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits())?;
    let mut open = None;
    super::holds_within(crate::visitor::PATIENCE, || {
        open = fs::OpenOptions::new().write(true).custom_flags(flags).open(file).ok();
        open.is_some() || !server.is_running()
    });
    open.ok_or_else(|| anyhow::anyhow!("the server never read its configuration: {}", server.said()))
}
