//! The emulated board.
//!
//! An emulator does not outlive who started it, however that one ends: `setpriv` asks the kernel for a signal
//! at its parent's death. On a terminal that is SIGTERM, so that QEMU restores the terminal; otherwise
//! SIGKILL, since a wedged emulator may ignore anything gentler.

use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::console::Tail;
use crate::{Error, Exit, Guest};

/// Runs a program that gets a signal when its parent dies.
const LEASH: &str = "/usr/bin/setpriv";

/// How the guest's clock runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// With the wall clock.
    #[default]
    WallClock,
    /// One nanosecond an instruction, idle time skipped: two runs of a guest that gets no input are the same.
    Instructions,
    /// The same, for a guest that finds all its input when it asks. When it came may show in a figure.
    InstructionsTypedAhead,
    /// The same, but idle time passes as on the wall: for guests that wait for input, which would otherwise
    /// wait until the end of time.
    InstructionsWithInput,
}

/// Where a guest that powers the board off leaves its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// The emulator exits with it.
    #[default]
    Emulator,
    /// On the console, at the very end: the emulator always exits with 0.
    Console,
}

/// What to run, and on what.
#[derive(Clone, Debug)]
pub struct Machine {
    pub qemu: PathBuf,
    /// What makes QEMU this board.
    pub board: Vec<String>,
    /// What it is given besides to count instructions.
    pub board_counting: Vec<String>,
    pub status: Status,
    pub counting: Counting,
    /// Wait for gdb on this TCP port of the local host before the first instruction.
    pub debug: Option<u16>,
    /// Further arguments for QEMU.
    pub extra: Vec<OsString>,
}

impl Machine {
    /// `board`: QEMU's arguments, with blanks between.
    pub fn new(qemu: impl Into<PathBuf>, board: &str) -> Self {
        Machine {
            qemu: qemu.into(),
            board: words(board),
            board_counting: Vec::new(),
            status: Status::default(),
            counting: Counting::default(),
            debug: None,
            extra: Vec::new(),
        }
    }

    /// What the board needs besides, with blanks between, when instructions are counted.
    pub fn to_count(mut self, arguments: &str) -> Self {
        self.board_counting = words(arguments);
        self
    }

    /// The same, with a clock that counts instructions.
    pub fn counting(mut self) -> Self {
        self.counting = Counting::Instructions;
        self
    }

    /// The same, for a guest that finds all its input when it asks.
    pub fn counting_typed_ahead(mut self) -> Self {
        self.counting = Counting::InstructionsTypedAhead;
        self
    }

    /// The same, for a guest that waits for input.
    pub fn counting_with_input(mut self) -> Self {
        self.counting = Counting::InstructionsWithInput;
        self
    }

    /// The emulator's command line, without the choice of a console.
    fn command(&self, image: &Path) -> Command {
        let mut command = self.on_a_leash();
        command.args(&self.board);
        let icount = match self.counting {
            Counting::WallClock => None,
            // Recording keeps the emulator's other thread from moving time while the guest falls idle. It
            // also keeps input out, until the guest rests.
            Counting::Instructions => Some("shift=0,sleep=off,rr=record,rrfile=/dev/null"),
            Counting::InstructionsTypedAhead => Some("shift=0,sleep=off"),
            Counting::InstructionsWithInput => Some("shift=0"),
        };
        if let Some(icount) = icount {
            command.args(["-icount", icount]);
            command.args(&self.board_counting);
        }
        if let Some(port) = self.debug {
            command.args(["-S", "-gdb", &format!("tcp:127.0.0.1:{port}")]);
        }
        command.args(&self.extra).arg("-kernel").arg(image);
        command
    }

    /// The emulator, which the kernel ends with this process where `setpriv` (util-linux) is there to ask for
    /// it.
    fn on_a_leash(&self) -> Command {
        let signal = if std::io::stdin().is_terminal() { "TERM" } else { "KILL" };
        if !self.qemu.is_file() || !Path::new(LEASH).is_file() {
            return Command::new(&self.qemu);
        }
        let mut command = Command::new(LEASH);
        command.args(["--pdeathsig", signal, "--"]).arg(&self.qemu);
        command
    }

