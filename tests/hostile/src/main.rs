//! `linerate-hostile`: runs fault programs against linerate, nginx, or a server that runs already.

use std::{
    fs,
    io::Write as _,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use linerate_hostile::{
    Arena, Family, Form, Launcher, Outcome, cleanup, linerate, nginx,
    programs::{self, Program},
    server::Attached,
    table,
};
use linerate_load::Target;

/// Runs fault programs against a file server and says what it did.
///
/// Each program ends with its findings, a verdict, and one line of JSON. Of linerate things are expected, and the exit
/// status is 1 where one does not hold; of other servers it is reported what they did. All traffic stays on loopback,
/// and what was started is taken away at the end, also after Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "linerate-hostile", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Names the programs and what each does.
    List,
    /// Runs programs against one server.
    #[command(after_help = "Examples:
  linerate-hostile run                                    all programs, short form, linerate beside this binary
  linerate-hostile run logs disks --server target/release/linerate --long
  linerate-hostile run slow-clients --nginx               the same against nginx
  linerate-hostile run --url https://localhost:8443/ --http http://localhost:8080/ --pid 4711 \\
      --content /srv/media --ca cert.pem                  a server that runs already
What needs a server that is started for it is skipped, by name, for one that runs already.")]
    Run(RunOptions),
    /// Runs programs against linerate and nginx, one after the other, and prints a table: what each did.
    Table(TableOptions),
}

#[derive(Debug, Args)]
struct Common {
    /// Programs to run; all without any.
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
    /// The linerate binary; the one beside this program otherwise.
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Thousands of clients and minutes a program, instead of hundreds and seconds.
    #[arg(long)]
    long: bool,
    /// How long the soak lasts, in seconds: 5, or 300 in the long form.
    #[arg(long, value_name = "SECONDS")]
    soak: Option<u64>,
}

