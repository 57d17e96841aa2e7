//! Globs, matched one path component at a time, so that a walk knows at each directory which of them can still match
//! below it (the others are not entered) and which of them spell a name out (that is consent to hidden names).
//!
//! `*` and `?` stay inside a component and count characters, `**` spans components, `[a-z]`, `[!a]` and `{a,b}` as
//! usual, `\` escapes. NFC and NFD names match either form. No disk here: the walk is in `disk/walk.rs`.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The most alternatives that the braces of one glob may stand for.
const ALTERNATIVES: usize = 1_000;

/// A glob that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GlobError {
    /// Where, in bytes.
    pub(crate) offset: usize,
    /// Why.
    pub(crate) detail: &'static str,
}

/// A set of globs; a path matches when one of them does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Globs {
    ways: Vec<Way>,
}

/// One glob without braces.
#[derive(Clone, Debug)]
struct Way {
    steps: Vec<Step>,
    only_directories: bool,
    absolute: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// `**`: any number of components.
    AnyDepth,
    /// A component without wildcards, in NFC.
    Literal(String),
    /// A component with wildcards.
    Wild(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    AnyChar,
    AnyChars,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// What is left to match at a directory: which step of which glob comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trail(Vec<(u32, u32)>);

impl Trail {
    /// Whether nothing below the directory can match.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.is_empty()
    }
}

/// A name as globs compare it: lossy where it is not UTF-8, in NFC.
pub(crate) fn comparable(name: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(name) {
        text if text.is_ascii() || is_nfc(&text) => text,
        text => Cow::Owned(text.nfc().collect()),
    }
}

impl Globs {
    pub(crate) fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Adds a glob: with a slash on the path from the root, without one on the name, at any depth.
    pub(crate) fn add(&mut self, glob: &str) -> Result<(), GlobError> {
        if glob.is_empty() {
            return Err(GlobError { offset: 0, detail: "the glob is empty" });
        }
        let on_name = !glob.trim_end_matches('/').contains('/');
        for text in alternatives(glob)? {
            let way = Way::parse(&text, on_name)?;
            self.ways.push(way);
        }
        Ok(())
    }

    /// Adds names that stand one below the other, at any depth.
    pub(crate) fn add_names<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let literal = |name: &str| Step::Literal(comparable(name.as_bytes()).into_owned());
        let steps: Vec<_> = std::iter::once(Step::AnyDepth).chain(names.map(literal)).collect();
        self.ways.push(Way { steps, only_directories: false, absolute: false });
    }

    /// Lets globs that name a directory (`dir/`) match all that is below it.
    pub(crate) fn below_directories(mut self) -> Self {
        for way in self.ways.iter_mut().filter(|way| way.only_directories) {
            way.only_directories = false;
            way.push(Step::AnyDepth);
        }
        self
    }

    /// What is left to match at the root whose absolute path is `root`.
    pub(crate) fn start(&self, root: &[u8]) -> Trail {
        let mut trail = Trail::default();
        for (index, way) in self.ways.iter().enumerate() {
            let mut own = Trail::default();
            self.push(&mut own, index as u32, 0);
            if way.absolute {
                let components = root.split(|&b| b == b'/').filter(|name| !name.is_empty());
                let below = components.fold(own.clone(), |trail, name| self.enter(&trail, &comparable(name)));
                // Absolute, but not below this root: then it can only mean the root itself, as in an ignore file.
                if !below.is_dead() {
                    own = below;
                }
            }
            trail.0.append(&mut own.0);
        }
        trail
    }

    /// What is left to match one directory further down.
    pub(crate) fn enter(&self, at: &Trail, name: &str) -> Trail {
        let mut next = Trail::default();
        for &(way, step) in &at.0 {
            match &self.ways[way as usize].steps[step as usize] {
                Step::AnyDepth => self.push(&mut next, way, step),
                other if other.matches(name) => self.push(&mut next, way, step + 1),
                _ => {}
            }
        }
        next
    }

