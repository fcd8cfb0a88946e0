//! The portals that a domain is born with: every domain to the system's servers, a copy to its controller.
//!
//! **Problem.** A new domain gets some twenty portals to the system's servers. To find the form of each, to copy
//! it and to place it is a fifth of what starting a program costs, and the next program's are nearly the same.
//! So are the stubs of the next copy of a domain that makes copies of itself.
//! **Strategy.** All of them are kept as one [block](pebble_portal::hardware::instance::Block): their forms, with
//! every hole filled but those that the caller decides. For the next domain of the kind the block is placed as a
//! whole, these are filled, and the verifier looks at each of them.
//!
//! **Invariants.**
//! * A block is of forms that the verifier has accepted, for domains of one kind.
//! * It serves as long as what its portals lead to has the specification, callee and entry that it had; then it is
//!   made anew.
//! * A block of stubs serves the copies of one domain with one handler, as long as there is behind each index
//!   what was there. It ends with that domain.
//! * What shares stacks, has windows or letters of servers is in no block: more is to be done for it.

use crate::Machine;
use crate::arena::Run;
use crate::interfaces::Interface;
use crate::manager::{Domain, Goal, Manager};
use alloc::vec::Vec;
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map;
use pebble_arch::Arch;
use pebble_portal::hardware::hole::{Facts, Side};
use pebble_portal::hardware::instance;
use pebble_portal::hardware::{Connection, Domain as View, Shape};
use pebble_portal::spec::Stack;

/// Of programs there are such as use floating point, and others; of copies, those of the domain that was copied
/// last.
const MOST: [usize; 2] = [2, 1];

/// Whose copies have the portals, by which handler; `None`: all programs.
type Parent = Option<(u16, u64)>;

/// One portal of a block.
struct Born {
    index: u16,
    interface: u16,
    /// Of a stub: what its original leads to, with what specification.
    original: (Goal, [u64; 2]),
    /// Where it lies in the block.
    run: Run,
}

/// What some of a block's portals lead to.
struct Target {
    interface: u16,
    text: [u64; 2],
    callee: View,
    entry: u64,
}

struct Block {
    kind: Side,
    parent: Parent,
    /// By index.
    portals: Vec<Born>,
    /// Each once.
    targets: Vec<Target>,
    code: instance::Block,
    /// As often the parent's table had changed when it had all originals.
    changes: u64,
}

/// The blocks, the newest behind.
#[derive(Default)]
pub(crate) struct Births(Vec<Block>);

impl Births {
    /// The domain is gone, and its copies with it.
    pub fn forget(&mut self, asid: u16) {
        self.0.retain(|block| block.parent.is_none_or(|(parent, _)| parent != asid));
    }
}

fn kind(view: &View) -> Side {
    Facts::of(&Connection { caller: *view, ..Connection::default() }).caller
}

impl Target {
    /// Whether it is what it was.
    fn stands(&self, domains: &[Domain], interfaces: &[Interface]) -> bool {
        let Some(i) = interfaces.get(usize::from(self.interface)) else { return false };
        let callee = domains.get(usize::from(i.asid)).filter(|d| d.alive);
        i.text == self.text && i.entry == self.entry && callee.is_some_and(|d| d.view == self.callee)
    }
}

/// What an entry leads to, with what specification.
fn original(of: &Domain, index: usize, interfaces: &[Interface]) -> (Goal, [u64; 2]) {
    let goal = of.slots[index].goal;
    let text = match goal {
        Goal::Interface(n) => interfaces.get(usize::from(n)).map_or([0; 2], |i| i.text),
        _ => [0; 2],
    };
    (goal, text)
}

impl Block {
    fn new(view: &View, parent: Parent) -> Self {
        Block {
            kind: kind(view),
            parent,
            portals: Vec::new(),
            targets: Vec::new(),
            code: instance::Block::default(),
            changes: 0,
        }
    }

    /// Each has its original in the parent still, and is wanted; `mirrored`: in order.
    fn mirrors(&mut self, parent: &Domain, interfaces: &[Interface], mirrored: &[usize]) -> bool {
        let changed = self.changes != parent.slots.changes();
        let mut wanted = mirrored.iter();
        let there = self.portals.iter().all(|born| {
            let index = usize::from(born.index);
            wanted.any(|wanted| *wanted == index)
                && (!changed || original(parent, index, interfaces) == born.original)
        });
        self.changes = parent.slots.changes();
        there
    }
}

