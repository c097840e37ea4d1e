//! Faults between a client and S3, and the requests that they affect.

use std::collections::HashMap;

use testkit::random::Random;

use super::message::Request;

/// A fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Status 409: another put of this name is under way.
    Conflict,
    /// Status 412 although nothing is there, as after a failed put of another client.
    Precondition,
    /// Status 500.
    InternalError,
    /// Status 503.
    SlowDown,
    /// The connection is reset before the request arrives.
    Reset,
    /// The request arrives, and the connection ends before an answer comes.
    LostAnswer,
    /// The request arrives, and the connection ends in the middle of the answer.
    TornAnswer,
    /// No answer comes in time. The request arrives after the client has given up.
    Late,
    /// No answer comes in time. The request arrives at the very end of the test.
    MuchLater,
    /// Status 403.
    Denied,
    /// Status 400, as for an expired token.
    Expired,
}

pub const ALL_THAT_PASS: [Fault; 9] = [
    Fault::Conflict,
    Fault::Precondition,
    Fault::InternalError,
    Fault::SlowDown,
    Fault::Reset,
    Fault::LostAnswer,
    Fault::TornAnswer,
    Fault::Late,
    Fault::MuchLater,
];

impl Fault {
    /// Returns the fault, or `SlowDown` if S3 gives no such answer to `request` or the fault would
    /// have no effect.
    fn of(self, request: &Request) -> Self {
        match self {
            Self::Conflict | Self::Precondition if !request.is_conditional() => Self::SlowDown,
            Self::Late | Self::MuchLater if !request.is_change() => Self::SlowDown,
            fault => fault,
        }
    }
}

/// A choice of the requests that fail.
#[derive(Debug, Clone, Copy)]
pub enum Plan {
    /// No request.
    Calm,
    /// The first `num` attempts at each request.
    First(Fault, usize),
    /// A seeded half of the first `num` attempts at each request.
    Mixed(u64, usize),
    /// All requests from this number on, counted from 0.
    From(Fault, usize),
}

/// A plan in progress.
pub struct Course {
    plan: Plan,
    random: Random,
    num_requests: usize,
    num_faults: usize,
    /// Number of attempts by method and target.
    num_attempts: HashMap<String, usize>,
}

impl Course {
    pub fn new(plan: Plan) -> Self {
        let random = Random(if let Plan::Mixed(seed, _) = plan { seed } else { 0 });
        Self { plan, random, num_requests: 0, num_faults: 0, num_attempts: HashMap::new() }
    }

    pub fn num_requests(&self) -> usize {
        self.num_requests
    }

    pub fn num_faults(&self) -> usize {
        self.num_faults
    }

    /// Returns the fault of the next request.
    pub fn next(&mut self, request: &Request) -> Option<Fault> {
        let num_attempts = self.num_attempts.entry(request.line()).or_default();
        let request_idx = self.num_requests;
        let attempt = *num_attempts;
        self.num_requests += 1;
        *num_attempts += 1;
        let fault = match self.plan {
            Plan::Calm => None,
            Plan::First(fault, num) => (attempt < num).then_some(fault),
            Plan::Mixed(_, num) => {
                let fault = *self.random.pick(&ALL_THAT_PASS);
                (self.random.one_in(2) && attempt < num).then_some(fault)
            }
            Plan::From(fault, from) => (request_idx >= from).then_some(fault),
        };
        self.num_faults += usize::from(fault.is_some());
        fault.map(|fault| fault.of(request))
    }
}
