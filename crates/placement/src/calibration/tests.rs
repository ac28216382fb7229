use super::*;

fn example() -> Calibration {
    let costs = Costs::defaults();
    let of = |engine, cipher| EngineFigures::new(engine, cipher, costs.of(engine, cipher));
    Calibration {
        schema: SCHEMA.to_owned(),
        measured_at: "2026-11-21T15:00:00Z".to_owned(),
        measured_by: "linerate 0.1.0 (abcdef0)".to_owned(),
        machine: Machine { kernel: "Linux 6.12.41".to_owned(), cpu: "AMD EPYC 9655".to_owned() },
        measured: [("system_call_ns".to_owned(), 93.5)].into(),
        notes: vec!["measured in 3 s, beside other work".to_owned()],
        nic: Some(NicFigures {
            device: "eth0".to_owned(),
            driver: "mlx5_core".to_owned(),
            set_ups_per_s: 16_500.0,
            flow_table_flows: 20_000,
        }),
        engines: vec![
            EngineFigures { per_byte_ns: 0.25, ..of(Engine::User, Cipher::Aes128Gcm) },
            of(Engine::Kernel, Cipher::Aes128Gcm),
            of(Engine::User, Cipher::Aes256Gcm),
        ],
    }
}

/// The text of a file that is right but for what `from` is replaced by.
fn fault(from: &str, to: &str) -> String {
    let text = example().to_text().unwrap();
    assert!(text.contains(from), "{from} is not in\n{text}");
    Calibration::parse(&text.replacen(from, to, 1)).expect_err("a fault").to_string()
}

#[test]
fn what_is_written_is_read() {
    let text = example().to_text().unwrap();
    assert_eq!(Calibration::parse(&text).unwrap(), example());
    let without = Calibration { nic: None, notes: Vec::new(), measured: BTreeMap::new(), ..example() };
    assert_eq!(Calibration::parse(&without.to_text().unwrap()).unwrap(), without);
}

#[test]
fn faults_name_their_line_and_what_to_do() {
    let what_to_do = "; `linerate calibrate` writes a new file";
    for (from, to, expected) in [
        (
            "calibration-1",
            "calibration-9",
            "line 3: it has schema \"linerate-calibration-9\", and this linerate reads",
        ),
        ("schema = ", "scheme = ", "it has no schema, and this linerate reads"),
        ("[machine]", "[machine", "line 8: "),
        ("cpu = ", "gpu = ", "line 10: unknown field `gpu`"),
        ("per_byte_ns = 0.25", "per_byte_ns = \"x\"", "line 26: invalid type: string \"x\", expected f64"),
        ("per_byte_ns = 0.25", "per_byte_ns = nan", "line 21: user with AES-128-GCM: times are from 0"),
        ("engine = \"user\"", "engine = \"usr\"", "line 21: there is no engine \"usr\" (user, kernel, nic)"),
        ("AES-128-GCM", "AES-1-GCM", "line 21: there is no cipher \"AES-1-GCM\" (AES-128-GCM, AES-256"),
        ("engine = \"kernel\"", "engine = \"user\"", "line 33: user with AES-128-GCM is there twice"),
        (
            "engine = \"user\"",
            "engine = \"nic\"",
            "line 21: nic with AES-128-GCM has nothing to be compared with",
        ),
        ("record_bytes = 16384", "record_bytes = 0", "line 21: user with AES-128-GCM: times are from 0"),
        ("set_ups_per_s = 16500.0", "set_ups_per_s = 0.0", "nic: set_ups_per_s is a number above 0"),
    ] {
        let said = fault(from, to);
        assert!(said.starts_with(expected), "{said:?} beside {expected:?}");
        assert!(said.ends_with(what_to_do), "{said}");
    }
}

/// Files that people write are short: what they leave out costs nothing, and sizes are the usual ones.
#[test]
fn what_is_left_out_is_free() {
    let all = example().to_text().unwrap();
    let left_out = ["set_up_", "per_record_", "per_call_", "per_response_", "record_bytes", "call_bytes"];
    let kept: Vec<&str> =
        all.lines().filter(|line| !left_out.iter().any(|key| line.starts_with(key))).collect();
    let read = Calibration::parse(&kept.join("\n")).unwrap();
    assert_eq!(read.engines[0].costs(), EngineCosts { per_byte_ns: 0.25, ..EngineCosts::FREE });
}

#[test]
fn what_would_not_be_read_is_not_written() {
    let unsound = |change: fn(&mut Calibration)| {
        let mut calibration = example();
        change(&mut calibration);
        calibration.to_text()
    };
    assert!(unsound(|calibration| calibration.engines.clear()).is_err());
    assert!(unsound(|calibration| calibration.engines[0].set_up_ns = -1.0).is_err());
    assert!(unsound(|calibration| calibration.engines[0].per_byte_ns = f64::INFINITY).is_err());
    // The user engine is what others are measured by. One that copies nothing may be free.
    let free = |index: usize| {
        let mut calibration = example();
        let EngineFigures { engine, cipher, .. } = calibration.engines[index].clone();
        let (engine, cipher) = (Engine::named(&engine).unwrap(), Cipher::named(&cipher).unwrap());
        calibration.engines[index] = EngineFigures::new(engine, cipher, &EngineCosts::FREE);
        calibration.to_text()
    };
    assert!(free(0).unwrap_err().message.ends_with("user with AES-128-GCM: no byte is free"));
    assert!(free(1).is_ok());
}

