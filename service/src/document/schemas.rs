//! What schemas derived of one type, field by field, cannot say: rules over several fields, how far whole numbers go,
//! that answers have no nulls, that a name this version does not know is text like the others, and names for the kinds of
//! a record, without which generated clients have none.
//!
//! What may be sent is told from what is answered by its unknown fields: in the first they are refused, in the second they
//! may come to be.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::Number;
use utoipa::openapi::schema::{
    AdditionalProperties, Discriminator, KnownFormat, Object, ObjectBuilder, OneOf, Schema, SchemaFormat,
    SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// The last strokes on every schema.
pub(super) fn finish(schemas: &mut Schemas) {
    write_file_head(schemas);
    name_records(schemas);
    for (name, schema) in schemas.iter_mut() {
        let RefOr::T(schema) = schema else { continue };
        if let Schema::OneOf(variants) = schema
            && let Some(names) = open_names(variants)
        {
            *schema = Schema::Object(names);
        }
        let rules = rules(name);
        match schema {
            Schema::Object(object) if is_sent(object) => {
                object.properties.values_mut().for_each(say_range);
                if !rules.is_empty() {
                    // Inside `allOf`, where they take nothing from the fields beside them.
                    object.extensions.get_or_insert_default().insert("allOf".to_owned(), rules.into());
                }
            }
            answered => without_nulls(answered),
        }
    }
}

/// What holds of several fields together.
fn rules(schema: &str) -> Vec<Value> {
    let one_path = || one_of(&["path", "path_base64"]);
    match schema {
        "FileRequest" => vec![
            one_path(),
            any(&[
                field("byte_range", &json!({ "type": "null" })),
                field("line_ranges", &json!({ "maxItems": 0 })),
            ]),
        ],
        "ListDirectoryRequest" | "EditFileRequest" | "DeleteFileRequest" => vec![one_path()],
        "WriteFileHead" => vec![one_path(), create_only()],
        "WriteFileRequest" => {
            vec![one_path(), create_only(), one_of(&["text_content", "binary_content"])]
        }
        "FindTextRequest" | "FindPathsRequest" => {
            vec![any(&[there("paths", "array"), there("cwd", "string")])]
        }
        _ => Vec::new(),
    }
}

/// The field is there; null stands for absent.
fn there(field: &str, kind: &str) -> Value {
    json!({ "required": [field], "properties": { field: { "type": kind } } })
}

/// The field, if it is there, is like this.
fn field(field: &str, like: &Value) -> Value {
    json!({ "properties": { field: like } })
}

fn one_of(fields: &[&str]) -> Value {
    json!({ "oneOf": fields.iter().map(|field| there(field, "string")).collect::<Vec<_>>() })
}

fn any(rules: &[Value]) -> Value {
    json!({ "anyOf": rules })
}

fn create_only() -> Value {
    any(&[
        field("create_only", &json!({ "const": false })),
        field("expected_revision", &json!({ "type": "null" })),
    ])
}

/// The part `request` of a form: what a write asks for, without content.
fn write_file_head(schemas: &mut Schemas) {
    let Some(RefOr::T(Schema::Object(whole))) = schemas.get("WriteFileRequest") else { return };
    let mut head = whole.clone();
    head.properties.retain(|name, _| !name.ends_with("_content"));
    head.description = Some("A write whose content is a part of its own.".to_owned());
    head.example = None;
    schemas.insert("WriteFileHead".to_owned(), RefOr::T(Schema::Object(head)));
}

/// Each kind of [`Record`](filectx_openapi::Record) as a schema of its own, told by `type`.
fn name_records(schemas: &mut Schemas) {
    let Some(RefOr::T(Schema::OneOf(mut record))) = schemas.remove("Record") else { return };
    let mut told = Discriminator::new("type");
    for item in &mut record.items {
        let RefOr::T(variant) = item else { continue };
        let Some(kind) = kind_of(variant) else { continue };
        let words = kind.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        let name = words.chain(["Record".to_owned()]).collect::<String>();
        let reference = Ref::from_schema_name(&name);
        told.mapping.insert(kind, reference.ref_location.clone());
        let variant = std::mem::replace(item, RefOr::Ref(reference));
        schemas.insert(name, variant);
    }
    record.discriminator = Some(told);
    schemas.insert("Record".to_owned(), RefOr::T(Schema::OneOf(record)));
}

/// The one value that `type` has in a variant.
fn kind_of(variant: &Schema) -> Option<String> {
    match variant {
        Schema::Object(object) => match object.properties.get("type")? {
            RefOr::T(Schema::Object(kind)) => match kind.enum_values.as_deref()? {
                [Value::String(kind)] => Some(kind.clone()),
                _ => None,
            },
            _ => None,
        },
        Schema::AllOf(all) => all.items.iter().find_map(|item| match item {
            RefOr::T(schema) => kind_of(schema),
            RefOr::Ref(_) => None,
        }),
        _ => None,
    }
}

fn is_sent(object: &Object) -> bool {
    matches!(object.additional_properties.as_deref(), Some(AdditionalProperties::FreeForm(false)))
}

/// A number that is sent may be as large as 64 bits hold: a wish over the limit is clipped, not refused.
fn say_range(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema
        && object.format == Some(SchemaFormat::KnownFormat(KnownFormat::Int64))
        && object.minimum.is_some()
    {
        object.format = Some(SchemaFormat::Custom("uint64".to_owned()));
        object.maximum = Some(Number::UInt(usize::MAX));
    }
}

/// In an answer a field that does not apply is absent.
fn without_nulls(schema: &mut Schema) {
    match schema {
        Schema::Object(object) => {
            for property in object.properties.values_mut() {
                match property {
                    RefOr::T(Schema::OneOf(either)) => {
                        if let Some(reference) = or_null(either) {
                            *property = RefOr::Ref(reference);
                        }
                    }
                    RefOr::T(Schema::Object(field)) => {
                        field.default = None;
                        not_null(&mut field.schema_type);
                    }
                    RefOr::T(Schema::Array(field)) => {
                        field.default = None;
                        not_null(&mut field.schema_type);
                    }
                    _ => {}
                }
            }
        }
        Schema::OneOf(OneOf { items, .. }) => items.iter_mut().for_each(within),
        Schema::AllOf(all) => all.items.iter_mut().for_each(within),
        _ => {}
    }
}

fn within(schema: &mut RefOr<Schema>) {
    if let RefOr::T(schema) = schema {
        without_nulls(schema);
    }
}

fn or_null(either: &OneOf) -> Option<Ref> {
    let mut references = either.items.iter().filter_map(|item| match item {
        RefOr::Ref(reference) => Some(reference.clone()),
        RefOr::T(_) => None,
    });
    references.next()
}

fn not_null(schema_type: &mut SchemaType) {
    if let SchemaType::Array(types) = schema_type
        && let [kind, Type::Null] = types.as_slice()
    {
        *schema_type = SchemaType::Type(kind.clone());
    }
}

/// The names of an enumeration that has room for names of later versions (`Other`): text, and no object.
fn open_names(variants: &OneOf) -> Option<Object> {
    let mut names = Vec::new();
    let mut meanings = Vec::new();
    let mut open = false;
    for variant in &variants.items {
        let RefOr::T(Schema::Object(variant)) = variant else { return None };
        match variant.enum_values.as_deref() {
            Some([Value::String(name)]) => {
                names.push(name.clone());
                meanings.push(format!("- `{name}`: {}", variant.description.as_deref().unwrap_or_default()));
            }
            _ if variant.properties.contains_key("other") => open = true,
            _ => return None,
        }
    }
    let description = [variants.description.clone().unwrap_or_default(), meanings.join("\n")].join("\n\n");
    let names = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    open.then(|| names.description(Some(description)).build())
}