#[derive(Debug, Args)]
struct RunOptions {
    #[command(flatten)]
    common: Common,
    /// Over IPv6: servers listen at ::1.
    #[arg(long)]
    ipv6: bool,
    /// nginx instead of linerate.
    #[arg(long, conflicts_with_all = ["url", "server"])]
    nginx: bool,
    /// A server that runs already, over TLS.
    #[arg(long, requires_all = ["pid", "content"], conflicts_with = "server")]
    url: Option<String>,
    /// The same server in the clear.
    #[arg(long, requires = "url")]
    http: Option<String>,
    /// Its process: signals, limits and counts of descriptors go there.
    #[arg(long, requires = "url")]
    pid: Option<u32>,
    /// The folder that it serves at `/`; a folder for test files is made in it, and removed.
    #[arg(long, requires = "url", value_name = "DIR")]
    content: Option<PathBuf>,
    /// The certificate authority that vouches for it, or its own certificate, as PEM.
    #[arg(long, requires = "url", value_name = "FILE")]
    ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct TableOptions {
    #[command(flatten)]
    common: Common,
    /// Only over IPv4; otherwise all of it over IPv4, then over IPv6.
    #[arg(long)]
    ipv4: bool,
    /// Writes the table to a file as well.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Runs nothing: makes the table of what earlier runs printed into this file; can be repeated.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["programs", "server", "long", "soak", "ipv4"])]
    from: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = cleanup::on_interrupt().context("signals cannot be caught").and_then(|()| match cli.command {
        Command::List => list(),
        Command::Run(options) => run(&options),
        Command::Table(options) => make_table(&options),
    });
    cleanup::yield_to_interrupt();
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("linerate-hostile: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn list() -> Result<bool> {
    let mut out = std::io::stdout().lock();
    for program in programs::ALL {
        writeln!(out, "{:<14} {}", program.name, program.about)?;
    }
    Ok(true)
}

impl Common {
    fn chosen(&self) -> Result<Vec<&'static Program>> {
        if self.programs.is_empty() {
            return Ok(programs::ALL.iter().collect());
        }
        let named = |name: &String| {
            Program::named(name).with_context(|| {
                format!("there is no program {name:?}; `linerate-hostile list` names them all")
            })
        };
        self.programs.iter().map(named).collect()
    }

    fn arena(&self, launcher: Launcher, family: Family) -> Result<Arena> {
        let form = if self.long { Form::Long } else { Form::Short };
        let mut arena = Arena::new(launcher, family, form)?;
        if let Some(seconds) = self.soak {
            arena.soak = Duration::from_secs(seconds);
        }
        Ok(arena)
    }

    fn linerate(&self) -> Launcher {
        Launcher::Linerate(linerate::binary(self.server.clone()))
    }
}

/// Runs one program in an arena of its own, and prints what it found.
fn run_one(common: &Common, program: &Program, launcher: Launcher, family: Family) -> Result<Outcome> {
    let arena = common.arena(launcher, family)?;
    let outcome = program.run(&arena);
    let mut out = std::io::stdout().lock();
    write!(out, "{outcome}")?;
    out.flush()?;
    Ok(outcome)
}

fn run(options: &RunOptions) -> Result<bool> {
    let family = if options.ipv6 { Family::V6 } else { Family::V4 };
    let launcher = match &options.url {
        Some(url) => Launcher::Attached(attached(options, url)?),
        None if options.nginx => Launcher::Nginx(nginx::binary().context("nginx is not installed")?),
        None => options.common.linerate(),
    };
    let mut all_hold = true;
    for program in options.common.chosen()? {
        all_hold &= !run_one(&options.common, program, launcher.clone(), family)?.is_bad();
    }
    Ok(all_hold)
}

fn attached(options: &RunOptions, url: &str) -> Result<Attached> {
    let (https, name) = resolved(url, true)?;
    let http = options.http.as_deref().map(|url| resolved(url, false)).transpose()?;
    let (Some(pid), Some(content)) = (options.pid, options.content.clone()) else {
        bail!("--url needs --pid and --content");
    };
    let (http, authority) = (http.map(|(address, _)| address), options.ca.clone());
    Ok(Attached { https, name, http, pid, content, authority })
}

fn resolved(url: &str, is_tls: bool) -> Result<(SocketAddr, String)> {
    let target: Target = url.parse().map_err(|error| anyhow::anyhow!("{url}: {error}"))?;
    if target.tls != is_tls {
        bail!("{url}: {} is needed here", if is_tls { "https" } else { "http" });
    }
    let mut addresses = (target.host.as_str(), target.port)
        .to_socket_addrs()
        .with_context(|| format!("{} is unknown", target.host))?;
    let address = addresses.next().with_context(|| format!("{} has no address", target.host))?;
    if !address.ip().is_loopback() {
        bail!("{url}: {} is not this machine, and fault programs are for loopback alone", address.ip());
    }
    Ok((address, target.host))
}

fn make_table(options: &TableOptions) -> Result<bool> {
    let outcomes = if options.from.is_empty() { compare(options)? } else { recorded(&options.from)? };
    let text = table::markdown(&outcomes);
    println!("\n{text}");
    if let Some(path) = &options.output {
        fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(!outcomes.iter().any(Outcome::is_bad))
}

fn compare(options: &TableOptions) -> Result<Vec<Outcome>> {
    let common = &options.common;
    let mut launchers = vec![common.linerate()];
    match nginx::binary() {
        Some(binary) => launchers.push(Launcher::Nginx(binary)),
        None => println!("SKIPPED: nginx: it is not installed"),
    }
    let families = if options.ipv4 { &[Family::V4][..] } else { &[Family::V4, Family::V6] };
    let mut outcomes = Vec::new();
    for &family in families {
        for program in common.chosen()? {
            for launcher in &launchers {
                outcomes.push(run_one(common, program, launcher.clone(), family)?);
            }
        }
    }
    Ok(outcomes)
}

/// The lines of JSON that earlier runs ended with.
fn recorded(files: &[PathBuf]) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for path in files {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        for line in text.lines().filter(|line| line.starts_with('{')) {
            let outcome = serde_json::from_str(line)
                .with_context(|| format!("{} has a line that is no outcome", path.display()))?;
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}
