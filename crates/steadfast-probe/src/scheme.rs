use std::sync::Arc;

use steadfast::signature::{
    HmacScheme, KeyCodec, KeyError, MessageSignatures, Scheme, Secret, SecretToken,
};

/// A scheme that the probe knows by name.
#[derive(Debug)]
pub(crate) enum SignatureScheme {
    Recipe(Box<HmacScheme>),
    Message(MessageSignatures),
    Token(SecretToken),
}

/// What a secret is for. It makes a difference where one key signs and another verifies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Sign,
    Verify,
}

/// The one scheme that signs the URL it is registered under, which no request can be asked for.
pub(crate) const SQUARE: &str = "square";

const DISCORD: &str = "discord";

/// A name, and what makes the scheme of it.
type Named<T> = (&'static str, fn() -> T);

const RECIPES: [Named<HmacScheme>; 25] = [
    ("botix", HmacScheme::botix),
    ("coinbase", HmacScheme::coinbase),
    (DISCORD, HmacScheme::discord),
    ("dropbox", HmacScheme::dropbox),
    ("elevenlabs", HmacScheme::elevenlabs),
    ("github", HmacScheme::github),
    ("intercom", HmacScheme::intercom),
    ("lemon_squeezy", HmacScheme::lemon_squeezy),
    ("linear", HmacScheme::linear),
    ("meta", HmacScheme::meta),
    ("okx", HmacScheme::okx),
    ("paddle", HmacScheme::paddle),
    ("pagerduty", HmacScheme::pagerduty),
    ("payments", HmacScheme::payments),
    ("shopify", HmacScheme::shopify),
    ("slack", HmacScheme::slack),
    ("standard_webhooks", HmacScheme::standard_webhooks),
    ("stripe", HmacScheme::stripe),
    ("svix", HmacScheme::svix),
    ("vercel", HmacScheme::vercel),
    ("webflow", HmacScheme::webflow),
    ("webhook_signature", HmacScheme::webhook_signature),
    ("woocommerce", HmacScheme::woocommerce),
    ("workos", HmacScheme::workos),
    ("zoom", HmacScheme::zoom),
];

const TOKENS: [Named<SecretToken>; 2] = [
    ("gitlab", SecretToken::gitlab),
    ("telegram", SecretToken::telegram),
];

const MESSAGES: [Named<MessageSignatures>; 1] =
    [("http_signatures", MessageSignatures::hmac_sha256)];

impl SignatureScheme {
    /// The names of all schemes.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        let recipes = RECIPES.iter().map(|(name, _)| *name);
        let tokens = TOKENS.iter().map(|(name, _)| *name);
        let messages = MESSAGES.iter().map(|(name, _)| *name);
        recipes.chain(tokens).chain(messages).chain([SQUARE])
    }

    /// The scheme of this name. `url` is the one that Square signs.
    pub(crate) fn named(name: &str, url: &str) -> Option<Self> {
        if name == SQUARE {
            return Some(HmacScheme::square(url.to_owned()).into());
        }
        let recipe = find(&RECIPES, name).map(Self::from);
        recipe
            .or_else(|| find(&TOKENS, name).map(Self::Token))
            .or_else(|| find(&MESSAGES, name).map(Self::Message))
    }

    /// Reads a secret: behind `hex:` are bytes, everything else is the text that the vendor shows.
    pub(crate) fn secret(&self, text: &str, side: Side) -> Result<Secret, KeyError> {
        let Some(hex) = text.strip_prefix("hex:") else {
            return match self {
                Self::Recipe(recipe) => recipe.secret(text),
                Self::Message(_) | Self::Token(_) => Secret::parse(KeyCodec::Raw, text),
            };
        };
        if self.is_ed25519() {
            let mut bytes = [0; 32];
            return match (base16ct::mixed::decode(hex, &mut bytes), side) {
                (Ok(bytes), _) if bytes.len() != 32 => Err(KeyError::TooShort),
                (Ok(_), Side::Sign) => Ok(Secret::ed25519_private(&bytes)),
                (Ok(_), Side::Verify) => Secret::ed25519_public(&bytes),
                (Err(_), _) => Err(KeyError::Undecodable),
            };
        }
        Secret::parse(KeyCodec::Hex, hex)
    }

    fn is_ed25519(&self) -> bool {
        matches!(self, Self::Recipe(recipe) if recipe.name() == DISCORD)
    }

    /// The scheme as the layers take it.
    pub(crate) fn into_scheme(self) -> Arc<dyn Scheme> {
        match self {
            Self::Recipe(scheme) => Arc::new(*scheme),
            Self::Message(scheme) => Arc::new(scheme),
            Self::Token(scheme) => Arc::new(scheme),
        }
    }
}

impl From<HmacScheme> for SignatureScheme {
    fn from(scheme: HmacScheme) -> Self {
        Self::Recipe(Box::new(scheme))
    }
}

fn find<T>(table: &[Named<T>], name: &str) -> Option<T> {
    let (_, scheme) = table.iter().find(|(known, _)| *known == name)?;
    Some(scheme())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_found_under_the_name_that_it_has() {
        for name in SignatureScheme::names() {
            let scheme = SignatureScheme::named(name, "https://example.com/").unwrap();
            assert_eq!(scheme.into_scheme().name(), name);
        }
        assert_eq!(SignatureScheme::names().count(), 29);
        for name in ["", "GitHub", "standard-webhooks", "github/"] {
            assert!(SignatureScheme::named(name, "").is_none(), "{name}");
        }
    }

    #[test]
    fn hex_is_bytes_of_a_public_or_of_a_private_key_where_these_differ() {
        let discord = SignatureScheme::named(DISCORD, "").unwrap();
        // A point of the curve, but any number is a private key.
        let public = "hex:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert!(discord.secret(public, Side::Verify).is_ok());
        assert!(discord.secret(public, Side::Sign).is_ok());
        let zero = format!("hex:{}", "00".repeat(32));
        assert!(discord.secret(&zero, Side::Sign).is_ok());
        for (text, error) in [
            (&*zero, KeyError::Undecodable),
            ("hex:", KeyError::TooShort),
            ("hex:00", KeyError::TooShort),
            ("hex:0", KeyError::Undecodable),
            ("hex:zz", KeyError::Undecodable),
        ] {
            assert_eq!(discord.secret(text, Side::Verify).unwrap_err(), error);
        }
    }
}
