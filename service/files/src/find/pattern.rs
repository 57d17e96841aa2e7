//! The pattern of `find-text`: its case, its matcher, and why one cannot be searched for. A pattern that the engine
//! cannot take is an error that says where and why, never a search without matches.

use std::path::Path;

use filectx_openapi::{FindTextRequest, ItemError};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::{self, Ast, Visitor, visit};

use crate::Error;

/// The most memory of a compiled pattern.
const COMPILED_BYTES: usize = 10 << 20;
/// The most memory of what a searcher remembers of it.
const CACHE_BYTES: usize = 4 << 20;
/// How deep groups may nest.
const NESTING: u32 = 250;

/// A pattern ready to be searched for.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) matcher: RegexMatcher,
    /// How case was applied.
    pub(crate) case_sensitive: bool,
}

impl Pattern {
    pub(crate) fn new(request: &FindTextRequest) -> Result<Self, ItemError> {
        let invalid = |offset: Option<usize>, detail: String| {
            let offset = offset.map(|offset| offset as u64);
            Error::InvalidPattern { offset, detail }.item(Path::new(""))
        };
        if request.pattern.is_empty() {
            return Err(invalid(Some(0), "the pattern is empty; send what to search for".into()));
        }
        // A line end is `\n` in what is searched, whatever it is in the file.
        let pattern = if request.multiline { plain_line_ends(request) } else { request.pattern.clone() };
        let parts = match request.literal {
            true => Parts::of_text(&pattern),
            false => Parts::of_regex(&pattern).map_err(|(offset, detail)| invalid(Some(offset), detail))?,
        };
        if let Some(offset) = parts.line_end.filter(|_| !request.multiline) {
            let detail = format!(
                "the pattern holds a line end at byte {offset}, and matches stay inside a line; set multiline"
            );
            return Err(invalid(Some(offset), detail));
        }
        let case_sensitive = request.case_sensitive.unwrap_or(parts.capital);
        let matcher = RegexMatcherBuilder::new()
            .multi_line(true)
            .case_insensitive(!case_sensitive)
            .fixed_strings(request.literal)
            .line_terminator((!request.multiline).then_some(b'\n'))
            .size_limit(COMPILED_BYTES)
            .dfa_size_limit(CACHE_BYTES)
            .nest_limit(NESTING)
            .build(&pattern)
            .map_err(|error| {
                invalid(
                    None,
                    format!("the pattern cannot be searched for: {error}; literal takes it as text"),
                )
            })?;
        Ok(Self { matcher, case_sensitive })
    }
}

/// The pattern with `\n` for every CR LF that it spells out.
fn plain_line_ends(request: &FindTextRequest) -> String {
    let pattern = request.pattern.replace("\r\n", "\n");
    if request.literal {
        return pattern;
    }
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = escape.strip_prefix("\\r\\n") {
            out.push_str("\\n");
            rest = after;
            continue;
        }
        let len = escape.chars().take(2).map(char::len_utf8).sum();
        let (escape, after) = escape.split_at(len);
        out.push_str(escape);
        rest = after;
    }
    out + rest
}

/// What of a pattern decides how it is searched for.
#[derive(Debug, Default)]
struct Parts {
    /// Whether it holds a capital: smart case.
    capital: bool,
    /// Where it spells out a line end.
    line_end: Option<usize>,
    /// Whether the class at hand is negated: `[^\n]` spells none out.
    negated: bool,
}

impl Parts {
    fn of_text(text: &str) -> Self {
        Self { capital: text.chars().any(char::is_uppercase), line_end: text.find('\n'), negated: false }
    }

    /// Of a regular expression; the error is an offset and a sentence.
    fn of_regex(pattern: &str) -> Result<Self, (usize, String)> {
        let parsed = ast::parse::ParserBuilder::new().nest_limit(NESTING).build().parse(pattern);
        let ast = parsed.map_err(|error| explain(pattern, error.span().start.offset, error.kind()))?;
        let mut parts = Parts::default();
        let Ok(()) = visit(&ast, PartsVisitor(&mut parts));
        regex_syntax::hir::translate::TranslatorBuilder::new()
            .utf8(false)
            .multi_line(true)
            .build()
            .translate(pattern, &ast)
            .map_err(|error| {
                (error.span().start.offset, at(error.span().start.offset, &error.kind().to_string()))
            })?;
        Ok(parts)
    }

    fn literal(&mut self, literal: &ast::Literal) {
        self.capital |= literal.c.is_uppercase();
        if literal.c == '\n' && !self.negated && self.line_end.is_none() {
            self.line_end = Some(literal.span.start.offset);
        }
    }
}

