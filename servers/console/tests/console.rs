//! The whole console over a UART that behaves like the real one: a FIFO of 16, a sender that stops when it is
//! full, a transmitter that takes 16 when it is empty.

use std::collections::VecDeque;

use pebble_abi::errno::*;
use pebble_abi::link::pack;
use pebble_abi::sys::{READY_READ, READY_WRITE};
use pebble_console::*;
use proptest::prelude::*;

const SHELL: u16 = 9;

#[derive(Default)]
struct Fake {
    /// What the sender has yet to send.
    sender: VecDeque<u8>,
    fifo: VecDeque<u8>,
    transmitter: Vec<u8>,
    screen: Vec<u8>,
    enabled: u8,
    line_control: u8,
    overruns: usize,
}

impl Fake {
    fn feed(&mut self, count: usize) {
        for _ in 0..count {
            if self.fifo.len() < FIFO_BYTES
                && let Some(byte) = self.sender.pop_front()
            {
                self.fifo.push_back(byte);
            }
        }
    }

    fn shift_out(&mut self) {
        self.screen.append(&mut self.transmitter);
    }

    fn interrupts(&self) -> bool {
        self.enabled & 1 != 0 && !self.fifo.is_empty() || self.enabled & 2 != 0 && self.transmitter.is_empty()
    }
}

impl Registers for Fake {
    fn read(&mut self, offset: usize) -> u8 {
        match offset {
            0 => self.fifo.pop_front().unwrap(),
            5 => u8::from(!self.fifo.is_empty()) | if self.transmitter.is_empty() { 0x60 } else { 0 },
            _ => panic!("register {offset}"),
        }
    }

    fn write(&mut self, offset: usize, value: u8) {
        match (offset, self.line_control & 0x80 != 0) {
            (0, false) => {
                self.overruns += usize::from(self.transmitter.len() == FIFO_BYTES);
                self.transmitter.push(value);
            }
            (1, false) => self.enabled = value,
            (3, _) => self.line_control = value,
            _ => {}
        }
    }
}

struct Bench {
    console: Console<Fake>,
    /// How often the waiters of each queue were woken.
    tokens: [u32; QUEUES],
}

impl Bench {
    fn new() -> Self {
        let mut console = Console::new(Fake::default());
        console.init();
        Bench { console, tokens: [0; QUEUES] }
    }

    fn uart(&mut self) -> &mut Fake {
        self.console.registers()
    }

    fn open(&mut self, asid: u16, path: &str) -> u64 {
        self.console.open(asid, if asid == SHELL { 0 } else { asid as u8 }, pack(path).unwrap()).unwrap()
    }

    fn service(&mut self) {
        let Bench { console, tokens } = self;
        console.service(&mut |q| tokens[q as usize] += 1);
    }

    /// Which calls are said not to wait.
    fn ready(&mut self, control: u64) -> u64 {
        let Bench { console, tokens } = self;
        console.ready(control, &mut |q| tokens[q as usize] += 1)
    }

    /// What is said of it beforehand is true.
    fn read(&mut self, control: u64, max: u64) -> Result<Vec<u8>, Queue> {
        let ready = max != 0 && self.ready(control) & READY_READ != 0;
        let read = self.read_any(control, max);
        assert!(read.is_ok() || !ready);
        read
    }

    fn read_any(&mut self, control: u64, max: u64) -> Result<Vec<u8>, Queue> {
        let Bench { console, tokens } = self;
        match console.read(control, max, &mut |q| tokens[q as usize] += 1) {
            Read::Data { count, words } => {
                Ok(words.iter().flat_map(|w| w.to_le_bytes()).take(count).collect())
            }
            Read::Block(queue) => Err(queue),
            Read::Failed(error) => panic!("{error}"),
        }
    }

    fn write(&mut self, control: u64, text: &[u8]) -> Write {
        self.write_of(control, text.len(), text)
    }

    /// The next bytes of a write that has so many left.
    fn write_of(&mut self, control: u64, left: usize, text: &[u8]) -> Write {
        let mut all = [0; 32];
        all[..text.len()].copy_from_slice(text);
        let words = core::array::from_fn(|i| u64::from_le_bytes(*all[i * 8..].first_chunk().unwrap()));
        let ready = self.ready(control) & READY_WRITE != 0;
        let Bench { console, tokens } = self;
        let written = console.write(control, left as u64, words, &mut |q| tokens[q as usize] += 1);
        assert!(!ready || !matches!(written, Write::Block(_)));
        written
    }

