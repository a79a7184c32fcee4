//! The formats in use.

use std::{borrow::Cow, time::Duration};

use http::HeaderName;

use super::{
    builder::HmacSchemeBuilder, format::SignatureFormat, scheme::HmacScheme, segment::Segment,
};
use crate::{Algorithm, Encoding, KeyCodec, TimeUnit, Tolerance};

const fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

/// Most senders sign the body and nothing else.
fn body(scheme: &'static str, header: &'static str, format: SignatureFormat) -> HmacSchemeBuilder {
    HmacScheme::builder(scheme)
        .signature(name(header), format)
        .message([Segment::Body])
}

/// Timestamp, delimiter, body.
fn timed(scheme: &'static str, delimiter: &'static str) -> HmacSchemeBuilder {
    HmacScheme::builder(scheme).message([
        Segment::Timestamp,
        Segment::text(delimiter),
        Segment::Body,
    ])
}

fn built(builder: HmacSchemeBuilder) -> HmacScheme {
    builder.build().expect("tests build every preset")
}

const fn seconds(past: u64, future: u64) -> Tolerance {
    Tolerance::new(Duration::from_secs(past), Duration::from_secs(future))
}

/// Event schemes. Where an id is not signed, `Verified` says so.
impl HmacScheme {
    /// BOTIX: `X-Botix-Signature: sha256=<hex>` over the body. Id: `X-Botix-Request-Id`, not signed.
    #[must_use]
    pub fn botix() -> Self {
        let format = SignatureFormat::prefixed("sha256=");
        built(body("botix", "x-botix-signature", format).id_header(name("x-botix-request-id")))
    }

    /// `X-Webhook-Signature: sha256=<hex>` over the body; bare hex is read too. Id: `X-Webhook-Id`, not signed.
    #[must_use]
    pub fn webhook_signature() -> Self {
        let format = SignatureFormat::optional_prefix("sha256=");
        let scheme = body("webhook_signature", "x-webhook-signature", format);
        built(scheme.id_header(name("x-webhook-id")))
    }

    /// Standard Webhooks: `webhook-signature: v1,<base64>` over `id.timestamp.body`, ±300 s; secrets are `whsec_…`.
    /// Several signatures may stand there, and those of other versions are passed over. Id: `webhook-id`, signed.
    ///
    /// With feature `ed25519` also `v1a`, with `whpk_…` and `whsk_…` keys.
    #[must_use]
    pub fn standard_webhooks() -> Self {
        built(standard(
            "standard_webhooks",
            "webhook-signature",
            "webhook-timestamp",
            "webhook-id",
        ))
    }

    /// Svix: Standard Webhooks in headers that begin with `svix-`; those that begin with `webhook-` are read where
    /// there is no `svix-signature`.
    #[must_use]
    pub fn svix() -> Self {
        let scheme = standard("svix", "svix-signature", "svix-timestamp", "svix-id");
        built(scheme.also_headers(
            name("webhook-signature"),
            Some(name("webhook-timestamp")),
            Some(name("webhook-id")),
        ))
    }

    /// Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>` over `timestamp.body`, ±300 s. The secret is taken as it is,
    /// `whsec_` included. The id stands in the body.
    #[must_use]
    pub fn stripe() -> Self {
        let format = SignatureFormat::pairs(',', "v1").timestamp("t");
        built(
            timed("stripe", ".")
                .signature(name("stripe-signature"), format)
                .timestamp_unit(TimeUnit::Seconds),
        )
    }

    /// GitHub: `X-Hub-Signature-256: sha256=<hex>` over the body. Id: `X-GitHub-Delivery`, not signed.
    #[must_use]
    pub fn github() -> Self {
        let format = SignatureFormat::prefixed("sha256=");
        built(body("github", "x-hub-signature-256", format).id_header(name("x-github-delivery")))
    }

    /// Slack: `X-Slack-Signature: v0=<hex>` over `v0:timestamp:body`, ±300 s. No id.
    #[must_use]
    pub fn slack() -> Self {
        built(v0(
            "slack",
            "x-slack-signature",
            "x-slack-request-timestamp",
        ))
    }

    /// Zoom: `x-zm-signature: v0=<hex>` over `v0:timestamp:body`, ±300 s. No id.
    #[must_use]
    pub fn zoom() -> Self {
        built(v0("zoom", "x-zm-signature", "x-zm-request-timestamp"))
    }

    /// Shopify: `X-Shopify-Hmac-SHA256: <base64>` over the body. Id: `X-Shopify-Webhook-Id`, not signed.
    #[must_use]
    pub fn shopify() -> Self {
        let scheme = body("shopify", "x-shopify-hmac-sha256", SignatureFormat::bare());
        built(
            scheme
                .encoding(Encoding::Base64)
                .id_header(name("x-shopify-webhook-id")),
        )
    }

    /// Paddle: `Paddle-Signature: ts=<seconds>;h1=<hex>` over `timestamp:body`, ±5 s. The id stands in the body.
    #[must_use]
    pub fn paddle() -> Self {
        let format = SignatureFormat::pairs(';', "h1").timestamp("ts");
        built(
            timed("paddle", ":")
                .signature(name("paddle-signature"), format)
                .timestamp_unit(TimeUnit::Seconds)
                .tolerance(seconds(5, 5)),
        )
    }

