use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Deserialize as _;

/// Scheme, key id, secrets.
type Keys = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// Why a file of secrets is refused. Says where, and never what stands there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error("byte {0}: not TOML of the form `[scheme]`, then `id = [\"secret\", …]`")]
    Malformed(usize),
    #[error("[{scheme}] {id}: a secret is empty, or `hex:` is not followed by hex")]
    BadSecret { scheme: String, id: String },
    #[error("[{scheme}] {id}: there is no secret")]
    NoSecret { scheme: String, id: String },
}

/// Checks a file of secrets. Nothing uses them yet.
pub(super) fn check(path: &Path) -> Result<(), KeysError> {
    check_text(&fs::read_to_string(path)?)
}

fn check_text(text: &str) -> Result<(), KeysError> {
    // The parser's own words quote the file.
    let malformed =
        |error: toml::de::Error| KeysError::Malformed(error.span().map_or(0, |span| span.start));
    let deserializer = toml::Deserializer::parse(text).map_err(malformed)?;
    let keys = Keys::deserialize(deserializer).map_err(malformed)?;
    for (scheme, ids) in keys {
        for (id, secrets) in ids {
            if secrets.is_empty() {
                return Err(KeysError::NoSecret { scheme, id });
            }
            if !secrets.iter().all(|secret| is_decodable(secret)) {
                return Err(KeysError::BadSecret { scheme, id });
            }
        }
    }
    Ok(())
}

fn is_decodable(secret: &str) -> bool {
    match secret.strip_prefix("hex:") {
        Some(hex) => {
            !hex.is_empty()
                && hex.len().is_multiple_of(2)
                && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        None => !secret.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_secrets_of_an_id_are_admitted() {
        check_text("[botix]\ndefault = [\"s3cret\", \"hex:00ff\"]\n[payments]\n").unwrap();
        check_text("").unwrap();
    }

    #[test]
    fn a_refusal_never_shows_a_secret() {
        for text in [
            "[botix]\ndefault = \"s3cret\"",
            "[botix]\ndefault = [\"s3cret\"",
            "[botix]\ndefault = [\"s3cret\", \"\"]",
            "[botix]\ndefault = [\"hex:s3cret\"]",
            "[botix]\ndefault = [\"s3cret\", \"hex:\"]",
            "[botix]\ndefault = [\"s3cret\", 1]",
            "default = [\"s3cret\"]",
            "[botix]\ndefault = []",
        ] {
            let error = check_text(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
