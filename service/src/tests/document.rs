//! The document: the same as the published one, whole, and true to the routes that there are.

use std::fs;
use std::path::Path;

use filectx_openapi::routes;
use serde_json::Value;

use super::{ask, door, get, post};

fn document() -> Value {
    serde_json::to_value(crate::document()).unwrap()
}

/// `UPDATE=1` writes it anew.
#[test]
fn the_published_document_is_the_services() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/openapi.json");
    let text = crate::document().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "{} is not up to date; UPDATE=1 rewrites it", path.display());
}

#[tokio::test]
async fn the_service_serves_it() {
    let served = ask(&door(), get(routes::OPENAPI_JSON)).await.json();
    assert_eq!(served, document());
    assert_eq!(served["openapi"].as_str().map(|version| &version[..3]), Some("3.1"));
}

#[test]
fn every_operation_says_what_goes_in_and_what_comes_out() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let of = format!("{method} {path}");
            assert!(operation["summary"].is_string() && operation["description"].is_string(), "{of}");
            assert!(
                operation["responses"]["200"]["content"]["application/json"]["schema"].is_object(),
                "{of}"
            );
            let refusals =
                operation["responses"].as_object().unwrap().iter().filter(|(status, _)| *status != "200");
            for (status, refusal) in refusals {
                let schema = &refusal["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/Problem", "{of} {status}");
            }
            if method == "post" {
                let reference =
                    operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
                let name = reference.unwrap().rsplit('/').next().unwrap();
                let schema = &document["components"]["schemas"][name];
                assert!(schema["example"].is_object(), "{of}: an example to press");
                assert_eq!(
                    schema["additionalProperties"],
                    Value::Bool(false),
                    "{of}: unknown fields are refused"
                );
            }
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn the_token_is_asked_for_where_it_is_needed() {
    let document = document();
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert!(document["security"][0]["token"].is_array());
    assert_eq!(document["paths"][routes::HEALTHZ]["get"]["security"], serde_json::json!([{}]));
}

/// What derived schemas would say wrongly, and a generated client would be poor by.
#[test]
fn schemas_say_what_holds() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        assert!(schema["properties"]["other"].is_null(), "{name}: a name that is not known is text");
        let sent = schema["additionalProperties"] == Value::Bool(false);
        for (field, like) in schema["properties"].as_object().into_iter().flatten() {
            let null = like["type"].as_array().is_some() || like["oneOf"].is_array();
            assert!(sent || !null, "{name}.{field}: an answer has no null");
        }
    }
    let names = ["read", "images", "multipart", "list", "find", "edit", "write", "delete", "idempotency"];
    assert_eq!(schemas["Feature"]["enum"], serde_json::json!(names));
    assert_eq!(schemas["FindTextRequest"]["properties"]["max_results"]["maximum"], u64::MAX);
    assert_eq!(schemas["Row"]["properties"]["line"]["format"], "int64");
    assert_eq!(
        schemas["FileRequest"]["allOf"].as_array().map(Vec::len),
        Some(2),
        "rules over several fields"
    );
    assert_eq!(schemas["WriteFileHead"]["properties"]["text_content"], Value::Null);
    let kinds = schemas["Record"]["discriminator"]["mapping"].as_object().unwrap();
    assert_eq!(kinds.len(), schemas["Record"]["oneOf"].as_array().unwrap().len());
}

/// Under some of its names the service would be taken for a public one, and its document sent to a validator elsewhere.
#[tokio::test]
async fn the_page_has_no_validator_elsewhere() {
    let page = ask(&door(), get("/docs/swagger-initializer.js")).await;
    let text = String::from_utf8_lossy(&page.body).replace(' ', "");
    assert!(text.contains(r#""validatorUrl":"none""#), "{text}");
}

/// The examples work when they are pressed on a fresh machine: none is refused as ill-formed.
#[tokio::test]
async fn the_examples_are_well_formed_requests() {
    let (document, door) = (document(), door());
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(reference) =
            item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str()
        else {
            continue;
        };
        let changes = [routes::EDIT_FILE, routes::WRITE_FILE, routes::DELETE_FILE].contains(&path.as_str());
        let mut example = document.pointer(&reference[1..]).unwrap()["example"].clone();
        if changes {
            // Not to touch the machine's files; what it says is refused where it would not be understood.
            example["path"] = "/nowhere/filectx-example".into();
            example["create_parents"] = path.contains("write").then_some(false).into();
            example.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        }
        let answered = ask(&door, post(path, example.to_string())).await;
        let expected = if changes { 404 } else { 200 };
        assert_eq!(answered.status, expected, "{path}: {}", String::from_utf8_lossy(&answered.body));
    }
}