    /// Facebook, Instagram, WhatsApp: `X-Hub-Signature-256: sha256=<hex>` over the body. No id. The handshake
    /// (`hub.challenge`) is not signed.
    #[must_use]
    pub fn meta() -> Self {
        let format = SignatureFormat::prefixed("sha256=");
        built(body("meta", "x-hub-signature-256", format))
    }

    /// Linear: `Linear-Signature: <hex>` over the body. Id: `Linear-Delivery`, not signed.
    ///
    /// The time of signing is in the body (`webhookTimestamp`), where the handler has to look: the header beside it is
    /// not signed, and not read.
    #[must_use]
    pub fn linear() -> Self {
        let scheme = body("linear", "linear-signature", SignatureFormat::bare());
        built(scheme.id_header(name("linear-delivery")))
    }

    /// Dropbox: `X-Dropbox-Signature: <hex>` over the body. No id. The handshake (`?challenge=`) is not signed.
    #[must_use]
    pub fn dropbox() -> Self {
        built(body(
            "dropbox",
            "x-dropbox-signature",
            SignatureFormat::bare(),
        ))
    }

    /// Lemon Squeezy: `X-Signature: <hex>` over the body. No id.
    #[must_use]
    pub fn lemon_squeezy() -> Self {
        built(body(
            "lemon_squeezy",
            "x-signature",
            SignatureFormat::bare(),
        ))
    }

    /// Intercom: `X-Hub-Signature: sha1=<hex>` over the body, HMAC-SHA1. The id stands in the body.
    #[must_use]
    pub fn intercom() -> Self {
        let format = SignatureFormat::prefixed("sha1=");
        built(body("intercom", "x-hub-signature", format).algorithm(Algorithm::HmacSha1))
    }

    /// Square: `x-square-hmacsha256-signature: <base64>` over the public URL of the endpoint and the body. The id
    /// stands in the body.
    ///
    /// `url` is exactly what is registered with Square: what a proxy says of it is not asked.
    #[must_use]
    pub fn square(url: impl Into<Cow<'static, str>>) -> Self {
        let url = url.into();
        let mut message = vec![Segment::Body];
        if !url.is_empty() {
            message.insert(0, Segment::Text(url));
        }
        let format = SignatureFormat::bare();
        built(
            Self::builder("square")
                .signature(name("x-square-hmacsha256-signature"), format)
                .message(message)
                .encoding(Encoding::Base64),
        )
    }

    /// Vercel: `x-vercel-signature: <hex>` over the body, HMAC-SHA1. The id stands in the body.
    #[must_use]
    pub fn vercel() -> Self {
        let scheme = body("vercel", "x-vercel-signature", SignatureFormat::bare());
        built(scheme.algorithm(Algorithm::HmacSha1))
    }

    /// WooCommerce: `X-WC-Webhook-Signature: <base64>` over the body. Id: `X-WC-Webhook-Delivery-ID`, not signed.
    #[must_use]
    pub fn woocommerce() -> Self {
        let scheme = body(
            "woocommerce",
            "x-wc-webhook-signature",
            SignatureFormat::bare(),
        );
        built(
            scheme
                .encoding(Encoding::Base64)
                .id_header(name("x-wc-webhook-delivery-id")),
        )
    }

    /// Webflow: `x-webflow-signature: <hex>` over `timestamp:body`, milliseconds, ±300 s. No id.
    #[must_use]
    pub fn webflow() -> Self {
        built(
            timed("webflow", ":")
                .signature(name("x-webflow-signature"), SignatureFormat::bare())
                .timestamp_header(name("x-webflow-timestamp"), TimeUnit::Millis),
        )
    }

    /// WorkOS: `WorkOS-Signature: t=<milliseconds>, v1=<hex>` over `timestamp.body`, ±180 s. The id stands in the body.
    #[must_use]
    pub fn workos() -> Self {
        let format = SignatureFormat::pairs(',', "v1").timestamp("t");
        built(
            timed("workos", ".")
                .signature(name("workos-signature"), format)
                .timestamp_unit(TimeUnit::Millis)
                .tolerance(seconds(180, 180)),
        )
    }

    /// ElevenLabs: `ElevenLabs-Signature: t=<seconds>,v0=<hex>` over `timestamp.body`, 1800 s back, 300 s ahead. No id.
    #[must_use]
    pub fn elevenlabs() -> Self {
        let format = SignatureFormat::pairs(',', "v0").timestamp("t");
        built(
            timed("elevenlabs", ".")
                .signature(name("elevenlabs-signature"), format)
                .timestamp_unit(TimeUnit::Seconds)
                .tolerance(seconds(1800, 300)),
        )
    }

    /// `PagerDuty`: `X-PagerDuty-Signature: v1=<hex>,v1=<hex>` over the body. The id stands in the body.
    #[must_use]
    pub fn pagerduty() -> Self {
        let format = SignatureFormat::pairs(',', "v1");
        built(body("pagerduty", "x-pagerduty-signature", format))
    }

