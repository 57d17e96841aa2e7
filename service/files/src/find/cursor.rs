//! The place where a page of a search ended, as the opaque text of `truncation.next`.

use std::path::Path;

use filectx_openapi::{Base64, ItemError};

use crate::Error;

/// The form of the text; another one is not understood.
const VERSION: u8 = 1;

/// The last row of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Which of the request's roots.
    pub(crate) root: usize,
    /// The path below it.
    pub(crate) path: Vec<u8>,
    /// The line; 0 in a search of names.
    pub(crate) line: u64,
}

impl Cursor {
    pub(crate) fn encode(&self) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend((self.root as u32).to_le_bytes());
        bytes.extend(self.line.to_le_bytes());
        bytes.extend(&self.path);
        Base64::encode(&bytes)
    }

    /// Reads `after` of a request.
    pub(crate) fn decode(after: Option<&str>) -> Result<Option<Self>, ItemError> {
        let Some(text) = after else { return Ok(None) };
        let decoded = Base64::decode(text).and_then(|bytes| Self::of(&bytes));
        let unknown = "not a truncation.next of this operation; send it exactly as it came";
        decoded.map(Some).ok_or_else(|| Error::invalid_request("/after", unknown).item(Path::new("")))
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (&version, rest) = bytes.split_first()?;
        let (root, rest) = rest.split_first_chunk::<4>()?;
        let (line, path) = rest.split_first_chunk::<8>()?;
        let root = u32::from_le_bytes(*root) as usize;
        (version == VERSION).then(|| Self { root, path: path.to_vec(), line: u64::from_le_bytes(*line) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes() {
        for (root, path, line) in [(0, &b""[..], 0), (3, b"a/\xff b", u64::MAX)] {
            let cursor = Cursor { root, path: path.to_vec(), line };
            assert_eq!(Cursor::decode(Some(&cursor.encode())).unwrap(), Some(cursor));
        }
        assert_eq!(Cursor::decode(None).unwrap(), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "x", "AQ==", "AgAAAAAAAAAAAAAAAA==", "AQAAAAAAAAAA"] {
            let error = Cursor::decode(Some(text)).unwrap_err();
            assert_eq!(error.data.pointer.as_deref(), Some("/after"), "{text:?}");
        }
    }
}
