//! The portals that every domain is born with, at fixed indices.

macro_rules! portals {
    ($($name:ident = $index:literal, $iface:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: usize = $index;)*
        /// Index and interface.
        pub const ALL: &[(usize, &str)] = &[$(($index, $iface)),*];
        /// C name and meaning of each, in the same order: apart, since what runs on the machine reads
        /// neither.
        pub const TEXTS: &[(&str, &str)] = &[$((stringify!($name), $text)),*];
    };
}

/// Entry used by the gate when a callee returns.
pub const RETURN: usize = 0;
/// Entry for exceptions.
pub const EXCEPTION: usize = 1;
/// Entry for interrupts.
pub const INTERRUPT: usize = 2;

portals! {
    SYS_GET_ASID = 3, "nucleus.get_asid", "identity of the calling domain (short-circuit)";
    SYS_GET_THREAD_ID = 4, "nucleus.get_thread_id", "identity of the calling thread (short-circuit)";
    SYS_HRTIME = 5, "nucleus.hrtime", "high-resolution time, in ticks (short-circuit)";
    SYS_YIELD = 6, "scheduler.yield", "lets the next thread of the same priority run";
    SYS_HRSLEEP = 7, "scheduler.sleep", "p1: absolute time in ticks at which to wake";
    SYS_THREAD_CREATE = 8, "vm.thread_create", "p1: entry, p2: argument, p3: priority or 0; returns the \
        thread";
    SYS_SBRK = 9, "vm.sbrk", "p1: bytes; returns the old end of the heap";
    SYS_EXIT = 10, "process.exit", "p1: status; ends the domain";
    SYS_PORTAL_OPEN = 11, "pm.open", "p1..p3: name, p4: letters that the opener gives beyond what any \
        stranger may have (a set of `consent::Letters`); returns the index, and the specification in two \
        words; or an error, and why in a word: status CONSENT or SPECIFICATION";
    SYS_PORTAL_REGISTER = 12, "pm.register", "p1..p3: name, p4: first 8 characters of the specification, p5: \
        entry | result words << 32 | characters 9 to 11 << 40; or an error, and status SPECIFICATION in a \
        word";
    SYS_SEM_CREATE = 13, "pm.sem_create", "p1: initial value, p2: 1 if waits are not cut short by the death \
        of the waiting domain, 2 if it is a lock's besides; returns the index of P, V follows it";
    SYS_PORTAL_CREATE = 14, "pm.create", "p1: first interface, p2: count, p3: constant; portals into the \
        caller, put into the table of the domain that called it; or an error, and status SPECIFICATION in a \
        word";
    SYS_PORTAL_REMOVE = 15, "pm.remove", "p1: first index, p2: count; in the table of the domain that called \
        the caller";
    SYS_PORTAL_CLOSE = 16, "pm.close", "p1: first index, p2: count; in the own table";
    SYS_FILE_OPEN = 17, "file.open", "p1..p5: path; returns the first of four portals";
    SYS_CONSOLE_OPEN = 18, "console.open", "p1..p5: path; returns the first of four portals";
    SYS_PIPE_OPEN = 19, "pipe.open", "p1..p5: path; returns the first of four portals";
    SYS_SEM_OPEN = 20, "pm.sem_open", "p1..p3: name; returns the index of P of a semaphore published under \
        it";
    SYS_SEM_PUBLISH = 21, "pm.sem_publish", "p1: index of P, p2..p4: name";
    SYS_INTERFACE = 23, "pm.interface", "p1..p3: name; number of the own interface of that name, for \
        SYS_PORTAL_CREATE";
    SYS_THREAD_EXIT = 22, "scheduler.thread_exit", "ends the calling thread";
    SYS_CONTROL = 32, "pm.control", "interposition: p1: operation (abi/src/control.rs)";
    SYS_PROCESS = 33, "process.control", "p1: a suspended child, or 0 for a copy of the caller and of the \
        stack at p3, p2: handler; returns the child, all of whose portals lead there. p2 0: starts the copy, \
        p3: entry, p4: stack pointer";
    SYS_PARK = 39, "scheduler.park", "waits until the server that has answered PORTAL_WAIT to this thread \
        wakes it; else returns at once";
}

