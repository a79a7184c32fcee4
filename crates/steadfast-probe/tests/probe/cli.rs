use crate::kit::probe;

fn code(args: &[&str]) -> Option<i32> {
    probe(args).status.code()
}

#[test]
fn every_command_helps() {
    for command in [
        "serve", "call", "headers", "url", "ip", "window", "sign", "verify",
    ] {
        let output = probe(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(!output.stdout.is_empty(), "{command}");
    }
    assert_eq!(code(&["--help"]), Some(0));
}

#[test]
fn unknown_flags_end_with_2() {
    for command in [
        "serve", "call", "headers", "url", "ip", "window", "sign", "verify",
    ] {
        assert_eq!(code(&[command, "--no-such-flag"]), Some(2), "{command}");
    }
    assert_eq!(code(&["no-such-command"]), Some(2));
    assert_eq!(code(&[]), Some(2));
}

#[test]
fn what_is_not_there_yet_ends_with_2() {
    for args in [
        &["url"][..],
        &["ip"],
        &["window"],
        &["call", "--throttle"],
        &["call", "--redis", "redis://127.0.0.1"],
        &["serve", "--store", "redis://me:secret@127.0.0.1"],
        &["serve", "--store", "sqlite:probe.db"],
        &["serve", "--store", "postgres://127.0.0.1/probe"],
    ] {
        let output = probe(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("there yet"), "{args:?}: {said}");
        assert!(!said.contains("secret"), "{args:?}: {said}");
    }
}

#[test]
fn spans_that_make_no_sense_do_not_start() {
    for args in [
        &["--lease", "0s"][..],
        &["--ttl", "0s"],
        &["--lease", "3s", "--ttl", "2s"],
        &["--lease", "1s", "--wait-for", "2s"],
        &["--lease", "soon"],
        &["--ttl", "-1s"],
    ] {
        let args = [&["serve"], args].concat();
        assert_eq!(code(&args), Some(2), "{args:?}");
    }
}

#[test]
fn values_that_make_no_sense_do_not_start() {
    for args in [
        &["serve", "--listen", "here"][..],
        &["serve", "--on-failure", "panic"],
        &["serve", "--mismatch-status", "409"],
        &["serve", "--key-rule", "none"],
        &["serve", "--max-body", "-1"],
        &["serve", "--store-capacity", "0"],
        &["serve", "--now", "today"],
        &["serve", "--limit", "0"],
        &["serve", "--window", "0s"],
        &["serve", "--segments", "0"],
        &["serve", "--public-url", "/here"],
        &["serve", "--keys", "/no/such/file"],
        &["call", "--profile", "mine"],
        &["call", "--retries", "-1"],
        &["call", "--concurrency", "0"],
        &["call", "--attempt-timeout", "5"],
    ] {
        assert_eq!(code(args), Some(2), "{args:?}");
    }
}

#[test]
fn s05_what_signs_nothing_does_not_start_and_shows_no_secret() {
    for sign in [
        "",
        "s3cret",
        "botix:s3cret",
        "botox:default:s3cret",
        "BOTIX:default:s3cret",
        "botix::s3cret",
        "botix:default:",
        "botix:default:hex:",
        "botix:default:hex:s3cret",
        "standard_webhooks:default:whsec_s3cret",
        "square:default:s3cret",
    ] {
        for args in [
            &["call", "--sign", sign][..],
            &["call", "--sign", sign, "--plain"],
        ] {
            let output = probe(args);
            assert_eq!(output.status.code(), Some(2), "{args:?}");
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8(said).expect("text");
            assert!(!said.contains("s3cret"), "{args:?}: {said}");
        }
    }
}
