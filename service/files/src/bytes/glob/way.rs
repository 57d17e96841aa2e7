//! One glob without braces: its components, how they are read, and what each of them matches.

use unicode_normalization::UnicodeNormalization;

use super::braces::class_end;
use super::{GlobError, comparable};

/// One glob without braces.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) steps: Vec<Step>,
    pub(super) only_directories: bool,
    pub(super) absolute: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// `**`: any number of components.
    AnyDepth,
    /// A component without wildcards, in NFC.
    Literal(String),
    /// A component with wildcards.
    Wild(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Char(char),
    AnyChar,
    AnyChars,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Way {
    pub(super) fn parse(glob: &str, on_name: bool) -> Result<Self, GlobError> {
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
        if glob.split('/').all(|part| matches!(part, "" | ".")) {
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
    pub(super) fn push(&mut self, step: Step) {
        if !matches!((self.steps.last(), &step), (Some(Step::AnyDepth), Step::AnyDepth)) {
            self.steps.push(step);
        }
    }
}

impl Step {
    pub(super) fn matches(&self, name: &str) -> bool {
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