    /// Types, with the driver and the line at full speed.
    fn types(&mut self, text: &str) {
        self.uart().sender.extend(text.bytes());
        self.run();
    }

    fn run(&mut self) {
        loop {
            self.uart().feed(FIFO_BYTES);
            self.uart().shift_out();
            if !self.uart().interrupts() {
                return;
            }
            self.service();
        }
    }

    fn screen(&mut self) -> String {
        self.run();
        String::from_utf8(std::mem::take(&mut self.uart().screen)).unwrap()
    }
}

#[test]
fn a_line_typed_and_echoed() {
    let mut b = Bench::new();
    let c = b.open(1, CONSOLE);
    assert_eq!(b.write(c, b"name?\n"), Write::Done(6));
    assert_eq!(b.read(c, 32), Err(Queue::Line));
    b.types("ix\x7f");
    assert_eq!(b.tokens, [0; QUEUES]);
    b.types("van\r");
    assert_eq!(b.tokens[Queue::Line as usize], 1);
    assert_eq!(b.read(c, 3), Ok(b"iva".to_vec()));
    assert_eq!(b.read(c, 32), Ok(b"n\n".to_vec()));
    assert_eq!(b.screen(), "name?\r\nix\x08 \x08van\r\n");
}

#[test]
fn raw_mode_is_the_controllers() {
    let mut b = Bench::new();
    let (shell, ctl, other) = (b.open(SHELL, CONSOLE), b.open(SHELL, CONTROL), b.open(1, CONSOLE));
    assert_eq!(b.console.open(1, 1, pack(CONTROL).unwrap()), Err(EPERM));
    assert_eq!(b.write(ctl, b"front 1"), Write::Done(7));
    assert_eq!(b.write(ctl, b"rawon"), Write::Done(5));
    assert_eq!(b.read(other, 32), Err(Queue::Line));
    assert_eq!(b.read(shell, 32), Err(Queue::Raw));
    b.types("a\x03\x7f\rnext\r\nlines\n");
    assert_eq!(b.tokens, [0, 1, 0, 0, 0]);
    assert_eq!(b.read(shell, 32), Ok(b"a\x03\x7f\r".to_vec()));
    assert_eq!(b.read(shell, 32), Ok(b"next\r\n".to_vec()));
    assert_eq!(b.screen(), "");
    assert_eq!(b.write(ctl, b"rawoff"), Write::Done(6));
    assert_eq!(b.tokens, [1, 1, 0, 0, 0]);
    assert_eq!(b.read(other, 32), Ok(b"lines\n".to_vec()));
    assert_eq!(b.write(ctl, b"rawoffx"), Write::Failed(EINVAL));
    assert_eq!(b.write(ctl, b""), Write::Failed(EINVAL));
}

#[test]
fn ctrl_c_is_an_event_in_cooked_mode() {
    let mut b = Bench::new();
    let (ctl, other) = (b.open(SHELL, CONTROL), b.open(1, CONSOLE));
    assert_eq!(b.read(ctl, 32), Err(Queue::Interrupt));
    b.types("typed ahead\rfor nothing\x03");
    assert_eq!(b.tokens, [0, 0, 1, 0, 0]);
    assert_eq!(b.read(ctl, 32), Ok(vec![3]));
    assert_eq!(b.read(ctl, 32), Err(Queue::Interrupt));
    assert_eq!(b.read(other, 32), Err(Queue::Background));
    assert_eq!(b.screen(), "^C\r\n");
}

