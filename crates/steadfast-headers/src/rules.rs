//! Which keys are admitted, and how a field is read into one.

use std::num::NonZeroU8;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::IdempotencyKey;

/// What a server or a client admits as an [`IdempotencyKey`].
///
/// Rules that admit nothing, or a key that could not be sent, cannot be built.
///
/// # Examples
///
/// ```
/// use steadfast_headers::{KeyError, KeyRules};
///
/// let rules = KeyRules::DEFAULT;
/// assert_eq!(rules.parse(b"8e03978e")?, rules.parse(b" \"8e03978e\" ")?);
/// assert_eq!(rules.parse(b"inv:1"), Err(KeyError::BadByte));
/// # Ok::<(), KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct KeyRules {
    max_len: NonZeroU8,
    /// Bit `n` says that byte `n` is admitted.
    allowed: u128,
    form: KeyForm,
}

impl KeyRules {
    /// 1 to 64 bytes of `A-Z`, `a-z`, `0-9`, `_` and `-`, raw or quoted.
    pub const DEFAULT: Self = Self {
        max_len: NonZeroU8::new(64).expect("not zero"),
        allowed: TOKEN_BYTES,
        form: KeyForm::Both,
    };

    /// 1 to 255 bytes of visible ASCII except `"`, `\` and `,`, raw or quoted.
    ///
    /// These are the widest rules there are: whatever any rules admit, these
    /// do.
    pub const LOOSE: Self = Self {
        max_len: NonZeroU8::MAX,
        allowed: SENDABLE_BYTES,
        form: KeyForm::Both,
    };

    /// Sets how many bytes a key may have, before quoting.
    ///
    /// Default: 64 ([`LOOSE`](Self::LOOSE): 255).
    pub const fn max_len(mut self, bytes: NonZeroU8) -> Self {
        self.max_len = bytes;
        self
    }

    /// Admits further bytes in a key.
    ///
    /// Default: none besides `A-Z`, `a-z`, `0-9`, `_` and `-`
    /// ([`LOOSE`](Self::LOOSE): everything that this method could add).
    ///
    /// # Errors
    ///
    /// For a byte that is not visible ASCII, and for `"`, `\` and `,`: with
    /// these a key would have several spellings, or fall apart where an
    /// intermediary joins field lines.
    pub const fn also_allow(mut self, bytes: &[u8]) -> Result<Self, KeyRulesError> {
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            if !contains(SENDABLE_BYTES, *byte) {
                return Err(KeyRulesError { byte: *byte });
            }
            self.allowed |= bit(*byte);
            rest = tail;
        }
        Ok(self)
    }

    /// Sets which spelling of a key is read.
    ///
    /// Default: [`KeyForm::Both`].
    pub const fn form(mut self, form: KeyForm) -> Self {
        self.form = form;
        self
    }

    /// Reads the key from the field `name`, if it is there.
    ///
    /// # Errors
    ///
    /// [`KeyError::Repeated`] when the field has more than one line, even when
    /// the lines are equal, and everything [`parse`](Self::parse) reports.
    pub fn from_headers(
        &self,
        headers: &HeaderMap,
        name: &HeaderName,
    ) -> Result<Option<IdempotencyKey>, KeyError> {
        let mut lines = headers.get_all(name).iter();
        let Some(line) = lines.next() else {
            return Ok(None);
        };
        if lines.next().is_some() {
            return Err(KeyError::Repeated);
        }
        self.parse_line(line).map(Some)
    }

    /// As [`parse`](Self::parse), of a field line whose bytes the key then
    /// shares.
    ///
    /// # Errors
    ///
    /// A [`KeyError`] that says what is wrong with the value.
    pub fn parse_line(&self, line: &HeaderValue) -> Result<IdempotencyKey, KeyError> {
        let key = self.read(line.as_bytes())?;
        Ok(IdempotencyKey::from_line(line, key))
    }

    /// Reads the key from the value of a field line.
    ///
    /// Spaces and tabs around the value do not count. A value that starts with
    /// `"` is an RFC 9651 String and nothing may follow it, neither parameters
    /// nor a second member. Length and bytes are judged without the quotes.
    ///
    /// # Errors
    ///
    /// A [`KeyError`] that says what is wrong with the value.
    pub fn parse(&self, value: &[u8]) -> Result<IdempotencyKey, KeyError> {
        self.read(value).map(IdempotencyKey::from_checked)
    }

    /// Finds the key in the value of a field line.
    fn read<'a>(&self, value: &'a [u8]) -> Result<&'a [u8], KeyError> {
        let value = trim(value);
        if value.is_empty() {
            return Err(KeyError::Empty);
        }
        let quoted = value.starts_with(b"\"");
        if !self.form.admits(quoted) {
            return Err(KeyError::WrongForm);
        }
        let key = if quoted { unquote(value)? } else { value };
        self.check(key)?;
        Ok(key)
    }

    pub(crate) fn check(&self, key: &[u8]) -> Result<(), KeyError> {
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if key.len() > usize::from(self.max_len.get()) {
            return Err(KeyError::TooLong);
        }
        if self.admit(key) {
            Ok(())
        } else {
            Err(KeyError::BadByte)
        }
    }

    /// The sets of bytes that most rules have are written out, without a way out of the loop: many bytes are judged at
    /// once.
    fn admit(&self, key: &[u8]) -> bool {
        if self.allowed == TOKEN_BYTES {
            key.iter().fold(true, |all, &byte| all & is_token(byte))
        } else if self.allowed == SENDABLE_BYTES {
            key.iter().fold(true, |all, &byte| all & is_sendable(byte))
        } else {
            key.iter().all(|&byte| contains(self.allowed, byte))
        }
    }
}

