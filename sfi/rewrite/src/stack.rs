//! One stack becomes two: what every instruction does to the compiler's stack, and where its words go.
//!
//! The compiler's `rsp` and frame pointer are followed as offsets from `rsp` at the function's entry (where
//! the return address lies, offset 0). A word at offset x lies in the data stack at `rbp` at entry + x - 8,
//! so alignment stays and the first stack argument (x = 8) is where the contract wants it. Pushes that save a
//! preserved register stay pushes on the return stack and leave a hole here.
//!
//! Invariant: the state before an instruction is the same on every path to it.

use crate::error::{Error, Kind};
use crate::flow::Flow;
use crate::isa::{self, Access};
use crate::operand::{Operand, RAX, RBP, RSP};
use crate::parse::{Body, Insn, Program};
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A known offset from `rsp` at entry.
    At(i64),
    /// Somewhere below (alloca, realigned); its address is in the frame's slot.
    Dynamic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// `rbp` holds the caller's value.
    Entry,
    /// `rbp` is a frame pointer.
    At(i64),
    /// It was set up when the place was dynamic (gcc, for alloca beside over-aligned locals), and is in a
    /// slot of its own.
    Dynamic,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub sp: Place,
    pub fp: Frame,
    /// Words really pushed: the offset the compiler knows, and the register.
    pub saves: Vec<(i64, u8)>,
    /// Where the compiler believes `rbp` to be saved.
    pub fp_saved: Option<i64>,
    /// Registers written since entry.
    pub written: u16,
}

impl State {
    fn entry() -> State {
        State { sp: Place::At(0), fp: Frame::Entry, saves: Vec::new(), fp_saved: None, written: 0 }
    }

    /// Nothing but saved registers is on the compiler's stack.
    pub fn bare(&self) -> bool {
        let words = self.saves.len() + usize::from(self.fp_saved.is_some());
        self.sp == Place::At(-8 * words as i64)
    }

    /// Does the register hold what it held at entry, which nobody has pushed? Nothing else may be said of a
    /// word that it is pushed to.
    pub fn untouched(&self, register: u8) -> bool {
        let preserved = isa::CALLEE_SAVED & !self.written & 1 << register != 0;
        preserved && self.saves.iter().all(|(_, saved)| *saved != register)
    }

    /// For the compiler its return address, or its caller's frame pointer, is there.
    pub fn on_return_stack(&self, place: i64) -> bool {
        (0..8).contains(&place) || self.fp_saved == Some(place)
    }

    pub fn save_at(&self, x: i64) -> Option<u8> {
        self.saves.iter().find(|(o, _)| *o == x).map(|(_, r)| *r)
    }
}

/// What an instruction means to the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    None,
    /// A push that stays one.
    Save(u8),
    /// A pop that stays one.
    Restore(u8),
    /// A frame-pointer push, pop or set-up: nothing is left of it.
    Virtual,
    /// Any other push: a store to the data stack.
    Push,
    /// A push whose value is never read.
    Skip,
    Pop,
    /// `rsp` moves to a known place.
    Move,
    /// `rsp` moves to a computed place.
    MoveDynamic,
    /// A load that brings a saved register back; its word is popped later.
    Reload,
}

#[derive(Debug, Default, Clone)]
pub struct Function {
    pub dynamic: bool,
    /// It has had a frame pointer at no known place, and so comes back to where it began by way of a
    /// register.
    pub realigned: bool,
    pub has_call: bool,
    pub has_data: bool,
    pub lowest: i64,
    /// Registers pushed before anybody has written them: to be kept, perhaps.
    pub saved: u16,
}

impl Function {
    /// `rbp` relative to its value at entry, in this state.
    pub fn delta(&self, s: &State) -> i64 {
        match s.sp {
            Place::At(o) if self.framed() && !s.bare() => o - 8,
            _ => 0,
        }
    }

    fn framed(&self) -> bool {
        !self.dynamic && self.has_data && (self.has_call || self.lowest < -4000)
    }
}

#[derive(Debug, Default)]
pub struct Layout {
    pub states: Vec<Option<State>>,
    pub actions: Vec<Action>,
    /// Function of each instruction (index into `functions`).
    pub owner: Vec<usize>,
    pub functions: Vec<Function>,
    /// Calls that do not return.
    pub noreturn: HashSet<usize>,
}