impl<A: Arch> Manager<A> {
    /// The portals of a new domain that are in a block for its kind: how many. Those that are in none are left;
    /// without such a block, or without room for it as a whole, all. `mirrored`: of a copy, the entries of its
    /// parent that it shall have stubs for, in order.
    pub(crate) fn bear(
        &mut self,
        machine: &mut impl Machine,
        view: &View,
        parent: Parent,
        mirrored: &[usize],
    ) -> usize {
        let Manager { domains, interfaces, made, .. } = self;
        let births = &mut made.births.0;
        let same = |block: &Block| block.kind == kind(view) && block.parent == parent;
        let Some(at) = births.iter().position(same).filter(|_| !view.exclusive) else { return 0 };
        let mut block = births.swap_remove(at);
        let stands = block.targets.iter().all(|target| target.stands(domains, interfaces));
        let mirrors =
            |(parent, _): (u16, u64)| block.mirrors(&domains[usize::from(parent)], interfaces, mirrored);
        if !stands || !parent.is_none_or(mirrors) {
            return 0;
        }
        let placed = self.place_block(machine, view, &block).map_or(0, |()| block.portals.len());
        self.made.births.0.push(block);
        placed
    }

    fn place_block(&mut self, machine: &mut impl Machine, view: &View, block: &Block) -> Result<(), Errno> {
        let asid = view.asid;
        self.grant_code(asid)?;
        self.grow(machine, asid, block.portals.iter().map(|born| born.index.into()))?;
        // Where code lies scattered, there may be room for each, and not for all together.
        let doubles = block.code.doubles().len();
        let all = self.made.arena.place_long(machine, doubles as u32 * 8)?;
        let placed = block.code.place(&mut machine.site(all.at.into(), doubles), view, A::PROCESSOR);
        if placed.is_err() {
            self.made.arena.give(all);
            return Err(errno::EINVAL);
        }
        let domain = &mut self.domains[usize::from(asid)];
        for born in &block.portals {
            let slot = &mut domain.slots[usize::from(born.index)];
            slot.goal = Goal::Interface(born.interface);
            slot.run = Run { at: all.at + born.run.at, ..born.run };
            machine.set_table(asid, born.index, map::CODE_VA + u64::from(slot.run.at));
        }
        domain.open += block.portals.len();
        Ok(())
    }

    /// Keeps a block for the kind of this domain, whose portals have just been made one by one. Without memory
    /// for it, there is none.
    pub(crate) fn learn(&mut self, view: &View, parent: Parent, mirrored: &[usize]) {
        let kind = kind(view);
        let same = |block: &Block| block.kind == kind && block.parent == parent;
        // Of an exclusive domain other shapes are wanted.
        if view.exclusive || self.made.births.0.iter().any(same) {
            return;
        }
        let slots = &self.domains[usize::from(view.asid)].slots;
        let stub = |index: &usize| match slots[*index].goal {
            Goal::Interface(n) => Some((*index as u16, n)),
            _ => None,
        };
        let stubs = mirrored.iter().filter_map(stub).collect::<Vec<_>>();
        let mut block = Block::new(view, parent);
        let portals = if parent.is_some() { stubs.len() } else { self.system.len() };
        for n in 0..portals {
            let (index, interface) = if parent.is_some() { stubs[n] } else { self.system[n] };
            if self.bring_up(&mut block, view, index, interface).is_none() {
                return;
            }
        }
        let births = &mut self.made.births.0;
        if !block.portals.is_empty() && births.try_reserve(1).is_ok() {
            let alike = |block: &Block| block.parent.is_some() == parent.is_some();
            if births.iter().filter(|block| alike(block)).count() >= MOST[usize::from(parent.is_some())]
                && let Some(oldest) = births.iter().position(alike)
            {
                births.remove(oldest);
            }
            births.push(block);
        }
    }

    /// One more portal of a block, if it is of a kind that blocks have. `None`: that would be too much for it.
    fn bring_up(&mut self, block: &mut Block, view: &View, index: u16, interface: u16) -> Option<()> {
        let Manager { domains, interfaces, made, .. } = self;
        let i = interfaces.get(usize::from(interface))?;
        let callee = domains.get(usize::from(i.asid)).filter(|d| d.alive)?.view;
        let stub = i.name.is_empty();
        let plain = i.spec.stack == Stack::New && i.moves.is_none() && !i.lettered;
        if !plain || stub != block.parent.is_some() {
            return Some(());
        }
        let c = Connection {
            caller: *view,
            callee,
            entry: i.entry,
            index,
            keeps_status: stub,
            ..Connection::default()
        };
        let Ok(Some((form, _))) = made.forms.of(i.written(), Shape::Call, &c, A::PROCESSOR) else {
            return Some(());
        };
        block.portals.try_reserve(1).ok()?;
        block.targets.try_reserve(1).ok()?;
        let Range { start, end } = block.code.add(form, Run::UNIT / 8, &c, A::PROCESSOR)?;
        let len = ((end - start) * 8).next_multiple_of(Run::UNIT) as u32;
        let run = Run { at: start as u32 * 8, len, ..Run::default() };
        let original = block.parent.map_or((Goal::Free, [0; 2]), |(parent, _)| {
            original(&domains[usize::from(parent)], index.into(), interfaces)
        });
        block.portals.push(Born { index, interface, original, run });
        if block.targets.iter().all(|target| target.interface != interface) {
            block.targets.push(Target { interface, text: i.text, callee, entry: i.entry });
        }
        Some(())
    }
}
