use std::{
    error::Error,
    io::{self, Write as _},
};

use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader, Stdin};

use crate::failure::Failure;

/// The longest line that is read. It holds a request whose body has some forty megabytes.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Lines of JSON, read one by one.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
}

/// A line that cannot be understood, and why.
#[derive(Debug, Serialize)]
pub(crate) struct BadLine {
    pub(crate) error: String,
}

impl<E: Error> From<E> for BadLine {
    fn from(error: E) -> Self {
        Self {
            error: error.to_string(),
        }
    }
}

impl BadLine {
    pub(crate) fn new(error: &str) -> Self {
        Self {
            error: error.to_owned(),
        }
    }
}

impl Lines<BufReader<Stdin>> {
    pub(crate) fn stdin() -> Self {
        Self {
            reader: BufReader::new(tokio::io::stdin()),
        }
    }
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// The next line that is not blank; `None` at the end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Result<Value, BadLine>>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let is_whole = match self.read_line(&mut line).await? {
                Read::End => return Ok(None),
                Read::Line => true,
                Read::TooLong => false,
            };
            if !is_whole {
                return Ok(Some(Err(BadLine::new("the line is too long"))));
            }
            if !line.trim_ascii().is_empty() {
                let value = serde_json::from_slice(&line);
                return Ok(Some(value.map_err(BadLine::from)));
            }
        }
    }

    /// Reads to the end of the line, and keeps of it what is allowed.
    async fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<Read> {
        let mut read = Read::End;
        loop {
            let buffered = self.reader.fill_buf().await?;
            if buffered.is_empty() {
                return Ok(read);
            }
            let end = buffered.iter().position(|&byte| byte == b'\n');
            let part = &buffered[..end.unwrap_or(buffered.len())];
            if line.len() + part.len() > MAX_LINE_BYTES {
                read = Read::TooLong;
                line.clear();
            } else if !matches!(read, Read::TooLong) {
                read = Read::Line;
                line.extend_from_slice(part);
            }
            let consumed = part.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(read);
            }
        }
    }
}

enum Read {
    End,
    Line,
    TooLong,
}

/// Answers each line on standard input with one on standard output.
pub(crate) async fn answer<T: Serialize>(
    answer: impl AsyncFn(Value) -> Result<T, BadLine>,
) -> Result<(), Failure> {
    let mut bad = 0;
    let mut lines = Lines::stdin();
    while let Some(line) = lines.next().await? {
        let answered = match line {
            Ok(line) => answer(line).await,
            Err(line) => Err(line),
        };
        match answered {
            Ok(answer) => print(&answer)?,
            Err(line) => {
                bad += 1;
                print(&line)?;
            }
        }
    }
    match bad {
        0 => Ok(()),
        bad => Err(Failure::BadLines(bad)),
    }
}

/// Header fields as they stand on lines.
pub(crate) fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        })
        .collect()
}

/// Writes a value as one line, at once.
pub(crate) fn print(value: &impl Serialize) -> io::Result<()> {
    print_text(&serde_json::to_string(value)?)
}

/// Writes one line, at once.
pub(crate) fn print_text(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(text: &str) -> Lines<&[u8]> {
        Lines {
            reader: text.as_bytes(),
        }
    }

    #[tokio::test]
    async fn blank_lines_are_passed_over_and_the_last_one_needs_no_end() {
        let mut lines = lines("\n1\r\n \n\n[2]");
        assert_eq!(lines.next().await.unwrap().unwrap().unwrap(), json!(1));
        assert_eq!(lines.next().await.unwrap().unwrap().unwrap(), json!([2]));
        assert!(lines.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_bad_line_does_not_spoil_the_next_one() {
        let mut lines = lines("{\n2\n");
        assert!(lines.next().await.unwrap().unwrap().is_err());
        assert_eq!(lines.next().await.unwrap().unwrap().unwrap(), json!(2));
    }

    #[tokio::test]
    async fn a_line_without_an_end_takes_no_memory_without_an_end() {
        let long = format!("{}\n3\n", "1".repeat(MAX_LINE_BYTES + 1));
        let mut lines = lines(&long);
        let refused = lines.next().await.unwrap().unwrap().unwrap_err();
        assert_eq!(refused.error, "the line is too long");
        assert_eq!(lines.next().await.unwrap().unwrap().unwrap(), json!(3));
    }
}
