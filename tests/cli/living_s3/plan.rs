//! What goes wrong between a client and S3, and with which requests.

use std::collections::HashMap;

use testkit::random::Random;

use super::message::Request;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 409: another put of this name is under way.
    Conflict,
    /// 412 though nothing is there, as when the other put failed.
    Precondition,
    /// 500.
    InternalError,
    /// 503.
    SlowDown,
    /// The connection is reset before the request arrives.
    Reset,
    /// It arrives; the connection ends before an answer comes.
    LostAnswer,
    /// It arrives; the connection ends in the middle of the answer.
    TornAnswer,
    /// No answer in time; it arrives when the client has given up.
    Late,
    /// No answer in time; it arrives when all else is over.
    MuchLater,
    /// 403.
    Denied,
    /// 400: what a token says that has run out.
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
    /// The fault, or another where S3 has no such answer to `request`, or nothing can come of it.
    fn of(self, request: &Request) -> Self {
        match self {
            Self::Conflict | Self::Precondition if !request.is_conditional() => Self::SlowDown,
            Self::Late | Self::MuchLater if !request.is_change() => Self::SlowDown,
            fault => fault,
        }
    }
}

/// Which requests something goes wrong with.
#[derive(Debug, Clone, Copy)]
pub enum Plan {
    /// None.
    Calm,
    /// The first `num` attempts at everything.
    First(Fault, usize),
    /// One in two, as the seed says, of the first `num` attempts at everything.
    Mixed(u64, usize),
    /// Those from this one on, counted from 0.
    From(Fault, usize),
}

/// A plan on its way.
pub struct Course {
    plan: Plan,
    random: Random,
    num_requests: usize,
    num_faults: usize,
    /// By line.
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

    /// What goes wrong with the next request.
    pub fn next(&mut self, request: &Request) -> Option<Fault> {
        let num_attempts = self.num_attempts.entry(request.line()).or_default();
        let (request_idx, attempt) = (self.num_requests, *num_attempts);
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
