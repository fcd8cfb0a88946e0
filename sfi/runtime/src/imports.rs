//! What a module imports, provided by the process: functions behind portals out of the domain.
//!
//! The code of these portals names no instance: the record under the call does. So a module is linked once,
//! and each of its instances copies a table of addresses.

use crate::arena;
use crate::elf::Level;
use crate::error::Error;
use crate::instance::{Code, Shared};
use crate::longjmp;
use crate::module::Module;
use crate::thread::ways_in;
use crate::window::{self, Letters};
use pebble_portal::fault::{Crossing, Door, Way};
use std::collections::HashMap;
use std::sync::Arc;

/// A function of the process, as the letters of its specification say.
#[derive(Clone)]
struct Provided {
    door: Door,
    entry: u64,
    constant: u64,
    /// What `constant` points to.
    _closure: Option<Arc<Closure>>,
}

type Body = dyn Fn(&mut Caller, [u64; 4]) -> u64 + Send + Sync;

struct Closure(Box<Body>);

/// Who calls: for functions that reach into the caller's memory.
pub struct Caller {
    shared: &'static Shared,
}

impl Caller {
    pub fn instance_number(&self) -> u32 {
        self.shared.number
    }

    pub fn base(&self) -> u64 {
        self.shared.base
    }

    pub fn read(&self, at: u64, to: &mut [u8]) -> Result<(), Error> {
        self.shared.read(at, to)
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.shared.write(at, bytes)
    }
}

/// Functions by name.
#[derive(Clone, Default)]
pub struct Imports {
    functions: HashMap<String, Provided>,
    /// Imports that nobody provides become faults when they are called, not errors when they are linked.
    pub lenient: bool,
    /// Only modules of level `full` get them: others read all of the process's memory.
    pub full: bool,
    /// Only modules without an instruction that reads a clock of the processor's get them.
    pub no_timer: bool,
}

/// A module with everything that it imports.
pub struct Linked {
    pub module: Arc<Module>,
    /// Addresses of portal code, by number of import.
    pub(crate) table: Vec<u64>,
    _codes: Vec<Code>,
    _closures: Vec<Provided>,
    /// What portals with windows are told of themselves.
    _letters: Vec<Arc<Letters>>,
}

extern "C" fn enter(closure: &Closure, caller: u64, a: u64, b: u64, c: u64, d: u64) -> u64 {
    // SAFETY: the portal passes the word of the record under the call, whose instance a running call keeps
    // alive.
    let shared: &'static Shared = unsafe { &*(caller as *const Shared) };
    (closure.0)(&mut Caller { shared }, [a, b, c, d])
}

impl Imports {
    pub fn new() -> Imports {
        Imports::default()
    }

    /// A function with the System V convention, at an address, behind a portal by `spec`.
    ///
    /// # Safety
    /// The function takes what the specification's letters give it, at most six words, of any value; it does
    /// not unwind, and comes back where it was called.
    pub unsafe fn function(
        &mut self,
        name: &str,
        spec: &str,
        entry: *const (),
        constant: u64,
    ) -> Result<(), Error> {
        let door = Door::parse(spec)?;
        let provided = Provided { door, entry: entry as u64, constant, _closure: None };
        self.functions.insert(name.into(), provided);
        Ok(())
    }

    /// A closure, of up to four words. It aborts the process if it panics.
    pub fn closure(
        &mut self,
        name: &str,
        body: impl Fn(&mut Caller, [u64; 4]) -> u64 + Send + Sync + 'static,
    ) {
        let closure = Arc::new(Closure(Box::new(body)));
        // Every letter is known, and there are six.
        let Ok(door) = Door::parse("smcaiiii") else { return };
        let constant = Arc::as_ptr(&closure) as u64;
        let provided = Provided { door, entry: enter as *const () as u64, constant, _closure: Some(closure) };
        self.functions.insert(name.into(), provided);
    }

    pub fn link(&self, module: &Arc<Module>) -> Result<Arc<Linked>, Error> {
        if self.full && module.level != Level::Full {
            return Err(Error::NotFull);
        }
        if let Some(at) = module.verdict.timer.filter(|_| self.no_timer) {
            return Err(Error::Timer(at));
        }
        crate::slots::slots()?;
        let (current, no_stack, _) = ways_in();
        let mut linked = Linked {
            module: module.clone(),
            table: Vec::new(),
            _codes: Vec::new(),
            _closures: Vec::new(),
            _letters: Vec::new(),
        };
        let mut missing = Vec::new();
        for import in &module.imports {
            let Some(provided) = self.functions.get(&import.name) else {
                linked.table.push(longjmp::builtin(&import.name)?);
                let known = longjmp::is_builtin(&import.name);
                if !known && !self.lenient {
                    missing.push(import.name.clone());
                }
                continue;
            };
            let letters = provided.door.lends().then(|| Arc::new(Letters(provided.door.args.to_vec())));
            let crossing = Crossing {
                way: Way::Out,
                caller_slot: 0,
                callee_slot: 0,
                entry: provided.entry,
                current,
                no_stack,
                lend: window::lend_out as *const () as u64,
                give_back: window::give_back_out as *const () as u64,
                description: letters.as_deref().map_or(0, |l| std::ptr::from_ref(l) as u64),
                touched: 0,
                control: false,
                x87: false,
                caller_control: module.verdict.control,
                caller_x87: module.verdict.x87,
                hide: module.level == Level::Full,
                wide: crate::portal::wide_vectors(),
                link: 0,
                index: 0,
                constant: provided.constant,
                caller: 0,
            };
            let code = Code(arena::portal(&provided.door, &crossing)?);
            linked.table.push(code.0);
            linked._codes.push(code);
            linked._letters.extend(letters);
            linked._closures.push(provided.clone());
        }
        if missing.is_empty() { Ok(Arc::new(linked)) } else { Err(Error::NoImport(missing)) }
    }
}
