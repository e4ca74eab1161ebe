//! web-openapi
