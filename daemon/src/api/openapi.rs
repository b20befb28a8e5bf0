//! The OpenAPI document, made from the route table and the schemas of the types.

use axum::response::Response;
use harness_proto::api::route::{Body, ROUTES, Route};
use harness_proto::api::schema::schemas;
use serde_json::{Map, Value, json};

use super::reject::respond;

pub(super) async fn answer() -> Response {
    respond(Ok(document()))
}

/// The document (OpenAPI 3.1).
pub(super) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "harnessd", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": schemas()},
    })
}

fn operation(route: &Route) -> Value {
    let variables = ["run", "task"].iter().filter(|name| route.path.contains(&format!("{{{name}}}")));
    let variable = |name: &&str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let query = |name: &&str| json!({"name": name, "in": "query", "required": false, "schema": {"type": "string"}});
    let parameters: Vec<Value> = variables.map(variable).chain(route.query.iter().map(query)).collect();
    let answer = match route.answer {
        "event-stream" => json!({"text/event-stream": {"schema": {"type": "string"}}}),
        "object" => json!({"application/json": {"schema": {"type": "object"}}}),
        name => json!({"application/json": {"schema": reference(name)}}),
    };
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.meaning,
        "parameters": parameters,
        "responses": {
            "200": {"description": "the answer", "content": answer},
            "default": {"description": "a refusal", "content": {"application/problem+json": {"schema": reference("Problem")}}},
        },
    });
    match route.body {
        Body::None => {}
        Body::Json(name) => {
            operation["requestBody"] = json!({"content": {"application/json": {"schema": reference(name)}}})
        }
        Body::Bytes => operation["requestBody"] = json!({"content": {"application/octet-stream": {}}}),
    }
    operation
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
