//! What a server that was asked about agrees on, and what carried its response.

use linerate_environment::Reading;

use crate::{
    Facts, Finding, Group, Use,
    facts::{Answer, ResponseFacts},
    judge::certificate,
};

const GROUP: Group = Group::Server;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(server) = &facts.server else { return };
    let first = findings.len();
    match &server.answer {
        Ok(answer) => of_answer(answer, findings),
        Err(reason) => findings.push(Finding::change(
            GROUP,
            "server.reachable",
            Use::Works,
            format!("there is no TLS with it: {reason}"),
        )),
    }
    for finding in &mut findings[first..] {
        finding.subject = Some(server.address.clone());
    }
}

fn of_answer(answer: &Answer, findings: &mut Vec<Finding>) {
    let group = match &answer.group {
        Some(group) => format!(", keys by {group}"),
        None => String::new(),
    };
    findings.push(Finding::ok(
        GROUP,
        "server.agreed",
        format!("{}, {} ({}){group}", answer.version.label(), answer.cipher_suite, answer.cipher),
    ));
    let (spoken, refused): (Vec<_>, Vec<_>) = answer.speaks.iter().partition(|(_, agreed)| agreed.is_ok());
    let spoken = spoken.iter().map(|(version, _)| version.label()).collect::<Vec<_>>().join(" and ");
    let refused: Vec<String> = refused
        .iter()
        .filter_map(|(version, agreed)| {
            agreed.as_ref().err().map(|reason| format!("; not {}: {reason}", version.label()))
        })
        .collect();
    findings.push(Finding::ok(GROUP, "server.versions", format!("it speaks {spoken}{}", refused.concat())));
    if let Some(reason) = &answer.distrust {
        findings.push(Finding::note(
            GROUP,
            "server.trust",
            format!("this system does not trust its certificate for that name: {reason}"),
        ));
    }
    match &answer.certificate {
        Ok(inspection) => certificate::inspected(GROUP, inspection, answer.left, findings),
        Err(reason) => {
            findings.push(Finding::note(
                GROUP,
                "certificate.file",
                format!("its certificate is not known: {reason}"),
            ));
        }
    }
    findings.push(match &answer.response {
        Reading::Value(ResponseFacts { status, server }) => {
            let server = server.as_deref().unwrap_or("a server that gives no name");
            Finding::ok(GROUP, "server.response", format!("{server} answers with {status}"))
        }
        Reading::NotAvailable(reason) => {
            Finding::note(GROUP, "server.response", format!("no response over HTTP/1.1: {reason}"))
        }
    });
    findings.push(match &answer.engine {
        Reading::Value(moved) => Finding::ok(
            GROUP,
            "server.engine",
            format!("its counters that moved with it: {}", moved.join(", ")),
        ),
        Reading::NotAvailable(reason) => {
            Finding::note(GROUP, "server.engine", format!("which engine carried it is not known: {reason}"))
        }
    });
}
