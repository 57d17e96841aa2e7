//! `filectx read --save-dir`: binaries, and images made fit, become files in a directory. Their names come from the names
//! on the host, made harmless; a file that is there stays as it is, and the new one takes a number.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use filectx_client::render::counted;
use filectx_openapi::{FileContext, ImageFormat, ReadFileContextResponse};
use serde_json::Value;

use super::exit::Failure;

/// The longest name, in bytes, before a number and an ending.
const LONGEST: usize = 200;
/// So many files of one name are enough.
const MOST: u32 = 10_000;

/// A file that was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saved {
    /// Which context of the response.
    at: usize,
    path: PathBuf,
    what: String,
}

impl Saved {
    /// What is told of it.
    pub(crate) fn sentence(&self) -> String {
        format!("saved {} ({})", self.path.display(), self.what)
    }
}

/// Writes what has bytes, and takes them out of the response.
pub(crate) fn save(dir: &Path, response: &mut ReadFileContextResponse) -> Result<Vec<Saved>, Failure> {
    let failed = |path: &Path, error: &std::io::Error| Failure::Io(format!("{}: {error}", path.display()));
    let mut saved = Vec::new();
    for (at, context) in response.file_contexts.iter_mut().enumerate() {
        let Some(content) = context.binary_content.take() else { continue };
        if saved.is_empty() {
            DirBuilder::new().recursive(true).create(dir).map_err(|error| failed(dir, &error))?;
        }
        let name = name(context);
        let path = write(dir, &name, &content.0).map_err(|error| failed(&dir.join(&name), &error))?;
        saved.push(Saved { at, path, what: what(context, content.0.len()) });
    }
    Ok(saved)
}

/// The response as the contract writes it, with `saved_to` in the contexts whose bytes were written.
pub(crate) fn told(response: &ReadFileContextResponse, saved: &[Saved]) -> Result<Value, Failure> {
    let mut told = serde_json::to_value(response).map_err(|error| Failure::Io(error.to_string()))?;
    for file in saved {
        told["file_contexts"][file.at]["saved_to"] = file.path.to_string_lossy().into();
    }
    Ok(told)
}

fn what(context: &FileContext, bytes: usize) -> String {
    let mime = context.mime_type.as_deref().unwrap_or("application/octet-stream");
    let size = counted(bytes as u64, "byte");
    match context.image.as_ref().and_then(|image| image.width.zip(image.height)) {
        Some((width, height)) => format!("{mime}, {width}x{height} pixels, {size}"),
        None => format!("{mime}, {size}"),
    }
}

/// Writes a new file: `name`, or the first that is free of `name` with a number before its ending.
fn write(dir: &Path, name: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
    let (stem, ending) = match name.rfind('.').filter(|at| *at > 0) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    for number in 1..MOST {
        let numbered = if number == 1 { name.to_owned() } else { format!("{stem}-{number}{ending}") };
        let path = dir.join(numbered);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(bytes).map(|()| path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// The last part of the file's name, without what could lead elsewhere or deceive; an image's with the ending of its format.
fn name(context: &FileContext) -> String {
    let last = context.file_name.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    let harmless =
        |c: char| if c.is_control() || c == '\\' || c == '\u{fffd}' || is_invisible(c) { '_' } else { c };
    let mut name: String = last.chars().map(harmless).collect();
    let end = (0..=LONGEST.min(name.len())).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    name.truncate(end);
    // A name of dots alone is a directory; one that begins with a hyphen is taken for a flag.
    if name.chars().all(|c| c == '.') {
        name = "file".to_owned();
    }
    if name.starts_with('-') {
        name.insert(0, '_');
    }
    let endings: &[&str] = match context.image.as_ref().and_then(|image| image.format.as_ref()) {
        Some(ImageFormat::Png) => &["png"],
        Some(ImageFormat::Jpeg) => &["jpg", "jpeg"],
        Some(ImageFormat::Gif) => &["gif"],
        Some(ImageFormat::Webp) => &["webp"],
        _ => return name,
    };
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    if !endings.iter().any(|known| ending.as_deref() == Some(*known)) {
        name = format!("{name}.{}", endings[0]);
    }
    name
}

/// Marks that turn the direction of writing, and what takes no room.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use filectx_openapi::{Base64, ImageInfo};

    use super::*;

    fn context(file_name: &str, format: Option<ImageFormat>) -> FileContext {
        let image = format.map(|format| ImageInfo {
            format: Some(format.clone()),
            width: Some(2),
            height: Some(1),
            source_format: format,
            source_width: None,
            source_height: None,
            source_bytes: 0,
            resized: None,
            re_encoded: None,
            frames: None,
            scale: None,
        });
        let binary_content = Some(Base64(file_name.as_bytes().to_vec()));
        FileContext { file_name: file_name.into(), image, binary_content, ..FileContext::default() }
    }

    #[test]
    fn names_are_harmless() {
        let long = "é".repeat(300);
        for (file_name, format, expect) in [
            ("/srv/a.bin", None, "a.bin"),
            ("/srv/a.png", Some(ImageFormat::Png), "a.png"),
            ("/srv/a.JPEG", Some(ImageFormat::Jpeg), "a.JPEG"),
            ("/srv/a.bmp", Some(ImageFormat::Png), "a.bmp.png"),
            ("/srv/photo", Some(ImageFormat::Webp), "photo.webp"),
            ("/srv/..", None, "file"),
            ("/", None, "file"),
            ("", None, "file"),
            ("/a/-rf", None, "_-rf"),
            ("/a/two\nlines\x1b[31m\u{202e}", None, "two_lines_[31m_"),
            ("/a/..\\..\\x", None, ".._.._x"),
            ("/a/.hidden", None, ".hidden"),
            (&long, None, &"é".repeat(100)),
        ] {
            assert_eq!(name(&context(file_name, format)), expect, "{file_name:?}");
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.bin"), "mine").unwrap();
        std::os::unix::fs::symlink("elsewhere", dir.path().join("link")).unwrap();
        let contexts = ["/x/a.bin", "/y/a.bin", "/x/link", "/x/plain", "/y/plain"];
        let mut response = ReadFileContextResponse {
            file_contexts: contexts.iter().map(|name| context(name, None)).collect(),
            failed_files: Vec::new(),
        };
        let saved = save(dir.path(), &mut response).unwrap();
        let names: Vec<_> =
            saved.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a-2.bin", "a-3.bin", "link-2", "plain", "plain-2"]);
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!((read("a.bin"), read("a-3.bin")), ("mine".to_owned(), "/y/a.bin".to_owned()));
        assert!(!dir.path().join("elsewhere").exists());
        let told = told(&response, &saved).unwrap();
        assert!(told["file_contexts"][3]["saved_to"].as_str().unwrap().ends_with("/plain"));
        assert!(told["file_contexts"][3].get("binary_content").is_none());
    }
}
