use zeroize::Zeroizing;

use super::error::KeyError;
use crate::encoding::{decode_key_base64, decode_key_hex};

/// How the text of a secret, as the sender shows it, becomes the bytes of the key.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum KeyCodec {
    /// Base64, padded or not.
    Base64,
    /// Hex in either case.
    Hex,
    /// The text itself, whatever it looks like. The default.
    #[default]
    Raw,
    /// Base64 behind `whsec_`, at least 16 bytes (Standard Webhooks); the prefix may be missing.
    Whsec,
}

/// Shorter keys than this are no Standard Webhooks secrets (which have 24 to 64 bytes) but accidents.
const MIN_WHSEC: usize = 16;

impl KeyCodec {
    pub(super) fn decode(self, text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        let bytes = match self {
            Self::Base64 => decode_key_base64(text),
            Self::Hex => decode_key_hex(text),
            Self::Raw => Some(Zeroizing::new(text.as_bytes().to_vec())),
            Self::Whsec => decode_key_base64(text.strip_prefix("whsec_").unwrap_or(text)),
        };
        let bytes = bytes.ok_or(KeyError::Undecodable)?;
        match self {
            _ if bytes.is_empty() => Err(KeyError::Empty),
            Self::Whsec if bytes.len() < MIN_WHSEC => Err(KeyError::TooShort),
            _ => Ok(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitfalls_7_and_8_what_is_no_secret_is_refused() {
        for (codec, text, error) in [
            (KeyCodec::Raw, "", KeyError::Empty),
            (KeyCodec::Base64, "", KeyError::Empty),
            (KeyCodec::Whsec, "whsec_", KeyError::Empty),
            (KeyCodec::Whsec, "whsec_xyz!", KeyError::Undecodable),
            (KeyCodec::Whsec, "whsec_c2hvcnQ=", KeyError::TooShort),
            (
                KeyCodec::Whsec,
                "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                KeyError::Undecodable,
            ),
            (KeyCodec::Hex, "0", KeyError::Undecodable),
            (KeyCodec::Hex, "0g", KeyError::Undecodable),
            (KeyCodec::Base64, "not base64", KeyError::Undecodable),
        ] {
            assert_eq!(codec.decode(text), Err(error), "{text}");
        }
    }

    #[test]
    fn each_form_is_decoded() {
        let whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let decoded = KeyCodec::Whsec.decode(whsec).unwrap();
        assert_eq!(decoded.len(), 24);
        assert_eq!(KeyCodec::Whsec.decode(&whsec[6..]).unwrap(), decoded);
        // Stripe's secrets look the same and are not decoded.
        assert_eq!(
            KeyCodec::Raw.decode(whsec).unwrap().as_slice(),
            whsec.as_bytes()
        );
        assert_eq!(KeyCodec::Hex.decode("00Ff").unwrap().as_slice(), [0, 255]);
        assert_eq!(KeyCodec::Base64.decode("/w").unwrap().as_slice(), [255]);
        assert_eq!(KeyCodec::Base64.decode("/w==").unwrap().as_slice(), [255]);
    }
}
