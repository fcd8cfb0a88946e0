//! The state machine. See the head of the crate for strategy and modes.
//!
//! Invariants:
//! * Every operation ends in `settle`, which is the only place that wakes, echoes, transmits and sets the
//!   UART's interrupts; it goes by the state alone, so no event is forgotten between two operations.
//! * Whoever is told to wait in a queue is noted, under the lock; all of a queue are woken at once, and look
//!   again: one that does not come back keeps nobody from what is there.
//! * Lines are made and taken for readers of the foreground alone ([`Front`]); all others wait apart, so that
//!   none has bytes taken out of the input that are for somebody else.
//! * Only bytes that a Ctrl-C throws away are ever dropped, and those of a write whose domain dies in the
//!   midst of it.

use pebble_abi::call::IO_BYTES;
use pebble_abi::errno::{self, Errno};
use pebble_abi::link::pack;
use pebble_abi::sys::{READY_READ, READY_WRITE};

use crate::front::Front;
use crate::gather::{Gather, MOST_SENT};
use crate::line::{ECHO_BYTES, Effect, LineDiscipline};
use crate::log::Log;
use crate::ring::Ring;
use crate::uart::{FIFO_BYTES, Registers, Uart16550};

/// Bytes typed ahead.
pub const INPUT_BYTES: usize = 2048;
/// Bytes on their way out.
pub const OUTPUT_BYTES: usize = 1024;

/// The paths that can be opened.
pub const CONSOLE: &str = "/dev/console";
pub const CONTROL: &str = "/dev/console/ctl";

const CTRL_C: u8 = 3;
/// In the control word, beside the domain: it is the control file.
const IS_CONTROL: u64 = 1 << 16;
/// In the control word of a text file: the family of who has opened it.
const FAMILY_SHIFT: u32 = 24;
/// The control word's number of the open file begins there: two programs below one controller are one domain
/// here.
const NUMBER_SHIFT: u32 = 32;

/// Who waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// A line, in cooked mode.
    Line,
    /// Bytes, in raw mode.
    Raw,
    Interrupt,
    /// Room for output.
    Output,
    /// The foreground.
    Background,
}

pub const QUEUES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes in the words; none: the end of the input, or none were asked for.
    Data {
        count: usize,
        words: [u64; 4],
    },
    Block(Queue),
    /// An error number, positive.
    Failed(Errno),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Done(usize),
    Block(Queue),
    Failed(Errno),
}

pub struct Console<R> {
    uart: Uart16550<R>,
    pub(crate) input: Ring<INPUT_BYTES>,
    pub(crate) output: Ring<OUTPUT_BYTES>,
    /// The `\r` of the first `\n` in `output` has been sent.
    pub(crate) returned: bool,
    pub(crate) line: LineDiscipline,
    pub(crate) raw: bool,
    /// No echo in cooked mode.
    pub(crate) silent: bool,
    /// Domain that has the control file open, or 0.
    pub(crate) controller: u16,
    pub(crate) interrupted: bool,
    pub(crate) front: Front,
    /// Text files opened so far.
    pub(crate) opened: u32,
    pub(crate) gather: Gather,
    pub log: Log,
    /// Whether anybody waits in each queue.
    waiting: [bool; QUEUES],
}

impl<R: Registers> Console<R> {
    pub const fn new(registers: R) -> Self {
        Console {
            uart: Uart16550::new(registers),
            input: Ring::new(),
            output: Ring::new(),
            returned: false,
            line: LineDiscipline::new(),
            raw: false,
            silent: false,
            controller: 0,
            interrupted: false,
            front: Front::new(),
            opened: 0,
            gather: Gather::new(),
            log: Log::new(),
            waiting: [false; QUEUES],
        }
    }

    /// Sets up the UART.
    pub fn init(&mut self) {
        self.uart.init();
        self.settle(&mut |_| {});
    }

    /// Opens the console, or its control file, for domain `asid` of a family; returns the control word.
    pub fn open(&mut self, asid: u16, family: u8, path: [u64; 5]) -> Result<u64, Errno> {
        if Some(path) == pack(CONSOLE) {
            self.opened = self.opened.wrapping_add(1);
            let family = u64::from(family) << FAMILY_SHIFT;
            Ok(u64::from(asid) | family | u64::from(self.opened) << NUMBER_SHIFT)
        } else if Some(path) == pack(CONTROL) {
            if self.controller != 0 {
                return Err(errno::EPERM);
            }
            self.controller = asid;
            self.interrupted = false;
            Ok(u64::from(asid) | IS_CONTROL)
        } else {
            Err(errno::ENOENT)
        }
    }