/// [`KeyRules::DEFAULT`].
impl Default for KeyRules {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The spelling of a key in its field.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum KeyForm {
    /// Either; `"abc"` and `abc` are the same key.
    #[default]
    Both,
    /// An RFC 9651 String: `"abc"`.
    Quoted,
    /// The bare key: `abc`.
    Raw,
}

impl KeyForm {
    const fn admits(self, quoted: bool) -> bool {
        match self {
            Self::Both => true,
            Self::Quoted => quoted,
            Self::Raw => !quoted,
        }
    }
}

/// The reason why a key is refused.
///
/// None of them shows the key: it came from a stranger, or it is worth something.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A byte of the key is not one that the rules admit.
    #[error("idempotency key has a byte that is not allowed")]
    BadByte,
    /// The value, or what is between its quotes, is empty.
    #[error("idempotency key is empty")]
    Empty,
    /// The value starts with `"` but is not one RFC 9651 String and nothing else.
    #[error("idempotency key is not a single quoted string")]
    Malformed,
    /// The field has more than one line.
    #[error("idempotency key is given more than once")]
    Repeated,
    /// The key has more bytes than the rules admit.
    #[error("idempotency key is too long")]
    TooLong,
    /// The key is quoted where a raw one is asked for, or the other way round.
    #[error("idempotency key is not in the expected form")]
    WrongForm,
}

/// The reason why [`KeyRules`] cannot be built: a byte no key may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("byte {byte:#04x} cannot be allowed in an idempotency key")]
pub struct KeyRulesError {
    byte: u8,
}

/// Takes the text out of an RFC 9651 String, quotes included in `value`.
///
/// The result borrows from the value. It still has its escapes, which is of no
/// consequence: an escape stands for `"` or `\`, the result keeps the `\`, and
/// no rules admit any of the two.
fn unquote(value: &[u8]) -> Result<&[u8], KeyError> {
    let inner = value
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
        .ok_or(KeyError::Malformed)?;

    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        let valid = match byte {
            b'\\' => matches!(bytes.next(), Some(b'"' | b'\\')),
            // An unescaped quote ends the string, and nothing may follow.
            b'"' => false,
            _ => matches!(byte, b' '..=b'~'),
        };
        if !valid {
            return Err(KeyError::Malformed);
        }
    }
    Ok(inner)
}

/// Removes spaces and tabs, the optional whitespace of RFC 9110, and no other.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

const TOKEN_BYTES: u128 = token_bytes();
const SENDABLE_BYTES: u128 = sendable_bytes();

const fn token_bytes() -> u128 {
    let mut set = 0;
    let mut byte = 0u8;
    while byte < 128 {
        if is_token(byte) {
            set |= bit(byte);
        }
        byte = byte.saturating_add(1);
    }
    set
}

/// The bytes that look the same raw, quoted and in a list of field lines.
const fn sendable_bytes() -> u128 {
    let mut set = 0;
    let mut byte = 0u8;
    while byte < 128 {
        if is_sendable(byte) {
            set |= bit(byte);
        }
        byte = byte.saturating_add(1);
    }
    set
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'_') | (byte == b'-')
}

const fn is_sendable(byte: u8) -> bool {
    byte.is_ascii_graphic() & (byte != b'"') & (byte != b'\\') & (byte != b',')
}

const fn contains(set: u128, byte: u8) -> bool {
    byte.is_ascii() && (set >> byte) & 1 == 1
}

/// No bit at all for a byte that is not ASCII.
const fn bit(byte: u8) -> u128 {
    match 1u128.checked_shl(byte as u32) {
        Some(bit) => bit,
        None => 0,
    }
}

#[cfg(test)]
mod tests;
