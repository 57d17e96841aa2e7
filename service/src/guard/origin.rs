//! The refusal of web pages: a request must name a loopback Host, and an Origin must be the same host and port. So
//! neither a page of another site nor a name rebound to 127.0.0.1 gets an answer from here.

use filectx_openapi::Code;
use http::{HeaderMap, Uri, header};

use crate::failure::Failure;

const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Refuses a foreign Host, and an Origin that is not the Host.
pub(crate) fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => loopback(host.as_bytes(), 80),
        _ => None,
    };
    let Some(host) = host else { return Err(foreign("Host must be 127.0.0.1, localhost or [::1], once")) };
    // A target in absolute form (`GET http://name/ HTTP/1.1`) names a host, too.
    if uri.authority().is_some_and(|authority| loopback(authority.as_str().as_bytes(), 80) != Some(host)) {
        return Err(foreign("the request's target names another host than Host"));
    }
    let same = |origin: &http::HeaderValue| parse_origin(origin.as_bytes()) == Some(host);
    if headers.get_all(header::ORIGIN).iter().all(same) {
        return Ok(());
    }
    Err(foreign(
        "Origin, when sent, must be the same host and port as Host; pages of other sites get nothing here",
    ))
}

fn foreign(message: &str) -> Failure {
    Failure::new(Code::ForbiddenOrigin, message)
}

/// The loopback name (as its place in [`LOOPBACK`]) and the port that `authority` stands for.
fn loopback(authority: &[u8], default_port: u16) -> Option<(usize, u16)> {
    let authority = std::str::from_utf8(authority).ok()?;
    LOOPBACK.iter().enumerate().find_map(|(index, name)| {
        let (host, rest) = authority.split_at_checked(name.len())?;
        if !host.eq_ignore_ascii_case(name) {
            return None;
        }
        let Some(port) = rest.strip_prefix(':') else {
            return rest.is_empty().then_some((index, default_port));
        };
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| port.parse().ok()).flatten().map(|port| (index, port))
    })
}

fn parse_origin(origin: &[u8]) -> Option<(usize, u16)> {
    match origin.strip_prefix(b"http://") {
        Some(authority) => loopback(authority, 80),
        None => loopback(origin.strip_prefix(b"https://")?, 443),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn passes(uri: &str, host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        host.map(|host| headers.append(header::HOST, HeaderValue::from_str(host).unwrap()));
        origin.map(|origin| headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap()));
        check(&uri.parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn only_loopback_names_are_hosts() {
        for good in ["127.0.0.1", "127.0.0.1:1", "localhost:65535", "LOCALHOST", "[::1]", "[::1]:80"] {
            assert!(passes("/", Some(good), None), "{good}");
        }
        let bad = [
            "",
            "127.0.0.2",
            "127.0.0.1.",
            "127.0.0.1:",
            "127.0.0.1:x",
            "127.0.0.1:65536",
            "127.0.0.1:+1",
            "localhost.",
            "127.0.0.1.page.example",
            "localhost.page.example:80",
            "page.example",
            "0x7f.1",
            "::1",
            "[::1]x",
            "a@localhost",
            "localhost:80:80",
            "127.0.0.1, localhost",
            " localhost",
        ];
        for bad in bad {
            assert!(!passes("/", Some(bad), None), "{bad}");
        }
        assert!(!passes("/", None, None));
    }

    #[test]
    fn an_origin_is_the_host() {
        let host = Some("127.0.0.1:7000");
        assert!(passes("/", host, Some("http://127.0.0.1:7000")));
        assert!(passes("/", Some("localhost"), Some("http://localhost")));
        assert!(passes("/", Some("localhost:80"), Some("http://localhost")));
        let bad = [
            "null",
            "",
            "http://localhost:7000",
            "http://127.0.0.1:7001",
            "http://127.0.0.1",
            "https://127.0.0.1",
            "http://page.example:7000",
            "http://127.0.0.1:7000/",
            "http://127.0.0.1:7000.page.example",
            "127.0.0.1:7000",
        ];
        for bad in bad {
            assert!(!passes("/", host, Some(bad)), "{bad}");
        }
    }

    #[test]
    fn an_absolute_target_names_the_same_host() {
        assert!(passes("http://127.0.0.1:7/x", Some("127.0.0.1:7"), None));
        assert!(!passes("http://page.example/x", Some("127.0.0.1:7"), None));
        assert!(!passes("http://localhost:7/x", Some("127.0.0.1:7"), None));
    }

    #[test]
    fn a_second_host_or_origin_is_refused() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost"));
        assert!(check(&Uri::from_static("/"), &headers).is_ok());
        headers.append(header::ORIGIN, HeaderValue::from_static("http://page.example"));
        assert!(check(&Uri::from_static("/"), &headers).is_err());
        headers.remove(header::ORIGIN);
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(check(&Uri::from_static("/"), &headers).is_err());
    }
}
