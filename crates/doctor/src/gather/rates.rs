//! What encryption costs here: with the library that linerate has in it, and with OpenSSL, which most servers use.

use std::{
    io::Read as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use linerate_environment::Reading;
use linerate_record::{Cipher, ContentType, MAX_PLAINTEXT_BYTES, RecordLimit, Sealer, TrafficKey, Version};

use crate::facts::Rate;

/// How long each cipher is measured, in pieces of which the median counts.
const PIECES: usize = 7;
const PIECE: Duration = Duration::from_millis(12);
/// OpenSSL measures for whole seconds; it takes longer to start on a busy machine.
const OPENSSL_LIMIT: Duration = Duration::from_secs(6);

/// Measures: about four seconds, most of which is OpenSSL's least time for three ciphers.
pub(super) fn measure() -> Vec<Rate> {
    let mut rates: Vec<Rate> = Cipher::ALL
        .into_iter()
        .map(|cipher| Rate {
            library: "aws-lc".to_owned(),
            cipher,
            bytes_per_s: aws_lc(cipher).map_or_else(Reading::NotAvailable, Reading::Value),
        })
        .collect();
    let library = openssl_version();
    rates.extend(Cipher::ALL.map(|cipher| match &library {
        Ok(version) => Rate {
            library: version.clone(),
            cipher,
            bytes_per_s: openssl(cipher).map_or_else(Reading::NotAvailable, Reading::Value),
        },
        Err(reason) => {
            Rate { library: "OpenSSL".to_owned(), cipher, bytes_per_s: Reading::NotAvailable(reason.clone()) }
        }
    }));
    rates
}

/// Full records, sealed out of place from memory that stays in the cache, as the user engine does with hot content.
fn aws_lc(cipher: Cipher) -> Result<f64, String> {
    let failed = |fault: linerate_record::RecordError| fault.to_string();
    let key = TrafficKey::new(Version::Tls13, cipher, &vec![0x2F; cipher.key_bytes()], [0x51; 12])
        .map_err(failed)?;
    let mut sealer = Sealer::new(&key, 0, RecordLimit::of(cipher)).map_err(failed)?;
    let plaintext = vec![0xA5; MAX_PLAINTEXT_BYTES];
    let mut record = vec![0; sealer.layout().record_bytes(MAX_PLAINTEXT_BYTES)];
    let mut rates = Vec::with_capacity(PIECES);
    for _ in 0..PIECES {
        let (started, mut records) = (Instant::now(), 0_u32);
        let elapsed = loop {
            for _ in 0..8 {
                sealer.seal_from(ContentType::ApplicationData, &plaintext, &mut record).map_err(failed)?;
            }
            records += 8;
            let elapsed = started.elapsed();
            if elapsed >= PIECE {
                break elapsed;
            }
        };
        rates.push(f64::from(records) * MAX_PLAINTEXT_BYTES as f64 / elapsed.as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[PIECES / 2])
}

/// `OpenSSL 3.5.1`
fn openssl_version() -> Result<String, String> {
    let said = run(Command::new("openssl").arg("version"))?;
    let mut words = said.split_ascii_whitespace();
    match (words.next(), words.next()) {
        (Some(name), Some(version)) => Ok(format!("{name} {version}")),
        _ => Err(format!("openssl version says \"{}\"", said.trim())),
    }
}

fn openssl(cipher: Cipher) -> Result<f64, String> {
    let name = cipher.name().to_lowercase();
    let size = MAX_PLAINTEXT_BYTES.to_string();
    let arguments = ["speed", "-mr", "-elapsed", "-seconds", "1", "-bytes", &size, "-evp", &name];
    let said = run(Command::new("openssl").args(arguments))?;
    figure(&said).ok_or_else(|| "openssl speed printed no figure".to_owned())
}

/// The last field of `+F:25:AES-128-GCM:3610771456.00`, which is bytes a second.
fn figure(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.starts_with("+F:"))?;
    line.rsplit(':').next()?.trim().parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
}

/// Standard output of a program that ends in time.
fn run(command: &mut Command) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("openssl cannot be run: {error}"))?;
    let status = wait(&mut child)?;
    let mut said = String::new();
    // What it prints fits the pipe: a few lines.
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut said).map_err(|error| format!("openssl: {error}"))?;
    }
    if status.success() { Ok(said) } else { Err(format!("openssl ended with {status}")) }
}

fn wait(child: &mut Child) -> Result<std::process::ExitStatus, String> {
    let failed = |error: std::io::Error| format!("openssl: {error}");
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if started.elapsed() > OPENSSL_LIMIT {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(format!("openssl took more than {} s", OPENSSL_LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_found_among_other_lines() {
        let said = "+H:16384\n+F:25:AES-128-GCM:3610771456.00\n";
        assert_eq!(figure(said), Some(3_610_771_456.0));
        for said in ["", "+F:25:AES-128-GCM:nan\n", "+F:25:AES-128-GCM:\n", "+R:1\n"] {
            assert_eq!(figure(said), None, "{said}");
        }
    }

    #[test]
    fn every_cipher_has_a_rate_here() {
        for cipher in Cipher::ALL {
            let rate = aws_lc(cipher).expect("it seals");
            assert!((1e7..1e12).contains(&rate), "{cipher:?}: {rate}");
        }
    }

    #[test]
    fn a_program_that_is_missing_or_fails_is_told() {
        let missing = run(&mut Command::new("/linerate/none")).expect_err("no such program");
        assert!(missing.contains("cannot be run"), "{missing}");
        let failed = run(&mut Command::new("false")).expect_err("it fails");
        assert!(failed.contains("exit status: 1"), "{failed}");
    }
}
