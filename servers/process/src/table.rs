//! The table of living, dying and unmourned domains.
//!
//! **Problem.** Domains end in many ways at once: they exit (twice, from two threads), fault, are killed
//! (also before they have started, also while they are being loaded), lose their parent; others wait for them
//! meanwhile. Each must be buried once, its status must reach the parent once, and its number must not be
//! used again while anybody may still mean it.
//!
//! **Strategy.** One state machine a domain. What ends it only *dooms* it: the first status stands, and its
//! descendants share its fate. All work is the undertaker's, who finds the dying here. Nobody else acts on a
//! domain's behalf, but the loader as long as a domain is [`Loading`](State::Loading): then it is the loader
//! that lets go of it first.
//!
//! ```text
//!   create ──► Loading ◄──────► Suspended ──start──► Running
//!                 │ doomed           │ doomed            │ doomed
//!                 └──────────────► Dying ◄───────────────┘
//!                                    │ nothing refers to it any more
//!                                    ▼
//!                                   Dead ── status asked for, or no parent: forgotten, number free
//! ```
//!
//! **Invariants:**
//! * a domain that is doomed has no living descendant, and its children have no parent;
//! * a domain's number is free for VM only after it has left the table;
//! * the status of a child goes to one `wait` of its parent; every `wait` ends when child or caller does;
//! * nothing is allocated after [`prepare`](Table::prepare): deaths need no memory.
//!
//! **Who may do what.** The parent alone sets arguments and standard files, starts and waits. A program may
//! kill itself and its descendants; a component of the image any program (the name server's rules decide
//! which may open `process.kill`). Components of the image cannot be killed, but they can exit and fault.
//! Children die with their parent.

use crate::manifest::{Limits, WHOLE};
use crate::startup::{Gathered, Path};
use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};
use pebble_abi::fault::{Cause, KILLED};
use pebble_abi::map::MAX_DOMAINS;
use pebble_abi::share;
use pebble_abi::words::Asid;

/// Looks after a dying domain until its status may be asked for though something still refers to it: about a
/// second.
pub const PATIENCE: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The loader is at work on it.
    Loading,
    Suspended,
    Running,
    /// Being buried.
    Dying,
    /// Buried; only its number is left.
    Dead,
}

impl State {
    /// In `process.list`.
    pub const fn number(self) -> u64 {
        match self {
            State::Loading => 0,
            State::Suspended => 1,
            State::Running => 2,
            State::Dying => 3,
            State::Dead => 4,
        }
    }
}

#[derive(Debug)]
struct Program {
    domain: Asid,
    /// `None`: it has none, or none any more.
    parent: Option<Asid>,
    /// In the image from the start.
    boot: bool,
    state: State,
    /// Its exit status, once there is one.
    doom: Option<u8>,
    /// How often the undertaker has looked after it.
    looks: u32,
    plan: Plan,
    gathered: Gathered,
}

/// What was, or is to be, loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub path: Path,
    pub entry: u64,
    /// Of the image: where the heap begins.
    pub end: u64,
    pub limits: Limits,
}

impl Program {
    /// Was it alive?
    fn doom(&mut self, status: u8) -> bool {
        if self.doom.is_some() {
            return false;
        }
        self.doom = Some(status);
        if self.state != State::Loading {
            self.state = State::Dying;
        }
        true
    }
}

/// How a `wait` ended: the status, and whether the caller must now free the domain's number.
pub type Outcome = Result<Farewell, Errno>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Farewell {
    pub status: u8,
    pub free: bool,
}

/// What `process.list` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub domain: Asid,
    pub parent: Option<Asid>,
    pub state: State,
    pub path: Path,
}

#[derive(Debug, Default)]
pub struct Table {
    programs: Vec<Program>,
    faults: u64,
}

impl Table {
    pub const fn new() -> Self {
        Table { programs: Vec::new(), faults: 0 }
    }

    fn position(&self, domain: Asid) -> Option<usize> {
        self.programs.iter().position(|p| p.domain == domain)
    }

    fn find(&self, domain: Asid) -> Option<&Program> {
        self.programs.iter().find(|p| p.domain == domain)
    }

