//! HTTP/1.1 without a client: what was on the wire is what the test sees.

use std::{
    io::{self, BufRead, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// A request or a response, as it was on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) start: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) was_chunked: bool,
}

impl Message {
    /// The status of a response.
    pub(crate) fn status(&self) -> u16 {
        self.start
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or_else(|| panic!("not the start of a response: {:?}", self.start))
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&[u8]> {
        self.headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
            .collect()
    }

    /// The value of a header that is there once, or not.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        match self.all(name)[..] {
            [] => None,
            [value] => Some(std::str::from_utf8(value).expect("text")),
            _ => panic!("{name} is there more than once"),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("1")
    }

    /// The `code` of a problem.
    pub(crate) fn code(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        self.json()["code"].as_str().expect("a code").to_owned()
    }

    /// Reads one message. An end of the stream before it begins is `UnexpectedEof`, as is one within.
    pub(crate) fn read(reader: &mut impl BufRead, has_body: bool) -> io::Result<Self> {
        let start = line(reader)?;
        let mut headers = Vec::new();
        loop {
            let header = line(reader)?;
            if header.is_empty() {
                break;
            }
            let at = header.iter().position(|&byte| byte == b':').expect("colon");
            let name = String::from_utf8(header[..at].to_vec()).expect("a name");
            headers.push((name, header[at + 1..].trim_ascii().to_vec()));
        }
        let mut message = Self {
            start: String::from_utf8(start).expect("text"),
            headers,
            body: Vec::new(),
            was_chunked: false,
        };
        if has_body {
            message.read_body(reader)?;
        }
        Ok(message)
    }

    fn read_body(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        if let Some(length) = self.header("content-length") {
            self.body = vec![0; length.parse().expect("a length")];
            reader.read_exact(&mut self.body)?;
        } else if self.header("transfer-encoding") == Some("chunked") {
            self.was_chunked = true;
            loop {
                let size = String::from_utf8(line(reader)?).expect("text");
                let size = usize::from_str_radix(&size, 16).expect("a size");
                let mut chunk = vec![0; size];
                reader.read_exact(&mut chunk)?;
                assert_eq!(line(reader)?, b"");
                if size == 0 {
                    break;
                }
                self.body.append(&mut chunk);
            }
        } else if self.start.starts_with("HTTP/") && ![101, 204, 304].contains(&self.status()) {
            reader.read_to_end(&mut self.body)?;
        }
        Ok(())
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(line.to_vec()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A request on a connection of its own.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    request.into_bytes()
}

pub(crate) fn send(address: SocketAddr, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    // A test that waits for an answer which never comes fails, instead of hanging.
    let limit = Some(Duration::from_secs(25));
    stream.set_read_timeout(limit).expect("a timeout");
    stream.write_all(request).expect("it reads");
    stream
}

pub(crate) fn receive(stream: &TcpStream) -> io::Result<Message> {
    Message::read(&mut BufReader::new(stream), true)
}

pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> Message {
    receive(&send(address, request)).expect("a whole answer")
}
