//! The OpenAPI document: what no route says (title, security, how to use it). The routes add themselves (`router.rs`).

use std::sync::Arc;

use filectx_openapi::Problem;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use crate::router;
use crate::service::Service;

mod schemas;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "filectx",
        description = "File context for coding agents: batch reads, listings, searches and exact edits of a host's files.\n\n\
            **To try it here**: press *Authorize* and paste the token, the one line of the service's token file (its place is in \
            the line that `filectxd --ready-json` prints). The examples work on any Linux host.\n\n\
            Lines end at LF and count from 1. Nothing is cut in silence: `truncation` names the limit and where to go on. A \
            refusal is a Problem (RFC 9457); programs branch on its `code`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "/", description = "This service")),
    tags(
        (name = "files", description = "Operations on the host's files."),
        (name = "service", description = "The service itself."),
    ),
    security(("token" = [])),
    components(schemas(Problem)),
    modifiers(&Token),
)]
struct Skeleton;

struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The line in the service's token file; new at each start."))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// The document before the routes.
pub(crate) fn skeleton() -> OpenApiRouter<Arc<Service>> {
    OpenApiRouter::with_openapi(Skeleton::openapi())
}

/// The last strokes, once the routes are in.
pub(crate) fn finished(mut document: Document) -> Document {
    document.info.version = "1".to_owned();
    if let Some(components) = &mut document.components {
        schemas::finish(&mut components.schemas);
    }
    document
}

/// The document.
pub fn document() -> Document {
    finished(router::documented().into_openapi())
}
