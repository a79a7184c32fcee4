//! Signed requests and webhooks.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod algorithm;
mod check;
mod encoding;
mod key;
mod recipe;
mod scheme;
mod timestamp;
mod token;
mod verify;

pub use self::{
    algorithm::{Algorithm, Candidate},
    check::verify,
    encoding::Encoding,
    key::{
        CachedKeys, DEFAULT_KEY_ID, FindKey, KeyCodec, KeyError, KeyRing, RefreshingKeys, Secret,
        Secrets, SigningKey, SigningKeys,
    },
    recipe::{HmacScheme, HmacSchemeBuilder, SchemeError, Segment, SignatureFormat},
    scheme::{
        BodyDigest, Candidates, Content, Presented, Reason, Scheme, SignError, Signed, Stamp,
    },
    timestamp::{TimeUnit, Tolerance, Window},
    token::SecretToken,
    verify::{Rejection, SignatureVerifyLayer, VerifyResponseFuture, VerifySignature},
};