#[test]
fn the_foreground_alone_reads() {
    let mut b = Bench::new();
    let (shell, ctl) = (b.open(SHELL, CONSOLE), b.open(SHELL, CONTROL));
    let (job, other) = (b.open(20, CONSOLE), b.open(200, CONSOLE));
    // A domain that the job has started: of its family.
    let child = b.console.open(21, 20, pack(CONSOLE).unwrap()).unwrap();
    b.write(ctl, b"front 20");
    // Who waits in the background has no line made of what is typed.
    assert_eq!(b.read(other, 32), Err(Queue::Background));
    b.types("for the job\rand its child\r");
    assert_eq!(b.screen(), "");
    assert_eq!(b.read(other, 32), Err(Queue::Background));
    assert_eq!(b.read(job, 32), Ok(b"for the job\n".to_vec()));
    assert_eq!(b.read(child, 32), Ok(b"and its child\n".to_vec()));
    // Nobody but the shell says who is in front, in no words but these.
    b.write(other, b"front 200");
    assert_eq!(b.read(other, 32), Err(Queue::Background));
    for wrong in
        [&b"front 0"[..], b"front 256", b"front -1", b"front ", b"front x", b"frontier", b"front 1 2"]
    {
        assert_eq!(b.write(ctl, wrong), Write::Failed(EINVAL), "{wrong:?}");
    }
    // Ctrl-C, the end of the job, and the shell's word end it; that of the shell lets all read.
    assert_eq!(b.read(job, 32), Err(Queue::Line));
    b.types("\x03");
    assert!(b.tokens[Queue::Line as usize] > 0);
    assert_eq!(b.read(job, 32), Err(Queue::Background));
    for end in [0, 1] {
        b.write(ctl, b"front 20");
        b.write(ctl, b"front 200");
        assert_eq!(b.read(other, 32), Err(Queue::Line));
        if end == 0 {
            b.console.gone(200, [0; 2], &mut |_| {});
        } else {
            b.write(ctl, b"front");
        }
        assert_eq!(b.read(other, 32), Err(Queue::Background));
    }
    assert_eq!(b.read(shell, 32), Err(Queue::Line));
    b.types("for the shell\r");
    assert_eq!(b.read(shell, 32), Ok(b"for the shell\n".to_vec()));
    b.console.gone(SHELL, [0; 2], &mut |_| {});
    assert_eq!(b.read(other, 32), Err(Queue::Line));
}

#[test]
fn a_dead_controller_leaves_cooked_mode() {
    let mut b = Bench::new();
    let (ctl, other) = (b.open(SHELL, CONTROL), b.open(1, CONSOLE));
    b.write(ctl, b"rawon");
    b.types("x\r");
    assert_eq!(b.read(other, 32), Err(Queue::Background));
    let Bench { console, tokens } = &mut b;
    console.gone(SHELL, [0; 2], &mut |q| tokens[q as usize] += 1);
    assert_eq!(b.tokens, [0, 0, 0, 0, 1]);
    assert_eq!(b.read(other, 32), Ok(b"x\n".to_vec()));
    b.open(2, CONTROL);
}

#[test]
fn a_full_ring_holds_the_sender() {
    let mut b = Bench::new();
    let c = b.open(1, CONSOLE);
    let text: String =
        (0..20_000).map(|i| if i % 50 == 49 { '\n' } else { (b'a' + (i % 26) as u8) as char }).collect();
    b.types(&text);
    assert_eq!(b.uart().sender.len(), text.len() - INPUT_BYTES - FIFO_BYTES);
    let mut got = vec![];
    while got.len() < text.len() {
        got.extend(b.read(c, 32).unwrap());
        b.run();
    }
    assert_eq!(got, text.as_bytes());
}

#[test]
fn hostile_words() {
    let mut b = Bench::new();
    let c = b.open(1, CONSOLE);
    for left in [33, u64::MAX, u64::MAX, 0] {
        // No more than the words can hold, and nothing is kept for ever.
        let taken = left.min(32) as usize;
        assert_eq!(b.console.write(c, left, [0x7878_7878_7878_7878; 4], &mut |_| {}), Write::Done(taken));
    }
    assert_eq!(b.screen(), "x".repeat(96));
    assert_eq!(b.read(c, 0), Ok(vec![]));
    for path in ["", "/", "/dev/consol", "/dev/console/", "/dev/console/x"] {
        assert_eq!(b.console.open(1, 1, pack(path).unwrap()), Err(ENOENT));
    }
}

/// A long write, as the libraries make it.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &[u8])> {
    text.as_bytes().chunks(32).scan(text.len(), |left, piece| {
        let before = *left;
        *left -= piece.len();
        Some((before, piece))
    })
}

#[test]
fn what_is_written_together_comes_out_together() {
    let mut b = Bench::new();
    // The same domain twice: programs below one controller.
    let files = [b.open(1, CONSOLE), b.open(1, CONSOLE), b.open(2, CONSOLE)];
    let lines = ["a".repeat(99) + "\n", "b".repeat(99) + "\n", "c".repeat(99) + "\n"];
    let mut writers: Vec<_> = lines.iter().map(|line| pieces(line)).collect();
    for _ in 0..4 {
        for (file, writer) in files.iter().zip(&mut writers) {
            let (left, piece) = writer.next().unwrap();
            assert_eq!(b.write_of(*file, left, piece), Write::Done(piece.len()));
        }
    }
    assert_eq!(b.screen().replace('\r', ""), lines.concat());
    // A prompt does not wait, whoever is in the midst of a line.
    b.write_of(files[0], 40, &[b'd'; 32]);
    b.write(files[1], b"> ");
    assert_eq!(b.screen(), "> ");
    b.write_of(files[0], 8, b"ddddddd\n");
    assert_eq!(b.screen(), "d".repeat(39) + "\r\n");
}

