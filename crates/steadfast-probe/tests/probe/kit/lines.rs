use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// What `probe` answered, line by line, and how it ended.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<Value>,
    pub(crate) code: Option<i32>,
}

impl Lines {
    /// The lines of a run that went well.
    pub(crate) fn good(self) -> Vec<Value> {
        assert_eq!(self.code, Some(0), "{:?}", self.lines);
        self.lines
    }

    /// The only line of a run that went well.
    pub(crate) fn only(self) -> Value {
        let lines = self.good();
        let [line] = &lines[..] else {
            panic!("not one line: {lines:?}");
        };
        line.clone()
    }

    /// Feeds lines to a command, and reads its answers.
    pub(crate) fn of(args: &[&str], input: &[impl AsRef<[u8]>]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_probe"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut stdin = process.stdin.take().expect("it is piped");
        for line in input {
            stdin.write_all(line.as_ref()).expect("it reads");
            stdin.write_all(b"\n").expect("it reads");
        }
        drop(stdin);
        let output = process.wait_with_output().expect("it ends");
        Self {
            lines: String::from_utf8(output.stdout)
                .expect("text")
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON"))
                .collect(),
            code: output.status.code(),
        }
    }
}

/// Runs `probe` without input.
pub(crate) fn probe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_probe"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}
