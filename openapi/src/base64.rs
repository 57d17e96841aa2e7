//! Bytes that travel as base64 text in JSON (RFC 4648, standard alphabet, padded).

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// What base64 is, bits that stand for nothing being zero.
const PATTERN: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// Bytes, written as base64 text in JSON.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl Base64 {
    /// The base64 text of `bytes`.
    pub fn encode(bytes: &[u8]) -> String {
        base64_simd::STANDARD.encode_to_string(bytes)
    }

    /// The bytes that `text` stands for, `None` where it is not base64.
    pub fn decode(text: &str) -> Option<Vec<u8>> {
        base64_simd::STANDARD.decode_to_vec(text).ok()
    }
}

impl Base64 {
    /// Appends them as JSON does, without the copies that a serialiser takes.
    pub fn push_json(&self, json: &mut Vec<u8>) {
        json.reserve(base64_simd::STANDARD.encoded_length(self.0.len()) + 3);
        json.push(b'"');
        base64_simd::STANDARD.encode_append(&self.0, json);
        json.push(b'"');
    }
}

impl From<Vec<u8>> for Base64 {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({} bytes)", self.0.len())
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Base64 has nothing to escape: as a raw value it is copied once instead of being searched for quotes.
        let mut quoted = Vec::new();
        self.push_json(&mut quoted);
        let quoted = String::from_utf8(quoted).map_err(serde::ser::Error::custom)?;
        serde_json::value::RawValue::from_string(quoted)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Base64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 text (standard alphabet, padded)")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Base64, E> {
                Base64::decode(text)
                    .map(Base64)
                    .ok_or_else(|| E::custom("not base64 (standard alphabet, padded)"))
            }
        }
        deserializer.deserialize_str(Text).map_err(D::Error::custom)
    }
}

impl PartialSchema for Base64 {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        let object: Object = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .content_encoding("base64")
            .pattern(Some(PATTERN))
            .description(Some("Bytes as base64 (RFC 4648, standard alphabet, padded)."))
            .build();
        utoipa::openapi::schema::Schema::Object(object).into()
    }
}

impl ToSchema for Base64 {}
