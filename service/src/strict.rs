//! JSON into a request, strictly: an error knows the field that it is about (RFC 6901), unknown and missing fields
//! included, and an array never stands for an object (serde's derives would take one).
//!
//! It wraps a deserializer on its way down, and every visitor and access that this meets; the place is a list on the
//! stack. Errors carry their place in `Trail`, as they pass through serde's own error types, which have no room for it.

use std::cell::RefCell;
use std::fmt::{self, Display};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};

#[cfg(test)]
mod tests;

/// What is wrong with a body, and where: `None` where it is not JSON at all.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) pointer: Option<String>,
    pub(crate) message: String,
}

/// The request that `body` is.
pub(crate) fn from_slice<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, Fault> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let not_json = |error: serde_json::Error| Fault { pointer: None, message: format!("not JSON: {error}") };
    let fault = RefCell::new(None);
    match T::deserialize(Strict { inner: &mut json, trail: Trail { at: &At::Root, fault: &fault } }) {
        Ok(value) => json.end().map(|()| value).map_err(not_json),
        Err(error) => {
            // Such a fault may hide that the body is no JSON at all, which is the better answer.
            if let Err(error) = std::str::from_utf8(body) {
                return Err(Fault { pointer: None, message: format!("not JSON: {error}") });
            }
            serde_json::from_slice::<IgnoredAny>(body).map_err(not_json)?;
            let top = Fault { pointer: Some(String::new()), message: error.message };
            Err(fault.into_inner().unwrap_or(top))
        }
    }
}

/// Where in the document, from the value up to the root.
enum At<'a> {
    Root,
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Root => Ok(()),
            At::Key(up, key) => write!(f, "{up}/{}", key.replace('~', "~0").replace('/', "~1")),
            At::Index(up, index) => write!(f, "{up}/{index}"),
        }
    }
}

/// The place, and the first fault that was met (the deepest).
#[derive(Clone, Copy)]
struct Trail<'a> {
    at: &'a At<'a>,
    fault: &'a RefCell<Option<Fault>>,
}

impl Trail<'_> {
    /// Notes the place of an error of the wrapped deserializer, and takes it over.
    fn inner(self, error: impl Display) -> StrictError {
        let mut message = error.to_string();
        // The pointer says where; a line and column in a body that no one typed say nothing.
        message.truncate(message.rfind(" at line ").unwrap_or(message.len()));
        self.note(StrictError { field: None, message })
    }

    fn note(self, error: StrictError) -> StrictError {
        let mut fault = self.fault.borrow_mut();
        if fault.is_none() {
            let pointer = match &error.field {
                Some(field) => At::Key(self.at, field).to_string(),
                None => self.at.to_string(),
            };
            *fault = Some(Fault { pointer: Some(pointer), message: error.message.clone() });
        }
        error
    }

    /// Hands an error on through the wrapped deserializer.
    fn outer<E: serde::de::Error>(self, error: StrictError) -> E {
        E::custom(self.note(error).message)
    }
}

/// An error of a request's type, with the field that it names.
#[derive(Debug)]
struct StrictError {
    field: Option<String>,
    message: String,
}

impl Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StrictError {}

impl serde::de::Error for StrictError {
    fn custom<T: Display>(message: T) -> Self {
        Self { field: None, message: message.to_string() }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("there is no such field here; the fields are {}", expected.join(", "));
        Self { field: Some(field.to_owned()), message }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { field: Some(field.to_owned()), message: "this field is missing".into() }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self { field: Some(field.to_owned()), message: "this field is there twice".into() }
    }
}

struct Strict<'a, D> {
    inner: D,
    trail: Trail<'a>,
}

