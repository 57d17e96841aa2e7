//! What became of requests that carry an `Idempotency-Key`, so that asking again changes nothing again: the outcome is
//! kept for ten minutes by operation and key, and replayed for the same body. Refusals are kept, too; what failed by the
//! service's own fault (5xx) is not, and may be tried again. Bounded: of too many the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::response::Response;
use bytes::Bytes;
use filectx_files::{Cancel, Error};
use filectx_openapi::{Code, ItemError};
use http::{HeaderMap, HeaderName};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::answer::{self, Facts};
use crate::failure::Failure;
use crate::negotiate::Coding;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// How long an outcome is kept.
const KEPT: Duration = Duration::from_secs(600);
/// The most bytes of outcomes that are kept; and what an outcome takes besides its text, about.
const MOST_BYTES: usize = 64 << 20;
const OVERHEAD: usize = 512;
/// The longest key.
const LONGEST: usize = 255;
/// How often one who waits for another's outcome asks whether its own caller is still there.
const ASK: Duration = Duration::from_millis(50);

/// The key of a request: which operation, and the caller's own word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    operation: &'static str,
    word: String,
}

impl Name {
    /// The key that the headers carry, if they do.
    pub(crate) fn of(operation: &'static str, headers: &HeaderMap) -> Result<Option<Self>, Failure> {
        let mut values = headers.get_all(HEADER).iter();
        let (value, more) = (values.next(), values.next());
        let Some(value) = value else { return Ok(None) };
        let word = value.to_str().ok().filter(|word| {
            more.is_none()
                && (1..=LONGEST).contains(&word.len())
                && word.bytes().all(|b| b.is_ascii_graphic())
        });
        let refused = || {
            let message = format!("idempotency-key: send one, of 1 to {LONGEST} visible ASCII characters");
            Failure::invalid_request(None, message)
        };
        word.map(|word| Some(Self { operation, word: word.to_owned() })).ok_or_else(refused)
    }

    /// The request under this key whose body is `body`.
    pub(crate) fn with_body(self, body: &[u8]) -> Key {
        Key { name: self, digest: Sha256::digest(body).into() }
    }

    /// The request under this key whose body has this digest.
    pub(crate) fn with_digest(self, digest: [u8; 32]) -> Key {
        Key { name: self, digest }
    }
}

/// A request that is to be done once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    name: Name,
    digest: [u8; 32],
}

/// What became of a request.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The JSON text of its answer, and what the log tells of it.
    Done(Bytes, Facts),
    /// Why not.
    Refused(ItemError),
}

impl Outcome {
    /// What a verb returned, as it is answered and kept.
    pub(crate) fn of<T: Serialize>(done: Result<(T, Facts), ItemError>) -> Self {
        let text = done.and_then(|(value, facts)| {
            let text = serde_json::to_vec(&value);
            text.map(|text| (text, facts)).map_err(|error| ItemError::new(Code::Internal, error.to_string()))
        });
        match text {
            Ok((text, facts)) => Self::Done(text.into(), facts),
            Err(error) => Self::Refused(error),
        }
    }

    /// The answer that tells it.
    pub(crate) fn answer(self, coding: Option<Coding>) -> Result<Response, Failure> {
        match self {
            Self::Done(text, facts) => Ok(answer::of_json(text, coding, facts)),
            Self::Refused(error) => Err(error.into()),
        }
    }
}

/// What there is to know about a request before it is done.
#[derive(Debug)]
pub(crate) enum Claimed<'a> {
    /// Nobody has done it: it is the caller's to do.
    Mine(Claim<'a>),
    /// It was done.
    Known(Outcome),
}

/// The outcomes that are kept.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    state: Mutex<State>,
    settled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<Name, Slot>,
    /// What is kept, oldest first; a name may be newer than its place here tells.
    order: VecDeque<(Instant, Name)>,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    digest: [u8; 32],
    /// `None` while it is under way.
    outcome: Option<Outcome>,
    bytes: usize,
}

/// The right to do a request; others who ask for it wait. Given up when dropped without an outcome.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    outcomes: &'a Outcomes,
    key: Key,
    settled: bool,
}

