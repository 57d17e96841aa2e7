//! Where the service is: a loopback port or a Unix socket. Nothing else can be named, so nothing else is ever asked.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::ConfigError;

/// Where the service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A loopback port.
    Port {
        /// A literal loopback address.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Socket(PathBuf),
}

impl Target {
    /// The target that a URL names. `localhost` becomes the literal `127.0.0.1`: a name could lead elsewhere.
    pub fn from_url(url: &str) -> Result<Self, ConfigError> {
        let refused = |reason: &str| ConfigError::Url { url: without_secrets(url), reason: reason.into() };
        let uri: http::Uri = url.parse().map_err(|_| refused("this is no URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(refused("only http:// is spoken, on loopback, where nothing can listen in"));
        }
        let authority = uri.authority().ok_or_else(|| refused("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("a URL carries no secrets; the token belongs in its file"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(refused("it has a path; only the address is wanted"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let address = if host.eq_ignore_ascii_case("localhost") { "127.0.0.1" } else { host };
        let address: IpAddr = address.parse().map_err(|_| refused("the host is no loopback address"))?;
        if !address.is_loopback() {
            return Err(refused("the host is no loopback address"));
        }
        let port = authority.port_u16().ok_or_else(|| refused("it names no port"))?;
        Ok(Target::Port { address, port })
    }

    /// What comes before a route in a URL. The host of a socket is only for the `Host` header.
    pub(crate) fn base(&self) -> String {
        match self {
            Target::Port { .. } => self.to_string(),
            Target::Socket(_) => "http://127.0.0.1".into(),
        }
    }

    /// The value of the `Host` header., where the request is written by ourselves.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn host_header(&self) -> String {
        self.base().trim_start_matches("http://").to_owned()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Port { address: IpAddr::V6(address), port } => write!(f, "http://[{address}]:{port}"),
            Target::Port { address, port } => write!(f, "http://{address}:{port}"),
            Target::Socket(path) => write!(f, "unix socket {}", path.display()),
        }
    }
}

fn without_secrets(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}..{}", &url[..scheme + 3], &url[at..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_a_target() {
        for (url, base) in [
            ("http://127.0.0.1:4711", "http://127.0.0.1:4711"),
            ("http://127.0.0.1:4711/", "http://127.0.0.1:4711"),
            ("http://localhost:80", "http://127.0.0.1:80"),
            ("http://LOCALHOST:80", "http://127.0.0.1:80"),
            ("http://[::1]:4711", "http://[::1]:4711"),
        ] {
            assert_eq!(Target::from_url(url).unwrap().base(), base, "{url}");
        }
        for url in [
            "",
            "4711",
            "127.0.0.1:4711",
            "https://127.0.0.1:4711",
            "http://127.0.0.1",
            "http://0.0.0.0:4711",
            "http://192.168.1.2:4711",
            "http://example.org:4711",
            "http://localhost.example.org:4711",
            "http://127.0.0.1:4711/v1",
            "http://127.0.0.1:4711/?token=x",
            "http://me:geheim@127.0.0.1:4711",
        ] {
            let error = Target::from_url(url).unwrap_err().to_string();
            assert!(error.contains("http://127.0.0.1:4711 (ssh -L"), "{url}: {error}");
            assert!(!error.contains("geheim"), "{error}");
        }
    }
}