    /// Whether the entry called `name` of the directory matches.
    pub(crate) fn accepts(&self, at: &Trail, name: &str, is_directory: bool) -> bool {
        at.0.iter().any(|&(index, step)| {
            let way = &self.ways[index as usize];
            step as usize + 1 == way.steps.len()
                && (is_directory || !way.only_directories)
                && way.steps[step as usize].matches(name)
        })
    }

    /// Whether a glob spells out the entry called `name` of the directory.
    pub(crate) fn spells(&self, at: &Trail, name: &str) -> bool {
        at.0.iter().any(|&(way, step)| match &self.ways[way as usize].steps[step as usize] {
            Step::Literal(literal) => literal == name,
            Step::AnyDepth | Step::Wild(_) => false,
        })
    }

    fn push(&self, trail: &mut Trail, way: u32, step: u32) {
        let steps = &self.ways[way as usize].steps;
        if step as usize >= steps.len() || trail.0.contains(&(way, step)) {
            return;
        }
        trail.0.push((way, step));
        if matches!(steps[step as usize], Step::AnyDepth) {
            self.push(trail, way, step + 1);
        }
    }
}

impl Way {
    fn parse(glob: &str, on_name: bool) -> Result<Self, GlobError> {
        let mut way = Way { steps: Vec::new(), only_directories: false, absolute: glob.starts_with('/') };
        if on_name {
            way.push(Step::AnyDepth);
        }
        let mut tokens = Vec::new();
        let mut wild = false;
        let mut chars = glob.char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            let token = match c {
                '/' => {
                    way.component(&mut tokens, &mut wild);
                    continue;
                }
                '\\' => {
                    let dangling = GlobError { offset, detail: "a backslash at the end escapes nothing" };
                    Token::Char(chars.next().ok_or(dangling)?.1)
                }
                '*' => Token::AnyChars,
                '?' => Token::AnyChar,
                '[' => {
                    let end = class_end(glob, offset)?;
                    let token = parse_class(&glob[offset + 1..end], offset)?;
                    while chars.next_if(|&(at, _)| at <= end).is_some() {}
                    token
                }
                c => Token::Char(c),
            };
            wild |= !matches!(token, Token::Char(_));
            tokens.push(token);
        }
        way.only_directories = tokens.is_empty();
        way.component(&mut tokens, &mut wild);
        if way.steps.is_empty() {
            return Err(GlobError { offset: 0, detail: "the glob names nothing" });
        }
        Ok(way)
    }

    fn component(&mut self, tokens: &mut Vec<Token>, wild: &mut bool) {
        let tokens = std::mem::take(tokens);
        if !std::mem::take(wild) {
            let text: String = tokens.iter().filter_map(Token::literal).collect();
            if !text.is_empty() && text != "." {
                self.push(Step::Literal(comparable(text.as_bytes()).into_owned()));
            }
        } else if tokens == [Token::AnyChars, Token::AnyChars] {
            self.push(Step::AnyDepth);
        } else {
            self.push(Step::Wild(composed(tokens)));
        }
    }

    /// Appends a step; `**/**` is `**`.
    fn push(&mut self, step: Step) {
        if !matches!((self.steps.last(), &step), (Some(Step::AnyDepth), Step::AnyDepth)) {
            self.steps.push(step);
        }
    }
}

impl Step {
    fn matches(&self, name: &str) -> bool {
        match self {
            Step::AnyDepth => true,
            Step::Literal(literal) => literal == name,
            Step::Wild(tokens) => matches(tokens, name),
        }
    }
}

impl Token {
    fn literal(&self) -> Option<char> {
        if let Token::Char(c) = self { Some(*c) } else { None }
    }

    fn takes(&self, c: char) -> bool {
        match self {
            Token::Char(own) => *own == c,
            Token::AnyChar | Token::AnyChars => true,
            Token::Class { negated, ranges } => {
                ranges.iter().any(|&(low, high)| (low..=high).contains(&c)) != *negated
            }
        }
    }
}

