//! The two ends of the guest's console: a thread that writes, so that a guest that does not listen blocks
//! nobody, and a buffer filled by a thread that reads.

use crate::last_words::BEGINS;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Whether more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    Arrived,
    TimedOut,
    Closed,
}

pub struct Console {
    to_guest: Sender<Vec<u8>>,
    from_guest: Receiver<Vec<u8>>,
    /// What has arrived and has not been taken.
    pub pending: Vec<u8>,
    pub tail: Tail,
}

impl Console {
    pub fn new(input: impl Write + Send + 'static, output: impl Read + Send + 'static) -> Self {
        let (to_guest, written) = channel();
        let (read, from_guest) = channel();
        thread::spawn(move || write_all(input, &written));
        thread::spawn(move || read_all(output, &read));
        Console { to_guest, from_guest, pending: Vec::new(), tail: Tail::default() }
    }

    /// Queues bytes for the guest. One that has ended does not mind.
    pub fn send(&self, bytes: &[u8]) {
        let _ = self.to_guest.send(bytes.to_vec());
    }

    /// Waits for more output and appends it to `pending`.
    pub fn receive(&mut self, wait: Duration) -> More {
        match self.from_guest.recv_timeout(wait) {
            Ok(bytes) => {
                self.pending.extend_from_slice(&bytes);
                self.tail.add(&bytes);
                More::Arrived
            }
            Err(RecvTimeoutError::Timeout) => More::TimedOut,
            Err(RecvTimeoutError::Disconnected) => More::Closed,
        }
    }
}

/// The end of all that has arrived.
#[derive(Default)]
pub struct Tail(Vec<u8>);

/// Its bytes.
const TAIL: usize = 2000;

impl Tail {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let surplus = self.0.len().saturating_sub(TAIL);
        self.0.drain(..surplus);
    }

    pub fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The last lines, for an error message.
    pub fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n  ");
        if last.is_empty() { "none".into() } else { format!("\n  {}", visible(&last)) }
    }

    /// The last words of the nucleus, if it has spoken them: nothing follows.
    pub fn panic_line(&self) -> Option<String> {
        self.last("nucleus: ")
    }

    /// The status with which the system has powered off, where the board has no other place for it.
    pub fn status(&self) -> Option<i32> {
        self.last(BEGINS)?.parse().ok()
    }

    /// What stands behind this at the beginning of the last line.
    fn last(&self, begins: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        text.trim_end().lines().next_back()?.strip_prefix(begins).map(String::from)
    }
}

/// Makes control characters visible, but for line ends.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || !c.is_control() { c } else { '\u{fffd}' }).collect()
}

fn write_all(mut input: impl Write, chunks: &Receiver<Vec<u8>>) {
    for chunk in chunks {
        if input.write_all(&chunk).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

fn read_all(mut output: impl Read, chunks: &Sender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = output.read(&mut buffer) {
        if chunks.send(buffer[..n].to_vec()).is_err() {
            return;
        }
    }
}
