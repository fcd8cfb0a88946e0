// The entries of both binaries; `EDF` is the discipline.

use core::num::NonZeroU8;
use pebble::abi::{self, errno, handover as ask, map, sys};
use pebble::link::More;
use pebble::portal::{self, time};
use pebble::region;
use pebble::words::{Asid, ThreadId};
use pebble_scheduler::{BootSemaphore, BootThread, Decision, FORMAT, STAY, Stacks, ThreadState, Wait, Words};

pebble::import! {
    fixed "nucleus.switch";
    fixed "nucleus.set_timer";
    fixed "nucleus.stack_keep";
    fixed "nucleus.stack_offer";
    fixed "nucleus.stack_release";
}
pebble::interfaces!();
pebble::component!(main);

type Scheduler = pebble_scheduler::Scheduler<EDF>;

fn main() -> i64 {
    0
}

#[cold]
fn boot(scheduler: &mut Scheduler, words: &Words, now: u64) {
    let word = |n: usize| region::BOOTINFO.read(n as u64 * 8);
    let (first, count) = (abi::scheduler::FIRST, word(1) as usize);
    let threads = (first..first + count).map(|n| {
        let (tid, priority, home) = abi::scheduler::thread_parts(word(n));
        BootThread { tid: tid.into(), priority, home: home.into() }
    });
    let semaphores = (first + count..first + count + word(2) as usize).map(|n| {
        let (id, owner, wait) = abi::scheduler::semaphore_parts(word(n));
        BootSemaphore { id, owner: owner.into(), wait }
    });
    let (running, _, _) = abi::scheduler::thread_parts(word(first));
    let _ = scheduler.boot(words, threads, semaphores, running.into(), map::SEM_REAPER, now);
}

/// The state, once it knows the threads of the image.
#[inline(always)]
fn state<R>(work: impl FnOnce(&mut Scheduler, &Words, u64) -> R) -> R {
    region::scheduler_state::<Scheduler>().with(|scheduler| {
        let (words, now) = (region::semaphore_words(), time());
        if !scheduler.booted() {
            boot(scheduler, words, now);
        }
        work(scheduler, words, now)
    })
}

/// One entry that may switch: the library's answer, and the timer.
#[inline(always)]
fn enter(entry: impl FnOnce(&mut Scheduler, &Words, u64) -> Decision) -> Decision {
    state(|scheduler, words, now| {
        let decision = entry(scheduler, words, now);
        leave(scheduler, words, decision, now)
    })
}

/// What follows each decision: once, for all.
#[inline(never)]
fn leave(scheduler: &mut Scheduler, words: &Words, decision: Decision, now: u64) -> Decision {
    if scheduler.wants_attention() {
        return serve(scheduler, words, decision, now);
    }
    if let Some(at) = scheduler.timer(now) {
        set_timer(at);
    }
    decision
}

#[cold]
#[inline(never)]
fn serve(scheduler: &mut Scheduler, words: &Words, decision: Decision, now: u64) -> Decision {
    let decision = scheduler.serve(words, &Queues, decision, now);
    if let Some(at) = scheduler.timer_to_serve(now) {
        set_timer(at);
    }
    decision
}

/// The stack queues, of which only portal code changes anything.
struct Queues;

impl Stacks for Queues {
    #[inline(always)]
    fn head(&self, domain: u8) -> u64 {
        region::stack_queue(domain)
    }
    fn keep(&self, domain: u8) -> bool {
        portal::call_once(sys::NUCLEUS_STACK_KEEP, [domain.into()]) == Ok(1)
    }
    fn offer(&self, domain: u8) -> bool {
        portal::call_once(sys::NUCLEUS_STACK_OFFER, [domain.into()]) == Ok(1)
    }
    fn release(&self, domain: u8) -> bool {
        portal::call_once(sys::NUCLEUS_STACK_RELEASE, [domain.into()]) == Ok(1)
    }
}

#[inline(always)]
fn set_timer(at: u64) {
    let _ = portal::call_once(sys::NUCLEUS_SET_TIMER, [at]);
}

