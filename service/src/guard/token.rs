//! The token: 256 random bits, new at each start, in a file that only the service's user can read. It is compared in
//! constant time, proved without being sent, and never shown.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The secret of one run of the service, as lower-case hex text.
pub struct Token(Box<str>);

impl Token {
    /// A new secret.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(random_hex::<32>()?.into()))
    }

    /// The secret that `text` (64 hex digits) is.
    pub fn from_text(text: &str) -> Option<Self> {
        let hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| Self(text.into()))
    }

    /// Whether `sent` is this secret, in a time that does not depend on where they differ.
    pub(crate) fn is(&self, sent: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().zip(sent).fold(0u8, |sum, (a, b)| std::hint::black_box(sum | (a ^ b)));
        own.len() == sent.len() && differences == 0
    }

    /// The proof that the service knows the secret: lower-case hex of HMAC-SHA256, the secret's text as key, over `nonce`.
    pub fn proof(&self, nonce: &str) -> String {
        // HMAC takes keys of any length; the error cannot be.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()) else { return String::new() };
        mac.update(nonce.as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    /// Writes the secret to `path`, atomically and for this user's eyes only. A file that is there is replaced, unless
    /// others could read or change it: then something is wrong with the place, and the service does not start.
    pub fn write(&self, path: &Path) -> Result<(), TokenFileError> {
        let failed = |doing, source| TokenFileError::Io { doing, path: path.to_owned(), source };
        refuse_shared(path)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let temporary = path.with_file_name(name);
        // A run that was killed right here may have had this process id.
        let _ = fs::remove_file(&temporary);
        let written = self.write_new(&temporary).and_then(|()| fs::rename(&temporary, path));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            failed("writing", error)
        })
    }

    /// Removes the file at the end, unless a later service has put its own secret there.
    pub fn remove(&self, path: &Path) {
        if fs::read_to_string(path).is_ok_and(|text| text.trim_end() == &*self.0) {
            let _ = fs::remove_file(path);
        }
    }

    fn write_new(&self, path: &Path) -> io::Result<()> {
        let mut file = private_new(path)?;
        file.write_all(self.0.as_bytes())?;
        file.write_all(b"\n")
    }
}

/// Never the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A token file or directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The system said no.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others can get at it.
    #[error("{} is {found}; {way_out}", path.display())]
    Shared {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
        /// What to do.
        way_out: &'static str,
    },
}

fn refuse_shared(path: &Path) -> Result<(), TokenFileError> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(TokenFileError::Io { doing: "looking at", path: path.to_owned(), source }),
    };
    let shared = |found: String| {
        let way_out = "remove it, or name another --token-file";
        Err(TokenFileError::Shared { path: path.to_owned(), found, way_out })
    };
    if !meta.is_file() {
        return shared("no regular file".into());
    }
    if meta.uid() != own_uid() {
        return shared(format!("owned by uid {}", meta.uid()));
    }
    if meta.mode() & 0o077 != 0 {
        return shared(format!("open to others (mode {:04o})", meta.mode() & 0o7777));
    }
    Ok(())
}

/// The directory for token files and sockets: `$XDG_RUNTIME_DIR/filectx`, else `/tmp/filectx-UID`; made if missing, and
/// refused where another user owns it or can enter it.
pub fn runtime_directory() -> Result<PathBuf, TokenFileError> {
    let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let path = match base.filter(|path| path.is_dir()) {
        Some(base) => base.join("filectx"),
        None => PathBuf::from(format!("/tmp/filectx-{}", own_uid())),
    };
    private_directory(&path)?;
    Ok(path)
}

/// Makes `path` a directory of this user alone (0700), or fails where it is there and is none.
pub fn private_directory(path: &Path) -> Result<(), TokenFileError> {
    let failed = |doing, source| TokenFileError::Io { doing, path: path.to_owned(), source };
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed("making", error)),
        _ => {}
    }
    // Not through a link: in a directory that all may write to, a link could be another user's.
    let meta = fs::symlink_metadata(path).map_err(|error| failed("looking at", error))?;
    let found = if !meta.is_dir() {
        "no directory".to_owned()
    } else if meta.uid() != own_uid() {
        format!("owned by uid {}", meta.uid())
    } else if meta.mode() & 0o077 != 0 {
        format!("open to others (mode {:04o})", meta.mode() & 0o7777)
    } else {
        return Ok(());
    };
    let way_out =
        "it must be a directory of the service's user alone (0700); remove it, or name another place";
    Err(TokenFileError::Shared { path: path.to_owned(), found, way_out })
}

/// A new file that only this user can read.
fn private_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The uid that the service runs as.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// `N` random bytes as lower-case hex.
pub(crate) fn random_hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn tokens_differ_and_are_compared_whole() {
        let (one, two) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert!(one.is(one.0.as_bytes()) && !one.is(two.0.as_bytes()));
        assert!(
            !one.is(&one.0.as_bytes()[..63]) && !one.is(b"") && !one.is(format!("{}x", one.0).as_bytes())
        );
        assert_eq!(one.0.len(), 64);
        assert_eq!(format!("{one:?}"), "Token(..)");
    }

    #[test]
    fn the_proof_is_hmac_sha256_over_the_nonces_text() {
        // Checked with: printf 00112233445566778899aabbccddeeff | openssl dgst -sha256 -hmac "$TOKEN"
        let token = Token::from_text(&"ab".repeat(32)).unwrap();
        let proof = token.proof("00112233445566778899aabbccddeeff");
        assert_eq!(proof, "9eb5ebbd3c5dcc6a9eb65ac55f44e624d3f475dd2278f22407fd7374706c0be0");
    }

    #[test]
    fn the_file_is_private_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        for _ in 0..2 {
            let token = Token::generate().unwrap();
            token.write(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap().trim(), &*token.0);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary is left");
        Token::generate().unwrap().remove(&path);
        assert!(path.exists(), "another service's file stays");
        Token::from_text(fs::read_to_string(&path).unwrap().trim()).unwrap().remove(&path);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::generate().unwrap();
        let open = dir.path().join("open");
        fs::write(&open, "old").unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o640)).unwrap();
        let link = dir.path().join("link");
        symlink(dir.path().join("elsewhere"), &link).unwrap();
        let directory = dir.path().join("directory");
        fs::create_dir(&directory).unwrap();
        for path in [&open, &link, &directory] {
            assert!(matches!(token.write(path), Err(TokenFileError::Shared { .. })), "{path:?}");
        }
        assert_eq!(fs::read_to_string(&open).unwrap(), "old");
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn a_shared_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        private_directory(&own).unwrap();
        private_directory(&own).unwrap();
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o7777, 0o700);
        fs::set_permissions(&own, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(private_directory(&own).is_err());
        let link = dir.path().join("link");
        symlink(&own, &link).unwrap();
        assert!(private_directory(&link).is_err());
    }
}
