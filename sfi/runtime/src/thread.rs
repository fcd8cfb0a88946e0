//! A thread of the process and its stacks in instances.
//!
//! Problem: a portal must find the stack of the thread that runs it in a few cycles. Strategy: one
//! thread-local word in the initial-exec model, whose offset from `fs` is the same for every thread and is
//! compiled into portals: the *current* mark, of the thread's home in the instance whose base is in `gs`. A
//! portal that finds another one there comes here, once.
//!
//! Behind it lies the *inside* word. A signal handler may interrupt portals, domains and this module, where
//! no portal can be called: stacks and `gs` are in somebody's hands. So portals take the word, and this
//! module holds it by [`Inside`]; handlers are refused.
//!
//! Attaching is implicit: the first call into an instance makes the thread's stacks in it; they go when the
//! thread ends or the instance is destroyed. An attached thread has an alternate signal stack, its own if
//! that is big enough.

use crate::ending::Due;
use crate::error::Error;
use crate::fault::{Cause, Report};
use crate::guard::guard;
use crate::instance::{Out, Shared};
use crate::layout::*;
use crate::left;
use crate::record::{self as stacks, Given, Mark};
use crate::slots;
use pebble_portal::fault::{INSIDE, NESTED, REENTERED, STACK_ROOM, TAKEN, record};
use std::arch::{asm, global_asm};
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::time::Duration;

/// Instances that one instance can have direct portals into.
pub const MAX_LINKS: usize = 32;

/// Statuses of calls, in `rdx`.
pub mod status {
    pub const OK: u64 = 0;
    /// The callee did something wrong, or ran out of time: there is a fault to fetch.
    pub const FAULT: u64 = 1;
    /// No stack could be made for the thread.
    pub const NO_STACK: u64 = 2;
    /// A window or a capability could not be lent.
    pub const NOT_LENT: u64 = 3;
    /// Called by a signal handler that has interrupted a domain, a portal or the runtime on this thread.
    pub const REENTERED: u64 = super::REENTERED as u64;
    /// The thread that watches deadlines could not be started: nothing has run.
    pub const NO_CLOCK: u64 = 5;
}

// The mark of a record that is dead for ever, so that the first comparison of a new thread fails, and the two
// ways here from portals. Arguments are in the registers of the convention; r10 is the portal, to be entered
// again.
global_asm!(
    ".section .data.rel.ro.pebble_sfi,\"aw\",@progbits",
    ".balign 128",
    "pebble_sfi_nowhere: .rept 16; .quad -1; .endr",
    ".section .tdata.pebble_sfi,\"awT\",@progbits",
    ".balign 8",
    ".type pebble_sfi_current,@object",
    "pebble_sfi_current: .quad pebble_sfi_nowhere + 127, 0",
    ".size pebble_sfi_current, 16",
    ".text",
    ".balign 16",
    "pebble_sfi_current_offset:",
    "movq pebble_sfi_current@gottpoff(%rip), %rax",
    "ret",
    ".balign 16",
    // In r11d the callee's slot; on the process's stack.
    "pebble_sfi_no_stack:",
    "pushq %rdi; pushq %rsi; pushq %rdx; pushq %rcx; pushq %r8; pushq %r9; pushq %r10",
    "movl %r11d, %edi",
    "call {attach}",
    "popq %r10; popq %r9; popq %r8; popq %rcx; popq %rdx; popq %rsi; popq %rdi",
    "testl %eax, %eax",
    "jnz 1f",
    "jmpq *%r10",
    "1: movl %eax, %edx",
    "xorl %eax, %eax",
    "ret",
    ".balign 16",
    // In eax the link, in r11 the caller's mark; on the caller's return stack.
    "pebble_sfi_no_link:",
    "pushq %rdi; pushq %rsi; pushq %rdx; pushq %rcx; pushq %r8; pushq %r9; pushq %r10; pushq %rbx",
    "movq %r11, %rdi",
    "movl %eax, %esi",
    "movq %rsp, %rbx",
    "movq {top}(%r11), %rax",
    "movq -8(%rax), %rsp",
    "andq $-16, %rsp",
    "call {link}",
    "movq %rbx, %rsp",
    "popq %rbx; popq %r10; popq %r9; popq %r8; popq %rcx; popq %rdx; popq %rsi; popq %rdi",
    "testl %eax, %eax",
    "jnz 1f",
    "jmpq *%r10",
    // Nothing of ours is left for the domain.
    "1: movl %eax, %edx",
    "xorl %eax, %eax; xorl %ecx, %ecx; xorl %esi, %esi; xorl %edi, %edi",
    "xorl %r8d, %r8d; xorl %r9d, %r9d; xorl %r10d, %r10d; xorl %r11d, %r11d",
    "cmpb $0, {wide}(%rip)",
    "je 2f",
    "vzeroupper",
    "2:",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    "xorps %xmm\\n, %xmm\\n",
    ".endr",
    "ret",
    attach = sym attach,
    link = sym link,
    wide = sym WIDE,
    top = const record::from_mark(record::TOP),
    options(att_syntax),
);

