//! Algorithms on bytes: bytes in, values out. Nothing here knows a file or a request.

pub mod breaks;
pub mod encoding;
pub mod kind;
pub mod window;
