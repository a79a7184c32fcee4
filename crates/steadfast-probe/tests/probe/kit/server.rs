use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use super::{Message, exchange, request};

/// A running `probe serve`, killed at the end of its test.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Started, and listening.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_probe"))
            .arg("serve")
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = process.stdout.take().expect("it is piped");
        let mut first = String::new();
        BufReader::new(stdout)
            .read_line(&mut first)
            .expect("it says where it listens");
        let address = first
            .strip_prefix("listening on ")
            .and_then(|address| address.trim_end().parse().ok())
            .unwrap_or_else(|| panic!("the first line is {first:?}"));
        Self { process, address }
    }

    /// Returns when it has ended, with its exit code and with what it said of itself.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut stderr = self.process.stderr.take().expect("it is piped");
        stderr.read_to_string(&mut said).expect("text");
        (self.process.wait().expect("it ends").code(), said)
    }

    pub(crate) fn get(&self, path: &str) -> Message {
        exchange(self.address, &request("GET", path, &[], ""))
    }

    /// A POST with a key.
    pub(crate) fn post(&self, path: &str, key: &str, steering: &[(&str, &str)]) -> Message {
        exchange(self.address, &keyed(path, key, steering))
    }

    /// How often the handler began and ended.
    pub(crate) fn runs(&self, name: &str) -> (u64, u64) {
        let runs = self.get(&format!("/runs/{name}")).json();
        let count = |of: &str| runs[of].as_u64().expect("a count");
        (count("starts"), count("finishes"))
    }

    /// Returns once the handler has begun. It may have ended as well.
    pub(crate) fn wait_for_start(&self, name: &str) {
        Self::wait_until(|| self.runs(name).0 > 0);
    }

    /// Returns once the handler has ended.
    pub(crate) fn wait_for_finish(&self, name: &str) {
        Self::wait_until(|| self.runs(name).1 > 0);
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        while !is_so() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

pub(crate) fn keyed(path: &str, key: &str, steering: &[(&str, &str)]) -> Vec<u8> {
    let mut headers = vec![("Idempotency-Key", key)];
    headers.extend(steering);
    request("POST", path, &headers, "tea")
}
