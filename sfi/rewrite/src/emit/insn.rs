//! One instruction of the program: which of the ways it goes, and what all have in common.

use super::Emitter;
use super::detour::{detour_label, enter};
use crate::confine::Scope;
use crate::error::Kind;
use crate::isa;
use crate::operand;
use crate::parse::Insn;
use crate::scratch::Scratch;
use crate::stack::{self, Action, Place, State};

impl Emitter<'_> {
    /// What the instruction becomes.
    pub(super) fn insn(&self, i: usize, insn: &Insn, state: &State) -> Result<Vec<String>, Kind> {
        let mut scope = self.scope(i, insn, state);
        let place = self.becomes_dynamic(i, insn, state)?;
        let branches = isa::ends_block(insn) || isa::is_jcc(&insn.op);
        if let Some(place) = place.filter(|_| branches) {
            scope.keep_place(place)?;
            scope.give_back();
        }
        self.confined_insn(i, insn, &mut scope)?;
        if let Some(place) = place.filter(|_| !branches) {
            scope.keep_place(place)?;
        }
        scope.give_back();
        Ok(scope.lines)
    }

    fn scope<'s>(&'s self, i: usize, insn: &Insn, state: &'s State) -> Scope<'s> {
        let e = isa::effects(insn);
        let mut used =
            isa::touched(insn) | isa::excluded(insn) | self.bases.kept.get(&i).copied().unwrap_or(0);
        if matches!(isa::stem(insn), "call" | "jmp") && !self.tables.jumps.contains_key(&i) {
            used |= isa::ARGUMENTS;
        }
        let flags_busy = e.reads_flags || (self.live.flags[i] && !e.kills_flags);
        let function = &self.layout.functions[self.layout.owner[i]];
        Scope::new(state, function, Scratch::new(used, self.live.regs[i]), flags_busy)
    }

    /// The place of the stack pointer, where a way from here leads to code that looks for it in its slot, and
    /// nobody has put it there yet: the program moves the stack pointer in a loop, and has not moved it
    /// before.
    fn becomes_dynamic(&self, i: usize, insn: &Insn, state: &State) -> Result<Option<i64>, Kind> {
        let after = stack::after(insn, state)?;
        let Place::At(place) = after.sp else { return Ok(None) };
        let next = self.flow.successors(self.program, i, &self.tables.targets);
        let dynamic = |s: &usize| self.layout.states[*s].as_ref().is_some_and(|t| t.sp == Place::Dynamic);
        Ok((after.bare() && next.iter().any(dynamic)).then_some(place))
    }

    fn confined_insn(&self, i: usize, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        if let Some(jump) = self.tables.jumps.get(&i) {
            self.table_jump(i, insn, jump, scope)?;
            return Ok(());
        }
        if self.idle.contains(&i) {
            return Ok(());
        }
        if let Some(sum) = self.tables.sums.get(&i) {
            if let Some((from, to)) = sum {
                scope.line(format!("movl\t{}, {}", operand::r32(*from), operand::r32(*to)));
            }
            return Ok(());
        }
        if let Some((x, d)) = self.tables.loads.get(&i) {
            // A table may be addressed from before its start.
            let bias = isa::memory(insn).and_then(|(_, m)| m.number()).unwrap_or(0) / 4;
            if bias != 0 {
                scope.line(format!("leal\t{bias}({}), {}", operand::r64(*x), operand::r32(*d)));
            } else if x != d {
                scope.line(format!("movl\t{}, {}", operand::r32(*x), operand::r32(*d)));
            }
            return Ok(());
        }
        if stack::overwrites_return(insn, scope.state) {
            scope.line("ud2");
            return Ok(());
        }
        match isa::stem(insn) {
            "call" | "jmp" => {
                self.cross(i, scope);
                self.transfer(insn, scope)?;
                return Ok(());
            }
            "ret" => {
                // Where it returns to is on a stack of its own: no other place can be pushed or pointed to.
                let (sp, realigned) = (scope.state.sp, scope.function.realigned);
                let back = sp == Place::At(0) || sp == Place::Dynamic && realigned;
                if !back || !insn.args.is_empty() {
                    let hint = "rsp is not where it was at the function's entry; a return address cannot be \
                        pushed or set: jump or call instead";
                    return Err(Kind::Unsupported { what: insn.to_string(), hint });
                }
                self.cross(i, scope);
                scope.line("retq");
                return Ok(());
            }
            // What the system saves is asked of the system, which nobody may: x87, SSE and AVX, as it is
            // wherever a processor says that it may be asked.
            "xgetbv" => {
                scope.line("movl\t$7, %eax");
                scope.line("movl\t$0, %edx");
                return Ok(());
            }
            // Compilers and libraries stop with these; so does `ud2`, with a better signal, and verified.
            "hlt" | "ud1" => {
                scope.line("ud2");
                return Ok(());
            }
            op if isa::is_jcc(op) => {
                let t = isa::direct_target(insn).ok_or_else(|| Kind::Syntax(insn.to_string()))?;
                let detour = self.has_detour(i).then(|| detour_label(i));
                if let (Some(r), None) = (self.bases.enter_by.get(&i), &detour) {
                    scope.lines.extend(enter(*r));
                }
                scope.line(format!("{op}\t{}", detour.unwrap_or_else(|| self.branch_name(t))));
                return Ok(());
            }
            _ => {}
        }
        let action = &self.layout.actions[i];
        match action {
            Action::None => match self.bases.loads.get(&i) {
                Some(load) => self.load_by_base(insn, load, scope),
                None => self.plain(insn, scope)?,
            },
            Action::Reload | Action::Virtual => {}
            Action::Save(r) => scope.line(format!("pushq\t{}", operand::r64(*r))),
            Action::Restore(r) => scope.line(format!("popq\t{}", operand::r64(*r))),
            Action::Push | Action::Skip | Action::Pop | Action::Move | Action::MoveDynamic => {
                self.stack_move(insn, action, scope)?;
            }
        }
        Ok(())
    }
}
