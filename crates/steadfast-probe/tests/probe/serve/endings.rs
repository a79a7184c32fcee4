//! Clients that leave, and signals.

use std::io::ErrorKind;

use crate::kit::{Server, keyed, receive, request, send};

#[test]
fn i15_a_client_that_leaves_does_not_stop_its_call() {
    let server = Server::start(&["--lease", "20s", "--ttl", "60s"]);
    let steering = [("X-Delay-Ms", "300")];
    let client = send(server.address, &keyed("/probe/a", "k", &steering));
    server.wait_for_start("a");
    drop(client);
    server.wait_for_finish("a");
    // The finish is counted a moment before the answer is stored.
    let again = loop {
        let again = server.post("/probe/a", "k", &steering);
        if again.status() != 409 {
            break again;
        }
    };
    assert!(again.is_replay());
    assert_eq!(server.runs("a"), (1, 1));
}

#[cfg(unix)]
fn signal(server: &Server, signal: rustix::process::Signal) {
    use rustix::process::{Pid, kill_process};

    kill_process(Pid::from_child(&server.process), signal).expect("it runs");
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_answers_what_runs_and_ends_with_0() {
    use rustix::process::Signal;

    for stop in [Signal::TERM, Signal::INT] {
        let server = Server::start(&[]);
        let steering = [("X-Delay-Ms", "700")];
        let running = send(server.address, &keyed("/probe/a", "k", &steering));
        server.wait_for_start("a");
        signal(&server, stop);
        assert_eq!(receive(&running).unwrap().json()["run"], 1);
        assert_eq!(server.end().0, Some(0));
    }
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_waits_for_calls_whose_clients_have_gone() {
    use rustix::process::Signal;

    let server = Server::start(&[]);
    // What is said of a panic shows that the handler came to its end.
    let steering = [("X-Delay-Ms", "700"), ("X-Panic", "1")];
    let client = send(server.address, &keyed("/probe/a", "k", &steering));
    server.wait_for_start("a");
    drop(client);
    signal(&server, Signal::TERM);
    let (code, said) = server.end();
    assert!(said.contains("the request asked for a panic"), "{said}");
    assert_eq!(code, Some(0));
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_answers_what_no_layer_covers_to_the_end() {
    use rustix::process::Signal;

    let server = Server::start(&[]);
    let headers = [("X-Delay-Ms", "300"), ("X-Resp", "sse")];
    let running = send(server.address, &request("GET", "/probe/a", &headers, ""));
    server.wait_for_start("a");
    signal(&server, Signal::TERM);
    let events = receive(&running).expect("all of the stream").body;
    assert!(events.ends_with(b"data: {\"event\":3}\n\n"));
    assert_eq!(server.end().0, Some(0));
}

#[cfg(unix)]
#[test]
fn told_to_stop_with_idle_connections_it_stops() {
    use rustix::process::Signal;

    let server = Server::start(&[]);
    let _idle = send(server.address, b"");
    assert_eq!(server.runs("a"), (0, 0));
    signal(&server, Signal::TERM);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn killed_it_leaves_nobody_waiting() {
    let mut server = Server::start(&[]);
    let steering = [("X-Delay-Ms", "600000")];
    let running = send(server.address, &keyed("/probe/a", "k", &steering));
    server.wait_for_start("a");
    server.process.kill().expect("it runs");
    let broken = receive(&running).expect_err("nobody answers");
    assert!(matches!(
        broken.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
    ));
    assert_ne!(server.end().0, Some(0));
}