    /// Up to `max` bytes, 32 at most; of the control file: one byte per Ctrl-C.
    pub fn read(&mut self, control: u64, max: u64, wake: &mut impl FnMut(Queue)) -> Read {
        let max = max.min(IO_BYTES as u64) as usize;
        let asid = control as u16;
        let (queue, data) = if max == 0 {
            (Queue::Line, Some((0, [0; 4])))
        } else if control & IS_CONTROL != 0 {
            if self.controller != asid {
                return Read::Failed(errno::EBADF);
            }
            let event = core::mem::take(&mut self.interrupted);
            (Queue::Interrupt, event.then_some((1, [u64::from(CTRL_C), 0, 0, 0])))
        } else if self.raw && self.controller == asid {
            (Queue::Raw, self.read_raw(max))
        } else if !self.in_front(control) {
            (Queue::Background, None)
        } else {
            if !self.raw {
                self.cook();
            }
            let served = !self.raw && self.line.ready();
            (Queue::Line, served.then(|| self.line.get(max)))
        };
        let read = match data {
            Some((count, words)) => Read::Data { count, words },
            None => {
                self.waiting[queue as usize] = true;
                Read::Block(queue)
            }
        };
        self.settle(wake);
        read
    }

    /// Which calls would not wait now: the `READY` bits.
    pub fn ready(&mut self, control: u64, wake: &mut impl FnMut(Queue)) -> u64 {
        let controls = self.controller == control as u16;
        let readable = if control & IS_CONTROL != 0 {
            !controls || self.interrupted
        } else if self.raw {
            controls && !self.input.is_empty()
        } else if self.in_front(control) {
            self.cook();
            self.line.ready()
        } else {
            false
        };
        // Some of what is on its way out may go now.
        self.settle(wake);
        let writable = control & IS_CONTROL != 0 || self.output.room() >= MOST_SENT;
        u64::from(readable) * READY_READ | u64::from(writable) * READY_WRITE
    }

    /// The shell itself, the jobs that it says, and the image's; and everybody while there is no shell.
    fn in_front(&self, control: u64) -> bool {
        let family = (control >> FAMILY_SHIFT) as u8;
        [0, control as u16].contains(&self.controller) || family == 0 || self.front.has(family)
    }

    /// Takes the first 32 of `count` bytes, or blocks; those of one write come out together. To the control
    /// file: `rawon`, `rawoff`, `echoon`, `echooff`, `front N` or `front`.
    pub fn write(
        &mut self,
        control: u64,
        count: u64,
        words: [u64; 4],
        wake: &mut impl FnMut(Queue),
    ) -> Write {
        let taken = count.min(IO_BYTES as u64) as usize;
        let bytes = words.map(u64::to_le_bytes);
        let bytes = &bytes.as_flattened()[..taken];
        if control & IS_CONTROL != 0 {
            if self.controller != control as u16 {
                return Write::Failed(errno::EBADF);
            }
            match bytes {
                b"rawon" => self.set_raw(true, wake),
                b"rawoff" => self.set_raw(false, wake),
                b"echoon" => self.silent = false,
                b"echooff" => self.silent = true,
                _ if self.front.order(bytes) => self.look_again(wake),
                _ => return Write::Failed(errno::EINVAL),
            }
        } else if self.output.room() < MOST_SENT {
            self.waiting[Queue::Output as usize] = true;
            return Write::Block(Queue::Output);
        } else {
            let Console { gather, output, log, controller, .. } = self;
            gather.write(control, count, bytes, &mut |file, byte| {
                // The shell's own words, the log that it shows among them, push nobody's out.
                if file as u16 != *controller {
                    log.put(file as u16, byte);
                }
                put(output, byte);
            });
        }
        self.settle(wake);
        Write::Done(taken)
    }

    pub fn close(&mut self, control: u64, wake: &mut impl FnMut(Queue)) {
        if control & IS_CONTROL != 0 {
            self.release(control as u16, wake);
        }
    }

    /// The domain of this name is dead: drops what it had begun to write, and takes the control file from it.
    pub fn gone(&mut self, asid: u16, name: [u64; 2], wake: &mut impl FnMut(Queue)) {
        self.log.gone(asid, name);
        self.gather.forget(|file| file as u16 == asid);
        self.front.remove(asid as u8);
        self.release(asid, wake);
    }

