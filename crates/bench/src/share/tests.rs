//! Names are planted into every text of a result, and none is to be found afterwards.

use super::*;
use crate::sample::{run_of, sample_run};
use crate::schema::full_result;

/// What is planted, as it may stand in a text.
const PLANTED: &str = " build-07.corp.example.net 192.0.2.44:8443 [2001:db8::44]:443 52:54:00:ab:cd:ef serial 5CG1234XYZ \
                       0123456789abcdef0123456789abcdef /home/alice/films/secret.mkv \"/srv/hidden place/a\" alice \
                       carol@peer-9 https://peer-9:8443/hidden ~alice/hidden laptop-of-bob bob ";

/// What must not be found of it.
const SECRETS: [&str; 14] = [
    "build-07",
    "corp.example",
    "192.0.2.44",
    "2001:db8",
    "52:54:00",
    "5cg1234",
    "0123456789abcdef",
    "alice",
    "films",
    "secret",
    "hidden",
    "carol",
    "peer-9",
    "bob",
];

fn names() -> Names {
    Names { hosts: vec!["laptop-of-bob".to_owned()], users: vec!["bob".to_owned()] }
}

fn found(text: &str) -> Vec<&'static str> {
    let text = text.to_ascii_lowercase();
    SECRETS.into_iter().filter(|secret| text.contains(secret)).collect()
}

/// A result in which every text has the planted names behind it, but for the words without which it is none; and every map
/// whose keys are free has one of them.
fn planted() -> ExperimentRun {
    let mut value = full_result();
    let mut texts = 0;
    visit(&mut value, "", &mut |key, text| {
        // Of servers of another name nothing is kept that could hold a secret.
        let is_fixed = matches!(key, "" | "schema") || servers::BUILT_IN.contains(&text);
        texts += usize::from(!is_fixed);
        (!is_fixed).then(|| format!("{text}{PLANTED}"))
    });
    assert!(texts > 60, "{texts}");
    let key = || PLANTED.to_owned();
    let mut run: ExperimentRun = serde_json::from_value(value).unwrap();
    run.environment.insert(key(), [(key(), Reading::Value(key()))].into());
    run.points[0].variables.insert(key(), crate::result::Variable::Word(key()));
    for round in &mut run.points[0].rounds {
        let Round::Measured(round) = round else { continue };
        round.load[0].errors.insert(key(), 1);
        round.load[0].negotiated.insert(key(), 1);
    }
    run
}

#[test]
fn planted_names_are_nowhere_in_what_is_shared() {
    let run = planted();
    let before = serde_json::to_string(&run).unwrap();
    assert_eq!(found(&before), SECRETS, "all were planted");
    let (text, shared) = scrubbed(vec![run], &names()).unwrap();
    assert_eq!(found(&text), Vec::<&str>::new(), "{text}");
    let secrets: std::collections::BTreeSet<Secret> =
        shared.removed.iter().map(|removed| removed.secret).collect();
    assert_eq!(secrets.len(), 6, "each kind is told: {:#?}", shared.removed);
    // What was removed is told to the one who shares it.
    assert_eq!(found(&shared.text()), SECRETS);
}

#[test]
fn names_that_stand_alone_are_known_from_elsewhere() {
    // Each text has one of the names and nothing that gives it away; another text of the same result does.
    let mut run = sample_run();
    run.setup.client_hosts = vec!["carol@peer-9".to_owned()];
    run.command = vec!["--output".to_owned(), "/home/alice/films".to_owned()];
    run.warnings = ["alice", "peer-9", "Carol", "bob", "Laptop-of-Bob"].map(str::to_owned).to_vec();
    let (text, _) = scrubbed(vec![run], &names()).unwrap();
    assert_eq!(found(&text), Vec::<&str>::new(), "{text}");
}

#[test]
fn a_report_can_be_made_of_what_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, cost) in [("runs/a", 0.25), ("runs/below/b", 0.5)] {
        let mut run = run_of(&[("nginx plaintext", &[0.125]), ("linerate user", &[cost])]);
        run.name = name.replace('/', "-");
        fs::create_dir_all(at(name)).unwrap();
        fs::write(at(name).join(store::RESULT_FILE), serde_json::to_vec(&run).unwrap()).unwrap();
    }
    let shared = share(&[at("runs")], &at("shared.json"), &names()).unwrap();
    assert_eq!(shared.runs, 2);
    let read = crate::load_all(&at("shared.json")).unwrap();
    let texts: Vec<String> = read.iter().map(crate::report::text).collect();
    assert!(texts[0].contains("0.250") && texts[1].contains("0.500"), "{texts:#?}");
    crate::report::write(&read, &at("report")).unwrap();
    // Nothing is written over, and what has no run is told.
    assert!(share(&[at("runs")], &at("shared.json"), &names()).is_err());
    let error = share(&[at("report")], &at("other.json"), &names()).unwrap_err().to_string();
    assert!(error.ends_with("there is no result.json in it or below"), "{error}");
}

#[test]
fn a_run_that_names_nothing_stays_as_it_is() {
    for (name, file) in EXPERIMENTS {
        let definition = crate::definition::Definition::parse(name, file, false).unwrap();
        let mut run = run_of(&[("nginx plaintext", &[0.25]), ("linerate user", &[0.5])]);
        run.definition = (*file).to_owned();
        (run.title, run.source) = (definition.title, definition.source);
        run.published = definition.published;
        run.targets = definition.targets;
        run.environment = linerate_environment::capture();
        let before = serde_json::to_value(&run).unwrap();
        let (text, shared) = scrubbed(vec![run], &Names::default()).unwrap();
        let after: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(after["runs"][0], before, "{name}: {:#?}", shared.removed);
        assert!(shared.remarks.is_empty(), "{name}: {:?}", shared.remarks);
    }
}
