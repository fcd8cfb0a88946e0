//! Compiles and places the portals that exist at boot.

use crate::BuildError;
use crate::build::{Domain, Shared};
use crate::elf::Export;
use crate::manifest::Manifest;
use crate::memory::Memory;
use crate::report::PortalReport;
use pebble_abi::map::{self, PAGE};
use pebble_abi::scheduler::Wait;
use pebble_abi::{status, sys};
use pebble_arch::{Arch, Leaf};
use pebble_boot::{self as boot, CommonCode, Interface};
use pebble_portal::Spec;
use pebble_portal::hardware::instance::Form;
use pebble_portal::hardware::{Code, Connection, Shape, Short, Stacks, form, verify};

pub struct Portals<'a> {
    shared: &'a Shared,
    domains: &'a [Domain],
    pub interfaces: Vec<Interface>,
    pub semaphores: Vec<boot::Semaphore>,
    pub placed: Vec<boot::Portal>,
    pub reports: Vec<PortalReport>,
    pub code: CommonCode,
    /// Bytes of the arena in use.
    pub used: u64,
}

/// What a portal leads to.
enum Goal {
    Code(u64),
    Short(Short),
    Switch,
    Semaphore(u16),
    Interface(usize),
}

/// Several instances of one component export under their own names.
pub fn interface_name(d: &Domain, e: &Export) -> String {
    match e.name.split_once('.') {
        Some(("self", method)) => format!("{}.{method}", d.manifest.name),
        _ => e.name.clone(),
    }
}

impl<'a> Portals<'a> {
    pub fn new(shared: &'a Shared, domains: &'a [Domain], manifest: &Manifest) -> Result<Self, BuildError> {
        let mut interfaces = Vec::<Interface>::new();
        for d in domains {
            for e in &d.elf.exports {
                let fail = |what: String| BuildError::Component { name: d.manifest.name.clone(), what };
                Spec::parse(&e.spec).map_err(|err| {
                    fail(format!("interface {}: specification \"{}\": {err}", e.name, e.spec))
                })?;
                let name = interface_name(d, e);
                if interfaces.iter().any(|i| i.name == name) {
                    return Err(fail(format!("interface {name} is exported twice")));
                }
                interfaces.push(Interface { name, asid: d.asid, entry: e.entry, spec: e.spec.clone() });
            }
        }
        let mut semaphores: Vec<boot::Semaphore> = Vec::new();
        for (id, name) in [(map::SEM_REAPER, "reaper"), (map::SEM_FAULT, "fault")] {
            semaphores.push(boot::Semaphore { id, name: name.into(), ..Default::default() });
        }
        for (n, s) in manifest.semaphore.iter().enumerate() {
            let first = if s.lock { map::FIRST_LOCK as u16 } else { map::SEM_FIRST };
            let id = s.interrupt.unwrap_or(first + n as u16);
            semaphores.push(boot::Semaphore {
                id,
                name: s.name.clone(),
                initial: s.initial,
                owner: 0,
                wait: s.wait() as u8,
            });
        }
        // Of devices that programs can have: the device server waits there for whoever drives them.
        for (n, device) in manifest.device.iter().map(|d| d.get_ref()).enumerate().filter(|(_, d)| d.irq != 0)
        {
            semaphores.push(boot::Semaphore {
                id: device.irq,
                name: format!("device{n}"),
                wait: Wait::Interruptible as u8,
                ..Default::default()
            });
        }
        Ok(Portals {
            shared,
            domains,
            interfaces,
            semaphores,
            placed: vec![],
            reports: vec![],
            code: CommonCode::default(),
            used: 0,
        })
    }

    fn interface(&self, name: &str) -> Option<usize> {
        self.interfaces.iter().position(|i| i.name == name)
    }

    fn required(&self, name: &str) -> Result<usize, BuildError> {
        self.interface(name)
            .ok_or_else(|| BuildError::Missing { who: "the nucleus".into(), interface: name.into() })
    }