/// What an entry does that is called all the time: the quick way; or else the late one, if somebody is about
/// to run late; or else the long one. These two are reached by jumps, so that the quick way and the late one
/// need no stack.
#[inline(always)]
fn quick(
    quick: impl FnOnce(&mut Scheduler, &Words, u64) -> Option<Decision>,
    late: impl FnOnce() -> Decision,
    long: impl FnOnce() -> Decision,
) -> Decision {
    let decision = region::scheduler_state::<Scheduler>().with(|scheduler| {
        let now = time();
        quick(scheduler, region::semaphore_words(), now).ok_or_else(|| scheduler.is_late(now))
    });
    match decision {
        Ok(decision) => decision,
        Err(true) => late(),
        Err(false) => long(),
    }
}

/// The late way: it ends with a silent timer.
#[inline(always)]
fn late(
    late: impl FnOnce(&mut Scheduler, &Words, u64) -> Option<Decision>,
    long: impl FnOnce() -> Decision,
) -> Decision {
    let done = region::scheduler_state::<Scheduler>()
        .with(|scheduler| late(scheduler, region::semaphore_words(), time()).is_some());
    if done { silence() } else { long() }
}

/// The quick way once more, if it has given up for nothing but waits for stacks; or else the long one.
#[inline(always)]
fn otherwise(
    again: impl FnOnce(&mut Scheduler, &Words, u64) -> Option<Decision>,
    long: impl FnOnce(&mut Scheduler, &Words, u64) -> Decision,
) -> Decision {
    let calm = region::scheduler_state::<Scheduler>().with(|scheduler| {
        if !scheduler.calm(&Queues) {
            return None;
        }
        let decision = again(scheduler, region::semaphore_words(), time());
        scheduler.alarm_again();
        decision
    });
    calm.unwrap_or_else(|| enter(long))
}

/// Silences the timer, and lets the thread run that has become the running one.
#[inline(never)]
extern "C" fn silence() -> Decision {
    set_timer(u64::MAX);
    region::scheduler_state::<Scheduler>().with(|scheduler| scheduler.switch())
}

extern "C" fn yield_now() -> Decision {
    quick(|s, _, now| s.quick_yield(now), || late_yield(), || long_yield())
}

#[inline(never)]
extern "C" fn late_yield() -> Decision {
    late(|s, _, now| s.late_yield(now), || long_yield())
}

#[cold]
#[inline(never)]
extern "C" fn long_yield() -> Decision {
    otherwise(|s, _, now| s.quick_yield(now), |s, _, now| s.yield_now(now))
}

extern "C" fn sleep(caller: Asid, until: u64) -> Decision {
    enter(|s, _, now| s.sleep(until, caller, now))
}

extern "C" fn stack_wait(domain: Asid, caller: Asid) -> Decision {
    enter(|s, _, now| s.stack_wait(&Queues, domain, caller, now))
}

extern "C" fn p(semaphore: u64, caller: Asid) -> Decision {
    quick(
        |s, words, now| s.quick_p(words, semaphore, caller, now),
        || late_p(semaphore, caller),
        || long_p(semaphore, caller),
    )
}

#[inline(never)]
extern "C" fn late_p(semaphore: u64, caller: Asid) -> Decision {
    late(|s, words, now| s.late_p(words, semaphore, caller, now), || long_p(semaphore, caller))
}

#[cold]
#[inline(never)]
extern "C" fn long_p(semaphore: u64, caller: Asid) -> Decision {
    otherwise(
        |s, words, now| s.quick_p(words, semaphore, caller, now),
        |s, words, now| s.p(words, semaphore, caller, now),
    )
}

extern "C" fn v(semaphore: u64) -> Decision {
    quick(
        |s, words, now| s.quick_v(words, semaphore, now),
        || late_v(semaphore),
        || long_v(semaphore),
    )
}

#[inline(never)]
extern "C" fn late_v(semaphore: u64) -> Decision {
    late(|s, words, now| s.late_v(words, semaphore, now), || long_v(semaphore))
}

#[cold]
#[inline(never)]
extern "C" fn long_v(semaphore: u64) -> Decision {
    otherwise(|s, words, now| s.quick_v(words, semaphore, now), |s, words, now| s.v(words, semaphore, now))
}

/// A device: its semaphore has the number of its source.
extern "C" fn irq(source: u64) -> Decision {
    v(source)
}

extern "C" fn tick() -> Decision {
    late(|s, _, now| s.quick_tick(now), || long_tick())
}

#[cold]
#[inline(never)]
extern "C" fn long_tick() -> Decision {
    enter(|s, _, now| s.tick(now))
}