    /// Discord: `X-Signature-Ed25519: <hex>` over timestamp and body, ±300 s. No id. Keys are the public key's hex.
    ///
    /// Nothing stands between timestamp and body, which is harmless only as long as bodies begin with no digit.
    #[cfg(feature = "ed25519")]
    #[must_use]
    pub fn discord() -> Self {
        built(
            Self::builder("discord")
                .signature(name("x-signature-ed25519"), SignatureFormat::bare())
                .timestamp_header(name("x-signature-timestamp"), TimeUnit::Seconds)
                .message([Segment::Timestamp, Segment::Body])
                .algorithm(Algorithm::Ed25519)
                .key_codec(KeyCodec::Hex)
                .insecure_undelimited(),
        )
    }
}

/// Schemes of API requests.
impl HmacScheme {
    /// Signed API requests (S02): `X-Key-Id`, `X-Timestamp` (milliseconds, ±30 s), `X-Nonce` and `X-Signature: <hex>`
    /// over the lines `v1`, key id, timestamp, nonce, method, path with query, and the hex of the body's SHA-256.
    #[must_use]
    pub fn payments() -> Self {
        let line = || Segment::text("\n");
        built(
            Self::builder("payments")
                .signature(name("x-signature"), SignatureFormat::bare())
                .timestamp_header(name("x-timestamp"), TimeUnit::Millis)
                .tolerance(seconds(30, 30))
                .key_id_header(name("x-key-id"))
                .nonce_header(name("x-nonce"))
                .message([
                    Segment::text("v1\n"),
                    Segment::KeyId,
                    line(),
                    Segment::Timestamp,
                    line(),
                    Segment::Nonce,
                    line(),
                    Segment::Method,
                    line(),
                    Segment::PathAndQuery,
                    line(),
                    Segment::BodySha256,
                ]),
        )
    }

    /// Coinbase Exchange: `CB-ACCESS-SIGN: <base64>` with `CB-ACCESS-KEY` and `CB-ACCESS-TIMESTAMP` over timestamp,
    /// method, path with query and body, ±30 s; secrets are base64. The passphrase is the caller's to add.
    ///
    /// Nothing stands between the pieces: a signature of a path and a body is also one of a longer path and a shorter
    /// body. A format of one's own should not look like this.
    #[must_use]
    pub fn coinbase() -> Self {
        built(
            Self::builder("coinbase")
                .signature(name("cb-access-sign"), SignatureFormat::bare())
                .timestamp_header(name("cb-access-timestamp"), TimeUnit::Seconds)
                .key_id_header(name("cb-access-key"))
                .message(request_line())
                .tolerance(seconds(30, 30))
                .encoding(Encoding::Base64)
                .key_codec(KeyCodec::Base64)
                .insecure_undelimited(),
        )
    }

    /// OKX: `OK-ACCESS-SIGN: <base64>` with `OK-ACCESS-KEY` and `OK-ACCESS-TIMESTAMP` (RFC 3339) over timestamp, method,
    /// path with query and body, ±30 s. The passphrase is the caller's to add.
    ///
    /// Nothing stands between the pieces: see [`coinbase`](Self::coinbase).
    #[must_use]
    pub fn okx() -> Self {
        built(
            Self::builder("okx")
                .signature(name("ok-access-sign"), SignatureFormat::bare())
                .timestamp_header(name("ok-access-timestamp"), TimeUnit::Rfc3339)
                .key_id_header(name("ok-access-key"))
                .message(request_line())
                .tolerance(seconds(30, 30))
                .encoding(Encoding::Base64)
                .insecure_undelimited(),
        )
    }
}

fn request_line() -> [Segment; 4] {
    [
        Segment::Timestamp,
        Segment::Method,
        Segment::PathAndQuery,
        Segment::Body,
    ]
}

fn standard(
    scheme: &'static str,
    signature: &'static str,
    timestamp: &'static str,
    id: &'static str,
) -> HmacSchemeBuilder {
    let format = SignatureFormat::versioned("v1");
    #[cfg(feature = "ed25519")]
    let format = format.also_algorithm("v1a", Algorithm::Ed25519);
    HmacScheme::builder(scheme)
        .signature(name(signature), format)
        .timestamp_header(name(timestamp), TimeUnit::Seconds)
        .id_header(name(id))
        .message([
            Segment::Id,
            Segment::text("."),
            Segment::Timestamp,
            Segment::text("."),
            Segment::Body,
        ])
        .encoding(Encoding::Base64)
        .key_codec(KeyCodec::Whsec)
}

fn v0(scheme: &'static str, signature: &'static str, timestamp: &'static str) -> HmacSchemeBuilder {
    HmacScheme::builder(scheme)
        .signature(name(signature), SignatureFormat::prefixed("v0="))
        .timestamp_header(name(timestamp), TimeUnit::Seconds)
        .message([
            Segment::text("v0:"),
            Segment::Timestamp,
            Segment::text(":"),
            Segment::Body,
        ])
}