    fn find_mut(&mut self, domain: Asid) -> Option<&mut Program> {
        self.programs.iter_mut().find(|p| p.domain == domain)
    }

    fn alive(&self, domain: Asid) -> bool {
        self.find(domain).is_some_and(|p| p.doom.is_none())
    }

    /// A component of the image, or started by one: not to be kept from its work by what others use up.
    fn trusted(&self, domain: Asid) -> bool {
        let boot = |domain| self.find(domain).is_some_and(|p| p.boot);
        boot(domain) || self.find(domain).and_then(|p| p.parent).is_some_and(boot)
    }

    /// With whom a domain shares what is scarce ([`share`]): 0 with the image, otherwise with all whom the
    /// same program has started, or their children, whose number this is.
    pub fn family(&self, domain: Asid) -> Asid {
        // On the way up to the image: whom this one has started, and whom that one.
        let (mut at, mut below) = (domain, [Asid(0); 2]);
        while let Some(program) = self.find(at) {
            if program.boot {
                return below[1];
            }
            let Some(parent) = program.parent else { break };
            (at, below) = (parent, [at, below[0]]);
        }
        at
    }

    /// The rules say by name who may have components replaced; of programs, those alone that a component has
    /// started: any program can start another, however trusted its name, and tell it what to do.
    pub fn may_replace(&self, caller: Asid) -> Result<(), Errno> {
        if self.trusted(caller) { Ok(()) } else { Err(errno::EPERM) }
    }

    /// The suspended child of its parent.
    fn suspended(&mut self, parent: Asid, child: Asid) -> Result<&mut Program, Errno> {
        let child =
            self.find_mut(child).filter(|p| p.parent == Some(parent) && !p.boot).ok_or(errno::ECHILD)?;
        if child.state == State::Suspended { Ok(child) } else { Err(errno::EINVAL) }
    }

    // --- making programs ----------------------------------------------------------------------

    pub fn is_boot(&self, domain: Asid) -> bool {
        self.find(domain).is_some_and(|p| p.boot)
    }

    /// The name of a component.
    pub fn component(&self, domain: Asid) -> Option<Path> {
        self.find(domain).filter(|p| p.boot).map(|p| p.plan.path)
    }

    /// Whether it is a running program.
    pub fn runs(&self, domain: Asid) -> bool {
        self.find(domain).is_some_and(|p| !p.boot && p.state == State::Running)
    }

    /// A component of the image.
    pub fn boot(&mut self, domain: Asid, name: Path) {
        self.programs.push(Program {
            domain,
            parent: None,
            boot: true,
            state: State::Running,
            doom: None,
            looks: 0,
            plan: Plan { path: name, ..Plan::default() },
            gathered: Gathered::default(),
        });
    }

    /// May this domain make a program? If so, there is room for it.
    pub fn prepare(&mut self, parent: Asid) -> Result<(), Errno> {
        if self.find(parent).ok_or(errno::ESRCH)?.doom.is_some() {
            return Err(errno::EINTR);
        }
        if !self.trusted(parent) {
            let family = self.family(parent);
            let programs = || self.programs.iter().filter(|p| !p.boot);
            let its = programs().filter(|p| self.family(p.domain) == family).count();
            share::PROGRAMS.grant(family.number(), its, programs().count(), 1)?;
        }
        self.programs.try_reserve(1).map_err(|_| errno::ENOMEM)
    }

    /// The domain exists; follows [`prepare`](Self::prepare), with nothing created in between. The child
    /// inherits its parent's standard files.
    pub fn create(&mut self, parent: Asid, domain: Asid, plan: Plan, console: Path) {
        let maker = self.find(parent).filter(|p| p.doom.is_none());
        let stdio = maker.filter(|p| !p.boot).map_or([console; 3], |p| p.gathered.stdio);
        // A parent that died since `prepare` leaves a child that is doomed from the start.
        let (parent, doom) = if maker.is_some() { (Some(parent), None) } else { (None, Some(KILLED)) };
        let gathered = Gathered::new(stdio);
        let state = State::Loading;
        self.programs.push(Program { domain, parent, boot: false, state, doom, looks: 0, plan, gathered });
    }

