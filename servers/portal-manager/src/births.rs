//! The portals that a domain is born with: every domain to the system's servers, a copy to its controller.
//!
//! **Problem.** A new domain gets some twenty portals to the system's servers. To find the form of each, to copy
//! it and to place it is a fifth of what starting a program costs, and the next program's are nearly the same.
//! So are the stubs of the next copy of a domain that makes copies of itself.
//! **Strategy.** All of them are kept as one block: their forms, with every hole filled but those that the
//! caller decides ([`Hole::is_callers`]). For the next domain of the kind these are filled, the verifier compares
//! each portal as it compares any other, and the block is placed as a whole.
//!
//! **Invariants.**
//! * A block is of forms that the verifier has accepted, for domains of one kind.
//! * It serves as long as each portal's specification, callee and entry are what they were; then it is made
//!   anew.
//! * A block of stubs serves the copies of one domain with one handler, as long as there is behind each index
//!   what was there.
//! * What shares stacks, has windows or letters of servers is in no block: more is to be done for it.

use crate::Machine;
use crate::arena::Run;
use crate::forms::Forms;
use crate::manager::{Domain, Goal, Interface, Manager, Slot};
use crate::slots::CHUNK;
use alloc::vec::Vec;
use core::ops::Range;
use pebble_abi::map;
use pebble_arch::Arch;
use pebble_portal::hardware::hole::{Facts, Hole, Side, Values};
use pebble_portal::hardware::verify::instance;
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
    text: [u64; 2],
    callee: View,
    entry: u64,
    /// Of a stub: what its original leads to, with what specification.
    original: (Goal, [u64; 2]),
    /// Where it lies in the block, and its holes among those of the block.
    doubles: Range<usize>,
    holes: Range<usize>,
}

struct Block {
    kind: Side,
    parent: Parent,
    portals: Vec<Born>,
    /// The forms, one behind the other. Each begins where a run may.
    doubles: Vec<u64>,
    /// Where symbols are left.
    holes: Vec<u16>,
    /// The portals that were made last. Only the holes differ from one domain to the next; the verifier looks
    /// at all of it.
    last: Vec<u64>,
}

/// The blocks, the newest behind.
#[derive(Default)]
pub(crate) struct Births(Vec<Block>);

fn kind(view: &View) -> Side {
    Facts::of(&Connection { caller: *view, ..Connection::default() }).caller
}

impl Born {
    /// Whether this is what it was made of.
    fn stands(&self, domains: &[Domain], interfaces: &[Interface]) -> bool {
        let Some(i) = interfaces.get(usize::from(self.interface)) else { return false };
        let callee = domains.get(usize::from(i.asid)).filter(|d| d.alive);
        i.text == self.text && i.entry == self.entry && callee.is_some_and(|d| d.view == self.callee)
    }

    fn connection(&self, caller: View, parent: Parent) -> Connection<'static> {
        let Born { index, callee, entry, .. } = *self;
        Connection { caller, callee, entry, index, keeps_status: parent.is_some(), ..Connection::default() }
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
    /// The portals for this domain, in `last`. Whether the verifier agrees.
    fn fill(&mut self, caller: View, processor: pebble_portal::Processor) -> bool {
        let Block { parent, portals, doubles, holes, last, .. } = self;
        portals.iter().all(|born| {
            let c = born.connection(caller, *parent);
            let values = Values::of(&c, Shape::Call, processor);
            for at in &holes[born.holes.clone()] {
                let at = usize::from(*at);
                last[at] = values.fill(doubles[at]).unwrap_or(doubles[at]);
            }
            let form = doubles[born.doubles.clone()].iter().copied();
            let portal = &last[born.doubles.clone()];
            instance(form, born.holes.len(), portal, Shape::Call, &c, processor).is_ok()
        })
    }

    /// One portal more, behind the others: of this form.
    fn add(&mut self, form: &[u64], mut born: Born, values: &Values) {
        let (from, first) = (self.doubles.len(), self.holes.len());
        for double in form {
            let callers = Hole::of(*double).is_some_and(Hole::is_callers);
            if callers {
                self.holes.push(self.doubles.len() as u16);
            }
            self.doubles.push(if callers { *double } else { values.fill(*double).unwrap_or(*double) });
        }
        born.doubles = from..self.doubles.len();
        born.holes = first..self.holes.len();
        self.doubles.resize(self.doubles.len().next_multiple_of(Run::UNIT / 8), 0);
        self.portals.push(born);
    }
}