    fn release(&mut self, asid: u16, wake: &mut impl FnMut(Queue)) {
        if self.controller == asid {
            self.controller = 0;
            self.silent = false;
            self.front.clear();
            self.look_again(wake);
            self.set_raw(false, wake);
            self.wake_all(Queue::Interrupt, wake);
        }
        self.settle(wake);
    }

    /// The UART has interrupted, or may have: takes what has arrived, sends what can be sent.
    pub fn service(&mut self, wake: &mut impl FnMut(Queue)) {
        while self.input.room() != 0 {
            match self.uart.receive() {
                Some(CTRL_C) if !self.raw => {
                    self.input.clear();
                    self.take(CTRL_C);
                    self.look_again(wake);
                }
                Some(byte) => put(&mut self.input, byte),
                None => break,
            }
        }
        self.settle(wake);
    }

    pub fn registers(&mut self) -> &mut R {
        self.uart.registers()
    }

    /// Up to the end of a line at most: what follows may be for another program.
    fn read_raw(&mut self, max: usize) -> Option<(usize, [u64; 4])> {
        let mut words = [0; 4];
        let mut count = 0;
        while count < max
            && let Some(byte) = self.input.pop()
        {
            words[count / 8] |= u64::from(byte) << (count % 8 * 8);
            count += 1;
            let pair = byte == b'\r' && self.input.peek() == Some(b'\n');
            if matches!(byte, b'\r' | b'\n') && !pair {
                break;
            }
        }
        (count != 0).then_some((count, words))
    }

    #[inline(never)]
    fn set_raw(&mut self, raw: bool, wake: &mut impl FnMut(Queue)) {
        if self.raw != raw {
            self.raw = raw;
            self.wake_all(Queue::Raw, wake);
            self.wake_all(Queue::Line, wake);
        }
    }

    /// Another foreground.
    #[inline(never)]
    fn look_again(&mut self, wake: &mut impl FnMut(Queue)) {
        self.wake_all(Queue::Line, wake);
        self.wake_all(Queue::Background, wake);
    }

    /// Lets the discipline take bytes until a line is ready.
    fn cook(&mut self) {
        while !self.line.ready() && self.output.room() >= ECHO_BYTES {
            let Some(byte) = self.input.pop() else { break };
            self.take(byte);
        }
    }

    fn take(&mut self, byte: u8) {
        if self.line.ready() {
            // Ctrl-C throws away a line that is not read yet.
            self.line.clear();
        }
        let Console { output, silent, .. } = self;
        // On arrival a Ctrl-C may find no room for its echo; it counts all the same.
        let effect = self.line.take(byte, &mut |byte| _ = !*silent && output.push(byte));
        if effect == Effect::Interrupt && self.controller != 0 {
            self.interrupted = true;
            // What runs is about to be ended, and what is typed from now on is not for it.
            self.front.clear();
        }
    }

    /// Brings everything up to the state: see the head of the file.
    fn settle(&mut self, wake: &mut impl FnMut(Queue)) {
        if !self.raw && self.waiting[Queue::Line as usize] {
            self.cook();
            if self.line.ready() {
                self.wake_all(Queue::Line, wake);
            }
        }
        if self.raw && !self.input.is_empty() {
            self.wake_all(Queue::Raw, wake);
        }
        if self.interrupted {
            self.wake_all(Queue::Interrupt, wake);
        }
        self.transmit();
        if self.output.room() >= MOST_SENT {
            self.wake_all(Queue::Output, wake);
        }
        self.uart.interrupts(self.input.room() >= FIFO_BYTES, !self.output.is_empty());
    }

    pub(crate) fn wake_all(&mut self, queue: Queue, wake: &mut impl FnMut(Queue)) {
        if core::mem::take(&mut self.waiting[queue as usize]) {
            wake(queue);
        }
    }

    fn transmit(&mut self) {
        if self.output.is_empty() {
            return;
        }
        for _ in 0..self.uart.sendable() {
            let Some(byte) = self.output.peek() else { break };
            let carriage_return = byte == b'\n' && !self.returned;
            self.returned = carriage_return;
            if carriage_return {
                self.uart.send(b'\r');
            } else {
                self.uart.send(byte);
                self.output.pop();
            }
        }
    }
}

/// Pushes a byte for which the caller has seen room.
fn put<const N: usize>(ring: &mut Ring<N>, byte: u8) {
    let room = ring.push(byte);
    debug_assert!(room);
}
