use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use zeroize::Zeroizing;

/// How a signature is spelled.
///
/// Each spelling is strict: one value has one text, so that no respelling of a signature passes for another one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// The standard alphabet, padded, without stray bits at the end.
    Base64,
    /// Lower-case hex.
    Hex,
    /// Hex in both cases, for senders that document it.
    HexAnyCase,
}

/// The longest signature in bytes: HMAC-SHA-512, and Ed25519.
pub(crate) const MAX_SIGNATURE: usize = 64;

/// Base64 is decoded in groups: room for a group beyond the longest signature.
const SCRATCH: usize = MAX_SIGNATURE + 8;

impl Encoding {
    /// Decodes the text of a signature of `len` bytes.
    pub(crate) fn decode(self, text: &[u8], len: usize) -> Option<[u8; MAX_SIGNATURE]> {
        let mut scratch = [0; SCRATCH];
        let decoded = match self {
            Self::Base64 => {
                // A text of another length cannot be the one, and might not fit.
                if text.len() != len.div_ceil(3) * 4 {
                    return None;
                }
                STANDARD.decode_slice(text, &mut scratch).ok()?
            }
            Self::Hex | Self::HexAnyCase => {
                if text.len() != len * 2 {
                    return None;
                }
                let decode = match self {
                    Self::Hex => base16ct::lower::decode,
                    _ => base16ct::mixed::decode,
                };
                decode(text, &mut scratch).ok()?.len()
            }
        };
        let bytes = *scratch.first_chunk()?;
        (decoded == len).then_some(bytes)
    }

    pub(crate) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Base64 => STANDARD.encode(bytes),
            Self::Hex | Self::HexAnyCase => base16ct::lower::encode_string(bytes),
        }
    }
}

/// Decodes the base64 text of a key. Keys come padded and not.
pub(crate) fn decode_key_base64(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    const KEYS: GeneralPurpose = GeneralPurpose::new(
        &ALPHABET,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    KEYS.decode(text).ok().map(Zeroizing::new)
}

/// Decodes the hex text of a key.
pub(crate) fn decode_key_hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    base16ct::mixed::decode_vec(text).ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPELLINGS: [Encoding; 3] = [Encoding::Base64, Encoding::Hex, Encoding::HexAnyCase];

    #[test]
    fn s05_only_the_one_spelling_of_a_value_is_read() {
        let bytes = [0xab; 32];
        for (encoding, text) in [
            (Encoding::Hex, "ab".repeat(32)),
            (Encoding::Base64, STANDARD.encode(bytes)),
        ] {
            assert_eq!(&encoding.decode(text.as_bytes(), 32).unwrap()[..32], bytes);
            let long = format!("{text}ab");
            let padded = format!("{text}=");
            let blank = format!(" {text}");
            let broken = text.replacen(|_: char| true, "!", 1);
            for bad in [&long, &padded, &blank, &broken, "", &text[1..]] {
                assert!(encoding.decode(bad.as_bytes(), 32).is_none(), "{bad}");
            }
        }
        assert!(
            Encoding::Hex
                .decode("AB".repeat(32).as_bytes(), 32)
                .is_none()
        );
        let any = Encoding::HexAnyCase.decode("Ab".repeat(32).as_bytes(), 32);
        assert_eq!(&any.unwrap()[..32], bytes);
    }

    #[test]
    fn pitfall_15_base64_with_stray_bits_at_its_end_is_another_text() {
        let text = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
        assert!(Encoding::Base64.decode(text.as_bytes(), 32).is_some());
        for stray in [
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEN=",
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM",
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOE==",
        ] {
            assert!(Encoding::Base64.decode(stray.as_bytes(), 32).is_none());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes: [u8; 64], len in prop::sample::select(vec![20_usize, 32, 64])) {
            for encoding in SPELLINGS {
                let text = encoding.encode(&bytes[..len]);
                let read = encoding.decode(text.as_bytes(), len);
                prop_assert_eq!(&read.unwrap()[..len], &bytes[..len]);
            }
        }

        #[test]
        fn no_text_panics(text: Vec<u8>, len in 0_usize..=64) {
            for encoding in SPELLINGS {
                let _: Option<_> = encoding.decode(&text, len);
            }
        }
    }
}