impl<A: Arch> Manager<A> {
    /// The portals of a new domain that are in a block for its kind. Those that are in none are left; without
    /// such a block, or without room for it as a whole, all. `mirrored`: of a copy, the entries of its parent
    /// that it shall have stubs for, in order.
    pub(crate) fn bear(
        &mut self,
        machine: &mut impl Machine,
        view: View,
        parent: Parent,
        mirrored: &[usize],
    ) {
        if view.exclusive {
            return;
        }
        let Manager { domains, interfaces, made, .. } = self;
        let kind = kind(&view);
        made.births.0.retain(|block| block.portals.iter().all(|born| born.stands(domains, interfaces)));
        let known = made.births.0.iter().position(|block| block.kind == kind && block.parent == parent);
        let Some(at) = known else { return };
        let mut block = made.births.0.swap_remove(at);
        if let Some((parent, _)) = parent {
            let parent = &domains[usize::from(parent)];
            let mirrors = |born: &Born| {
                let index = usize::from(born.index);
                mirrored.binary_search(&index).is_ok() && original(parent, index, interfaces) == born.original
            };
            if !block.portals.iter().all(mirrors) {
                return;
            }
        }
        if block.fill(view, A::PROCESSOR) {
            self.place_block(machine, view.asid, &block);
        }
        self.made.births.0.push(block);
    }

    fn place_block(&mut self, machine: &mut impl Machine, asid: u16, block: &Block) {
        if self.grant_code(asid).is_err() {
            return;
        }
        let mut chunk = None;
        for index in block.portals.iter().map(|born| usize::from(born.index)) {
            let its = Some(index / CHUNK);
            if chunk != its && self.grow(machine, asid, index..index + 1).is_err() {
                return;
            }
            chunk = its;
        }
        // Where code lies scattered, there may be room for each, and not for all together.
        let Ok(all) = self.place_code(machine, &block.last) else { return };
        for born in &block.portals {
            let (from, len) = (born.doubles.start as u32 * 8, born.doubles.len() as u32 * 8);
            let len = len.next_multiple_of(Run::UNIT as u32);
            let run = Run { at: all.at + from, len, ..Run::default() };
            let slot = Slot { goal: Goal::Interface(born.interface), run, ..Slot::default() };
            let domain = &mut self.domains[usize::from(asid)];
            domain.slots[usize::from(born.index)] = slot;
            domain.open += 1;
            machine.set_table(asid, born.index, map::CODE_VA + u64::from(run.at));
        }
    }

    /// Keeps a block for the kind of this domain, whose portals have just been made one by one. Without memory
    /// for it, there is none.
    pub(crate) fn learn(&mut self, view: View, parent: Parent, mirrored: &[usize]) {
        let kind = kind(&view);
        let same = |block: &Block| block.kind == kind && block.parent == parent;
        // Of an exclusive domain other shapes are wanted.
        if view.exclusive || self.made.births.0.iter().any(same) {
            return;
        }
        let Some(mut forms) = self.made.forms.take() else { return };
        let slots = &self.domains[usize::from(view.asid)].slots;
        let stub = |index: &usize| match slots[*index].goal {
            Goal::Interface(n) => Some((*index as u16, n)),
            _ => None,
        };
        let stubs = mirrored.iter().filter_map(stub).collect::<Vec<_>>();
        let portals = if parent.is_some() { &stubs } else { &self.system };
        let block = self.block(&mut forms, view, parent, portals);
        self.made.forms = Some(forms);
        let births = &mut self.made.births.0;
        if let Some(block) = block
            && births.try_reserve(1).is_ok()
        {
            let alike = |block: &Block| block.parent.is_some() == parent.is_some();
            if births.iter().filter(|block| alike(block)).count() >= MOST[usize::from(parent.is_some())]
                && let Some(oldest) = births.iter().position(alike)
            {
                births.remove(oldest);
            }
            births.push(block);
        }
    }

    fn block(&self, forms: &mut Forms, view: View, parent: Parent, portals: &[(u16, u16)]) -> Option<Block> {
        let mut block = Block {
            kind: kind(&view),
            parent,
            portals: Vec::new(),
            doubles: Vec::new(),
            holes: Vec::new(),
            last: Vec::new(),
        };
        block.portals.try_reserve_exact(portals.len()).ok()?;
        for (index, interface) in portals {
            let i = self.interfaces.get(usize::from(*interface))?;
            let callee = self.domains.get(usize::from(i.asid)).filter(|d| d.alive)?.view;
            let stub = i.name.is_empty();
            if i.spec.stack == Stack::Shared || i.spec.windows().next().is_some() || stub != parent.is_some()
            {
                continue;
            }
            let (index, interface, text, entry) = (*index, *interface, i.text, i.entry);
            let original = parent.map_or((Goal::Free, [0; 2]), |(parent, _)| {
                original(&self.domains[usize::from(parent)], index.into(), &self.interfaces)
            });
            let born = Born { index, interface, text, callee, entry, original, doubles: 0..0, holes: 0..0 };
            let c = born.connection(view, parent);
            let Some(form) = forms.of(&i.spec, Shape::Call, &c, A::PROCESSOR) else { continue };
            let room = form.len().next_multiple_of(Run::UNIT / 8);
            block.doubles.try_reserve(room).ok()?;
            block.holes.try_reserve(form.len()).ok()?;
            block.add(form, born, &Values::of(&c, Shape::Call, A::PROCESSOR));
        }
        block.last.try_reserve_exact(block.doubles.len()).ok()?;
        block.last.extend_from_slice(&block.doubles);
        (!block.portals.is_empty()).then_some(block)
    }
}
