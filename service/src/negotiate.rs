//! What the caller can take: the media type of the answer (`Accept`) and its compression (`Accept-Encoding`).

use filectx_openapi::Code;
use http::{HeaderMap, HeaderName, header};

use crate::failure::Failure;

pub(crate) const JSON: &str = "application/json";
pub(crate) const MULTIPART: &str = "multipart/mixed";

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON value.
    Json,
    /// A stream of parts.
    Multipart,
}

/// How an answer's body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Zstd,
    Gzip,
}

impl Coding {
    /// The name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }
}

/// The form that the caller prefers among those offered; JSON where it says nothing.
pub(crate) fn form(headers: &HeaderMap, multipart: bool) -> Result<Form, Failure> {
    if !headers.contains_key(header::ACCEPT) {
        return Ok(Form::Json);
    }
    let json = media_weight(headers, JSON);
    let parts = if multipart { media_weight(headers, MULTIPART) } else { 0 };
    match (json, parts) {
        (0, 0) => Err(not_acceptable(multipart)),
        (json, parts) if parts > json => Ok(Form::Multipart),
        _ => Ok(Form::Json),
    }
}

fn not_acceptable(multipart: bool) -> Failure {
    let forms = if multipart { "application/json or multipart/mixed" } else { "application/json" };
    Failure::new(Code::NotAcceptable, format!("the answer is {forms}; Accept asks for something else"))
}

/// The compression that the caller asks for; `None` where it asks for none that there is.
pub(crate) fn coding(headers: &HeaderMap) -> Option<Coding> {
    let mut best = (0, None);
    for (name, coding) in [("zstd", Coding::Zstd), ("gzip", Coding::Gzip)] {
        // `*` alone asks for nothing in particular, and so for nothing.
        let weight = items(headers, header::ACCEPT_ENCODING)
            .find(|item| name_of(item).eq_ignore_ascii_case(name))
            .map_or(0, weight);
        if weight > best.0 {
            best = (weight, Some(coding));
        }
    }
    best.1
}

/// How much `media` is wanted, in thousandths: the most specific range that covers it decides.
fn media_weight(headers: &HeaderMap, media: &str) -> u16 {
    let (kind, _) = media.split_once('/').unwrap_or((media, ""));
    let rank = |item: &str| {
        let range = name_of(item);
        match range.split_once('/') {
            _ if range.eq_ignore_ascii_case(media) => 3,
            Some((left, "*")) if left.eq_ignore_ascii_case(kind) => 2,
            Some(("*", "*")) => 1,
            _ => 0,
        }
    };
    let covering = items(headers, header::ACCEPT).map(|item| (rank(item), weight(item)));
    covering.filter(|(rank, _)| *rank > 0).max().map_or(0, |(_, weight)| weight)
}

fn items(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|item| !item.is_empty())
}

fn name_of(item: &str) -> &str {
    item.split(';').next().unwrap_or("").trim()
}

/// The `q` of an item in thousandths; 1000 where it has none, 0 where it is not a number.
fn weight(item: &str) -> u16 {
    let parameters = item.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let q = parameters
        .map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, _)| name.eq_ignore_ascii_case("q"));
    let Some((_, value)) = q else { return 1000 };
    let q = value.parse::<f32>().unwrap_or(0.0);
    if q.is_finite() { (q.clamp(0.0, 1.0) * 1000.0) as u16 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: HeaderName, value: Option<&'static str>) -> HeaderMap {
        value.map(|value| (name, HeaderValue::from_static(value))).into_iter().collect()
    }

    #[test]
    fn the_form_of_the_answer() {
        let (json, multipart) = (Some(Form::Json), Some(Form::Multipart));
        let cases = [
            (None, json, json),
            (Some("*/*"), json, json),
            (Some("application/json"), json, json),
            (Some("Application/JSON; charset=utf-8"), json, json),
            (Some("application/*;q=0.1"), json, json),
            (Some("text/html, */*;q=0.1"), json, json),
            (Some("multipart/mixed"), None, multipart),
            (Some("multipart/mixed, application/json;q=0.5"), json, multipart),
            (Some("multipart/mixed;q=0.5, application/json"), json, json),
            (Some("multipart/mixed, */*;q=0.2"), json, multipart),
            (Some("multipart/*"), None, multipart),
            (Some("image/png"), None, None),
            (Some("application/json;q=0"), None, None),
            (Some("*/*, application/json;q=0"), None, json.map(|_| Form::Multipart)),
            (Some(""), None, None),
        ];
        for (accept, alone, with_multipart) in cases {
            let headers = headers(header::ACCEPT, accept);
            assert_eq!(form(&headers, false).ok(), alone, "{accept:?}");
            assert_eq!(form(&headers, true).ok(), with_multipart, "{accept:?} with multipart");
        }
    }

    #[test]
    fn the_compression_of_the_answer() {
        let cases = [
            (None, None),
            (Some("gzip"), Some(Coding::Gzip)),
            (Some("gzip, deflate, br, zstd"), Some(Coding::Zstd)),
            (Some("zstd;q=0.5, gzip"), Some(Coding::Gzip)),
            (Some("gzip;q=0"), None),
            (Some("gzip;q=0.000, zstd;q=0"), None),
            (Some("GZIP;Q=0.3"), Some(Coding::Gzip)),
            (Some("identity"), None),
            (Some("*"), None),
            (Some("gzip;q=x"), None),
        ];
        for (accept, expected) in cases {
            assert_eq!(coding(&headers(header::ACCEPT_ENCODING, accept)), expected, "{accept:?}");
        }
    }
}