    /// Compiles into the arena and returns the address.
    fn place<A: Arch>(
        &mut self,
        memory: &mut Memory<A>,
        spec: &str,
        shape: Shape,
        c: &Connection,
    ) -> Result<(u64, Code), BuildError> {
        let wrong = |what: String| BuildError::Portal { spec: spec.into(), what };
        let parsed = Spec::parse(spec).map_err(|e| wrong(e.to_string()))?;
        let code = form(&parsed, shape, c, A::PROCESSOR).map_err(|e| wrong(e.to_string()))?;
        let mut form = Form::spacious();
        let mut portal = vec![0; code.doubles().len()];
        form.accept(&mut verify::Room::default(), &code, &parsed, shape, c, A::PROCESSOR)
            .and_then(|()| form.place(&mut portal, shape, c, A::PROCESSOR))
            .map_err(|e| wrong(e.to_string()))?;
        let at = self.used;
        if at + portal.len() as u64 * 8 > map::CODE_BYTES {
            return Err(wrong("no room left for portal code".into()));
        }
        for (i, double) in portal.iter().enumerate() {
            let offset = at + i as u64 * 8;
            let page = self.shared.page(memory, map::CODE_VA + offset / PAGE * PAGE, Leaf::NUCLEUS_RX);
            memory.write(page + offset % PAGE, &double.to_le_bytes());
        }
        self.used += portal.len() as u64 * 8;
        Ok((map::CODE_VA + at, code))
    }

    fn note<A: Arch>(
        &mut self,
        memory: &mut Memory<A>,
        d: &Domain,
        index: u16,
        name: &str,
        spec: &str,
        target: &str,
        at: u64,
        words: &[u32],
        call: u16,
    ) {
        memory.write_word(d.table + u64::from(index) * 8, at);
        self.reports.push(PortalReport {
            domain: d.manifest.name.clone(),
            index,
            name: name.into(),
            spec: spec.into(),
            target: target.into(),
            address: at,
            words: words.to_vec(),
            call_words: call,
        });
    }