struct PartsVisitor<'a>(&'a mut Parts);

impl Visitor for PartsVisitor<'_> {
    type Output = ();
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<(), Self::Err> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::Literal(literal) => {
                self.0.negated = false;
                self.0.literal(literal);
            }
            Ast::ClassBracketed(class) => self.0.negated = class.negated,
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), Self::Err> {
        match item {
            ast::ClassSetItem::Literal(literal) => self.0.literal(literal),
            ast::ClassSetItem::Range(range) => {
                self.0.capital |= range.start.c.is_uppercase() || range.end.c.is_uppercase();
            }
            _ => {}
        }
        Ok(())
    }
}

fn explain(pattern: &str, offset: usize, kind: &ast::ErrorKind) -> (usize, String) {
    let why = match kind {
        ast::ErrorKind::UnsupportedLookAround => {
            "look-around ((?=, (?!, (?<=, (?<!) is not supported; match what surrounds it instead".to_owned()
        }
        ast::ErrorKind::UnsupportedBackreference => "backreferences are not supported".to_owned(),
        kind => format!("{kind}; escape it with a backslash, or set literal to take the pattern as text"),
    };
    let offset = pattern.floor_char_boundary(offset);
    (offset, at(offset, &why))
}

fn at(offset: usize, why: &str) -> String {
    format!("the pattern cannot be read: at byte {offset}, {why}")
}

#[cfg(test)]
mod tests {
    use filectx_openapi::Code;
    use serde_json::{Value, json};

    use super::*;

    fn pattern(extra: &Value) -> Result<Pattern, ItemError> {
        let mut request = json!({"cwd": "/", "pattern": "x"});
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        Pattern::new(&serde_json::from_value(request).unwrap())
    }

    #[test]
    fn bad_patterns_say_where_and_why() {
        for (text, offset, words) in [
            ("call(", Some(4), "literal"),
            ("items[0", Some(5), "literal"),
            ("*", Some(0), "literal"),
            ("\u{e9}(?=a)", Some(2), "look-around"),
            ("a(?<!b)", Some(1), "look-around"),
            ("(a)\\1", Some(3), "backreferences"),
            ("", Some(0), "empty"),
            ("a\\nb", Some(1), "multiline"),
            ("a[\\nb]", Some(2), "multiline"),
            ("\\p{Nope}", Some(0), "Unicode"),
            ("(\\w{500}){500}", None, "literal"),
        ] {
            let error = pattern(&json!({"pattern": text})).expect_err(text);
            assert_eq!(
                (&error.code, error.data.offset),
                (&Code::InvalidPattern, offset),
                "{text}: {}",
                error.message
            );
            assert!(error.message.contains(words), "{text}: {}", error.message);
        }
        for text in ["[^\\n]*", "a\\s", "(?s).", "a.b$"] {
            assert!(pattern(&json!({"pattern": text})).is_ok(), "{text}");
        }
        assert!(pattern(&json!({"pattern": "a\nb", "literal": true})).is_err());
    }

    #[test]
    fn smart_case_looks_at_what_is_meant() {
        for (text, literal, sensitive) in [
            ("word", false, false),
            ("Word", false, true),
            ("\\Sx", false, false),
            ("\\Sx", true, true),
            ("[A-Z]", false, true),
            ("[^A]", false, true),
            ("\\d+", false, false),
            ("\u{c9}", false, true),
        ] {
            let pattern = pattern(&json!({"pattern": text, "literal": literal})).unwrap();
            assert_eq!(pattern.case_sensitive, sensitive, "{text}");
        }
        assert!(pattern(&json!({"case_sensitive": true})).unwrap().case_sensitive);
        assert!(!pattern(&json!({"pattern": "X", "case_sensitive": false})).unwrap().case_sensitive);
    }

    #[test]
    fn spelled_line_ends_are_plain() {
        for (text, literal, plain) in [
            ("a\\r\\nb", false, "a\\nb"),
            ("a\r\nb", false, "a\nb"),
            ("a\\\\r\\n", false, "a\\\\r\\n"),
            ("a\\r?\\n", false, "a\\r?\\n"),
            ("a\\r\\n", true, "a\\r\\n"),
            ("a\r\nb", true, "a\nb"),
            ("a\\", true, "a\\"),
        ] {
            let request = json!({"cwd": "/", "pattern": text, "literal": literal, "multiline": true});
            assert_eq!(plain_line_ends(&serde_json::from_value(request).unwrap()), plain, "{text}");
        }
    }
}