/// Vector registers are 256 bits wide: for the code above.
static WIDE: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn pebble_sfi_current_offset() -> i64;
    fn pebble_sfi_no_stack();
    fn pebble_sfi_no_link();
}

/// What portals need to know of this module: offset of the current mark, and the two ways in.
pub fn ways_in() -> (i32, u64, u64) {
    WIDE.store(crate::portal::wide_vectors(), Ordering::Relaxed);
    // SAFETY: reads one word of the global offset table.
    let offset = unsafe { pebble_sfi_current_offset() };
    (offset as i32, pebble_sfi_no_stack as *const () as u64, pebble_sfi_no_link as *const () as u64)
}

fn current() -> Mark {
    let mark: u64;
    // SAFETY: the offset is that of a word of this thread's block of thread-local variables.
    unsafe { asm!("mov {mark}, fs:[{at}]", mark = out(reg) mark, at = in(reg) pebble_sfi_current_offset()) };
    Mark(mark)
}

/// The current mark and the inside word of a thread, for whoever ends its stacks. Only that thread writes
/// them.
#[repr(C)]
pub struct Words {
    current: AtomicU64,
    inside: AtomicU32,
    /// Calls out of domains that have not come back, counted by portals.
    nested: AtomicU32,
}

/// The runtime is at work on this thread.
const HELD: u32 = 2;

pub fn words() -> &'static Words {
    let thread: u64;
    // SAFETY: the first word of a thread's block is its own address.
    unsafe { asm!("mov {0}, fs:[0]", out(reg) thread, options(readonly, nostack)) };
    // SAFETY: both words lie there, aligned, as long as the thread lives; the reference stays on it or is
    // used while it waits.
    unsafe { &*(thread.wrapping_add_signed(pebble_sfi_current_offset()) as *const Words) }
}

const _: () = assert!(std::mem::offset_of!(Words, inside) == INSIDE as usize);
const _: () = assert!(std::mem::offset_of!(Words, nested) == NESTED as usize);

impl Words {
    /// The home whose instance the thread is in, or has its system call done for, or is about to enter; none
    /// in functions of the process.
    pub fn within(&self) -> Option<Mark> {
        let inside = self.inside.load(Ordering::SeqCst) != 0;
        inside.then(|| Mark(self.current.load(Ordering::SeqCst)))
    }

    /// So many calls never come back. For the thread itself.
    pub fn forget_nested(&self, count: u32) {
        self.nested.fetch_sub(count, Ordering::SeqCst);
    }

    /// The thread is in portal code or a domain, whose stack this is or will be if the portal finds it alive.
    pub fn moving(&self, home: Mark) -> bool {
        self.inside.load(Ordering::SeqCst) == TAKEN && self.current.load(Ordering::SeqCst) == home.0
    }
}

/// While it lives, no portal can be called on this thread: signal handlers would find what is held here half
/// done.
pub struct Inside(u32);

impl Inside {
    /// None if the thread is in a domain or the runtime already: the caller is a signal handler.
    pub fn enter() -> Option<Inside> {
        let free = words().inside.load(Ordering::Relaxed) == 0;
        free.then(|| Inside::take(0))
    }

    /// In place of the portal that has come here.
    fn take(after: u32) -> Inside {
        words().inside.store(HELD, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Inside(after)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        words().inside.store(self.0, Ordering::Release);
    }
}

/// Makes the home current, with its instance in `gs`.
fn enter(home: Mark, base: u64) {
    const ARCH_SET_GS: i32 = 0x1001;
    // SAFETY: nothing but fault domains uses `gs` in a process on x86-64 Linux; `base` is a segment.
    unsafe {
        if slots::sets_bases() {
            asm!("wrgsbase {base}", base = in(reg) base);
        } else {
            libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base);
        }
        asm!("mov fs:[{at}], {mark}", mark = in(reg) home.0, at = in(reg) pebble_sfi_current_offset());
    }
}

