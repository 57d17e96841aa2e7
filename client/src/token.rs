//! The token: a secret that is read from a file only its owner can read, and that no log or error ever shows.

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::ConfigError;

const MAX_TOKEN_BYTES: u64 = 4096;

/// The service's token.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// The token with this text; a line end at its end is dropped.
    pub fn new(text: &str) -> Result<Self, ConfigError> {
        let text = text.trim_end_matches(['\n', '\r']);
        let fits = !text.is_empty() && text.len() as u64 <= MAX_TOKEN_BYTES;
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::Token);
        }
        Ok(Self(text.into()))
    }

    /// The token in this file; a file that others may read is refused.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let failed = |reason: String| ConfigError::TokenFile { path: path.display().to_string(), reason };
        // Looked at before it is opened: opening a pipe would wait for a writer.
        let metadata = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if !metadata.is_file() {
            return Err(failed("this is no regular file".into()));
        }
        if let Some(mode) = too_open(&metadata) {
            return Err(failed(format!(
                "others may read it (mode {mode:04o}); `chmod 600` it, and start the service anew if it was read"
            )));
        }
        let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        file.take(MAX_TOKEN_BYTES + 2)
            .read_to_string(&mut text)
            .map_err(|error| failed(error.to_string()))?;
        Self::new(&text).map_err(|error| failed(error.to_string()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether `proof` shows that its maker knows the token: compared in constant time.
    pub(crate) fn is_proved_by(&self, nonce: &str, proof: &str) -> bool {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()) else { return false };
        mac.update(nonce.as_bytes());
        unhex(proof).is_some_and(|bytes| mac.verify_slice(&bytes).is_ok())
    }
}

#[cfg(unix)]
fn too_open(metadata: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = metadata.mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn too_open(_metadata: &std::fs::Metadata) -> Option<u32> {
    None
}

/// `bytes` bytes from the system's source of randomness, as lower-case hex.
pub(crate) fn random_hex(bytes: usize) -> std::io::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_visible_ascii_and_never_shown() {
        let token = Token::new("s3cret-token\n").unwrap();
        assert_eq!(token.text(), "s3cret-token");
        assert!(!format!("{token:?}").contains("s3cret"));
        for bad in ["", "\n", "two words", "tab\tbed", "gr\u{fc}n", &"x".repeat(5000)] {
            assert!(matches!(Token::new(bad), Err(ConfigError::Token)), "{bad:?}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "abc\n").unwrap();
        for (mode, taken) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o644, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let token = Token::from_file(&path);
            assert_eq!(token.is_ok(), taken, "{mode:o}");
            if let Err(error) = token {
                assert!(error.to_string().contains("chmod 600"), "{error}");
                assert!(!error.to_string().contains("abc"), "{error}");
            }
        }
        assert!(Token::from_file(dir.path()).is_err());
        assert!(Token::from_file(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_proof_is_the_hmac_of_the_nonce() {
        // RFC 4231, test case 2.
        let token = Token::new("Jefe").unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"00ff");
        let proof: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(token.is_proved_by("00ff", &proof));
        for (nonce, proof) in [("00fe", proof.as_str()), ("00ff", ""), ("00ff", "zz"), ("00ff", &proof[..62])]
        {
            assert!(!token.is_proved_by(nonce, proof), "{nonce} {proof}");
        }
    }

    #[test]
    fn random_text_has_its_length_and_differs() {
        let (one, two) = (random_hex(32).unwrap(), random_hex(32).unwrap());
        assert_eq!(one.len(), 64);
        assert_ne!(one, two);
    }
}
