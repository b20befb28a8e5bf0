//! What client and daemon say to each other over the socket (DESIGN 11).
//!
//! Routes are a table: the router, the OpenAPI document and the client all read [`route::ROUTES`]. Changes are additive only.

pub mod answer;
pub mod request;
pub mod route;
pub mod schema;
pub mod view;

/// Version of the protocol. Raised only when an older peer could misread a newer one; additions do not raise it.
pub const PROTOCOL: u32 = 1;
/// Header with `PROTOCOL VERSION` of the sender, both ways; for example `1 0.1.0`.
pub const PROTOCOL_HEADER: &str = "x-harness-protocol";
/// Header with the id of a mutation: a repeat with the same id gets the same answer.
pub const REQUEST_HEADER: &str = "x-harness-request";
/// Longest body that the daemon reads.
pub const MAX_BODY_BYTES: usize = 20 << 20;
/// Longest `tasks.json` that a run takes.
pub const MAX_PLAN_BYTES: usize = (16 << 20) - 1;

/// The value of [`PROTOCOL_HEADER`] of this build.
#[must_use]
pub fn protocol_value() -> String {
    format!("{PROTOCOL} {}", env!("CARGO_PKG_VERSION"))
}

/// What a peer said in [`PROTOCOL_HEADER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its protocol.
    pub protocol: u32,
    /// Its version.
    pub version: String,
}

impl Peer {
    /// Reads the header; none when it has another form.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let (protocol, version) = header.split_once(' ').unwrap_or((header, ""));
        Some(Self { protocol: protocol.parse().ok()?, version: version.chars().take(40).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_reads_back() {
        let peer = Peer::parse(&protocol_value());
        assert_eq!(peer, Some(Peer { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").into() }));
        assert_eq!(Peer::parse("x"), None);
    }
}
