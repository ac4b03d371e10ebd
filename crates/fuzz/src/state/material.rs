//! Messages for dialogues: the corpora of the decoders.

use crate::corpus::{Seed, read};
use crate::decoder::sbi::{http_request, http_response};
use crate::mutate::Mutator;
use crate::state::choices::Choices;
use crate::target::Shape;
use pith_sbi::http::HttpResponse;
use pith_sbi::{ApiRoot, Operation, Problem, Reply, Request, Response, Scheme};
use std::sync::{Arc, LazyLock};

/// The id of every resource in the corpora.
const EXAMPLE_ID: &str = "7-a%2Fb";

static ROOT: LazyLock<Arc<ApiRoot>> = LazyLock::new(|| Arc::new(ApiRoot::new(Scheme::Http, "peer:80")));

static REQUESTS: LazyLock<Vec<Seed>> = LazyLock::new(|| read("sbi-request").unwrap_or_default());

static RESPONSES: LazyLock<Vec<Seed>> = LazyLock::new(|| read("sbi-response").unwrap_or_default());

/// API root of the peers.
pub fn root() -> Arc<ApiRoot> {
    Arc::clone(&ROOT)
}

/// Requests that one NF serves, as text.
pub fn requests_for(serves: impl Fn(&Request) -> bool) -> Vec<Seed> {
    let fits = |seed: &&Seed| request(&seed.octets).is_some_and(|request| serves(&request));
    REQUESTS.iter().filter(fits).cloned().collect()
}

fn request(text: &[u8]) -> Option<Request> {
    Request::from_http(&ROOT, &http_request(text)?).ok()
}

/// One of those requests, possibly with the id of an observed resource, possibly mutated. `None` if
/// it can no longer be parsed, so that no NF would get it.
pub fn ask(seeds: &[Seed], ids: &[String], choices: &mut Choices<'_>) -> Option<Request> {
    let seed = choices.pick(seeds)?;
    let mut text = seed.octets.clone();
    if let Some(id) = choices.pick(ids).filter(|_| !ids.is_empty()) {
        text = replace_id(&text, id);
    }
    if choices.below(3) == 0 {
        text = Mutator::new(Shape::Text, &REQUESTS).mutate(&text, &mut choices.random());
    }
    request(&text)
}

fn replace_id(text: &[u8], id: &str) -> Vec<u8> {
    let Ok(whole) = std::str::from_utf8(text) else { return text.to_vec() };
    let (line, rest) = whole.split_once('\n').unwrap_or((whole, ""));
    format!("{}\n{rest}", line.replace(EXAMPLE_ID, id)).into_bytes()
}

/// A peer's reply to a call: mostly a valid one, in one of its forms.
pub fn answer(operation: Operation, choices: &mut Choices<'_>) -> Reply {
    let of_operation = |seed: &&Seed| seed.name.split([' ', '-']).nth(1) == Some(name(operation).as_str());
    let fitting: Vec<&Seed> = RESPONSES.iter().filter(of_operation).collect();
    match choices.below(8) {
        0 => Err(Box::new(problem(choices))),
        1 => any(choices),
        2 => {
            let Some(seed) = choices.pick(&fitting) else { return any(choices) };
            let text = Mutator::new(Shape::Text, &RESPONSES).mutate(&seed.octets, &mut choices.random());
            read_answer(operation, &text)
        }
        _ => match choices.pick(&fitting) {
            Some(seed) => read_answer(operation, &seed.octets),
            None => Ok(Response::NoContent),
        },
    }
}

fn name(operation: Operation) -> String {
    format!("{operation:?}")
}

fn read_answer(operation: Operation, text: &[u8]) -> Reply {
    let (_, http) = http_response(text).unwrap_or((operation, HttpResponse::new(500)));
    Response::from_http(operation, &ROOT, &http)
}

/// A reply to any operation.
fn any(choices: &mut Choices<'_>) -> Reply {
    let Some(seed) = choices.pick(&RESPONSES) else { return Ok(Response::NoContent) };
    match http_response(&seed.octets) {
        Some((operation, http)) => Response::from_http(operation, &ROOT, &http),
        None => Ok(Response::NoContent),
    }
}

fn problem(choices: &mut Choices<'_>) -> Problem {
    match choices.below(6) {
        0 => Problem::timed_out(),
        1 => Problem::not_reachable("nobody there"),
        2 => Problem::context_not_found(),
        3 => Problem::user_not_found(),
        4 => Problem::congestion(5),
        _ => Problem::of_status(400 + u16::from(choices.octet())),
    }
}