fn leave() {
    let nowhere: u64;
    // SAFETY: takes the address of the dead record.
    unsafe { asm!("lea {0}, [rip + pebble_sfi_nowhere + 127]", out(reg) nowhere) };
    enter(Mark(nowhere), 0);
}

/// A thread that has been in a fault domain. Portals and the signal handler reach it through records, on its
/// own thread only.
pub struct Thread {
    pub number: u32,
    homes: HashMap<u32, Home>,
    /// Written by the signal handler, fetched after the call.
    pub report: UnsafeCell<Option<Report>>,
    signal_stack: Option<Vec<u8>>,
    /// Why it has last been refused a stack.
    pub refusal: String,
    /// Its own, where that is known.
    pub stack: Range<u64>,
    /// What portals out compare the stack pointer with.
    pub stack_limit: u64,
    /// The processor time that it has had, for whoever ends its calls.
    pub clock: Clock,
    /// For whoever ends its calls, too.
    pub due: Due,
}

/// A clock of the processor time that one thread has had. It can be read while that lives.
#[derive(Clone, Copy)]
pub struct Clock(libc::clockid_t);

impl Clock {
    /// Of whichever thread asks.
    pub const OWN: Clock = Clock(libc::CLOCK_THREAD_CPUTIME_ID);

    pub fn own() -> Clock {
        let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: asks for this thread's clock.
        unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        Clock(clock)
    }

