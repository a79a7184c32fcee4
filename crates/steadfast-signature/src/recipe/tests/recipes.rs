//! Which recipes are none.

use std::time::Duration;

use http::HeaderName;

use super::presets;
use crate::{
    HmacScheme, HmacSchemeBuilder, SchemeError, Segment, SignatureFormat, TimeUnit, Tolerance,
};

const fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

/// Everything has a header.
fn recipe(message: impl IntoIterator<Item = Segment>) -> HmacSchemeBuilder {
    HmacScheme::builder("test")
        .signature(name("x-signature"), SignatureFormat::bare())
        .timestamp_header(name("x-timestamp"), TimeUnit::Seconds)
        .id_header(name("x-id"))
        .key_id_header(name("x-key"))
        .message(message)
}

fn error(builder: HmacSchemeBuilder) -> Option<SchemeError> {
    builder.build().err()
}

#[test]
fn pitfall_17_a_value_that_might_reach_into_the_next_is_refused() {
    use Segment::{Body, BodySha256, Id, KeyId, Method, Path, PathAndQuery, Timestamp};
    let text = |text: &'static str| Segment::text(text);
    for ambiguous in [
        vec![Timestamp, Body],
        vec![text("v0"), Timestamp, BodySha256],
        vec![Timestamp, text("0."), Body],
        vec![Timestamp, text("."), Id, Body],
        vec![Id, Timestamp, text("."), Body],
        vec![Timestamp, text("."), KeyId, Method, text("\n"), Body],
        vec![Timestamp, text("."), Method, text("."), Body],
        vec![Timestamp, text("."), Method, PathAndQuery, text("\n"), Body],
        vec![Timestamp, text("\n"), PathAndQuery, text("."), Body],
        vec![Timestamp, text("\n"), Path, Body],
        vec![Body, Timestamp],
        vec![Body, text("."), Timestamp],
    ] {
        let built = recipe(ambiguous.clone());
        assert_eq!(error(built), Some(SchemeError::Ambiguous), "{ambiguous:?}");
        assert_eq!(error(recipe(ambiguous).insecure_undelimited()), None);
    }
    for clear in [
        vec![Timestamp, text("."), Body],
        vec![BodySha256, Timestamp],
        vec![Id, text("."), Timestamp, text("."), Body],
        vec![
            Method,
            text(" "),
            PathAndQuery,
            text("\n"),
            Timestamp,
            text("\n"),
            BodySha256,
        ],
        vec![BodySha256, Timestamp, text("."), Path],
    ] {
        assert_eq!(error(recipe(clear.clone())), None, "{clear:?}");
    }
    let rfc3339 = recipe([Timestamp, text(":"), Body]);
    let rfc3339 = rfc3339.timestamp_header(name("x-timestamp"), TimeUnit::Rfc3339);
    assert_eq!(error(rfc3339), Some(SchemeError::Ambiguous));
}

#[test]
fn pitfalls_18_and_19_what_is_judged_has_to_be_signed() {
    let body = || recipe([Segment::Body]);
    assert_eq!(error(body()), Some(SchemeError::TimestampUnsigned));
    let head = recipe([Segment::Timestamp]);
    assert_eq!(error(head), Some(SchemeError::BodyUnsigned));
    let timed = || recipe([Segment::Timestamp, Segment::text("."), Segment::Body]);
    let nonce = timed().nonce_header(name("x-nonce"));
    assert_eq!(error(nonce), Some(SchemeError::NonceUnsigned));
    let label = SignatureFormat::pairs(',', "v1").timestamp("t");
    let label = HmacScheme::builder("test").signature(name("x"), label);
    let label = label.message([Segment::Body]);
    assert_eq!(error(label), Some(SchemeError::TimestampUnsigned));
}

#[test]
fn a_recipe_is_whole() {
    let bare = || HmacScheme::builder("test").message([Segment::Body]);
    assert_eq!(error(bare()), Some(SchemeError::NoSignature));
    let signed = || bare().signature(name("x-signature"), SignatureFormat::bare());
    assert_eq!(error(signed()), None);
    for unnamed in [
        Segment::Id,
        Segment::KeyId,
        Segment::Nonce,
        Segment::Timestamp,
    ] {
        let scheme = signed().message([unnamed, Segment::text("."), Segment::Body]);
        assert_eq!(error(scheme), Some(SchemeError::Unnamed));
    }
    let twice = signed().message([Segment::BodySha256, Segment::Body]);
    assert_eq!(error(twice), Some(SchemeError::RepeatedBody));
    let empty = signed().message([Segment::text(""), Segment::Body]);
    assert_eq!(error(empty), Some(SchemeError::Empty));
    let label = bare().signature(name("x"), SignatureFormat::versioned(""));
    assert_eq!(error(label), Some(SchemeError::Empty));
    let shared = signed().id_header(name("x-signature"));
    assert_eq!(error(shared), Some(SchemeError::SharedHeader));
}

#[test]
fn every_preset_is_bounded_in_both_directions() {
    for scheme in presets() {
        let Tolerance { past, future } = scheme.tolerance;
        assert!(past <= Duration::from_secs(1800), "{scheme:?}");
        assert!(future <= Duration::from_secs(300), "{scheme:?}");
    }
}
