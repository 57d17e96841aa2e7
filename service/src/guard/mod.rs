//! Who may come in: the three refusals before any routing, in the contract's order (Host, Origin, token), and the
//! bound on how much is worked on at once.

pub(crate) mod load;
mod origin;
pub mod token;

use filectx_openapi::{Code, routes};
use http::{HeaderMap, Uri, header};

use crate::failure::Failure;
use token::Token;

/// Refuses a request whose Host, Origin or token is not right.
pub(crate) fn check(token: &Token, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
    origin::check(uri, headers)?;
    if is_open(uri.path()) || bears(token, headers) {
        return Ok(());
    }
    Err(Failure::new(
        Code::Unauthorized,
        "send `Authorization: Bearer TOKEN`; the token is in the service's token file, new at each start",
    ))
}

/// Whether a path is answered without the token.
fn is_open(path: &str) -> bool {
    path == routes::HEALTHZ
        || path == routes::OPENAPI_JSON
        || path.starts_with(routes::DOCS)
        || path == routes::DOCS.trim_end_matches('/')
}

fn bears(token: &Token, headers: &HeaderMap) -> bool {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (sent.next(), sent.next()) else { return false };
    let Some((scheme, rest)) = value.as_bytes().split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && token.is(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn code(path: &str, headers: &[(&'static str, &str)]) -> Option<Code> {
        let map = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_str(value).unwrap())
        });
        let mut all = HeaderMap::new();
        map.for_each(|(name, value)| {
            all.append(name, value);
        });
        let token = Token::from_text(TEXT).unwrap();
        check(&token, &path.parse().unwrap(), &all).err().map(|failure| failure.0.code)
    }

    #[test]
    fn the_token_opens_what_it_guards() {
        let host = ("host", "127.0.0.1:7");
        let bearer = format!("Bearer {TEXT}");
        let lower = format!("bearer {TEXT}");
        let (longer, basic) = (format!("{bearer}x"), format!("Basic {TEXT}"));
        let refused = Some(Code::Unauthorized);
        assert_eq!(code("/v1/info", &[host, ("authorization", &bearer)]), None);
        assert_eq!(code("/v1/info", &[host, ("authorization", &lower)]), None);
        for wrong in [&longer, &basic, TEXT, "Bearer ", "Bearer", "", &bearer[..70]] {
            assert_eq!(code("/v1/info", &[host, ("authorization", wrong)]), refused, "{wrong}");
        }
        let twice = [host, ("authorization", bearer.as_str()), ("authorization", bearer.as_str())];
        assert_eq!(code("/v1/info", &twice), refused);
        for open in
            ["/healthz", "/healthz?nonce=00", "/openapi.json", "/docs", "/docs/", "/docs/swagger-ui.css"]
        {
            assert_eq!(code(open, &[host]), None, "{open}");
        }
        for shut in ["/", "/healthz/", "/docsx", "/openapi.json/", "/v1/none", "/v1/info?token=x"] {
            assert_eq!(code(shut, &[host]), refused, "{shut}");
        }
    }

    #[test]
    fn host_and_origin_come_before_the_token() {
        assert_eq!(code("/v1/info", &[("host", "page.example")]), Some(Code::ForbiddenOrigin));
        assert_eq!(
            code("/healthz", &[("host", "localhost"), ("origin", "null")]),
            Some(Code::ForbiddenOrigin)
        );
    }
}
