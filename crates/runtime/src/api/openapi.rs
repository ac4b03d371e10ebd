//! The OpenAPI 3 description, generated from the table of routes.

use super::route::{Answer, Parameter, ROUTES, Route};
use serde_json::{Map, Value, json};

/// Schemas of request and response bodies.
const SCHEMAS: &str = include_str!("schemas.json");

/// The description of the API.
pub fn description() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Pith",
            "description": "Operates a Pith 5G core: what the 'pith' commands do.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0.html" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{ "token": [] }],
    })
}

pub(super) fn schemas() -> Value {
    serde_json::from_str(SCHEMAS).expect("schemas.json is JSON, as a test checks")
}

fn operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let parameters: Vec<_> = in_path.chain(route.query.iter().map(parameter)).collect();
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.about,
        "description": format!("Needs the role {}.", route.role),
        "parameters": parameters,
        "responses": responses(route.answer),
    });
    if let Some(schema) = route.body {
        operation["requestBody"] = json!({ "required": true, "content": body(route, schema) });
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.about,
        "schema": { "type": parameter.kind },
    })
}

/// A POST takes one or many objects, a PUT takes one.
fn body(route: &Route, schema: &str) -> Value {
    let one = reference(schema);
    if route.method == hyper::Method::PUT {
        return json!({ "application/json": { "schema": one } });
    }
    let list = json!({ "type": "array", "items": one });
    json!({
        "application/json": { "schema": { "oneOf": [one, list] } },
        "application/x-ndjson": { "schema": { "type": "string" } },
    })
}

fn responses(answer: Answer) -> Value {
    let success = |schema: Value| json!({ "description": "Done.", "content": { "application/json": { "schema": schema } } });
    let mut responses = match answer {
        Answer::One(status, schema) => json!({ status.to_string(): success(reference(schema)) }),
        Answer::List(schema) => {
            json!({ "200": success(json!({ "type": "array", "items": reference(schema) })) })
        }
        Answer::Nothing => json!({ "204": { "description": "Done." } }),
        Answer::NothingOr(schema) => {
            json!({ "200": success(reference(schema)), "204": { "description": "Done." } })
        }
    };
    responses["default"] = json!({
        "description": "The problem and what to do about it.",
        "content": { "application/problem+json": { "schema": reference("ProblemDetails") } },
    });
    responses
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}