const NORETURN: [&str; 8] =
    ["abort", "exit", "_exit", "_Exit", "__assert_fail", "longjmp", "_longjmp", "__stack_chk_fail"];

fn touches_stack(insn: &Insn, s: &State) -> Option<i64> {
    let (_, m) = isa::memory(insn)?;
    let d = m.number()?;
    match (m.base_gpr(), s.sp, s.fp) {
        (Some(RSP), Place::At(o), _) => Some(o + d),
        (Some(RBP), _, Frame::At(c)) => Some(c + d),
        _ => None,
    }
}

/// Would it overwrite what is on the return stack? Compilers write such stores where a loop that they have
/// unrolled would leave an array, which it never does. So it is a trap, and nothing goes on behind it.
pub fn overwrites_return(insn: &Insn, s: &State) -> bool {
    let plain = isa::memory(insn).is_some_and(|(_, m)| m.index.is_none());
    let store = plain && isa::access(insn) == Access::Store && !isa::is_fence(insn);
    store && touches_stack(insn, s).is_some_and(|place| s.on_return_stack(place))
}

/// The state after the instruction.
pub fn after(insn: &Insn, s: &State) -> Result<State, Kind> {
    step(insn, s).map(|(state, _)| state)
}

/// The state after the instruction, and what it is.
fn step(insn: &Insn, s: &State) -> Result<(State, Action), Kind> {
    let mut t = s.clone();
    let misuse = || Kind::StackRegister(insn.to_string());
    let stem = isa::stem(insn);
    let to_sp = |t: &mut State, place: Place| {
        t.sp = place;
        if let Place::At(o) = place {
            t.saves.retain(|(x, r)| {
                let keep = *x >= o;
                if !keep {
                    t.written &= !(1 << r);
                }
                keep
            });
            // A frame pointer slot above which nothing is left.
            if t.fp_saved.is_some_and(|x| x < o) {
                t.fp_saved = None;
            }
        }
    };
    let last = insn.args.last();
    match (stem, insn.args.as_slice()) {
        ("push", [Operand::Gpr(g)]) => {
            let Place::At(o) = s.sp else {
                let mistaken = g.num == RBP && s.fp != Frame::Entry;
                return if mistaken { Err(misuse()) } else { Ok((t, Action::Push)) };
            };
            t.sp = Place::At(o - 8);
            if g.num == RBP {
                if s.fp == Frame::Entry && s.bare() && s.fp_saved.is_none() {
                    t.fp_saved = Some(o - 8);
                    return Ok((t, Action::Virtual));
                }
                return Ok((t, Action::Push));
            }
            let preserved = isa::CALLEE_SAVED & 1 << g.num != 0 && s.written & 1 << g.num == 0;
            if preserved && s.bare() && !s.saves.iter().any(|(_, r)| *r == g.num) {
                t.saves.push((o - 8, g.num));
                return Ok((t, Action::Save(g.num)));
            }
            // Compilers keep rsp aligned by pushing a register that nobody has set.
            if g.num == RAX && s.written & 1 == 0 {
                return Ok((t, Action::Skip));
            }
            return Ok((t, Action::Push));
        }
        ("push", _) => {
            if let Place::At(o) = s.sp {
                t.sp = Place::At(o - 8);
            }
            return Ok((t, Action::Push));
        }
        ("pop", [Operand::Gpr(g)]) => {
            let Place::At(o) = s.sp else {
                if g.num == RBP && std::mem::replace(&mut t.fp, Frame::Entry) != Frame::Dynamic {
                    return Err(misuse());
                }
                return Ok((t, Action::Pop));
            };
            let new = Place::At(o + 8);
            if g.num == RBP {
                if s.fp_saved == Some(o) {
                    t.fp_saved = None;
                    t.fp = Frame::Entry;
                    t.sp = new;
                    return Ok((t, Action::Virtual));
                }
                return Err(misuse());
            }
            if s.saves.last() == Some(&(o, g.num)) {
                t.saves.pop();
                t.written &= !(1 << g.num);
                t.sp = new;
                return Ok((t, Action::Restore(g.num)));
            }
            t.written |= 1 << g.num;
            t.sp = new;
            if s.save_at(o).is_some() {
                return Err(misuse());
            }
            return Ok((t, Action::Pop));
        }
        ("leave", []) => {
            t.fp = Frame::Entry;
            if s.fp == Frame::Dynamic {
                t.sp = Place::Dynamic;
                return Ok((t, Action::MoveDynamic));
            }
            let Frame::At(c) = s.fp else { return Err(misuse()) };
            to_sp(&mut t, Place::At(c + 8));
            t.fp_saved = None;
            return Ok((t, Action::Move));
        }
        ("mov", [Operand::Gpr(a), Operand::Gpr(b)]) if a.num == RSP && b.num == RBP => {
            let Place::At(o) = s.sp else {
                t.fp = Frame::Dynamic;
                return Ok((t, Action::MoveDynamic));
            };
            t.fp = Frame::At(o);
            return Ok((t, Action::Virtual));
        }
        ("mov", [Operand::Gpr(a), Operand::Gpr(b)]) if a.num == RBP && b.num == RSP => {
            if s.fp == Frame::Dynamic {
                t.sp = Place::Dynamic;
                return Ok((t, Action::MoveDynamic));
            }
            let Frame::At(c) = s.fp else { return Err(misuse()) };
            to_sp(&mut t, Place::At(c));
            return Ok((t, Action::Move));
        }
        ("lea", [Operand::Mem(m), Operand::Gpr(g)]) if g.num == RSP => {
            let place = match (m.base_gpr(), m.index_gpr(), m.number(), s.sp, s.fp) {
                (Some(RSP), None, Some(d), Place::At(o), _) => Place::At(o + d),
                (Some(RBP), None, Some(d), _, Frame::At(c)) => Place::At(c + d),
                _ => Place::Dynamic,
            };
            to_sp(&mut t, place);
            return Ok((t, if place == Place::Dynamic { Action::MoveDynamic } else { Action::Move }));
        }
        ("lea", [Operand::Mem(m), Operand::Gpr(g)]) if g.num == RBP => {
            let (Some(RSP), Some(d), Place::At(o)) = (m.base_gpr(), m.number(), s.sp) else {
                return Err(misuse());
            };
            t.fp = Frame::At(o + d);
            return Ok((t, Action::Virtual));
        }
        ("add" | "sub", [Operand::Imm(_), Operand::Gpr(g)]) if g.num == RSP => {
            let d = insn.args[0].imm().ok_or_else(misuse)?;
            let d = if stem == "add" { d } else { -d };
            if let Place::At(o) = s.sp {
                to_sp(&mut t, Place::At(o + d));
                return Ok((t, Action::Move));
            }
            return Ok((t, Action::MoveDynamic));
        }
        ("call", _) => {
            t.written |= isa::CALLER_SAVED;
            return Ok((t, Action::None));
        }
        _ => {}
    }
    if !matches!(insn.op.as_bytes(), [b'c', b'm', b'p', ..] | [b't', b'e', b's', b't', ..]) {
        if last.is_some_and(|o| o.is_reg(RSP)) {
            t.sp = Place::Dynamic;
            return Ok((t, Action::MoveDynamic));
        }
        if last.is_some_and(|o| o.is_reg(RBP)) {
            return Err(misuse());
        }
    }
    // gcc brings a single register back by a load before `leave`.
    if stem == "mov"
        && let Some(g) = last.and_then(Operand::gpr)
        && let Some(x) = touches_stack(insn, s)
        && matches!(insn.args[0], Operand::Mem(_))
        && s.save_at(x) == Some(g.num)
    {
        return Ok((t, Action::Reload));
    }
    let last_or_only = last.and_then(Operand::gpr).is_some() || insn.args.len() < 2;
    let named = insn.args.iter().filter_map(Operand::gpr).fold(0, |m, g| m | 1u16 << g.num);
    t.written |= isa::may_write(insn) | if last_or_only { named } else { 0 };
    Ok((t, Action::None))
}

