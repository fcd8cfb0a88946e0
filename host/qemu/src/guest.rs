//! A running guest and the conversation with it.

use std::io::Write;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::console::{Console, More};
use crate::nudge::{self, Nudge};
use crate::patience::Patience;
use crate::script::{self, Newlines, PROMPT, Piece, Reply};
use crate::{Error, Exit, Status};

/// How long a nucleus that has spoken its last words may take to power off.
const GRACE: Duration = Duration::from_secs(2);
/// How long an emulator whose console is closed may take to end.
const CLOSING: Duration = Duration::from_secs(10);
/// How long it may take until there is another shell.
const ANOTHER_SHELL: Duration = Duration::from_secs(60);
/// How often who waits looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A running system. It is killed when this is dropped.
pub struct Guest {
    child: Child,
    console: Console,
    exit: Option<Exit>,
    status: Status,
    unwanted: Option<Arc<AtomicBool>>,
    /// The emulator may stand still.
    nudge: Option<Nudge>,
}

/// How a command of a script ended.
enum End {
    Status(i32),
    Exit(Exit),
}

impl Guest {
    /// `counts`: the emulator counts instructions, and lets time pass while the guest rests.
    pub(crate) fn new(mut child: Child, status: Status, counts: bool) -> Self {
        let input = child.stdin.take().expect("standard input is a pipe");
        let output = child.stdout.take().expect("standard output is a pipe");
        let nudge = counts.then(|| Nudge::new(child.id()));
        Guest { child, console: Console::new(input, output), exit: None, status, unwanted: None, nudge }
    }

    /// Whoever waits for the guest gives up once this is true.
    pub fn give_up_when(&mut self, unwanted: Arc<AtomicBool>) {
        self.unwanted = Some(unwanted);
    }

    /// Types at the console. Never blocks: what the guest does not take yet is queued.
    pub fn send(&mut self, bytes: &[u8]) {
        self.console.send(bytes);
    }

    /// Waits until the console shows `marker`; returns what it showed before, and forgets both.
    pub fn expect(&mut self, marker: &str, limit: Duration) -> Result<Vec<u8>, Error> {
        let patience = self.patience(limit);
        let mut searched = 0;
        loop {
            if let Some(at) = find(&self.console.pending[searched..], marker.as_bytes()) {
                let end = searched + at + marker.len();
                let mut seen: Vec<u8> = self.console.pending.drain(..end).collect();
                seen.truncate(searched + at);
                return Ok(seen);
            }
            searched = (self.console.pending.len() + 1).saturating_sub(marker.len());
            self.more(&patience, &format!("{marker:?}"))?;
        }
    }

    /// Waits for the shell's prompt and switches it to script mode. Returns what the system said before.
    pub fn enter_script(&mut self, limit: Duration) -> Result<Vec<u8>, Error> {
        let boot = self.expect(PROMPT, limit)?;
        self.send(script::ENTER);
        self.expect(script::READY, limit)?;
        self.expect("\n", limit)?;
        Ok(boot)
    }

    /// Runs one line in script mode. When the shell dies of it, the next line goes to the shell that takes
    /// its place.
    pub fn run_line(&mut self, line: &str, limit: Duration) -> Result<Reply, Error> {
        let mut output = Vec::new();
        match self.run_line_into(line, Some(limit), &mut output)? {
            End::Status(status) => {
                Ok(Reply { output: String::from_utf8_lossy(&output).into_owned(), status })
            }
            End::Exit(exit) => Err(Error::Ended {
                waiting_for: format!("the end of {line:?}"),
                exit,
                console: self.console.tail.last_words(),
            }),
        }
    }

    /// Runs lines in script mode, each with its own time limit.
    pub fn run_script(&mut self, lines: &[&str], limit: Duration) -> Result<Vec<Reply>, Error> {
        lines.iter().map(|line| self.run_line(line, limit)).collect()
    }

    /// Runs lines as they come, each with its own time limit if there is one, writes what they print to
    /// `output` at once, and powers the system off. Returns how it ended, and the last status.
    pub fn run_stream<E: From<Error>>(
        &mut self,
        lines: impl Iterator<Item = Result<String, E>>,
        limit: Option<Duration>,
        output: &mut impl Write,
    ) -> Result<(Exit, i32), E> {
        let mut last = 0;
        for line in lines {
            match self.run_line_into(&line?, limit, output)? {
                End::Status(status) => last = status,
                End::Exit(exit) => return Ok((exit, last)),
            }
        }
        self.send(script::LEAVE);
        Ok((self.wait_exit(CLOSING)?, last))
    }