#[test]
fn lines_of_a_long_write_are_whole() {
    let mut b = Bench::new();
    let (long, other) = (b.open(1, CONSOLE), b.open(2, CONSOLE));
    let text = ("e".repeat(69) + "\n").repeat(20);
    for (left, piece) in pieces(&text) {
        b.write_of(long, left, piece);
        b.write(other, b"-\n");
        b.run();
    }
    let screen = b.screen().replace('\r', "");
    assert!(screen.lines().all(|line| line == "-" || line == "e".repeat(69)), "{screen}");
    assert_eq!(screen.matches('e').count(), 69 * 20);
}

#[test]
fn writers_who_do_not_go_on_hold_up_nobody() {
    let mut b = Bench::new();
    let lazy: Vec<u64> = (0..2 * PLACES as u16).map(|n| b.open(100 + n, CONSOLE)).collect();
    for file in &lazy {
        assert_eq!(b.write_of(*file, 1000, &[b'f'; 32]), Write::Done(32));
    }
    let whole = b.open(1, CONSOLE);
    for (left, piece) in pieces(&("g".repeat(99) + "\n")) {
        b.write_of(whole, left, piece);
    }
    let screen = b.screen();
    assert!(screen.contains(&("g".repeat(99) + "\r\n")), "{screen}");
    // Those who were first gave up their places, with what they had written; what the dead had is dropped.
    assert_eq!(screen.matches('f').count(), 32 * (PLACES + 1));
    (0..2 * PLACES as u16).for_each(|n| b.console.gone(100 + n, [0; 2], &mut |_| {}));
    // Another write of the same file: what was kept of the one before goes first.
    b.write_of(whole, 100, &[b'h'; 32]);
    b.write_of(whole, 3, b"ij\n");
    assert_eq!(b.screen(), "h".repeat(32) + "ij\r\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Programs that copy what they read to the console, while a script is pasted; everything at its own
    /// pace.
    #[test]
    fn nothing_is_lost_at_any_pace(
        lines in prop::collection::vec("[a-z]{0,90}", 1..400),
        raw in any::<bool>(),
        readers in 1usize..4,
        pace in prop::collection::vec((0usize..8, 1usize..40), 1..50),
    ) {
        let text: String = lines.iter().flat_map(|l| [l.as_str(), "\n"]).collect();
        let mut b = Bench::new();
        let ctl = b.open(SHELL, CONTROL);
        if raw {
            b.write(ctl, b"rawon");
        }
        b.uart().sender.extend(text.bytes());
        let mut threads: Vec<(u64, Option<(Queue, u32)>, Vec<u8>)> =
            (0..readers).map(|_| (b.open(SHELL, CONSOLE), None, vec![])).collect();
        let mut idle = 0;
        let (mut got, mut written) = (vec![], vec![]);
        for (what, n) in pace.iter().cycle().copied().chain([(0, 0)]) {
            let before = (b.uart().sender.len(), b.uart().screen.len(), got.len());
            // Whatever the pace says, each part gets its turn when nothing else moves.
            match if idle < 16 { what } else { idle % 8 } {
                0 => b.uart().feed(n),
                1 => b.uart().shift_out(),
                2 | 3 if b.uart().interrupts() => b.service(),
                turn => {
                    let at = turn % readers;
                    let (control, asleep, pending) = &mut threads[at];
                    if let Some((queue, seen)) = *asleep {
                        if b.tokens[queue as usize] == seen {
                            idle += 1;
                            if idle > 500 {
                                break;
                            }
                            continue;
                        }
                        *asleep = None;
                    }
                    if pending.is_empty() {
                        match b.read(*control, n as u64) {
                            Ok(bytes) => {
                                got.extend(&bytes);
                                *pending = bytes;
                            }
                            Err(queue) => *asleep = Some((queue, b.tokens[queue as usize])),
                        }
                    } else {
                        let out: Vec<u8> = pending.iter().map(|b| b.to_ascii_uppercase()).collect();
                        match b.write(*control, &out) {
                            Write::Done(_) => {
                                written.extend(&out);
                                pending.clear();
                            }
                            Write::Block(queue) => *asleep = Some((queue, b.tokens[queue as usize])),
                            Write::Failed(error) => panic!("{error}"),
                        }
                    }
                }
            }
            let progress = before != (b.uart().sender.len(), b.uart().screen.len(), got.len());
            idle = if progress { 0 } else { idle + 1 };
            if idle > 500 {
                break;
            }
        }
        prop_assert_eq!(b.uart().overruns, 0);
        prop_assert_eq!(String::from_utf8(got).unwrap(), text.clone());
        // Upper case on the screen is what was written, lower case the echo: each of them whole and in order.
        let screen = b.screen().replace('\r', "");
        let upper: String = screen.chars().filter(|c| c.is_ascii_uppercase()).collect();
        let lower: String = screen.chars().filter(|c| c.is_ascii_lowercase()).collect();
        let written: String = String::from_utf8(written).unwrap().replace('\n', "");
        prop_assert_eq!(upper, written);
        prop_assert_eq!(lower, if raw { String::new() } else { lines.concat() });
    }
}

#[test]
fn without_echo_lines_read_the_same() {
    let mut b = Bench::new();
    let (c, ctl) = (b.open(SHELL, CONSOLE), b.open(SHELL, CONTROL));
    b.write(ctl, b"echooff");
    b.types("secrex\x7ft\n");
    assert_eq!(b.read(c, 32).unwrap(), b"secret\n");
    assert_eq!(b.screen(), "");
    b.console.close(u64::from(SHELL) | 1 << 16, &mut |_| {});
    b.types("ls\n");
    assert_eq!(b.read(c, 32).unwrap(), b"ls\n");
    assert_eq!(b.screen(), "ls\r\n");
}

proptest! {
    /// Whatever was typed, edited, read and written up to there: a successor goes on as the old one would
    /// have.
    #[test]
    fn a_successor_is_the_same_console(
        typed in proptest::collection::vec(any::<u8>(), 0..300),
        written in 0u64..30,
        read in 0u64..40,
        kept in proptest::collection::vec(1u64..400, 0..20),
        said in 0u64..250,
        raw: bool,
    ) {
        let mut old = Console::new(Fake::default());
        old.init();
        let wake = &mut |_: Queue| {};
        let control = old.open(SHELL, 0, pack(CONTROL).unwrap()).unwrap();
        let file = old.open(SHELL, 0, pack(CONSOLE).unwrap()).unwrap();
        if raw {
            old.write(control, 5, [u64::from_le_bytes(*b"rawon\0\0\0"), 0, 0, 0], wake);
        }
        old.registers().sender.extend(typed);
        for _ in 0..40 {
            old.registers().feed(8);
            old.service(wake);
        }
        old.read(file, read, wake);
        old.write(file, written, [0x6161_6161_6161_6161; 4], wake);
        for (at, kept) in kept.iter().enumerate() {
            let (control, mut left) = (u64::from(SHELL) | (at as u64 + 2) << 32, kept + 1000);
            while left > 1000 {
                old.write(control, left, [0x6262_6262_6262_6262; 4], wake);
                left -= 32;
            }
        }
        old.write(control, 7, [u64::from_le_bytes(*b"front 1\0"), 0, 0, 0], wake);
        let program = old.open(1, 1, pack(CONSOLE).unwrap()).unwrap();
        for n in 0..said {
            old.write(program, 32, [u64::from_le_bytes(*b"log it\n ") + n; 4], wake);
            if n % 40 == 39 {
                old.gone(2, [n, 0], wake);
            }
            old.registers().shift_out();
            old.service(wake);
        }
        let mut saved = Vec::<u8>::new();
        let done = old.save(&mut |part| { saved.extend(part); true });
        prop_assert!(done);
        let mut new = Console::new(Fake::default());
        prop_assert_eq!(new.load(FORMAT + 1, &saved), Err(EINVAL));
        prop_assert_eq!(new.load(FORMAT, &saved[..saved.len() - 1]), Err(EINVAL));
        prop_assert_eq!(new.load(FORMAT, &saved), Ok(()));
        let mut again = Vec::<u8>::new();
        let done = new.save(&mut |part| { again.extend(part); true });
        prop_assert!(done);
        prop_assert_eq!(&again, &saved);
        let next = old.open(1, 1, pack(CONSOLE).unwrap());
        prop_assert_eq!(new.open(1, 1, pack(CONSOLE).unwrap()), next, "no two files are one");
        let (mut from, mut count) = (0, 1);
        while count > 0 {
            let (end, words) = old.log.read(from);
            prop_assert_eq!(new.log.read(from), (end, words));
            (from, count) = (end & ((1 << 48) - 1), end >> 48);
        }
        prop_assert_eq!(new.read(program, 7, wake), old.read(program, 7, wake));
        for max in [1, 7, 32, 32] {
            prop_assert_eq!(new.read(file, max, wake), old.read(file, max, wake));
        }
    }
}
