use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Deserialize as _;
use steadfast::signature::{KeyError, KeyRing, Secrets};

use crate::scheme::{Side, SignatureScheme};

/// Scheme, key id, secrets.
type File = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The keys of each scheme. Those of a scheme that the file does not name are none.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    rings: BTreeMap<String, KeyRing>,
}

/// Why a file of secrets is refused. Says where, and never what stands there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error("byte {0}: not TOML of the form `[scheme]`, then `id = [\"secret\", …]`")]
    Malformed(usize),
    #[error("[{0}]: there is no such scheme")]
    UnknownScheme(String),
    #[error("[{scheme}] {id}: {error}")]
    BadKey {
        scheme: String,
        id: String,
        error: KeyError,
    },
}

impl Keys {
    /// Reads a file of secrets.
    pub(crate) fn read(path: &Path) -> Result<Self, KeysError> {
        Self::parse(&fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> Result<Self, KeysError> {
        // The parser's own words quote the file.
        let malformed = |error: toml::de::Error| {
            KeysError::Malformed(error.span().map_or(0, |span| span.start))
        };
        let deserializer = toml::Deserializer::parse(text).map_err(malformed)?;
        let file = File::deserialize(deserializer).map_err(malformed)?;
        let rings = file.into_iter().map(|(scheme, ids)| {
            let ring = ring(&scheme, ids)?;
            Ok((scheme, ring))
        });
        Ok(Self {
            rings: rings.collect::<Result<_, KeysError>>()?,
        })
    }

    /// The keys of a scheme: an empty ring, which refuses everything, where there are none.
    pub(crate) fn of(&self, scheme: &str) -> KeyRing {
        self.rings.get(scheme).cloned().unwrap_or_else(no_keys)
    }
}

/// A ring with which nothing is verified.
pub(crate) fn no_keys() -> KeyRing {
    let none: [(&str, Secrets); 0] = [];
    KeyRing::new(none).expect("no id is empty or stands there twice")
}

fn ring(name: &str, ids: BTreeMap<String, Vec<String>>) -> Result<KeyRing, KeysError> {
    // Which URL a scheme signs makes no difference to its secrets.
    let scheme = SignatureScheme::named(name, "")
        .ok_or_else(|| KeysError::UnknownScheme(name.to_owned()))?;
    let mut keys = Vec::new();
    for (id, texts) in ids {
        let bad = |error| KeysError::BadKey {
            scheme: name.to_owned(),
            id: id.clone(),
            error,
        };
        let secrets = texts
            .iter()
            .map(|text| scheme.secret(text, Side::Verify))
            .collect::<Result<Vec<_>, _>>()
            .and_then(Secrets::new)
            .map_err(bad)?;
        if id.is_empty() {
            return Err(bad(KeyError::NoId));
        }
        keys.push((id, secrets));
    }
    KeyRing::new(keys).map_err(|error| KeysError::BadKey {
        scheme: name.to_owned(),
        id: String::new(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_secrets_of_an_id_are_admitted() {
        let keys = Keys::parse("[botix]\ndefault = [\"s3cret\", \"hex:00ff\"]\n[payments]\n");
        let keys = keys.unwrap();
        assert!(keys.of("botix").get("default").is_some());
        assert!(keys.of("payments").get("default").is_none());
        assert!(keys.of("github").get("default").is_none());
        Keys::parse("").unwrap();
    }

    #[test]
    fn s05_a_refusal_never_shows_a_secret() {
        for text in [
            "[botix]\ndefault = \"s3cret\"",
            "[botix]\ndefault = [\"s3cret\"",
            "[botix]\ndefault = [\"s3cret\", \"\"]",
            "[botix]\ndefault = [\"hex:s3cret\"]",
            "[botix]\ndefault = [\"s3cret\", \"hex:\"]",
            "[botix]\ndefault = [\"s3cret\", \"hex:0\"]",
            "[botix]\ndefault = [\"s3cret\", 1]",
            "[botix]\n\"\" = [\"s3cret\"]",
            "default = [\"s3cret\"]",
            "[botix]\ndefault = []",
            "[botix]\ndefault = [\"s3cret\", \"b\", \"c\", \"d\", \"e\"]",
            "[botox]\ndefault = [\"s3cret\"]",
            "[standard_webhooks]\ndefault = [\"whsec_s3cret\"]",
            "[discord]\ndefault = [\"s3cret\"]",
        ] {
            let error = Keys::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
