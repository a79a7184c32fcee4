use std::borrow::Cow;

use super::error::SchemeError;
use crate::{Algorithm, Candidate, Encoding, Reason, Secret, scheme::Candidates};

/// How a header carries the signature.
///
/// ```
/// use steadfast_signature::SignatureFormat;
///
/// let github = SignatureFormat::prefixed("sha256=");
/// let stripe = SignatureFormat::pairs(',', "v1").timestamp("t");
/// let standard = SignatureFormat::versioned("v1");
/// # let _ = (github, stripe, standard);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SignatureFormat {
    shape: Shape,
    labels: Vec<Label>,
    timestamp: Option<Cow<'static, str>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    /// The one label is a prefix.
    Whole { bare_too: bool },
    /// `label=value`, separated.
    Pairs { separator: char },
    /// `label,value`, separated by blanks.
    Versioned,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Label {
    text: Cow<'static, str>,
    /// Of signatures of another algorithm than the scheme's.
    algorithm: Option<Algorithm>,
}

/// What stands in the header.
pub(super) struct Parsed<'a> {
    pub(super) candidates: Candidates,
    pub(super) timestamp: Option<&'a str>,
}

impl SignatureFormat {
    fn new(shape: Shape, label: Cow<'static, str>) -> Self {
        let label = Label {
            text: label,
            algorithm: None,
        };
        Self {
            shape,
            labels: vec![label],
            timestamp: None,
        }
    }

    /// The signature and nothing else.
    #[must_use]
    pub fn bare() -> Self {
        Self::prefixed("")
    }

    /// The signature behind a fixed text, `sha256=` for one.
    #[must_use]
    pub fn prefixed(prefix: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Shape::Whole { bare_too: false }, prefix.into())
    }

    /// The signature behind a fixed text that may be missing. It is written when a request is signed.
    #[must_use]
    pub fn optional_prefix(prefix: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Shape::Whole { bare_too: true }, prefix.into())
    }

    /// Pairs like `v1=…`, separated by `separator` and blanks around it: signatures under `label`, once or several
    /// times. What stands under other labels is ignored.
    #[must_use]
    pub fn pairs(separator: char, label: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Shape::Pairs { separator }, label.into())
    }

    /// Pairs like `v1,…`, separated by blanks: signatures of `version`, once or several times. Other versions are
    /// ignored.
    #[must_use]
    pub fn versioned(version: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Shape::Versioned, version.into())
    }

    /// Reads signatures under a further label too, as some senders have one for the secret that is going. Default: one
    /// label.
    #[must_use]
    pub fn also_label(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.labels.push(Label {
            text: label.into(),
            algorithm: None,
        });
        self
    }

    /// Reads signatures of another algorithm under a further label. Default: all are of the scheme's algorithm.
    #[must_use]
    pub fn also_algorithm(
        mut self,
        label: impl Into<Cow<'static, str>>,
        algorithm: Algorithm,
    ) -> Self {
        self.labels.push(Label {
            text: label.into(),
            algorithm: Some(algorithm),
        });
        self
    }

    /// Reads the timestamp from under this label, where it must stand once. Default: it has a header of its own, or
    /// there is none.
    #[must_use]
    pub fn timestamp(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.timestamp = Some(label.into());
        self
    }

    pub(super) const fn has_timestamp(&self) -> bool {
        self.timestamp.is_some()
    }

    pub(super) fn check(&self) -> Result<(), SchemeError> {
        let is_whole = matches!(self.shape, Shape::Whole { .. });
        let empty = self.labels.iter().any(|label| label.text.is_empty());
        if (empty && !is_whole)
            || self
                .timestamp
                .as_ref()
                .is_some_and(|label| label.is_empty())
        {
            return Err(SchemeError::Empty);
        }
        Ok(())
    }

    /// Reads a header.
    ///
    /// Where there is one signature it has to be well-formed. Of several, those that are not, or are of a version that
    /// is not known, are passed over (a sender may be ahead of its receivers), as long as one is left.
    pub(super) fn parse<'a>(
        &self,
        value: &'a str,
        algorithm: Algorithm,
        encoding: Encoding,
    ) -> Result<Parsed<'a>, Reason> {
        let decode = |algorithm: Algorithm, text: &str| {
            let bytes = encoding.decode(text.as_bytes(), algorithm.signature_len())?;
            Some(Candidate::from_array(algorithm, bytes))
        };
        let (separator, equals) = match self.shape {
            Shape::Whole { bare_too } => {
                let prefix = self.labels.first().map_or("", |label| &*label.text);
                let text = value.strip_prefix(prefix).or(bare_too.then_some(value));
                let candidate = text.and_then(|text| decode(algorithm, text));
                return Ok(Parsed {
                    candidates: Candidates::one(candidate.ok_or(Reason::Malformed)?),
                    timestamp: None,
                });
            }
            Shape::Pairs { separator } => (separator, '='),
            Shape::Versioned => (' ', ','),
        };
        let mut candidates: Option<Candidates> = None;
        let mut timestamp = None;
        for entry in value.split(separator) {
            let Some((name, text)) = entry.trim_matches([' ', '\t']).split_once(equals) else {
                continue;
            };
            if self.timestamp.as_deref() == Some(name) {
                if timestamp.replace(text).is_some() {
                    return Err(Reason::Malformed);
                }
                continue;
            }
            let Some(label) = self.labels.iter().find(|label| label.text == name) else {
                continue;
            };
            let Some(candidate) = decode(label.algorithm.unwrap_or(algorithm), text) else {
                continue;
            };
            match &mut candidates {
                None => candidates = Some(Candidates::one(candidate)),
                Some(candidates) => candidates.push(candidate)?,
            }
        }
        if self.timestamp.is_some() && timestamp.is_none() {
            return Err(Reason::Missing);
        }
        Ok(Parsed {
            candidates: candidates.ok_or(Reason::Malformed)?,
            timestamp,
        })
    }

    /// The label and the algorithm under which this secret signs.
    pub(super) fn signing(
        &self,
        algorithm: Algorithm,
        secret: &Secret,
    ) -> Option<(&str, Algorithm)> {
        self.labels.iter().find_map(|label| {
            let algorithm = label.algorithm.unwrap_or(algorithm);
            secret
                .can_sign(algorithm)
                .then_some((&*label.text, algorithm))
        })
    }

    /// Writes a header with one signature.
    pub(super) fn write(&self, label: &str, signature: &str, timestamp: Option<&str>) -> String {
        let (separator, equals) = match self.shape {
            Shape::Whole { .. } => return format!("{label}{signature}"),
            Shape::Pairs { separator } => (separator, '='),
            Shape::Versioned => (' ', ','),
        };
        match (&self.timestamp, timestamp) {
            (Some(name), Some(at)) => {
                format!("{name}{equals}{at}{separator}{label}{equals}{signature}")
            }
            _ => format!("{label}{equals}{signature}"),
        }
    }
}