/// The runs of ordinary characters in NFC, as names are.
fn composed(tokens: Vec<Token>) -> Vec<Token> {
    if tokens.iter().filter_map(Token::literal).all(|c| c.is_ascii()) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len());
    let mut run = String::new();
    for token in tokens {
        match token {
            Token::Char(c) => run.push(c),
            token => {
                out.extend(std::mem::take(&mut run).nfc().map(Token::Char));
                out.push(token);
            }
        }
    }
    out.extend(run.nfc().map(Token::Char));
    out
}

/// Whether the tokens match the whole of `name`: left to right, going back only to the last `*`.
fn matches(tokens: &[Token], name: &str) -> bool {
    let (mut token, mut rest) = (0, name.chars());
    let mut star: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        if tokens.get(token) == Some(&Token::AnyChars) {
            token += 1;
            star = Some((token, rest.clone()));
            continue;
        }
        match (tokens.get(token), rest.clone().next()) {
            (None, None) => return true,
            (Some(own), Some(c)) if own.takes(c) => {
                token += 1;
                rest.next();
            }
            _ => {
                let Some((back, from)) = &mut star else { return false };
                if from.next().is_none() {
                    return false;
                }
                (token, rest) = (*back, from.clone());
            }
        }
    }
}

/// The offset of the `]` that ends the class which begins at `start`.
fn class_end(glob: &str, start: usize) -> Result<usize, GlobError> {
    let bytes = glob.as_bytes();
    let mut at = start + 1;
    if matches!(bytes.get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    let first = at;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b']' if at > first => return Ok(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    Err(GlobError { offset: start, detail: "this [ has no ]; \\[ means the character itself" })
}

fn parse_class(text: &str, offset: usize) -> Result<Token, GlobError> {
    let negated = text.starts_with(['!', '^']);
    let mut chars = text.chars().skip(usize::from(negated)).peekable();
    let mut ranges = Vec::new();
    let dangling = GlobError { offset, detail: "a backslash at the end escapes nothing" };
    while let Some(c) = chars.next() {
        let low = if c == '\\' { chars.next().ok_or(dangling.clone())? } else { c };
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some('\\')) => ahead.next(),
            (Some('-'), Some(high)) => Some(high),
            _ => None,
        };
        if high.is_some() {
            chars = ahead;
        }
        if high.is_some_and(|high| high < low) {
            return Err(GlobError { offset, detail: "a range in this class ends before it begins" });
        }
        ranges.push((low, high.unwrap_or(low)));
    }
    Ok(Token::Class { negated, ranges })
}

/// The globs that the braces of `glob` stand for.
fn alternatives(glob: &str) -> Result<Vec<String>, GlobError> {
    let mut done = Vec::new();
    let mut open = vec![glob.to_owned()];
    while let Some(text) = open.pop() {
        match braces(&text)? {
            None => done.push(text),
            Some((_, _, commas)) if done.len() + open.len() + commas.len() >= ALTERNATIVES => {
                return Err(GlobError {
                    offset: 0,
                    detail: "the braces stand for more than 1,000 alternatives",
                });
            }
            Some((start, end, commas)) => {
                let edges = std::iter::once(start).chain(commas).chain([end]).collect::<Vec<_>>();
                let inner = edges.windows(2).rev().map(|pair| &text[pair[0] + 1..pair[1]]);
                open.extend(inner.map(|inner| format!("{}{inner}{}", &text[..start], &text[end + 1..])));
            }
        }
    }
    Ok(done)
}

/// The first `{`, its `}`, and the commas between them.
fn braces(text: &str) -> Result<Option<(usize, usize, Vec<usize>)>, GlobError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut start, mut commas) = (0, 0, 0, Vec::new());
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => at = class_end(text, at)?,
            b'{' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            b',' if depth == 1 => commas.push(at),
            b'}' if depth == 0 => {
                return Err(GlobError {
                    offset: at,
                    detail: "this } has no {; \\} means the character itself",
                });
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some((start, at, commas)));
                }
            }
            _ => {}
        }
        at += 1;
    }
    match depth {
        0 => Ok(None),
        _ => Err(GlobError { offset: start, detail: "this { has no }; \\{ means the character itself" }),
    }
}