    /// The loader is done: the program is in `state`, if it was not doomed meanwhile.
    pub fn release(&mut self, domain: Asid, state: State) -> Result<(), Errno> {
        let program = self.find_mut(domain).ok_or(errno::ESRCH)?;
        if program.doom.is_some() {
            program.state = State::Dying;
            return Err(errno::EINTR);
        }
        program.state = state;
        Ok(())
    }

    /// The loader could not make it: it is buried, and nobody will ask for its status.
    pub fn abandon(&mut self, domain: Asid) {
        if let Some(program) = self.find_mut(domain) {
            program.parent = None;
            program.doom = Some(KILLED);
            program.state = State::Dying;
        }
    }

    /// Another domain has taken the place of this component: it ends like a program for whose status nobody
    /// asks.
    pub fn succeeded(&mut self, domain: Asid) {
        if let Some(program) = self.find_mut(domain) {
            program.boot = false;
        }
        self.abandon(domain);
    }

    pub fn argument(&mut self, caller: Asid, child: Asid, words: &[u64; 4], count: u64) -> Result<(), Errno> {
        self.suspended(caller, child)?.gathered.append(words, count)
    }

    pub fn stdio(&mut self, caller: Asid, child: Asid, n: u64, path: Path) -> Result<(), Errno> {
        let child = self.suspended(caller, child)?;
        *child.gathered.stdio.get_mut(n as usize).ok_or(errno::EINVAL)? = path;
        Ok(())
    }

    /// The program starts: the loader has it until [`release`](Self::release).
    pub fn start(&mut self, caller: Asid, child: Asid) -> Result<(), Errno> {
        self.suspended(caller, child)?.state = State::Loading;
        Ok(())
    }

    /// A suspended child that its parent is about to control: the loader has it until
    /// [`release`](Self::release).
    pub fn control(&mut self, parent: Asid, child: Asid) -> Result<Plan, Errno> {
        let child = self.suspended(parent, child)?;
        child.state = State::Loading;
        Ok(child.plan)
    }

    /// What was loaded, arguments and standard files of a program.
    pub fn gathered(&self, domain: Asid) -> Option<(&Plan, &Gathered)> {
        self.find(domain).map(|p| (&p.plan, &p.gathered))
    }

    /// The arguments are in the start-up page.
    pub fn forget_arguments(&mut self, domain: Asid) {
        if let Some(program) = self.find_mut(domain) {
            program.gathered.forget_arguments();
        }
    }

    // --- ends ---------------------------------------------------------------------------------

    /// The domain ends with this status, unless another stands already, and takes its descendants along.
    fn doom(&mut self, domain: Asid, status: u8) {
        let mut doomed = [false; MAX_DOMAINS];
        let Some(program) = self.find_mut(domain) else { return };
        let mut more = program.doom(status);
        doomed[domain.get() as usize % MAX_DOMAINS] = more;
        while more {
            more = false;
            for program in &mut self.programs {
                if program.parent.is_some_and(|parent| doomed[parent.get() as usize % MAX_DOMAINS]) {
                    program.parent = None;
                    if program.doom(KILLED) {
                        doomed[program.domain.get() as usize % MAX_DOMAINS] = true;
                        more = true;
                    }
                }
            }
        }
    }

    /// The caller ends. The status keeps its low eight bits.
    pub fn exit(&mut self, caller: Asid, status: u64) -> Result<(), Errno> {
        self.find(caller).ok_or(errno::ESRCH)?;
        self.doom(caller, status as u8);
        Ok(())
    }

    pub fn kill(&mut self, caller: Asid, domain: Asid) -> Result<(), Errno> {
        self.may_rule(caller, domain)?;
        self.doom(domain, KILLED);
        Ok(())
    }

    /// Whether `caller` may set the domain's share of the processor: as for `kill`, but nobody their own.
    /// What it gets when `percent` is asked for (0: the whole): not more than its manifest says.
    pub fn may_share(&self, caller: Asid, domain: Asid, percent: u64) -> Result<u64, Errno> {
        if caller == domain {
            return Err(errno::EPERM);
        }
        self.may_rule(caller, domain)?;
        let most = self.find(domain).map_or(WHOLE, |p| p.plan.limits.cpu);
        Ok(if percent == 0 {
            most
        } else if percent > WHOLE {
            percent
        } else {
            percent.min(most)
        })
    }