    pub fn now(self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes a structure of ours; a clock that has gone is an error, and no time.
        unsafe { libc::clock_gettime(self.0, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

struct Home {
    mark: Mark,
    instance: Weak<Shared>,
    links: Box<[u64; MAX_LINKS]>,
}

/// Its destructor runs when the thread ends. Boxed, since records point to the thread.
struct Own {
    thread: UnsafeCell<Option<Box<Thread>>>,
    used: Cell<bool>,
}

thread_local! {
    static OWN: Own = const { Own { thread: UnsafeCell::new(None), used: Cell::new(false) } };
}

static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// Less does not hold the frame of a signal with all vector state, and our handler.
const SIGNAL_STACK: usize = 64 << 10;
const SMALLEST_SIGNAL_STACK: usize = 24 << 10;

impl Thread {
    fn new() -> Box<Thread> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let stack = own_stack();
        let mut thread = Box::new(Thread {
            number,
            homes: HashMap::new(),
            report: UnsafeCell::new(None),
            signal_stack: None,
            refusal: String::new(),
            stack_limit: stack_limit(&stack),
            stack,
            clock: Clock::own(),
            due: Due::default(),
        });
        thread.ensure_signal_stack();
        thread
    }

    fn ensure_signal_stack(&mut self) {
        // SAFETY: asks for, and perhaps sets, this thread's alternate stack; the memory given lives as long
        // as the thread.
        unsafe {
            let mut old: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &mut old);
            let enough = old.ss_flags & libc::SS_DISABLE == 0 && old.ss_size >= SMALLEST_SIGNAL_STACK;
            if enough || old.ss_flags & libc::SS_ONSTACK != 0 {
                return;
            }
            let stack = self.signal_stack.insert(vec![0; SIGNAL_STACK]);
            let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIGNAL_STACK };
            libc::sigaltstack(&new, std::ptr::null_mut());
        }
    }

    /// Why somebody wants a call of this thread's ended that has not come back: then whatever it executes in
    /// a domain is a part of that call. Called in the signal handler too.
    pub fn ended(&self) -> Option<Cause> {
        let used = self.alive().filter(|home| home.family().any(left::is_used));
        used.filter_map(|home| home.instance().ended()).next()
    }

    /// Its homes in instances that are alive. Called in the signal handler too.
    fn alive(&self) -> impl Iterator<Item = Mark> {
        self.homes.values().map(|home| home.mark).filter(|home| home.slot() != stacks::DEAD)
    }

    /// All its stacks there.
    pub fn stacks(&self) -> impl Iterator<Item = Mark> {
        self.alive().flat_map(Mark::family)
    }

    /// Table of the thread's homes in the instances that the one in `slot` calls.
    pub fn links(&self, slot: u32) -> u64 {
        self.homes.get(&slot).map_or(0, |home| home.links.as_ptr() as u64)
    }

    /// The thread's home in an instance, made if there is none. Whoever resets the instance is waited for.
    fn home(&mut self, shared: &Shared) -> Result<Mark, Error> {
        let mut out = shared.open_stacks();
        let (slot, upper) = (shared.slot, (shared.base >> 32) as u32);
        let there = self.homes.get(&slot).filter(|home| home.mark.slot() == upper);
        if let Some(home) = there {
            return Ok(home.mark);
        }
        let slots = slots::slots()?;
        let mark = match self.homes.get_mut(&slot) {
            // Of an instance that has been reset, or has gone: the return stack's place is still this
            // thread's.
            Some(home) => {
                if !home.instance.ptr_eq(&shared.me) {
                    stacks::map_return_stack(home.mark)?;
                }
                home.links.fill(0);
                home.instance = shared.me.clone();
                home.mark
            }
            None => {
                let mark = stacks::take_return_stack(slots, slot)?;
                let home = Home { mark, instance: shared.me.clone(), links: Box::new([0; MAX_LINKS]) };
                self.homes.insert(slot, home);
                mark
            }
        };
        self.give_stack(shared, &mut out, mark, mark)?;
        Ok(mark)
    }

    /// Makes the data stack that belongs to a return stack; both are the instance's then.
    fn give_stack(&self, shared: &Shared, out: &mut Out, mark: Mark, home: Mark) -> Result<(), Error> {
        let data = out.take_data_stack(&shared.resources)?;
        let limit = stacks::data_stack_end(shared, data) - DATA_STACK + PAGE;
        let top = stacks::make_data_stack(shared, data)
            .inspect_err(|_| out.give_data_stack(&shared.resources, data))?;
        stacks::furnish(mark, shared, self, home, top, limit);
        out.stacks.push(Given { mark, data });
        Ok(())
    }

    /// One more stack into the home's queue.
    fn queue(&self, shared: &Shared, home: Mark) -> Result<(), Error> {
        let slots = slots::slots()?;
        let mut out = shared.stacks();
        if home.slot() == stacks::DEAD {
            // Somebody has reset the instance just now: the portal will find it out.
            return Ok(());
        }
        let mark = stacks::take_return_stack(slots, shared.slot)?;
        self.give_stack(shared, &mut out, mark, home)
            .inspect_err(|_| stacks::give_return_stack(slots, shared.slot, mark))?;
        for list in [record::QUEUE, record::SIBLING] {
            mark.set(list, home.get(list));
            home.set(list, mark.0);
        }
        Ok(())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let Some(mut thread) = self.thread.get_mut().take() else { return };
        let _inside = Inside::take(0);
        leave();
        if let Ok(slots) = slots::slots() {
            for (slot, home) in thread.homes.drain() {
                crate::instance::forget_thread(slots, slot, home.mark, home.instance.upgrade());
            }
        }
        if thread.signal_stack.is_some() {
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: takes away what this module has given, before its memory goes.
            unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) };
        }
    }
}

/// The thread of a stack on which a call has not come back.
///
/// # Safety
/// It must be the one that asks, or be kept from ending by the lock of the stacks.
pub unsafe fn of(mark: Mark) -> &'static Thread {
    // SAFETY: the record names the block of the thread that owns the stack; while that is in a domain,
    // nothing changes the block.
    unsafe { &*(mark.get(record::THREAD) as *const Thread) }
}

/// Where the thread's own stack lies, without its guard; empty if the system does not say.
fn own_stack() -> Range<u64> {
    // SAFETY: asks about this thread; the attributes are whole, and destroyed once.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return 0..0;
        }
        let (mut low, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
        libc::pthread_attr_getstack(&attributes, &mut low, &mut size);
        libc::pthread_attr_getguardsize(&attributes, &mut guard);
        libc::pthread_attr_destroy(&mut attributes);
        let low = low as u64;
        low + guard as u64..low + size as u64
    }
}

/// From where on that is too short for a function of the process: [`STACK_ROOM`] above its end, or a quarter
/// of a stack that is smaller than four times that. Portals compare without a sign from here on, so other
/// stacks, of signals or coroutines, are no matter of theirs.
fn stack_limit(stack: &Range<u64>) -> u64 {
    let quarter = (stack.end - stack.start) / 4;
    (stack.start + STACK_ROOM.min(quarter)).saturating_sub(STACK_ROOM)
}