/// Follows every function from its entry; calls found not to return start the pass again.
pub fn analyse(
    program: &Program,
    flow: &Flow,
    table: &HashMap<usize, Vec<String>>,
    file: &str,
) -> Result<Layout, Error> {
    let mut noreturn: HashSet<usize> = HashSet::new();
    for (i, item) in program.items.iter().enumerate() {
        if let Body::Insn(insn) = &item.body
            && isa::stem(insn) == "call"
            && isa::direct_target(insn).is_some_and(|t| NORETURN.contains(&t))
        {
            noreturn.insert(i);
        }
    }
    loop {
        match attempt(program, flow, table, file, &noreturn)? {
            Ok(layout) => return Ok(layout),
            Err(call) => {
                noreturn.insert(call);
            }
        }
    }
}

fn label_between(program: &Program, a: usize, b: usize) -> bool {
    program.items[a..b].iter().any(|it| matches!(it.body, Body::Label(_)))
}

fn attempt(
    program: &Program,
    flow: &Flow,
    table: &HashMap<usize, Vec<String>>,
    file: &str,
    noreturn: &HashSet<usize>,
) -> Result<Result<Layout, usize>, Error> {
    let n = program.items.len();
    let mut layout = Layout {
        states: vec![None; n],
        actions: vec![Action::None; n],
        owner: vec![0; n],
        functions: Vec::new(),
        noreturn: noreturn.clone(),
    };
    // The call through which a state came by falling out of it, if so.
    let mut from_call: Vec<Option<usize>> = vec![None; n];
    let mut came_from: Vec<Option<usize>> = vec![None; n];
    for entry in &flow.entries {
        let Some(first) = flow.next[*entry] else { continue };
        if layout.states[first].is_some() {
            continue;
        }
        let id = layout.functions.len();
        layout.functions.push(Function::default());
        layout.states[first] = Some(State::entry());
        layout.owner[first] = id;
        let mut work = vec![first];
        while let Some(i) = work.pop() {
            let Body::Insn(insn) = &program.items[i].body else { continue };
            let at = |kind: Kind| Error::new(file, program.items[i].line, kind);
            let state = layout.states[i].clone().expect("queued with a state");
            let (after, action) = step(insn, &state).map_err(at)?;
            let f = &mut layout.functions[id];
            f.dynamic |= after.sp == Place::Dynamic;
            f.realigned |= after.fp == Frame::Dynamic;
            if let Place::At(o) = after.sp {
                f.lowest = f.lowest.min(o);
            }
            f.has_call |= isa::stem(insn) == "call";
            f.has_data |= match action {
                Action::Push | Action::Pop => true,
                Action::None => {
                    let mem = touches_stack(insn, &state).is_some_and(|x| x < 8)
                        || isa::memory(insn).is_some_and(|(_, m)| {
                            m.regs() & (1 << RSP | 1 << RBP) != 0 && touches_stack(insn, &state).is_none()
                        });
                    mem || insn.args.iter().any(|a| a.is_reg(RSP) || a.is_reg(RBP))
                }
                _ => false,
            };
            if let (Action::Push, [Operand::Gpr(g)]) = (&action, insn.args.as_slice()) {
                f.saved |= 1 << g.num & !state.written;
            }
            layout.actions[i] = action;
            if noreturn.contains(&i) || overwrites_return(insn, &state) {
                continue;
            }
            let is_call = isa::stem(insn) == "call";
            for s in flow.successors(program, i, table) {
                match &mut layout.states[s] {
                    None => {
                        layout.states[s] = Some(after.clone());
                        layout.owner[s] = id;
                        from_call[s] = (is_call && label_between(program, i, s)).then_some(i);
                        came_from[s] = Some(i);
                        work.push(s);
                    }
                    Some(old) => {
                        let same =
                            old.fp == after.fp && old.saves == after.saves && old.fp_saved == after.fp_saved;
                        let merged = match (old.sp, after.sp) {
                            (a, b) if a == b => Some(a),
                            _ if layout.functions[id].dynamic => Some(Place::Dynamic),
                            _ => None,
                        };
                        let (true, Some(sp)) = (same, merged) else {
                            // One of the two paths is the way out of a call that never returns.
                            if is_call && label_between(program, i, s) {
                                return Ok(Err(i));
                            }
                            for start in [s, i] {
                                let mut at = Some(start);
                                while let Some(k) = at {
                                    if let Some(call) = from_call[k] {
                                        return Ok(Err(call));
                                    }
                                    at = came_from[k];
                                }
                            }
                            return Err(Error::new(
                                file,
                                program.items[s].line,
                                Kind::StackConflict(format!("{:?}", program.items[s].body)),
                            ));
                        };
                        let written = old.written | after.written;
                        if sp != old.sp || written != old.written {
                            old.sp = sp;
                            old.written = written;
                            work.push(s);
                        }
                    }
                }
            }
        }
    }
    Ok(Ok(layout))
}