    /// Hands the terminal to the guest's console until the emulator ends. What the console shows goes through
    /// `to`.
    pub fn interact(&self, image: &Path, to: &mut impl Write) -> Result<Exit, Error> {
        let mut command = self.command(image);
        let command = command.arg("-nographic").stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| self.start_error(e))?;
        let mut shown = child.stdout.take().ok_or_else(|| std::io::Error::other("no standard output"))?;
        let (mut buffer, mut passed, mut tail) = ([0; 4096], Ok(()), Tail::default());
        while let Ok(count @ 1..) = shown.read(&mut buffer) {
            tail.add(&buffer[..count]);
            // Whoever read our output has seen enough; the system goes on.
            passed = passed.and_then(|()| to.write_all(&buffer[..count]).and_then(|()| to.flush()));
        }
        Ok(self.status.exit(child.wait()?, &tail))
    }

    /// Starts a guest whose console belongs to the caller.
    ///
    /// The console is the bare serial line: no byte of it is an escape to the emulator.
    pub fn start(&self, image: &Path) -> Result<Guest, Error> {
        let mut command = self.command(image);
        command.args(["-display", "none", "-monitor", "none", "-serial", "stdio"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let child = command.spawn().map_err(|e| self.start_error(e))?;
        Ok(Guest::new(child, self.status, self.counting == Counting::InstructionsWithInput))
    }

    fn start_error(&self, error: std::io::Error) -> Error {
        Error::Start(self.qemu.display().to_string(), error)
    }
}

fn words(arguments: &str) -> Vec<String> {
    arguments.split_whitespace().map(String::from).collect()
}

impl Status {
    /// How the guest ended whose emulator has exited like this, with that on its console.
    pub(crate) fn exit(self, emulator: ExitStatus, tail: &Tail) -> Exit {
        // A panic looks like any other power-off.
        if let Some(line) = tail.panic_line() {
            return Exit::Panicked(line);
        }
        let told = if self == Status::Console { tail.status() } else { None };
        match (emulator.code(), emulator.signal()) {
            (Some(0), _) if told.is_none_or(|status| status == 0) => Exit::PoweredOff,
            (Some(code), _) => Exit::Failed(if code == 0 { told.unwrap_or(0) } else { code }),
            (None, signal) => Exit::Killed(signal.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(machine: &Machine) -> String {
        let command = machine.command(Path::new("image"));
        let words: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn the_clock_counts_instructions_only_when_asked() {
        let machine = Machine::new("qemu", "-M board -no-reboot");
        assert!(!arguments(&machine).contains("-icount"));
        assert!(arguments(&machine.clone().counting()).contains("-icount shift=0,sleep=off,rr=record,"));
        assert!(arguments(&machine.clone().counting_typed_ahead()).contains("-icount shift=0,sleep=off "));
        assert!(arguments(&machine.clone().counting_with_input()).contains("-icount shift=0 "));
        let machine = machine.to_count("-rtc clock=vm");
        assert!(!arguments(&machine).contains("-rtc"));
        for counting in [machine.clone().counting(), machine.counting_with_input()] {
            assert!(arguments(&counting).contains(" -rtc clock=vm -kernel"));
        }
    }

    #[test]
    fn the_image_is_the_kernel() {
        assert!(
            arguments(&Machine::new("qemu", "-M board -no-reboot")).ends_with("-no-reboot -kernel image")
        );
    }

    #[test]
    fn exits_are_told_apart() {
        let exit = |status: Status, code, said: &str| {
            let mut tail = Tail::default();
            tail.add(said.as_bytes());
            status.exit(ExitStatus::from_raw(code), &tail)
        };
        let all = [Status::Emulator, Status::Console];
        for status in all {
            assert_eq!(exit(status, 0, ""), Exit::PoweredOff);
            assert_eq!(exit(status, 3 << 8, "bye"), Exit::Failed(3));
            assert_eq!(exit(status, 9, "power: status 0\r\n"), Exit::Killed(9));
            let panicked = exit(status, 0, "hello\r\nnucleus: trap\r\n");
            assert_eq!(panicked, Exit::Panicked("trap".into()));
        }
        let said = |said| all.map(|status| exit(status, 0, said));
        assert_eq!(said("power: status 3\r\n"), [Exit::PoweredOff, Exit::Failed(3)]);
        assert_eq!(said("power: status 0\r\n"), [const { Exit::PoweredOff }; 2]);
        assert_eq!(said("power: status 3\r\nmore\r\n"), [const { Exit::PoweredOff }; 2]);
    }
}