macro_rules! deserialize {
    ($($method:ident($($arg:ident: $type:ty),*) $object:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, StrictError> {
            let visitor = StrictVisitor { inner: visitor, trail: self.trail, object: $object };
            self.inner.$method($($arg,)* visitor).map_err(|error| self.trail.inner(error))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<'_, D> {
    type Error = StrictError;

    deserialize! {
        deserialize_any() false; deserialize_bool() false; deserialize_i8() false; deserialize_i16() false;
        deserialize_i32() false; deserialize_i64() false; deserialize_u8() false; deserialize_u16() false;
        deserialize_u32() false; deserialize_u64() false; deserialize_f32() false; deserialize_f64() false;
        deserialize_char() false; deserialize_str() false; deserialize_string() false; deserialize_bytes() false;
        deserialize_byte_buf() false; deserialize_option() false; deserialize_unit() false; deserialize_seq() false;
        deserialize_map() true; deserialize_identifier() false; deserialize_ignored_any() false;
        deserialize_unit_struct(name: &'static str) false;
        deserialize_newtype_struct(name: &'static str) false;
        deserialize_tuple(len: usize) false;
        deserialize_tuple_struct(name: &'static str, len: usize) false;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) true;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) false;
    }
}

struct StrictVisitor<'a, V> {
    inner: V,
    trail: Trail<'a>,
    object: bool,
}

macro_rules! visit {
    ($($method:ident $type:ty;)*) => {$(
        fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for StrictVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.object { f.write_str("an object") } else { self.inner.expecting(f) }
    }

    visit! {
        visit_bool bool; visit_i64 i64; visit_u64 u64; visit_str &str; visit_borrowed_str &'de str;
        visit_string String; visit_bytes &[u8]; visit_borrowed_bytes &'de [u8]; visit_byte_buf Vec<u8>;
    }

    /// `1.0` is a whole number in JSON Schema, and so to a caller who follows the document.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<V::Value, E> {
        const MORE_THAN_FITS: f64 = 18_446_744_073_709_551_616.0;
        if value.fract() == 0.0 && (0.0..MORE_THAN_FITS).contains(&value) {
            return self.inner.visit_u64(value as u64);
        }
        self.inner.visit_f64(value)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let trail = self.trail;
        self.inner.visit_some(Strict { inner, trail }).map_err(|error| trail.outer(error))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let trail = self.trail;
        self.inner.visit_newtype_struct(Strict { inner, trail }).map_err(|error| trail.outer(error))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        if self.object {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        let trail = self.trail;
        let elements = Elements { inner, trail, index: 0 };
        self.inner.visit_seq(elements).map_err(|error| trail.outer(error))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let trail = self.trail;
        let fields = Fields { inner, trail, key: String::new() };
        self.inner.visit_map(fields).map_err(|error| trail.outer(error))
    }

    // The contract's enumerations are names without content: nothing below them has a place of its own.
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(access)
    }
}

struct Elements<'a, A> {
    inner: A,
    trail: Trail<'a>,
    index: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, A> {
    type Error = StrictError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, StrictError> {
        let at = At::Index(self.trail.at, self.index);
        let trail = Trail { at: &at, ..self.trail };
        self.index += 1;
        self.inner.next_element_seed(Seed { inner: seed, trail }).map_err(|error| trail.inner(error))
    }
}

struct Fields<'a, A> {
    inner: A,
    trail: Trail<'a>,
    key: String,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = StrictError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, StrictError> {
        self.key.clear();
        let key = self.inner.next_key_seed(Key { seed, name: &mut self.key });
        let key = key.map_err(|error| self.trail.inner(error))?;
        key.transpose().map_err(|error| self.trail.note(error))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, StrictError> {
        let at = At::Key(self.trail.at, &self.key);
        let trail = Trail { at: &at, ..self.trail };
        self.inner.next_value_seed(Seed { inner: seed, trail }).map_err(|error| trail.inner(error))
    }
}

/// A value's seed that puts the strict deserializer before what it is given.
struct Seed<'a, T> {
    inner: T,
    trail: Trail<'a>,
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<'_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<T::Value, D::Error> {
        let trail = self.trail;
        self.inner.deserialize(Strict { inner, trail }).map_err(|error| trail.outer(error))
    }
}

/// A key's seed that remembers the key's text, and the type's own error about it.
struct Key<'a, K> {
    seed: K,
    name: &'a mut String,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, K> {
    type Value = Result<K::Value, StrictError>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for Key<'_, K> {
    type Value = Result<K::Value, StrictError>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        self.name.push_str(name);
        Ok(self.seed.deserialize(serde::de::value::StrDeserializer::new(name)))
    }
}
