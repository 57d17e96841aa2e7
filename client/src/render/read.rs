//! What a reader is shown of a batch: which lines, what stopped them, and where to go on. Values only; the words are
//! in `read_text.rs`.

use filectx_openapi::{
    FileContext, FileRequest, LimitName, LineBreaks, LineRange, ReadFileContextRequest,
    ReadFileContextResponse,
};

use super::lines;
use super::wanted::{Wanted, lines_in};

/// Characters that may be shown, line numbers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of one file.
    pub file: u64,
    /// Of the whole call.
    pub call: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { file: 16_000, call: 64_000 }
    }
}

impl Budget {
    /// The budget with another share of each file; a call can always show one file.
    #[must_use]
    pub fn with_file(file: u64) -> Self {
        Self { file, call: Self::default().call.max(file) }
    }
}

/// What stopped a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopLimit {
    /// `limit`: the lines that the reader asked for at most.
    Lines(u64),
    /// `max_chars`: the characters of one file.
    FileChars(u64),
    /// The characters of the whole call.
    CallChars(u64),
    /// A limit of the service or of the request.
    Service(LimitName),
}

/// Where a window was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between two lines.
    BetweenLines,
    /// Inside this line.
    InsideLine(u64, Position),
    /// Inside a byte range.
    InBytes(Position),
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// This byte of the file.
    Byte(u64),
    /// Behind this many bytes of UTF-8 text: which byte of the file that is, only the service can tell (see
    /// [`ReadView::questions`]).
    AfterText(u64),
}

/// That a window was stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// By what.
    pub limit: StopLimit,
    /// Where.
    pub place: Place,
    /// The wanted lines behind that place.
    pub rest: Vec<LineRange>,
    /// How many lines that are, when it is known.
    pub remaining: Option<u64>,
}

/// A run of consecutive lines, or a piece of a byte range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of the first line; `None` in a byte range, whose lines have no numbers.
    pub first: Option<u64>,
    /// The lines, without their line ends.
    pub lines: Vec<String>,
}

/// What is shown of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileView {
    /// Which file of the request.
    pub request_index: u64,
    /// The lines.
    pub blocks: Vec<Block>,
    /// The first context without its text: what is known of the file.
    pub about: FileContext,
    /// Whether a range lay beyond the end.
    pub past_end: bool,
    /// Whether the file's last line is among those shown, to its end.
    pub reaches_end: bool,
    /// What stopped the window, if anything did.
    pub stop: Option<Stop>,
}

/// What is shown of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadView {
    /// The files that were read, in the order of the request.
    pub files: Vec<FileView>,
}

/// Characters that are left.
struct Room {
    budget: Budget,
    call_left: u64,
    left: u64,
}

impl ReadView {
    /// Chooses what fits. `wanted` has an element for each file of the request.
    pub fn new(
        response: ReadFileContextResponse,
        wanted: &[Wanted],
        breaks: LineBreaks,
        budget: Budget,
    ) -> Self {
        let whole = Wanted::default();
        let mut call_left = budget.call;
        let mut files: Vec<FileView> = Vec::new();
        let mut contexts = response.file_contexts.into_iter().peekable();
        while let Some(first) = contexts.next() {
            let index = first.request_index;
            let mut of_file = vec![first];
            while let Some(context) = contexts.next_if(|context| context.request_index == index) {
                of_file.push(context);
            }
            let wanted = usize::try_from(index).ok().and_then(|index| wanted.get(index)).unwrap_or(&whole);
            let most = budget.file.min(call_left);
            let mut room = Room { budget, call_left, left: most };
            files.push(file_view(of_file, wanted, breaks, &mut room));
            call_left -= most - room.left;
        }
        Self { files }
    }

    /// The requests that tell at which byte a line was stopped, where only the service can; the answers go to
    /// [`ReadView::learn`]. `request` is the one that was answered.
    pub fn questions(&self, request: &ReadFileContextRequest) -> Vec<(usize, ReadFileContextRequest)> {
        let question = |(at, view): (usize, &FileView)| {
            let (shown, line_ranges) = match view.stop.as_ref()?.place {
                Place::InsideLine(line, Position::AfterText(shown)) => {
                    (shown, vec![LineRange { start: line, end: Some(line) }])
                }
                Place::InBytes(Position::AfterText(shown)) => (shown, Vec::new()),
                _ => return None,
            };
            let file = request.files.get(usize::try_from(view.request_index).ok()?)?.clone();
            let file = FileRequest { line_ranges, if_none_match: None, ..file };
            let (files, max_file_bytes) = (vec![file], Some(shown));
            let question =
                ReadFileContextRequest { files, max_file_bytes, count_lines: Some(false), ..request.clone() };
            Some((at, question))
        };
        self.files.iter().enumerate().filter_map(question).collect()
    }

    /// Takes in the answer to the question about `files[at]`.
    pub fn learn(&mut self, at: usize, answer: &ReadFileContextResponse) {
        let next_byte = answer.file_contexts.first().and_then(|context| context.truncation?.next_byte);
        let place = self.files.get_mut(at).and_then(|view| Some(&mut view.stop.as_mut()?.place));
        let (Some(byte), Some(place)) = (next_byte, place) else { return };
        match place {
            Place::InsideLine(_, position) | Place::InBytes(position) => *position = Position::Byte(byte),
            Place::BetweenLines => {}
        }
    }
}