extern "C" fn thread_start(tid: ThreadId, priority: u64, home: u64) -> Decision {
    let (home, family) = (Asid(home & 0xffff), Asid(home >> 16));
    enter(|s, _, now| s.thread_start(tid, priority, home, family, now))
}

extern "C" fn thread_exit(client: Asid) -> Decision {
    enter(|s, words, now| s.thread_exit(words, client, now))
}

extern "C" fn priority(tid: ThreadId, priority: u64) -> Decision {
    enter(|s, words, now| s.set_priority(words, tid, priority, now))
}

/// A domain; a priority plus 1 in bits 16 and up asks for the calm after it; in bits 32 and up the thread to
/// begin with. Returns where to go on.
extern "C" fn domain_abort(domain: u64) -> Decision {
    let (asid, calm, from) = (Asid(domain & 0xffff), domain >> 16 & 0xffff, ThreadId(domain >> 32));
    enter(|s, words, now| match calm {
        0 => s.domain_abort(words, asid, from, now),
        calm => s.domain_calm(words, asid, calm - 1, from, now),
    })
}

extern "C" fn thread_abort(tid: ThreadId, any: u64) -> Decision {
    enter(|s, words, now| s.thread_abort(words, tid, any != 0, now))
}

extern "C" fn park(caller: Asid) -> Decision {
    enter(|s, _, now| s.park(caller, now))
}

extern "C" fn wake(server: Asid, tid: ThreadId) -> Decision {
    enter(|s, _, now| s.unpark(server, tid, now))
}

extern "C" fn will_wake(server: Asid) -> i64 {
    state(|s, _, _| s.will_wake(server))
}

extern "C" fn deadline(ticks: u64) -> Decision {
    enter(|s, words, now| s.deadline(words, ticks, now))
}

extern "C" fn share(domain: Asid, percent: u64) -> Decision {
    enter(|s, _, now| s.share(domain, percent, now))
}

/// The state lies where every instance finds it: there is nothing to hand over but the number of its form.
extern "C" fn handover(what: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: &mut More) -> i64 {
    match what {
        ask::LEAVE => FORMAT as i64,
        ask::READ | ask::RESUME => 0,
        _ => -errno::EINVAL,
    }
}

extern "C" fn takeover(what: u64, format: u64, _: u64, _: u64, _: u64) -> Decision {
    match what {
        ask::FINISH => enter(|s, words, now| s.adopt(words, format, now)),
        ask::PREPARE | ask::WAITS => Decision { thread: STAY, value: (what == ask::WAITS).into() },
        _ => Decision { thread: STAY, value: -errno::EINVAL },
    }
}

extern "C" fn sem_free(semaphore: u64) -> Decision {
    enter(|s, words, now| s.sem_free(words, semaphore, now))
}

extern "C" fn sem_alloc(initial: u64, owner: Asid, wait: u64) -> i64 {
    state(|s, words, _| s.sem_alloc(words, initial as i64, owner, Wait::of(wait)))
}

extern "C" fn reap() -> i64 {
    state(|s, _, _| s.reap().map_or(-1, |tid| tid.get() as i64))
}

/// Value, owner, waiters.
extern "C" fn sem_info(semaphore: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    state(|s, words, _| match s.sem_info(words, semaphore) {
        Some(info) => {
            *more = [info.value as u64, info.owner.map_or(0, NonZeroU8::get).into(), info.waiters as u64, 0];
            0
        }
        None => -errno::EINVAL,
    })
}

/// State (with the semaphore, or the domain, in bits 8 and up), priority and home, ticks run, switches.
extern "C" fn thread_info(tid: ThreadId, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    state(|s, _, now| match s.thread_info(tid, now) {
        Some(info) => {
            let state = match info.state {
                ThreadState::Free => 0,
                ThreadState::Ready => 1,
                ThreadState::Running => 2,
                ThreadState::Sleeping => 3,
                ThreadState::Waiting(semaphore) => 4 | u64::from(semaphore) << 8,
                ThreadState::Exited => 5,
                ThreadState::Stack(domain) => 6 | domain.get() << 8,
                ThreadState::Held => 7,
                ThreadState::Parked => 8,
            };
            *more =
                [state, u64::from(info.priority) | info.home.get() << 8, info.ran, info.switches.into()];
            0
        }
        None => -errno::EINVAL,
    })
}