    fn run_line_into(
        &mut self,
        line: &str,
        limit: Option<Duration>,
        output: &mut impl Write,
    ) -> Result<End, Error> {
        const EVER: Duration = Duration::from_secs(365 * 24 * 3600);
        let limit = limit.unwrap_or(EVER);
        let patience = self.patience(limit);
        self.console.send(format!("{line}\n").as_bytes());
        let mut newlines = Newlines::default();
        loop {
            let piece = script::next_piece(&self.console.pending);
            let (Piece::Output(len) | Piece::Status { output: len, .. } | Piece::Died { output: len, .. }) =
                piece;
            output.write_all(&newlines.convert(&self.console.pending[..len]))?;
            output.flush()?;
            if let Piece::Status { end, status, .. } = piece {
                self.console.pending.drain(..end);
                output.write_all(newlines.finish())?;
                return Ok(End::Status(status));
            }
            self.console.pending.drain(..len);
            if let Piece::Died { status, .. } = piece {
                output.write_all(newlines.finish())?;
                self.enter_script(ANOTHER_SHELL)?;
                return Ok(End::Status(status));
            }
            match self.more(&patience, &format!("the end of {line:?}")) {
                Err(Error::Ended { exit, .. }) => {
                    output.write_all(newlines.finish())?;
                    output.write_all(&std::mem::take(&mut self.console.pending))?;
                    return Ok(End::Exit(exit));
                }
                other => other?,
            }
        }
    }

    /// Writes what the console shows to `output`, until the system has ended.
    pub fn run_to_end(&mut self, limit: Duration, output: &mut impl Write) -> Result<Exit, Error> {
        let patience = self.patience(limit);
        let mut newlines = Newlines::default();
        loop {
            output.write_all(&newlines.convert(&std::mem::take(&mut self.console.pending)))?;
            match self.more(&patience, "power-off") {
                Err(Error::Ended { exit, .. }) => {
                    output.write_all(newlines.finish())?;
                    return Ok(exit);
                }
                other => other?,
            }
        }
    }

    /// Waits until the system has ended.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<Exit, Error> {
        let patience = self.patience(limit);
        loop {
            match self.more(&patience, "power-off") {
                Err(Error::Ended { exit, .. }) => return Ok(exit),
                other => other?,
            }
        }
    }

    /// Ends the emulator as who must write something down before it ends.
    pub fn stop(&mut self) -> Result<Exit, Error> {
        if self.exit.is_none() {
            // One that has ended by itself is as good.
            let _ = signal::kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        }
        self.reap()
    }

    /// What the console showed and nobody took.
    pub fn take_output(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.console.pending)).into_owned()
    }

    fn patience(&self, limit: Duration) -> Patience {
        Patience::new(limit, self.child.id())
    }

    /// Waits for more output; an error at the time limit or the end of the system.
    fn more(&mut self, patience: &Patience, waiting_for: &str) -> Result<(), Error> {
        let panicked = self.console.tail.panic_line().is_some();
        loop {
            if self.unwanted.as_ref().is_some_and(|unwanted| unwanted.load(Ordering::Relaxed)) {
                return Err(Error::Interrupted);
            }
            let left = patience.left();
            let wait = match panicked {
                true => left.min(GRACE),
                false if self.unwanted.is_some() => left.min(LOOK),
                false if self.nudge.is_some() => left.min(nudge::PAUSE),
                false => left,
            };
            match self.console.receive(wait) {
                More::Arrived => return Ok(()),
                More::TimedOut if !panicked && !left.is_zero() => {
                    let has_spoken = self.console.tail.has_any();
                    self.nudge.iter_mut().for_each(|nudge| nudge.look(has_spoken));
                }
                More::TimedOut if !panicked => {
                    return Err(Error::TimedOut {
                        waiting_for: waiting_for.into(),
                        limit: patience.limit,
                        console: self.console.tail.last_words(),
                    });
                }
                More::TimedOut | More::Closed => {
                    return Err(Error::Ended {
                        waiting_for: waiting_for.into(),
                        exit: self.reap()?,
                        console: self.console.tail.last_words(),
                    });
                }
            }
        }
    }

    /// Ends the emulator, which has closed its console or has nothing more to say.
    fn reap(&mut self) -> Result<Exit, Error> {
        if let Some(exit) = &self.exit {
            return Ok(exit.clone());
        }
        let panicked = self.console.tail.panic_line();
        let until = Instant::now() + if panicked.is_some() { GRACE } else { CLOSING };
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
                None => {
                    self.child.kill()?;
                    break self.child.wait()?;
                }
            }
        };
        let exit = self.status.exit(status, &self.console.tail);
        self.exit = Some(exit.clone());
        Ok(exit)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.exit.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
