//! What is no route, and methods that a route does not have.

use axum::extract::Request;
use http::StatusCode;

use crate::failure::Failure;
use crate::json::drain;

/// There is nothing at this address.
pub(crate) async fn route(request: Request) -> Failure {
    refused(request, StatusCode::NOT_FOUND).await
}

/// The route has no such method.
pub(crate) async fn method(request: Request) -> Failure {
    refused(request, StatusCode::METHOD_NOT_ALLOWED).await
}

async fn refused(request: Request, status: StatusCode) -> Failure {
    let (head, mut body) = request.into_parts();
    drain(&head.headers, &mut body).await;
    Failure::of_status(status)
}