/// Portals that only trusted components import: at fixed indices, since assembly names them.
pub const NUCLEUS_SWITCH: usize = 24;
pub const NUCLEUS_SET_TIMER: usize = 25;
pub const NUCLEUS_FLUSH: usize = 26;
pub const NUCLEUS_IDLE: usize = 27;
pub const SCHEDULER_TICK: usize = 28;
pub const SCHEDULER_IRQ: usize = 29;
pub const NUCLEUS_STACK_KEEP: usize = 36;
pub const NUCLEUS_STACK_OFFER: usize = 37;
pub const NUCLEUS_STACK_RELEASE: usize = 38;
/// Index and interface of those.
pub const FIXED: [(usize, &str); 9] = [
    (NUCLEUS_SWITCH, "nucleus.switch"),
    (NUCLEUS_SET_TIMER, "nucleus.set_timer"),
    (NUCLEUS_FLUSH, "nucleus.flush"),
    (NUCLEUS_IDLE, "nucleus.idle"),
    (NUCLEUS_STACK_KEEP, "nucleus.stack_keep"),
    (NUCLEUS_STACK_OFFER, "nucleus.stack_offer"),
    (NUCLEUS_STACK_RELEASE, "nucleus.stack_release"),
    (SCHEDULER_TICK, "scheduler.tick"),
    (SCHEDULER_IRQ, "scheduler.irq"),
];

/// Error return with `MOVED` to whoever called the domain: given to servers that can be replaced.
pub const LEAVE_MOVED: usize = 30;
/// Error return with `WAIT`: components of the image have it.
pub const LEAVE_WAIT: usize = 40;
/// Where the gate's second stub leads: error return with `TIMEOUT` from a call whose time is over; of any
/// other it raises the domain's exception. Every domain has it, common code.
pub const UNWIND: usize = 31;
/// Common code to which others go on through the table: a callee without a free stack; the end of a thread.
/// So both follow when the scheduler is replaced.
pub const NO_STACK: usize = 34;
pub const THREAD_END: usize = 35;

/// First index for imports and for portals opened later.
pub const FIRST_FREE: usize = 41;

/// Order of the portals of an open file.
pub const FILE_READ: usize = 0;
pub const FILE_WRITE: usize = 1;
pub const FILE_SEEK: usize = 2;
pub const FILE_CLOSE: usize = 3;
pub const FILE_PORTALS: usize = 4;
/// `whence` of a seek in a file of the file server, beside 0 to 2: what it is, as the `ABOUT` bits with its
/// size above them; cuts it off at the offset.
pub const SEEK_ABOUT: u64 = 3;
pub const SEEK_CUT: u64 = 4;
/// `whence` of a seek in a file or a pipe: makes one more portal to it, by which a page that the caller lends
/// is filled, or written.
pub const SEEK_READ_PAGE: u64 = 5;
pub const SEEK_WRITE_PAGE: u64 = 6;
/// `whence` of a seek in a file of the file server: from now on all that is written through these portals
/// goes to its end, as with [`WRITE_APPEND`].
pub const SEEK_APPEND: u64 = 7;
/// `whence` of a seek in a pipe or the console: which calls would not wait now, as the `READY` bits.
pub const SEEK_READY: u64 = 8;
/// `whence` of a seek in a file of the archive that has pages of its own: the caller sees them from now on,
/// from that offset to the end of the file; answered with the address, and so many bytes times
/// [`SHOWN_SIZE`].
pub const SEEK_SHOW: u64 = 9;
pub const SHOWN_SIZE: u64 = 1 << 28;
const _: () = assert!(crate::map::PHYS_VA <= SHOWN_SIZE, "an address of the archive is below");
/// `whence` of a seek in a pipe: pages of the caller's and of whoever is at the other side change places. The
/// offset is the address of the first page, with their number, below 4096, in its lower bits; answered with
/// how many have, 0 at the end. `EAGAIN`: these bytes are for `read` and `write`.
pub const SEEK_FLIP: u64 = 10;
pub const READY_READ: u64 = 1;
pub const READY_WRITE: u64 = 2;
/// Nobody is at the other side any more.
pub const READY_END: u64 = 4;
pub const ABOUT_DIRECTORY: u64 = 1;
/// The caller may write to it, or make files in it.
pub const ABOUT_WRITABLE: u64 = 2;
pub const ABOUT_SIZE: u64 = 4;
/// Beside the count of a write: at the file's end, wherever that is by then.
pub const WRITE_APPEND: u64 = 1 << 62;
