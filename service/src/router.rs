//! The table of contents: which route is answered where. No logic. A new operation adds its route here, its handler
//! under `routes/`, and its feature.

use std::sync::Arc;

use axum::Router;
use filectx_openapi::{Feature, routes as paths};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::document;
use crate::routes::{delete, edit, find_paths, find_text, health, info, list, read, unknown, write};
use crate::service::Service;

/// What the service can do.
pub(crate) const FEATURES: &[Feature] = &[
    Feature::Read,
    Feature::Images,
    Feature::Multipart,
    Feature::List,
    Feature::Find,
    Feature::Edit,
    Feature::Write,
    Feature::Delete,
    Feature::Idempotency,
];

/// Every route that is documented.
pub(crate) fn documented() -> OpenApiRouter<Arc<Service>> {
    document::skeleton()
        .routes(routes!(read::read_file_context))
        .routes(routes!(list::list_directory))
        .routes(routes!(find_text::find_text))
        .routes(routes!(find_paths::find_paths))
        .routes(routes!(edit::edit_file))
        .routes(routes!(write::write_file))
        .routes(routes!(delete::delete_file))
        .routes(routes!(info::info))
        .routes(routes!(health::health))
}

/// Every route.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let (router, document) = documented().split_for_parts();
    let docs = SwaggerUi::new(paths::DOCS)
        .url(paths::OPENAPI_JSON, document::finished(document))
        .config(Config::default().try_it_out_enabled(true).validator_url("none"));
    router
        .merge(docs)
        .fallback(unknown::route)
        .method_not_allowed_fallback(unknown::method)
        .with_state(service)
}