fn file_view(
    mut contexts: Vec<FileContext>,
    wanted: &Wanted,
    breaks: LineBreaks,
    room: &mut Room,
) -> FileView {
    let (mut blocks, mut stopped) = (Vec::new(), None);
    let mut done = 0;
    for context in &contexts {
        let Some(text) = context.text_content.as_deref() else { continue };
        let piece = fit(text, context.line_range_start, breaks, room, blocks.is_empty());
        let lines = piece.lines.len() as u64;
        if let Some(first) = context.line_range_start.filter(|_| lines > 0) {
            done = first + lines - 1;
        }
        if lines > 0 {
            blocks.push(Block { first: context.line_range_start, lines: piece.lines });
        }
        stopped = piece.stopped.map(|stopped| stopped.place(context, text, done));
        if stopped.is_some() {
            break;
        }
    }
    let count = contexts.iter().find_map(|context| context.line_count);
    let past_end = contexts.iter().any(|context| context.past_end == Some(true));
    let truncation = contexts.iter().find_map(|context| context.truncation);
    let about = contexts.first_mut().map(std::mem::take).unwrap_or_default();
    let about = FileContext { text_content: None, line_count: count, truncation, ..about };
    let is_text = !blocks.is_empty() || stopped.is_some() || truncation.is_some();
    let by_bytes = about.byte_range_start.is_some() && about.line_range_start.is_none();
    let rest = if is_text && !by_bytes { wanted.rest(done, count) } else { Vec::new() };

    let chars = if room.call_left < room.budget.file {
        StopLimit::CallChars(room.budget.call)
    } else {
        StopLimit::FileChars(room.budget.file)
    };
    let by_service = truncation.map(|truncation| match truncation.next_byte {
        Some(byte) if by_bytes => (truncation.limit, Place::InBytes(Position::Byte(byte))),
        Some(byte) => (truncation.limit, Place::InsideLine(done, Position::Byte(byte))),
        None => (truncation.limit, Place::BetweenLines),
    });
    let stopped = match (stopped, by_service, wanted.limit()) {
        (Some(place), _, _) => Some((chars, place)),
        (None, Some((limit, place)), _) => Some((StopLimit::Service(limit), place)),
        (None, None, Some(limit)) => Some((StopLimit::Lines(limit), Place::BetweenLines)),
        (None, None, None) => None,
    };
    let stopped = stopped.filter(|(_, place)| !rest.is_empty() || *place != Place::BetweenLines);
    let remaining = count.map(|count| lines_in(&rest, count));
    let stop = stopped.map(|(limit, place)| Stop { limit, place, rest, remaining });
    let reaches_end = stop.is_none() && done > 0 && count == Some(done);
    FileView { request_index: about.request_index, blocks, about, past_end, reaches_end, stop }
}

/// What fits of a text.
struct Piece {
    lines: Vec<String>,
    stopped: Option<Stopped>,
}

/// That it does not fit wholly: how many bytes of the text come before the place where it stopped.
enum Stopped {
    BetweenLines,
    InsideLine { line_bytes: usize, text_bytes: usize },
    InBytes { text_bytes: usize },
}

/// Takes lines as long as there is room. Only a line that no window could hold is cut, and only where a window begins.
fn fit(text: &str, first: Option<u64>, breaks: LineBreaks, room: &mut Room, begins: bool) -> Piece {
    let mut shown = Vec::new();
    for (number, (at, line)) in (first.unwrap_or(1)..).zip(lines(text, breaks)) {
        let around = if first.is_some() { gutter(number) + 1 } else { 1 };
        let cost = around + line.chars().count() as u64;
        if cost <= room.left {
            room.left -= cost;
            shown.push(line.to_owned());
            continue;
        }
        let alone_too_long = begins && shown.is_empty() && cost > room.budget.file;
        let space = usize::try_from(room.left.saturating_sub(around)).unwrap_or(usize::MAX);
        if (first.is_some() && !alone_too_long) || space == 0 {
            let stopped =
                if first.is_some() { Stopped::BetweenLines } else { Stopped::InBytes { text_bytes: at } };
            return Piece { lines: shown, stopped: Some(stopped) };
        }
        let part: String = line.chars().take(space).collect();
        let (line_bytes, text_bytes) = (part.len(), at + part.len());
        room.left = 0;
        shown.push(part);
        let stopped = if first.is_some() {
            Stopped::InsideLine { line_bytes, text_bytes }
        } else {
            Stopped::InBytes { text_bytes }
        };
        return Piece { lines: shown, stopped: Some(stopped) };
    }
    Piece { lines: shown, stopped: None }
}

impl Stopped {
    /// Where in the file that is; `line` is the last line shown.
    fn place(&self, context: &FileContext, text: &str, line: u64) -> Place {
        match *self {
            Stopped::BetweenLines => Place::BetweenLines,
            Stopped::InsideLine { line_bytes, text_bytes } => {
                Place::InsideLine(line, position(context, text, text_bytes, line_bytes))
            }
            Stopped::InBytes { text_bytes } => {
                Place::InBytes(position(context, text, text_bytes, text_bytes))
            }
        }
    }
}

/// The byte of the file behind the first `text_bytes` of this text, where that can be told.
fn position(context: &FileContext, text: &str, text_bytes: usize, ask_bytes: usize) -> Position {
    let is_utf8 = context.encoding.as_deref() == Some("utf-8") && context.lossy != Some(true);
    match (context.byte_range_start, context.byte_range_end) {
        (Some(start), _) if text_bytes == 0 => Position::Byte(start),
        // Counted from the end: a BOM at the start is not in the text.
        (_, Some(end)) if is_utf8 => Position::Byte(end.saturating_sub((text.len() - text_bytes) as u64)),
        _ => Position::AfterText(ask_bytes as u64),
    }
}

/// The width of a line number, with what sets it apart.
pub(super) fn gutter(line: u64) -> u64 {
    u64::from(line.max(1).ilog10() + 1).max(6) + 1
}
