use http::{HeaderMap, HeaderName, Method, Uri, header};

use crate::Reason;

/// A part of a message that a signature covers (RFC 9421 §2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Component {
    Authority,
    Field(HeaderName),
    Method,
    Path,
    Query,
    RequestTarget,
}

/// The head of a message, with the URI that its client asked for.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: &'a HeaderMap,
}

impl Component {
    /// Reads an identifier without parameters. Names of fields are in lower case, and others are not known.
    pub(super) fn parse(identifier: &str) -> Option<Self> {
        Some(match identifier {
            "@authority" => Self::Authority,
            "@method" => Self::Method,
            "@path" => Self::Path,
            "@query" => Self::Query,
            "@request-target" => Self::RequestTarget,
            name => {
                let field = HeaderName::from_bytes(name.as_bytes()).ok()?;
                // The signature cannot cover itself.
                let own = ["signature", "signature-input"].contains(&name);
                if own || field.as_str() != name {
                    return None;
                }
                Self::Field(field)
            }
        })
    }

    pub(super) fn identifier(&self) -> &str {
        match self {
            Self::Authority => "@authority",
            Self::Field(name) => name.as_str(),
            Self::Method => "@method",
            Self::Path => "@path",
            Self::Query => "@query",
            Self::RequestTarget => "@request-target",
        }
    }

    /// Appends this component's line to the signature base (RFC 9421 §2.5).
    pub(super) fn write(&self, head: Head<'_>, base: &mut String) -> Result<(), Reason> {
        base.push('"');
        base.push_str(self.identifier());
        base.push_str("\": ");
        match self {
            Self::Authority => base.push_str(&authority(head)?),
            Self::Field(name) => push_field(head.headers, name, base)?,
            Self::Method => base.push_str(head.method.as_str()),
            Self::Path => base.push_str(non_empty(head.uri.path())),
            Self::Query => {
                base.push('?');
                base.push_str(head.uri.query().unwrap_or_default());
            }
            Self::RequestTarget => {
                let target = head
                    .uri
                    .path_and_query()
                    .map_or("/", |target| target.as_str());
                base.push_str(target);
            }
        }
        base.push('\n');
        Ok(())
    }
}

fn non_empty(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// The host in lower case, without the scheme's own port.
fn authority(head: Head<'_>) -> Result<String, Reason> {
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str(),
        None => host_field(head.headers)?,
    };
    if host.is_empty() || host.contains('@') || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Reason::Malformed);
    }
    let host = host.to_ascii_lowercase();
    // Behind a proxy that ends TLS the scheme is not known: the port of either is left out.
    let own_ports: &[&str] = match head.uri.scheme_str() {
        Some("http") => &[":80"],
        Some("https") => &[":443"],
        _ => &[":80", ":443"],
    };
    let bare = own_ports.iter().find_map(|port| host.strip_suffix(port));
    Ok(bare.map_or_else(|| host.clone(), str::to_owned))
}

fn host_field(headers: &HeaderMap) -> Result<&str, Reason> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().ok_or(Reason::Missing)?;
    if hosts.next().is_some() {
        return Err(Reason::Malformed);
    }
    host.to_str().map_err(|_| Reason::Malformed)
}

/// All lines of a field, trimmed and joined (RFC 9421 §2.1).
fn push_field(headers: &HeaderMap, name: &HeaderName, base: &mut String) -> Result<(), Reason> {
    let mut first = true;
    for value in headers.get_all(name) {
        let value = value.to_str().map_err(|_| Reason::Malformed)?;
        if !first {
            base.push_str(", ");
        }
        base.push_str(value.trim_matches([' ', '\t']));
        first = false;
    }
    if first {
        return Err(Reason::Missing);
    }
    Ok(())
}
