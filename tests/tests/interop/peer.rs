use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{ID, Message, Vendor};

/// The processes that sign and verify with the senders' own libraries, each started when it is first asked.
#[derive(Default)]
pub(crate) struct Peers {
    node: Option<Process>,
    python: Option<Process>,
}

struct Process {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Runtime {
    Node,
    Python,
}

/// Where `cargo xtask` installs the libraries: beside cargo's folder for the scratch files of tests.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("interop")
}

const INSTALL: &str = "the libraries to test against are not installed, or not in these versions; run `cargo xtask setup`";

impl Runtime {
    fn command(self) -> Command {
        let folder = folder();
        let (lock, wanted, command) = match self {
            Self::Node => {
                let mut node = Command::new("node");
                // Packages are looked for from the working directory up, as long as the script is no file.
                node.current_dir(folder.join("node"))
                    .args(["--input-type=module", "--eval"])
                    .arg(include_str!("../../interop/peer.mjs"));
                let wanted = include_str!("../../interop/package-lock.json");
                ("package-lock.json", wanted, node)
            }
            Self::Python => {
                let mut python = Command::new(folder.join("python/bin/python"));
                python.arg("-c").arg(include_str!("../../interop/peer.py"));
                let wanted = include_str!("../../interop/requirements.txt");
                ("requirements.txt", wanted, python)
            }
        };
        let there = fs::read_to_string(folder.join(lock));
        assert!(there.is_ok_and(|there| there == wanted), "{INSTALL}");
        command
    }
}

impl Peers {
    /// Has a body signed.
    pub(crate) fn sign(&mut self, vendor: &Vendor, secret: &str, now: u64, body: &[u8]) -> Message {
        self.try_sign(vendor, secret, now, body)
            .unwrap_or_else(|why| panic!("{}: {why}", vendor.package))
    }

    /// Has a body signed that the library may not be able to sign.
    pub(crate) fn try_sign(
        &mut self,
        vendor: &Vendor,
        secret: &str,
        now: u64,
        body: &[u8],
    ) -> Result<Message, String> {
        let answer = self.ask(vendor, "sign", secret, now, body, &json!({}));
        if let Some(why) = answer["failed"].as_str() {
            return Err(why.to_owned());
        }
        let headers = answer["headers"].as_object().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Ok(Message {
            headers: headers
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            body: body.to_vec(),
        })
    }

    /// Whether the library takes a message for a signed one.
    pub(crate) fn verify(
        &mut self,
        vendor: &Vendor,
        secret: &str,
        now: u64,
        message: &Message,
    ) -> bool {
        self.judge(vendor, secret, now, message)["accepted"] == true
    }

    /// Whether the library finds that a message is not a signed one. It may also stumble over it, and find nothing.
    pub(crate) fn refuse(
        &mut self,
        vendor: &Vendor,
        secret: &str,
        now: u64,
        message: &Message,
    ) -> bool {
        let answer = self.judge(vendor, secret, now, message);
        answer["accepted"] == false && answer["crashed"] != true
    }

    fn judge(&mut self, vendor: &Vendor, secret: &str, now: u64, message: &Message) -> Value {
        let headers = json!(message.headers);
        self.ask(vendor, "verify", secret, now, &message.body, &headers)
    }

    fn ask(
        &mut self,
        vendor: &Vendor,
        op: &str,
        secret: &str,
        now: u64,
        body: &[u8],
        headers: &Value,
    ) -> Value {
        let question = json!({
            "package": vendor.package,
            "op": op,
            "secret": secret,
            "now": now,
            "id": ID,
            "headers": headers,
            "body": BASE64_STANDARD.encode(body),
        });
        let process = match vendor.runtime {
            Runtime::Node => &mut self.node,
            Runtime::Python => &mut self.python,
        };
        let process = process.get_or_insert_with(|| Process::start(vendor.runtime));
        process.ask(&question)
    }
}

impl Process {
    fn start(runtime: Runtime) -> Self {
        let mut child = runtime
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{error}: {INSTALL}"));
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            questions,
            answers,
        }
    }

    fn ask(&mut self, question: &Value) -> Value {
        let questions = self.questions.as_mut().unwrap();
        let mut answer = String::new();
        // A process that has died tells why on stderr, which is ours.
        writeln!(questions, "{question}").expect(INSTALL);
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer)
            .unwrap_or_else(|error| panic!("{answer:?} ({error}): {INSTALL}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends when there are no more questions.
        drop(self.questions.take());
        let _ended = self.child.wait();
    }
}
