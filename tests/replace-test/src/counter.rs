//! What all versions of the counter are made of. The program says which version it is: `crate::VERSION`.

use alloc::vec::Vec;
use pebble::abi::errno;
use pebble::api::Errno;
use pebble::handover::{Bytes, Handover};
use pebble::sync::{Guard, Lock};
use pebble_replace_test::counts::{Counts, PLAIN};

pub struct Version {
    /// The format that it writes, and the newest that it reads; 0: it reads none.
    pub format: u64,
}

pebble::export!("counter.add", "npai", add: fn(u64, u64));
pebble::export!("counter.count", "npi", count: fn(u64));
pebble::export!("counter.forget", "npa", forget: fn(u64));
pebble::replaceable!(COUNTER: State, Vec::new(), "counter.handover", "counter.takeover");

pub struct State(pub Counts);

static COUNTER: Lock<State> = Lock::new(State(Counts::new()));

impl Handover for State {
    type Bytes = Vec<u8>;

    fn save(&self, _: u64, bytes: &mut Vec<u8>) -> Result<u64, Errno> {
        let format = crate::VERSION.format.max(PLAIN);
        if self.0.save(format, |part| Bytes::append(bytes, part)) { Ok(format) } else { Err(errno::ENOMEM) }
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        if crate::VERSION.format == 0 {
            return Err(errno::EINVAL);
        }
        self.0.load(crate::VERSION.format, format, bytes)
    }
}

/// The counter, locked. The lock's semaphore is made at once: what an instance holds does not depend on who
/// meets whom.
pub fn counter() -> Guard<'static, State> {
    COUNTER.prepare();
    COUNTER.lock()
}

/// One more call of the caller: how many that makes. On its way here it lets others run, who then wait for
/// the stack.
extern "C" fn add(caller: u64, amount: u64) -> i64 {
    pebble::api::yield_now();
    counter().0.add(caller, amount) as i64
}

extern "C" fn count(domain: u64) -> i64 {
    counter().0.count(domain) as i64
}

extern "C" fn forget(caller: u64) -> i64 {
    counter().0.forget(caller);
    0
}