#[test]
fn another_machine_is_told() {
    let calibration = example();
    assert_eq!(calibration.misfit(&calibration.machine), None);
    let other = |kernel: &str, cpu: &str| {
        let here = Machine { kernel: kernel.to_owned(), cpu: cpu.to_owned() };
        calibration.misfit(&here).map(|misfit| misfit.to_string()).unwrap_or_default()
    };
    assert!(other("Linux 6.12.42", "AMD EPYC 9655").starts_with(
        "it was measured on another kernel (Linux 6.12.41; this is Linux 6.12.42), so its figures are not used"
    ));
    assert!(other("Linux 6.12.41", "Xeon").starts_with("it was measured on another processor"));
}

#[test]
fn another_adapter_is_told_and_left_out() {
    let mut calibration = example();
    let nic = EngineCosts { per_byte_ns: 0.01, ..EngineCosts::FREE };
    calibration.engines.push(EngineFigures::new(Engine::Nic, Cipher::Aes128Gcm, &nic));
    let adapter = calibration.nic.clone().unwrap();
    assert_eq!(adapter.misfit(Some("mlx5_core")), None);
    let begins = "it was measured with the adapter eth0 (mlx5_core), ";
    for (driver, here) in
        [(Some("virtio_net"), "which virtio_net drives here, "), (None, "which is not here, ")]
    {
        let said = adapter.misfit(driver).unwrap();
        assert!(
            said.starts_with(&format!("{begins}{here}so what it says of adapters is not used")),
            "{said}"
        );
    }
    assert_eq!(*Costs::from(&calibration).of(Engine::Nic, Cipher::Aes128Gcm), nic);
    let costs = Costs::from(&calibration.without_adapter());
    assert_eq!(costs.nic_limits, NicLimits::DEFAULT);
    assert_eq!(
        costs.of(Engine::Nic, Cipher::Aes128Gcm),
        Costs::defaults().of(Engine::Nic, Cipher::Aes128Gcm)
    );
    assert_eq!(costs.of(Engine::User, Cipher::Aes128Gcm).per_byte_ns, 0.25);
}

#[test]
fn costs_are_those_of_the_file() {
    let mut calibration = example();
    calibration.engines[1].per_byte_ns = 0.05;
    calibration.engines[1].set_up_ns = 9800.0;
    let costs = Costs::from(&calibration);
    assert_eq!(costs.of(Engine::Kernel, Cipher::Aes128Gcm).per_byte_ns, 0.05);
    assert!(costs.break_even_bytes(Engine::User, Engine::Kernel, Cipher::Aes128Gcm).is_some());
    assert_eq!(costs.nic_limits, NicLimits { set_ups_per_s: 16_500.0, flow_table_flows: 20_000 });
    let wait_ns = costs.of(Engine::Nic, Cipher::Aes128Gcm).set_up_wait_ns;
    assert!((wait_ns - 1e9 / 16_500.0).abs() < 1e-6);
}

/// A slow processor's user engine must not be compared with a fast one's kernel.
#[test]
fn what_the_file_does_not_tell_is_scaled() {
    let mut calibration = example();
    for figures in &mut calibration.engines {
        figures.per_byte_ns *= 10.0;
    }
    let costs = Costs::from(&calibration);
    let (user, kernel) =
        (costs.of(Engine::User, Cipher::Aes256Gcm), costs.of(Engine::Kernel, Cipher::Aes256Gcm));
    assert!(kernel.slope_ns_per_byte() > user.slope_ns_per_byte());
    assert_eq!(costs.break_even_bytes(Engine::User, Engine::Kernel, Cipher::Aes256Gcm), None);
    // In proportion, but for what the system does once.
    let mut calibration = example();
    let thrice = Costs::defaults().of(Engine::User, Cipher::Aes256Gcm).slope_ns_per_byte() * 3.0;
    let user = EngineCosts { per_byte_ns: thrice, ..EngineCosts::FREE };
    calibration.engines[2] = EngineFigures::new(Engine::User, Cipher::Aes256Gcm, &user);
    let kernel = *Costs::from(&calibration).of(Engine::Kernel, Cipher::Aes256Gcm);
    let default = *Costs::defaults().of(Engine::Kernel, Cipher::Aes256Gcm);
    for (scaled, default) in [
        (kernel.per_byte_ns, default.per_byte_ns),
        (kernel.per_record_ns, default.per_record_ns),
        (kernel.per_call_ns, default.per_call_ns),
    ] {
        assert!(default > 0.0 && (scaled / default - 3.0).abs() < 1e-9, "{kernel:?}");
    }
    assert_eq!(kernel.set_up_ns, default.set_up_ns);
    // A cipher of which it tells nothing stays as it is by default.
    let chacha = Cipher::ChaCha20Poly1305;
    assert_eq!(costs.of(Engine::User, chacha), Costs::defaults().of(Engine::User, chacha));
}