    /// Code that every domain's table refers to.
    pub fn common<A: Arch>(&mut self, memory: &mut Memory<A>) -> Result<(), BuildError> {
        let none = Connection::default();
        let mut code = CommonCode::default();
        let mut common =
            |p: &mut Self, name: &str, spec: &str, shape, c: &Connection| -> Result<(u64, u64), BuildError> {
                let (at, made) = p.place(memory, spec, shape, c)?;
                p.reports.push(PortalReport {
                    domain: "(common)".into(),
                    index: 0,
                    name: name.into(),
                    spec: spec.into(),
                    target: String::new(),
                    address: at,
                    words: made.words.to_vec(),
                    call_words: made.call_words,
                });
                Ok((at, at + u64::from(made.ret_at.unwrap_or(0))))
            };
        code.dispatch = common(self, "dispatch", "sm", Shape::Dispatch, &none)?.0;
        code.none = common(self, "none", "sm", Shape::None, &none)?.0;
        let bounce = common(self, "bounce", "sm", Shape::Bounce, &none)?.0;
        code.get_thread_id = common(self, "get_thread_id", "sm", Shape::Short(Short::ThreadId), &none)?.0;
        code.hrtime = common(self, "hrtime", "sm", Shape::Short(Short::Time), &none)?.0;
        let scheduler = |p: &Self, name: &str| -> Result<Connection<'static>, BuildError> {
            let i = &p.interfaces[p.required(name)?];
            let callee = p.domains[i.asid as usize - 1].portal_view::<A>();
            Ok(Connection { callee, entry: i.entry, ..Default::default() })
        };
        let to = |p: &Self, name: &str, float: bool| -> Result<Connection<'static>, BuildError> {
            let mut c = scheduler(p, name)?;
            c.caller.float = float;
            Ok(c)
        };
        let end = scheduler(self, "scheduler.thread_exit")?;
        code.thread_end = common(self, "thread_end", "sm", Shape::ThreadEnd, &none)?.1;
        code.thread_exit = common(self, "thread_exit", "nmb", Shape::ThreadExit, &end)?.0;
        code.unwound = common(self, "unwound", "sm", Shape::Leave(status::TIMEOUT as u16), &none)?.0;
        code.waits = common(self, "waits", "sm", Shape::Leave(status::WAIT as u16), &none)?.0;
        for float in [false, true] {
            let n = usize::from(float);
            let suffix = if float { ".float" } else { "" };
            let c = to(self, "scheduler.stack_wait", float)?;
            code.no_stack[n] = common(self, &format!("no_stack{suffix}"), "nmii", Shape::NoStack, &c)?.0;
            let c = to(self, "irq.entry", float)?;
            let (entry, ret) = common(self, &format!("interrupt{suffix}"), "nmi", Shape::Interrupt, &c)?;
            (code.interrupt[n], code.trap_return[n]) = (entry, ret);
            // A system without VM manager (tests) has no fault handler: faults are the nucleus's last words.
            code.exception[n] = match self.interface("vm.fault") {
                Some(_) => {
                    let c = to(self, "vm.fault", float)?;
                    common(self, &format!("exception{suffix}"), "npcccccc", Shape::Exception, &c)?.0
                }
                None => self.shared.panic_entry,
            };
        }
        self.code = code;
        for entry in 0..map::TABLE_ENTRIES_PER_PAGE as u64 {
            memory.write_word(self.shared.dead_table + entry * 8, bounce);
        }
        // A thread may outlive its home.
        memory.write_word(self.shared.dead_table + sys::THREAD_END as u64 * 8, self.code.thread_exit);
        Ok(())
    }

    pub fn fill_empty<A: Arch>(&self, memory: &mut Memory<A>) {
        for entry in 0..map::TABLE_ENTRIES_PER_PAGE as u64 {
            memory.write_word(self.shared.empty_table + entry * 8, self.code.none);
        }
    }

    /// The fixed entries of a domain's table.
    pub fn system_table<A: Arch>(&mut self, memory: &mut Memory<A>, d: &Domain) -> Result<(), BuildError> {
        for entry in 0..map::TABLE_ENTRIES_PER_PAGE as u64 {
            memory.write_word(d.table + entry * 8, self.code.none);
        }
        let float = usize::from(d.elf.float);
        let panic = self.shared.panic_entry;
        let stops = d.manifest.essential || d.manifest.exclusive;
        memory.write_word(d.table, self.code.dispatch);
        memory.write_word(d.table + 8, if stops { panic } else { self.code.exception[float] });
        memory
            .write_word(d.table + 16, if d.manifest.exclusive { panic } else { self.code.interrupt[float] });
        for (index, at) in [
            (sys::UNWIND, self.code.unwound),
            (sys::LEAVE_WAIT, self.code.waits),
            (sys::NO_STACK, self.code.no_stack[float]),
            (sys::THREAD_END, self.code.thread_exit),
            (sys::SYS_HRTIME, self.code.hrtime),
        ] {
            memory.write_word(d.table + index as u64 * 8, at);
        }
        // An exclusive domain calls nobody: beside the time it has only what it imports.
        if d.manifest.exclusive {
            return Ok(());
        }
        for (index, name) in sys::ALL {
            let has = name.starts_with("nucleus.")
                || d.manifest.system.as_ref().is_none_or(|list| list.iter().any(|n| n == name));
            if let Some(goal) = self.goal(d, name).filter(|_| has) {
                self.open(memory, d, *index as u16, name, goal)?;
            }
        }
        Ok(())
    }

    /// The portals that a component imports, and their indices in its image.
    pub fn imports<A: Arch>(&mut self, memory: &mut Memory<A>, d: &Domain) -> Result<(), BuildError> {
        let mut index = sys::FIRST_FREE as u16;
        for import in &d.elf.imports {
            let name = d.manifest.bind.get(&import.name).unwrap_or(&import.name).clone();
            let optional = name.strip_prefix(pebble_abi::link::OPTIONAL);
            let name = optional.map_or(name.clone(), String::from);
            let outside = || BuildError::Component {
                name: d.manifest.name.clone(),
                what: format!("import {name}: its slot lies in no segment"),
            };
            let slot = import.slot.map(|slot| memory.translate(d.root, slot).ok_or_else(outside));
            let slot = slot.transpose()?;
            let Some(goal) = self.goal(d, &name) else {
                if optional.is_some() {
                    continue;
                }
                return Err(BuildError::Missing { who: d.manifest.name.clone(), interface: name });
            };
            let words = if matches!(goal, Goal::Semaphore(_)) { 2 } else { 1 };
            let fixed = sys::FIXED.iter().find(|(_, n)| *n == name).map(|(i, _)| *i as u16);
            let at = fixed.unwrap_or(index);
            self.open(memory, d, at, &name, goal)?;
            if let Some(pa) = slot {
                memory.write_word(pa, at.into());
            }
            index += if fixed.is_some() { 0 } else { words };
        }
        Ok(())
    }

    fn goal(&self, d: &Domain, name: &str) -> Option<Goal> {
        Some(match name {
            "nucleus.get_asid" => Goal::Short(Short::Constant { value: d.asid.into(), status: 0 }),
            "nucleus.get_thread_id" => Goal::Code(self.code.get_thread_id),
            "nucleus.hrtime" => Goal::Code(self.code.hrtime),
            "nucleus.set_timer" => Goal::Short(Short::SetTimer),
            "nucleus.top" => Goal::Short(Short::Top),
            "nucleus.flush" => Goal::Short(Short::Flush),
            "nucleus.idle" => Goal::Short(Short::Idle),
            "nucleus.stack_keep" => Goal::Short(Short::Stacks(Stacks::Keep)),
            "nucleus.stack_offer" => Goal::Short(Short::Stacks(Stacks::Offer)),
            "nucleus.stack_release" => Goal::Short(Short::Stacks(Stacks::Release)),
            "nucleus.switch" => Goal::Switch,
            _ => match name.strip_prefix("semaphore.") {
                Some(name) => Goal::Semaphore(self.semaphores.iter().find(|s| s.name == name)?.id),
                None => Goal::Interface(self.interface(name)?),
            },
        })
    }

    fn open<A: Arch>(
        &mut self,
        memory: &mut Memory<A>,
        d: &Domain,
        index: u16,
        name: &str,
        goal: Goal,
    ) -> Result<(), BuildError> {
        let caller = d.portal_view::<A>();
        let none = Connection { caller, index, ..Default::default() };
        match goal {
            Goal::Code(at) => {
                memory.write_word(d.table + u64::from(index) * 8, at);
                self.noted(d, index, u16::MAX, at, 0, 0);
            }
            Goal::Short(_) | Goal::Switch => {
                let (spec, shape) = match goal {
                    Goal::Short(short) => ("sm", Shape::Short(short)),
                    _ => ("smii", Shape::Switch),
                };
                let (at, code) = self.place(memory, spec, shape, &none)?;
                self.note(memory, d, index, name, spec, "nucleus", at, &code.words, code.call_words);
                self.noted(d, index, u16::MAX, at, code.len(), 0);
            }
            Goal::Semaphore(id) => {
                for (n, (interface, shape)) in
                    [("scheduler.p", Shape::Wait(id)), ("scheduler.v", Shape::Signal(id))]
                        .into_iter()
                        .enumerate()
                {
                    let i = self.required(interface)?;
                    self.connect(memory, d, index + n as u16, name, i, shape, id.into())?;
                }
            }
            Goal::Interface(i) => {
                let callee = &self.domains[self.interfaces[i].asid as usize - 1];
                let shape =
                    if d.manifest.exclusive && callee.manifest.exclusive { Shape::Tail } else { Shape::Call };
                self.connect(memory, d, index, name, i, shape, 0)?;
            }
        }
        Ok(())
    }

    /// For the boot information.
    fn noted(&mut self, d: &Domain, index: u16, interface: u16, code: u64, len: usize, constant: u64) {
        let len = len as u32;
        self.placed.push(boot::Portal { asid: d.asid, index, interface, code, len, constant });
    }

    fn connect<A: Arch>(
        &mut self,
        memory: &mut Memory<A>,
        d: &Domain,
        index: u16,
        name: &str,
        interface: usize,
        shape: Shape,
        constant: u64,
    ) -> Result<(), BuildError> {
        let i = self.interfaces[interface].clone();
        let callee = &self.domains[i.asid as usize - 1];
        let c = Connection {
            caller: d.portal_view::<A>(),
            callee: callee.portal_view::<A>(),
            entry: i.entry,
            index,
            constant,
            counter: None,
            ..Default::default()
        };
        let (at, code) = self.place(memory, &i.spec, shape, &c)?;
        self.note(memory, d, index, name, &i.spec, &callee.manifest.name, at, &code.words, code.call_words);
        self.noted(d, index, interface as u16, at, code.len(), constant);
        Ok(())
    }
}
