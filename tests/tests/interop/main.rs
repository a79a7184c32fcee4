//! What the senders' own libraries sign is verified here, what is signed here they verify, and neither takes what the
//! other would not.

mod hostile;
mod ours;
mod peer;
mod rotation;
mod round_trip;
mod stricter;

use std::collections::BTreeMap;

use steadfast::signature::HmacScheme;

use self::peer::{Peers, Runtime};

/// When everything is signed, unless something else is said. The libraries are told that it is now.
const NOW: u64 = 1_700_000_000;

/// The id of a message, for those who sign one.
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";

/// Good for all of them: Standard Webhooks decodes it, the others take it as it is.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

const BODY: &[u8] = br#"{"test": 2432232314}"#;

/// A library, and the scheme that it speaks.
#[derive(Clone, Copy)]
struct Vendor {
    runtime: Runtime,
    package: &'static str,
    scheme: fn() -> HmacScheme,
    signature: &'static str,
    timestamp: Option<&'static str>,
    /// The header of the id, where that is signed.
    id: Option<&'static str>,
}

const STANDARD_NODE: Vendor = Vendor {
    runtime: Runtime::Node,
    package: "standardwebhooks",
    scheme: HmacScheme::standard_webhooks,
    signature: "webhook-signature",
    timestamp: Some("webhook-timestamp"),
    id: Some("webhook-id"),
};
const STANDARD_PYTHON: Vendor = Vendor {
    runtime: Runtime::Python,
    ..STANDARD_NODE
};
const SVIX: Vendor = Vendor {
    runtime: Runtime::Python,
    package: "svix",
    scheme: HmacScheme::svix,
    signature: "svix-signature",
    timestamp: Some("svix-timestamp"),
    id: Some("svix-id"),
};
const STRIPE: Vendor = Vendor {
    runtime: Runtime::Node,
    package: "stripe",
    scheme: HmacScheme::stripe,
    signature: "stripe-signature",
    timestamp: Some("stripe-signature"),
    id: None,
};
const GITHUB: Vendor = Vendor {
    runtime: Runtime::Node,
    package: "@octokit/webhooks-methods",
    scheme: HmacScheme::github,
    signature: "x-hub-signature-256",
    timestamp: None,
    id: None,
};
const SLACK: Vendor = Vendor {
    runtime: Runtime::Python,
    package: "slack_sdk",
    scheme: HmacScheme::slack,
    signature: "x-slack-signature",
    timestamp: Some("x-slack-request-timestamp"),
    id: None,
};

const VENDORS: [Vendor; 6] = [STANDARD_NODE, STANDARD_PYTHON, SVIX, STRIPE, GITHUB, SLACK];

/// What goes over the wire.
#[derive(Clone, Debug)]
struct Message {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Message {
    /// Changes a header that is there.
    fn edit(&mut self, name: &str, edit: impl FnOnce(&str) -> String) {
        let value = self
            .headers
            .get_mut(name)
            .unwrap_or_else(|| panic!("{name}"));
        *value = edit(value);
    }
}

/// Both answers to the same message, which have to be the same.
async fn verdict(
    peers: &mut Peers,
    vendor: &Vendor,
    secret: &str,
    now: u64,
    message: &Message,
) -> bool {
    let theirs = peers.verify(vendor, secret, now, message);
    let ours = ours::verify(vendor, &[secret], now, message).await;
    let (runtime, package) = (vendor.runtime, vendor.package);
    assert_eq!(
        ours, theirs,
        "{package} in {runtime:?} thinks otherwise of {message:?}"
    );
    ours
}