impl Outcomes {
    /// Claims a request, or tells what became of it, waiting while another does it. Blocks.
    pub(crate) fn claim(&self, key: &Key, cancel: &Cancel) -> Result<Claimed<'_>, ItemError> {
        let mut state = self.state();
        loop {
            state.forget_old(Instant::now());
            match state.slots.get(&key.name) {
                None => {
                    state
                        .slots
                        .insert(key.name.clone(), Slot { digest: key.digest, outcome: None, bytes: 0 });
                    return Ok(Claimed::Mine(Claim { outcomes: self, key: key.clone(), settled: false }));
                }
                Some(slot) if slot.digest != key.digest => return Err(another_body()),
                Some(Slot { outcome: Some(outcome), .. }) => return Ok(Claimed::Known(outcome.clone())),
                Some(_) => {
                    cancel.check().map_err(|error: Error| error.item("".as_ref()))?;
                    state = self.settled.wait_timeout(state, ASK).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Keeps a refusal that needed no work, unless the key is taken; what the caller is told.
    pub(crate) fn refuse(&self, key: &Key, failure: Failure) -> Failure {
        let mut state = self.state();
        state.forget_old(Instant::now());
        match state.slots.get(&key.name) {
            Some(slot) if slot.digest != key.digest => Failure(another_body()),
            Some(_) => failure,
            None => {
                state.keep(key, Outcome::Refused(failure.0.clone()));
                failure
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, key: &Key, outcome: Outcome) {
        let text = match &outcome {
            Outcome::Done(body, _) => body.len(),
            Outcome::Refused(error) => serde_json::to_vec(error).map_or(0, |text| text.len()),
        };
        let bytes = text + key.name.word.len() + OVERHEAD;
        self.bytes += bytes;
        let slot = Slot { digest: key.digest, outcome: Some(outcome), bytes };
        self.slots.insert(key.name.clone(), slot);
        self.order.push_back((Instant::now(), key.name.clone()));
        while self.bytes > MOST_BYTES && self.order.len() > 1 {
            self.forget_first();
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(kept, _)| now.duration_since(*kept) >= KEPT) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let gone = self.order.pop_front().and_then(|(_, name)| self.slots.remove(&name));
        self.bytes -= gone.map_or(0, |slot| slot.bytes);
    }
}

impl Claim<'_> {
    /// The request was done: `outcome` is what became of it.
    pub(crate) fn settle(mut self, outcome: &Outcome) {
        let unsure = matches!(outcome, Outcome::Refused(error) if error.code.status() >= 500);
        if !unsure {
            self.settled = true;
            self.outcomes.state().keep(&self.key, outcome.clone());
            self.outcomes.settled.notify_all();
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.outcomes.state().slots.remove(&self.key.name);
            self.outcomes.settled.notify_all();
        }
    }
}

fn another_body() -> ItemError {
    let message = "this idempotency-key was used for another body within the last ten minutes; a new request takes a new key";
    Failure::invalid_request(None, message).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(operation: &'static str, word: &str, body: &str) -> Key {
        Name { operation, word: word.into() }.with_body(body.as_bytes())
    }

    fn patient() -> Cancel {
        Cancel::after(Duration::from_secs(60))
    }

    fn done(text: &str) -> Outcome {
        Outcome::Done(Bytes::copy_from_slice(text.as_bytes()), Facts::default())
    }

    fn text(claimed: Claimed<'_>) -> String {
        match claimed {
            Claimed::Known(Outcome::Done(body, _)) => String::from_utf8(body.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn mine<'a>(outcomes: &'a Outcomes, key: &Key) -> Claim<'a> {
        match outcomes.claim(key, &patient()).unwrap() {
            Claimed::Mine(claim) => claim,
            known => panic!("{known:?}"),
        }
    }

    #[test]
    fn an_outcome_is_replayed_for_the_same_body_alone() {
        let outcomes = Outcomes::default();
        let first = key("edit-file", "k", "body");
        mine(&outcomes, &first).settle(&done("answer"));
        assert_eq!(text(outcomes.claim(&first, &patient()).unwrap()), "answer");
        let error = outcomes.claim(&key("edit-file", "k", "other"), &patient()).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
        // Keys belong to one operation.
        drop(mine(&outcomes, &key("write-file", "k", "body")));
    }

    #[test]
    fn refusals_are_kept_and_faults_are_not() {
        let outcomes = Outcomes::default();
        let first = key("edit-file", "k", "body");
        let refused = |code| Outcome::Refused(ItemError::new(code, "why"));
        mine(&outcomes, &first).settle(&refused(Code::NoSpace));
        mine(&outcomes, &first).settle(&refused(Code::NoMatch));
        assert!(matches!(outcomes.claim(&first, &patient()), Ok(Claimed::Known(Outcome::Refused(_)))));
        // What was no request at all is kept alike.
        let broken = key("edit-file", "b", "{");
        let failure = Failure::invalid_request(None, "not JSON");
        assert_eq!(outcomes.refuse(&broken, failure.clone()).0, failure.0);
        assert_eq!(outcomes.refuse(&broken, failure.clone()).0, failure.0);
        let error = outcomes.claim(&key("edit-file", "b", "{}"), &patient()).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
    }

    #[test]
    fn a_duplicate_waits_and_a_claim_given_up_passes_on() {
        let outcomes = Outcomes::default();
        let first = key("edit-file", "k", "body");
        let claim = mine(&outcomes, &first);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| text(outcomes.claim(&first, &patient()).unwrap()));
            claim.settle(&done("answer"));
            assert_eq!(waiting.join().unwrap(), "answer");
        });
        let second = key("edit-file", "l", "body");
        let claim = mine(&outcomes, &second);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| mine(&outcomes, &second).settle(&done("by the second")));
            drop(claim);
            waiting.join().unwrap();
        });
        assert_eq!(text(outcomes.claim(&second, &patient()).unwrap()), "by the second");
    }

    #[test]
    fn memory_is_bounded_and_time_ends_it() {
        let outcomes = Outcomes::default();
        let large = "x".repeat(MOST_BYTES / 8);
        for n in 0..20 {
            mine(&outcomes, &key("edit-file", &n.to_string(), "")).settle(&done(&large));
        }
        let mut state = outcomes.state();
        assert!(state.bytes <= MOST_BYTES && state.slots.len() < 9);
        state.forget_old(Instant::now() + KEPT);
        assert_eq!((state.bytes, state.slots.len()), (0, 0));
    }

    #[test]
    fn keys_are_visible_ascii() {
        let of = |value: &'static [u8]| {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            Name::of("edit-file", &[(HEADER, value)].into_iter().collect())
        };
        assert!(Name::of("edit-file", &HeaderMap::new()).unwrap().is_none());
        assert_eq!(of(b"k-1").unwrap().unwrap().word, "k-1");
        for bad in [&b""[..], b"a b", b"\xff"] {
            assert_eq!(of(bad).unwrap_err().0.code, Code::InvalidRequest);
        }
    }
}
