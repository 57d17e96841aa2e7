//! Names as they go over the wire: text, lossy where a name is not UTF-8, with the exact bytes beside it then.

use crate::Base64;

/// A path's or name's text; bytes that are not UTF-8 appear as U+FFFD.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exact bytes in base64, where the text of [`lossy`] cannot carry them; else `None`.
pub fn lossy_base64(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).is_err().then(|| Base64::encode(bytes))
}