/// Runs `f` with this thread's block, which is made at the first use. Not for a signal handler that has
/// interrupted this.
pub fn with<R>(f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
    let run = |own: &Own| {
        if own.used.replace(true) {
            return None;
        }
        // SAFETY: thread-local, and `used` says that nobody else has it.
        let thread = unsafe { &mut *own.thread.get() };
        let result = f(thread.get_or_insert_with(Thread::new));
        own.used.set(false);
        Some(result)
    };
    OWN.try_with(run).ok()?
}

/// In a forked child, whose only thread has a clock of its own.
pub fn in_child() {
    let _ = OWN.try_with(|own| {
        // SAFETY: thread-local, and `used` says that nobody has it.
        let thread = (!own.used.get()).then(|| unsafe { &mut *own.thread.get() }.as_mut()).flatten();
        thread.into_iter().for_each(|thread| thread.clock = Clock::own());
    });
}

/// Makes the thread's stack in the instance before its first call.
pub fn attach_to(shared: &Shared) -> Result<Mark, Error> {
    let _inside = Inside::enter().ok_or(Error::Reentered)?;
    let home = with(|thread| thread.home(shared)).ok_or(Error::NoStack)??;
    enter(home, shared.base);
    Ok(home)
}

/// From a portal whose thread has another instance's mark, or no stack in its queue.
extern "C" fn attach(upper: u32) -> u64 {
    guard(|| attached(upper)).unwrap_or(status::NO_STACK)
}

fn attached(upper: u32) -> u64 {
    let _inside = Inside::take(0);
    let Some(shared) = instance(upper) else { return status::NO_STACK };
    let was = current();
    // A dead one, after a reset, may be made anew in the same place: that is what was missing, and no stack
    // in its queue.
    let lived = was.slot() == upper;
    let entered = with(|thread| {
        let home = thread.home(shared)?;
        if lived && home == was && home.get(record::QUEUE) == 0 {
            thread.queue(shared, home)?;
        }
        Ok::<_, Error>(home)
    });
    match entered {
        Some(Ok(home)) => {
            enter(home, shared.base);
            status::OK
        }
        refused => no_stack(refused),
    }
}

/// Keeps the reason for whoever asks.
fn no_stack<T>(refused: Option<Result<T, Error>>) -> u64 {
    let Some(Err(error)) = refused else { return status::NO_STACK };
    with(|thread| thread.refusal = error.to_string());
    status::NO_STACK
}

/// From a portal between two instances: the thread has no home in the callee, or none that lives, or its
/// queue is empty.
extern "C" fn link(own: u64, link: u32) -> u64 {
    guard(|| linked(own, link)).unwrap_or(status::NO_STACK)
}

fn linked(own: u64, link: u32) -> u64 {
    let own = Mark(own);
    let _inside = Inside::take(TAKEN);
    // The portal has said that it is about to be in the callee; it is not, and who resets that must not wait
    // for it.
    words().current.store(own.get(record::HOME), Ordering::SeqCst);
    let Some(caller) = instance(own.slot()) else { return status::NO_STACK };
    let Some(callee) = caller.linked(link) else { return status::NO_STACK };
    let linked = with(|thread| {
        let alive = |home: &Home| home.mark.slot() == (callee.base >> 32) as u32;
        let lived = thread.homes.get(&callee.slot).is_some_and(alive);
        let home = thread.home(&callee)?;
        let place = thread.homes.get_mut(&caller.slot).and_then(|h| h.links.get_mut(link as usize));
        let place = place.ok_or(Error::NoStack)?;
        let was = std::mem::replace(place, home.0);
        if lived && was == home.0 && home.get(record::QUEUE) == 0 {
            thread.queue(&callee, home)?;
        }
        Ok::<_, Error>(())
    });
    if let Some(Ok(())) = linked { status::OK } else { no_stack(linked) }
}

/// The instance that has called the function of the process that is running: portals out leave its home
/// current.
pub fn caller() -> Option<&'static Shared> {
    let mark = current();
    if mark.slot() == stacks::DEAD {
        return None;
    }
    // SAFETY: the record's instance waits for the function to return.
    unsafe { (mark.get(record::INSTANCE) as *const Shared).as_ref() }
}

fn instance(upper: u32) -> Option<&'static Shared> {
    let slots = slots::existing()?;
    let shared = slots.instance(slots.by_base(upper)?);
    // SAFETY: a portal into (or out of) an instance keeps it alive, and one is running.
    unsafe { shared.as_ref() }
}
