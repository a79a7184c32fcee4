//! `probe`: a small program through which a suite in any language drives steadfast's layers, over real sockets and
//! standard input.
//!
//! It is wiring and nothing else: what it shows is what the layers do.
//!
//! | command | reads | shows |
//! |---|---|---|
//! | `probe serve` | HTTP requests | the server's layers around a handler that the request's headers steer |
//! | `probe call` | one request a line, as JSON | the client's layers around hyper's client |
//! | `probe headers` | the headers of one response a line, as JSON | what they ask of a client |
//! | `probe sign` | one request and its key a line, as JSON | the headers it has when it is signed |
//! | `probe verify` | one signed request and its key a line, as JSON | whether the server's layer lets it pass |
//!
//! The commands `url`, `ip` and `window` have their names already, and say that they are not there yet.
//!
//! # Serving
//!
//! The first line on standard output is `listening on ADDR`. SIGTERM and SIGINT stop the accepting, wait for running
//! calls, also for those whose clients have gone, at most ten seconds, and end the process with 0.
//!
//! | route | what answers |
//! |---|---|
//! | `ANY /probe/{name}`, `/nested/a/probe/{name}`, `/nested/b/probe/{name}` | `IdempotencyLayer` by tenant (`X-Tenant`, else `t0`) around the steered handler |
//! | `ANY /verify/{scheme}` | `SignatureVerifyLayer` with the keys of `--keys` in front of `{"sha256":"…","len":2}`, of the body that arrived |
//! | `ANY /oneshot/{name}` | `payments` verified, `ReplayGuardLayer` in its one-shot mode, the steered handler |
//! | `ANY /event/{scheme}/{name}` | the scheme verified, `ReplayGuardLayer` in its event mode, the steered handler |
//! | `GET /runs/{name}` | how often the handler began and ended: `{"starts":1,"finishes":1}` |
//! | `POST /clock` | sets the wall clock, which then stands still: `{"now":1768478400}` |
//!
//! The handler waits `X-Delay-Ms`, panics at `X-Panic: 1`, answers with `X-Status`, and has as its body the canned
//! answer `X-Resp` (`fidelity`, `binary`, `nocontent`, `sse`, `broken`, `nostore`, `chunked`), the request's body
//! (`X-Echo: 1`), `X-Body-Bytes` times the letter `a`, or else the name, the tenant and the number of the run. None of
//! these headers are part of what makes two requests the same.
//!
//! `--keys` names a file of TOML: `[scheme]`, then `id = ["secret", …]`, where the id is `default` if none is on the wire.
//! Behind `hex:` are bytes, everything else is the text that the vendor shows. A scheme without keys refuses everything,
//! as does Square without `--public-url`, the URL that it signs.
//!
//! # Calling
//!
//! A line is a request: `id`, `method` (else GET), `url` (`http://` only), `headers`, one of `body`, `body_base64` and
//! `stream_base64` (a text or a list of them, sent without a length), `key`, `repeatable`, `cancel_after_ms`. Without a
//! key, one is minted for POST and PATCH. A server may ask for waits up to 60 s, an attempt may take 5 s with the body of
//! its response, retries are not budgeted; the flags change that. Bodies up to 1 MiB are read before an attempt counts as
//! answered, up to 64 MiB are reported.
//!
//! The answer has the response, if there was one, and the call's report: `attempts`, `waits_ms`, why it `stopped`, the
//! `key` it carried and the `events` an operator would have got. With `--plain` no layer is there to report, and
//! `attempts` is 1.
//!
//! `--sign` has each attempt signed, next to the client. A request that cannot be signed is not sent, and its answer has
//! an `error`.
//!
//! # Signing and verifying
//!
//! A line is a request, signed or to be signed: `scheme`, `key_id` (else `default`), `secret` (as in the file of keys; a
//! key of Ed25519 behind `hex:` is a private one to sign with and a public one to verify with), `method` (else GET),
//! `url`, absolute or a path, `headers`, `body_base64` and `now`, in seconds (else the time it is). The answer of `sign`
//! is all headers of the signed request, `{"headers":[["name","value"]]}`, that of `verify` `{"ok":true,"reason":null}`.
//!
//! # Lines
//!
//! `call`, `headers`, `sign` and `verify` answer each line with a line, in JSON. A line that cannot be understood is answered with an
//! `error`, and the program goes on; it then ends with 2. Unknown fields are errors.
//!
//! # Exit status
//!
//! 0 when all went well, 2 for flags, files and lines that cannot be used, 1 for everything else.
#![expect(
    clippy::print_stderr,
    reason = "a command-line program reports its failures there"
)]

mod call;
mod cli;
mod failure;
mod headers;
mod keys;
mod lines;
mod scheme;
mod serve;
mod sign;
mod signed;
mod verify;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Command},
    failure::Failure,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return printed.map_or(ExitCode::FAILURE, |()| ExitCode::from(code));
        }
    };
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => block_on(serve::run(args)),
        Command::Call(args) => block_on(call::run(args)),
        Command::Headers => block_on(headers::run()),
        Command::Url => Err(Failure::NotYet("probe url")),
        Command::Ip => Err(Failure::NotYet("probe ip")),
        Command::Window => Err(Failure::NotYet("probe window")),
        Command::Sign => block_on(sign::run()),
        Command::Verify => block_on(verify::run()),
    }
}

fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::Runtime)?;
    let outcome = runtime.block_on(command);
    // A read of standard input may be under way; nothing is left that would be worth waiting for.
    runtime.shutdown_background();
    outcome
}
