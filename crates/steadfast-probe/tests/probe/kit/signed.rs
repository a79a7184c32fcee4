use std::{
    fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

use super::Lines;

pub(crate) type Headers = Vec<(String, String)>;

pub(crate) const SECRET: &str = "a secret of 26 bytes or so";

const WHSEC: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BASE64: &str = "YSBzZWNyZXQgb2YgMjYgYnl0ZXMgb3Igc28=";
// RFC 8032 §7.1, test 1.
const PRIVATE: &str = "hex:9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// A scheme, and what the tests sign and verify in it with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    /// The text of the secret of the sender.
    pub(crate) signs: &'static str,
    /// The text of the secret of the receiver.
    pub(crate) verifies: &'static str,
    /// The header of the id that each message has to bring.
    pub(crate) id: Option<&'static str>,
    /// How far a timestamp may be from now: back, and ahead.
    pub(crate) tolerance: Option<(u64, u64)>,
}

const fn plain(name: &'static str) -> Sample {
    Sample {
        name,
        signs: SECRET,
        verifies: SECRET,
        id: None,
        tolerance: None,
    }
}

const fn timed(name: &'static str, past: u64, future: u64) -> Sample {
    Sample {
        tolerance: Some((past, future)),
        ..plain(name)
    }
}

const fn standard(name: &'static str, id: &'static str) -> Sample {
    Sample {
        signs: WHSEC,
        verifies: WHSEC,
        id: Some(id),
        ..timed(name, 300, 300)
    }
}

pub(crate) const SCHEMES: [Sample; 29] = [
    plain("botix"),
    Sample {
        signs: BASE64,
        verifies: BASE64,
        ..timed("coinbase", 30, 30)
    },
    Sample {
        signs: PRIVATE,
        verifies: PUBLIC,
        ..timed("discord", 300, 300)
    },
    plain("dropbox"),
    timed("elevenlabs", 1800, 300),
    plain("github"),
    plain("gitlab"),
    timed("http_signatures", 300, 300),
    plain("intercom"),
    plain("lemon_squeezy"),
    plain("linear"),
    plain("meta"),
    timed("okx", 30, 30),
    timed("paddle", 5, 5),
    plain("pagerduty"),
    timed("payments", 30, 30),
    plain("shopify"),
    timed("slack", 300, 300),
    plain("square"),
    standard("standard_webhooks", "webhook-id"),
    timed("stripe", 300, 300),
    standard("svix", "svix-id"),
    plain("telegram"),
    plain("vercel"),
    timed("webflow", 300, 300),
    plain("webhook_signature"),
    plain("woocommerce"),
    timed("workos", 180, 180),
    timed("zoom", 300, 300),
];

/// A file of secrets, removed at the end of its test.
#[derive(Debug)]
pub(crate) struct KeyFile(PathBuf);

impl KeyFile {
    pub(crate) fn new(text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keys-{}-{number}.toml", process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, text).expect("it can be written");
        Self(path)
    }

    /// The secret of every scheme, under the id `default`.
    pub(crate) fn of_all() -> Self {
        let sections = SCHEMES.map(|scheme| {
            let Sample { name, verifies, .. } = scheme;
            format!("[{name}]\ndefault = [\"{verifies}\"]\n")
        });
        Self::new(&sections.concat())
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        // Whoever looks at what is left of a failed test finds no use in it.
        drop(fs::remove_file(&self.0));
    }
}

/// The headers of each request, signed.
pub(crate) fn sign(lines: &[Value]) -> Vec<Headers> {
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    let answers = Lines::of(&["sign"], &lines).good();
    answers
        .into_iter()
        .map(|mut answer| serde_json::from_value(answer["headers"].take()).expect("headers"))
        .collect()
}

pub(crate) fn refs(headers: &Headers) -> Vec<(&str, &str)> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}