    fn may_rule(&self, caller: Asid, domain: Asid) -> Result<(), Errno> {
        let target = self.find(domain).ok_or(errno::ESRCH)?;
        let may = self.find(caller).is_some_and(|p| p.boot) || self.descends(domain, caller);
        if target.boot || !may { Err(errno::EPERM) } else { Ok(()) }
    }

    /// Is it that domain, or a descendant of it?
    fn descends(&self, mut domain: Asid, ancestor: Asid) -> bool {
        for _ in 0..=self.programs.len() {
            if domain == ancestor {
                return true;
            }
            let Some(parent) = self.find(domain).and_then(|p| p.parent) else { break };
            domain = parent;
        }
        false
    }

    /// A fault ended the domain: its path, and whether it is of the image.
    pub fn fault(&mut self, domain: Asid, cause: Cause) -> Option<(Path, bool)> {
        self.faults += 1;
        self.doom(domain, cause.status());
        self.find(domain).map(|p| (p.plan.path, p.boot))
    }

    // --- burials ------------------------------------------------------------------------------

    /// The first dying domain behind that number, and how often it was returned before.
    pub fn next_dying(&mut self, after: Asid) -> Option<(Asid, u32)> {
        let dying = self.programs.iter_mut().filter(|p| p.state == State::Dying && p.domain > after);
        let program = dying.min_by_key(|p| p.domain)?;
        program.looks = program.looks.saturating_add(1);
        Some((program.domain, program.looks - 1))
    }

    /// Nothing refers to the dying domain any more.
    pub fn buried(&mut self, domain: Asid) {
        if let Some(program) = self.find_mut(domain).filter(|p| p.state == State::Dying) {
            program.state = State::Dead;
        }
    }

    /// A dead domain for which nobody will ask. It has left the table: the caller frees its number.
    pub fn unmourned(&mut self) -> Option<Asid> {
        let at = self.programs.iter().position(|p| p.state == State::Dead && p.parent.is_none())?;
        Some(self.programs.swap_remove(at).domain)
    }

    // --- waiting ------------------------------------------------------------------------------

    /// A thread of `caller` asks for the status of its child. `None`: there is none yet; it shall ask again
    /// when the wait is [`over`](Self::over).
    pub fn wait(&mut self, caller: Asid, child: Asid) -> Option<Outcome> {
        if !self.alive(caller) {
            return Some(Err(errno::EINTR));
        }
        let Some(at) = self.position(child).filter(|at| self.programs[*at].parent == Some(caller)) else {
            return Some(Err(errno::ECHILD));
        };
        let program = &mut self.programs[at];
        let status = program.doom.unwrap_or(KILLED);
        match program.state {
            State::Dead => {
                self.programs.swap_remove(at);
                Some(Ok(Farewell { status, free: true }))
            }
            State::Dying if program.looks > PATIENCE => {
                program.parent = None;
                Some(Ok(Farewell { status, free: false }))
            }
            _ => None,
        }
    }

    /// The child with the lowest number from there on for which no wait would last any longer.
    pub fn over(&self, from: Asid) -> Option<Asid> {
        let over = |p: &&Program| match p.state {
            State::Dead => true,
            State::Dying => p.looks > PATIENCE || p.parent.is_none(),
            _ => false,
        };
        self.programs.iter().filter(over).map(|p| p.domain).filter(|domain| *domain >= from).min()
    }

    // --- looking around -----------------------------------------------------------------------

    /// The domain with the lowest number from there on.
    pub fn list(&self, from: Asid) -> Option<Entry> {
        let program = self.programs.iter().filter(|p| p.domain >= from).min_by_key(|p| p.domain)?;
        let Program { domain, parent, state, plan: Plan { path, .. }, .. } = *program;
        Some(Entry { domain, parent, state, path })
    }

    /// Faults so far, of all domains.
    pub fn faults(&self) -> u64 {
        self.faults
    }
}
