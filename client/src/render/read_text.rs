//! The words of a reading view: numbered lines, a summary of what is no text, and how a stopped window goes on.
//! Notes stand in brackets at the start of a line, where no numbered line of a file can stand.

use filectx_openapi::{ByteRange, FileContext, LineEnding, LineRange};

use super::read::{FileView, Place, Position, ReadView, Stop, StopLimit};
use super::{Paint, Style, counted, grouped, limit_name};

/// A place to go on from, for the skin to name the call or command that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoOn<'a> {
    /// With these lines.
    Lines(&'a [LineRange]),
    /// With these bytes.
    Bytes(ByteRange),
}

/// The view as text. `go_on` gives the exact call that goes on with a file of the request.
pub fn read_text(view: &ReadView, style: Style, go_on: &dyn Fn(u64, &GoOn<'_>) -> String) -> String {
    read_texts(view, style, go_on).concat()
}

/// The view as a text for each of its files.
pub fn read_texts(view: &ReadView, style: Style, go_on: &dyn Fn(u64, &GoOn<'_>) -> String) -> Vec<String> {
    let several = view.files.len() > 1;
    let text = |(at, file): (usize, &FileView)| {
        let mut out = String::new();
        if several {
            let gap = if at == 0 { "" } else { "\n" };
            let name = style.paint(Paint::Bold, &format!("==> {} <==", style.name(&file.about.file_name)));
            out.push_str(&format!("{gap}{name}\n"));
        }
        blocks(file, style, &mut out);
        let notes = notes(file, style).into_iter().chain(stopped(file, go_on));
        for note in notes {
            out.push_str(&style.paint(Paint::Dim, &format!("[{note}]")));
            out.push('\n');
        }
        out
    };
    view.files.iter().enumerate().map(text).collect()
}

fn blocks(file: &FileView, style: Style, out: &mut String) {
    for (at, block) in file.blocks.iter().enumerate() {
        if at > 0 {
            out.push_str(&style.paint(Paint::Dim, "--"));
            out.push('\n');
        }
        for (number, line) in (block.first.unwrap_or(1)..).zip(&block.lines) {
            if block.first.is_some() {
                out.push_str(&style.paint(Paint::Dim, &format!("{number:>6}")));
                out.push('\t');
            }
            out.push_str(&style.line(line));
            out.push('\n');
        }
    }
}

fn notes(file: &FileView, style: Style) -> Vec<String> {
    let about = &file.about;
    let is_text = about.encoding.is_some();
    let mut notes = Vec::new();
    if about.not_modified == Some(true) {
        notes.push(format!("not modified, still at revision {}", about.revision));
    } else if about.image.is_some() {
        notes.push(image(about));
    } else if !is_text {
        notes.push(binary(about));
    } else if about.file_size_bytes == 0 || about.line_count == Some(0) {
        notes.push("an empty file".into());
    } else if file.past_end {
        notes.push(past_end(about));
    }
    if let Some(path) = &about.real_path {
        notes.push(format!("a link to {}", style.name(path)));
    }
    if let Some(encoding) = about.encoding.as_deref().filter(|encoding| *encoding != "utf-8") {
        notes.push(format!("encoding {encoding}"));
    }
    if about.lossy == Some(true) {
        notes.push("lossy: bytes that are no text are shown as U+FFFD, and do not match in an edit".into());
    }
    if about.line_ending == Some(LineEnding::Mixed) {
        notes.push("mixed line ends: LF and CRLF".into());
    }
    if about.lone_cr == Some(true) {
        notes.push("lone CRs, which end no line".into());
    }
    if file.reaches_end && about.ends_with_newline == Some(false) {
        notes.push("no line end at the end of the file".into());
    }
    if about.changed_during_read == Some(true) {
        notes.push("the file changed while it was read".into());
    }
    notes
}

fn mime(about: &FileContext) -> &str {
    about.mime_type.as_deref().unwrap_or("application/octet-stream")
}

fn binary(about: &FileContext) -> String {
    let size = counted(about.file_size_bytes, "byte");
    format!("binary: {}, {size}, revision {}", mime(about), about.revision)
}

fn image(about: &FileContext) -> String {
    let side = |side: Option<u64>| side.map_or("?".into(), |side| side.to_string());
    let Some(image) = &about.image else { return binary(about) };
    let (width, height) = (side(image.source_width), side(image.source_height));
    let size = counted(image.source_bytes, "byte");
    let frames = image.frames.filter(|frames| *frames > 1);
    let frames = frames.map_or(String::new(), |frames| format!(", {}", counted(frames, "frame")));
    format!("image: {}, {width}x{height} pixels{frames}, {size}, revision {}", mime(about), about.revision)
}

fn past_end(about: &FileContext) -> String {
    match about.line_count.filter(|_| about.byte_range_start.is_none()) {
        Some(count) => format!("past the end: the file has {}", counted(count, "line")),
        None => format!("past the end: the file has {}", counted(about.file_size_bytes, "byte")),
    }
}

/// Which limit stopped the window, how much remains, and the call that goes on.
fn stopped(file: &FileView, go_on: &dyn Fn(u64, &GoOn<'_>) -> String) -> Option<String> {
    let stop = file.stop.as_ref()?;
    let call = |next: &GoOn<'_>| go_on(file.request_index, next);
    let bytes = |offset| GoOn::Bytes(ByteRange { offset, length: None });
    let by = limit(stop);
    let remain = match stop.remaining {
        Some(1) => "1 line remains".into(),
        Some(lines) => format!("{} remain", counted(lines, "line")),
        None => "more lines may follow".into(),
    };
    let note = match stop.place {
        Place::BetweenLines => {
            format!("stopped by {by}; {remain}; go on: {}", call(&GoOn::Lines(&stop.rest)))
        }
        Place::InBytes(Position::Byte(byte)) => format!(
            "stopped by {by} at byte {byte} of {}; go on: {}",
            grouped(file.about.file_size_bytes),
            call(&bytes(byte))
        ),
        Place::InBytes(Position::AfterText(_)) => format!("stopped by {by}; raise it to see more"),
        Place::InsideLine(line, position) => {
            let inside = match position {
                Position::Byte(byte) => format!("go on inside the line: {}", call(&bytes(byte))),
                Position::AfterText(_) => "raise it to see more of the line".into(),
            };
            let behind = match stop.rest.as_slice() {
                [] => String::new(),
                rest => format!("; behind it {remain}: {}", call(&GoOn::Lines(rest))),
            };
            format!("stopped by {by} inside line {line}; {inside}{behind}")
        }
    };
    Some(note)
}

fn limit(stop: &Stop) -> String {
    match stop.limit {
        StopLimit::Lines(lines) => format!("limit ({})", counted(lines, "line")),
        StopLimit::FileChars(chars) => format!("max_chars ({} a file)", counted(chars, "character")),
        StopLimit::CallChars(chars) => format!("max_chars ({} a call)", counted(chars, "character")),
        StopLimit::Service(name) => format!("{} of the read", limit_name(name)),
    }
}
