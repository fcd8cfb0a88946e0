//! Instructions that move the compiler's stack pointer, or use it as a value: on the data stack.

use super::Emitter;
use crate::confine::{FRAME_SLOT, SLOT, Scope};
use crate::error::Kind;
use crate::isa::{self, Access};
use crate::operand::{self, Mem, Operand, RBP, RSP};
use crate::parse::Insn;
use crate::stack::{self, Action, Frame, Place};

impl Emitter<'_> {
    pub(super) fn stack_move(&self, insn: &Insn, action: &Action, scope: &mut Scope) -> Result<(), Kind> {
        let state = scope.state;
        let function = scope.function;
        let after = stack::after(insn, state)?;
        let (before_delta, after_delta) = (function.delta(state), function.delta(&after));
        let move_rbp = |scope: &mut Scope| {
            if before_delta != after_delta {
                scope.line(format!("leaq\t{}(%rbp), %rbp", after_delta - before_delta));
            }
        };
        match action {
            Action::Push if state.sp == Place::Dynamic => {
                let value = self.value(insn, scope)?;
                let r = scope.take()?;
                let (wide, narrow) = (operand::r64(r), operand::r32(r));
                scope.line(format!("movq\t{SLOT}(%rbp), {wide}"));
                scope.line(format!("leaq\t-8({wide}), {wide}"));
                scope.line(format!("movq\t{wide}, {SLOT}(%rbp)"));
                scope.line(format!("movq\t{value}, %gs:({narrow})"));
            }
            Action::Pop if state.sp == Place::Dynamic => {
                let r = scope.take()?;
                let (wide, narrow) = (operand::r64(r), operand::r32(r));
                scope.line(format!("movq\t{SLOT}(%rbp), {wide}"));
                // A frame pointer's word holds nothing.
                if !insn.args[0].is_reg(RBP) {
                    scope.line(format!("movq\t%gs:({narrow}), {}", insn.args[0]));
                }
                scope.line(format!("leaq\t8({wide}), {wide}"));
                scope.line(format!("movq\t{wide}, {SLOT}(%rbp)"));
            }
            Action::Push => {
                let value = self.value(insn, scope)?;
                move_rbp(scope);
                let Place::At(o) = after.sp else { return Err(Kind::StackRegister(insn.to_string())) };
                scope.line(format!("movq\t{value}, {}", Mem::based(o - 8 - after_delta, RBP)));
            }
            Action::Pop => {
                let Place::At(o) = state.sp else { return Err(Kind::StackRegister(insn.to_string())) };
                let slot = scope.frame_mem(o);
                match &insn.args[0] {
                    Operand::Gpr(g) => scope.line(format!("movq\t{slot}, {g}")),
                    _ => {
                        return Err(Kind::Unsupported {
                            what: insn.to_string(),
                            hint: "pop into a register",
                        });
                    }
                }
                move_rbp(scope);
            }
            Action::Skip => {
                move_rbp(scope);
                if after_delta < -4096 || !self.options.elide && before_delta != after_delta {
                    scope.line("movb\t$0, (%rbp)");
                }
            }
            Action::Move => {
                move_rbp(scope);
                if after_delta < before_delta && (after_delta < -4096 || !self.options.elide) {
                    scope.line("movb\t$0, (%rbp)");
                }
                for (_, r) in state.saves[after.saves.len()..].iter().rev() {
                    scope.line(format!("popq\t{}", operand::r64(*r)));
                }
            }
            Action::MoveDynamic => self.move_dynamic(insn, scope)?,
            _ => {}
        }
        if function.dynamic && *action != Action::MoveDynamic && state.sp != Place::Dynamic
            || *action == Action::Move && function.dynamic
        {
            if let Place::At(o) = after.sp
                && !after.bare()
            {
                scope.keep_place(o)?;
            }
        }
        Ok(())
    }

    /// The operand of a push, as something a `movq` can store.
    fn value(&self, insn: &Insn, scope: &mut Scope) -> Result<String, Kind> {
        match &insn.args[0] {
            Operand::Mem(m) => {
                let (m, region) = scope.translate(m, insn)?;
                let m = self.confined(m, region, Access::Load);
                let r = scope.take()?;
                scope.line(format!("movq\t{m}, {}", operand::r64(r)));
                Ok(operand::r64(r))
            }
            // The caller's frame pointer: nobody asks for it.
            Operand::Gpr(g) if g.num == RBP && scope.state.fp == Frame::Entry => Ok("$0".into()),
            Operand::Gpr(g) if g.num == RSP || g.num == RBP => {
                let r = scope.take()?;
                self.stack_value(g.num, r, insn, scope)?;
                Ok(operand::r64(r))
            }
            other => Ok(other.to_string()),
        }
    }

    /// The compiler's `rsp` or frame pointer as a value.
    pub(super) fn stack_value(&self, which: u8, to: u8, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        let place = match (which, scope.state.sp, scope.state.fp) {
            (RSP, Place::At(o), _) => Some(o),
            (RSP, Place::Dynamic, _) => None,
            (_, _, Frame::At(c)) => Some(c),
            (_, _, Frame::Dynamic) => {
                scope.line(format!("movq\t{FRAME_SLOT}(%rbp), {}", operand::r64(to)));
                return Ok(());
            }
            _ => return Err(Kind::StackRegister(insn.to_string())),
        };
        match place {
            Some(x) => {
                let m = scope.frame_mem(x);
                scope.line(format!("leaq\t{m}, {}", operand::r64(to)));
            }
            None => scope.line(format!("movq\t{SLOT}(%rbp), {}", operand::r64(to))),
        }
        Ok(())
    }

    fn move_dynamic(&self, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        let slot = format!("{SLOT}(%rbp)");
        match (isa::stem(insn), insn.args.as_slice()) {
            ("mov", [Operand::Gpr(from), Operand::Gpr(to)]) if from.num == RBP || to.num == RBP => {
                let r = scope.take()?;
                self.stack_value(from.num, r, insn, scope)?;
                let slot = if to.num == RBP { FRAME_SLOT } else { SLOT };
                scope.line(format!("movq\t{}, {slot}(%rbp)", operand::r64(r)));
            }
            ("leave", []) => {
                let r = operand::r64(scope.take()?);
                scope.line(format!("movq\t{FRAME_SLOT}(%rbp), {r}"));
                scope.line(format!("leaq\t8({r}), {r}"));
                scope.line(format!("movq\t{r}, {slot}"));
            }
            ("mov", [Operand::Gpr(g), _]) => scope.line(format!("movq\t{g}, {slot}")),
            ("mov", [Operand::Mem(m), _]) => {
                let (m, region) = scope.translate(m, insn)?;
                let m = self.confined(m, region, Access::Load);
                let r = scope.take()?;
                scope.line(format!("movq\t{m}, {}", operand::r64(r)));
                scope.line(format!("movq\t{}, {slot}", operand::r64(r)));
            }
            ("lea", [Operand::Mem(m), _]) => {
                let r = scope.take()?;
                let (m, _) = scope.translate(m, insn)?;
                scope.line(format!("leaq\t{m}, {}", operand::r64(r)));
                scope.line(format!("movq\t{}, {slot}", operand::r64(r)));
            }
            ("add" | "sub" | "and", [source, _]) => {
                let r = scope.take()?;
                self.stack_value(RSP, r, insn, scope)?;
                let source = match source {
                    Operand::Mem(m) => {
                        let (m, region) = scope.translate(m, insn)?;
                        self.confined(m, region, Access::Load).to_string()
                    }
                    other => other.to_string(),
                };
                scope.line(format!("{}\t{source}, {}", insn.op, operand::r64(r)));
                scope.line(format!("movq\t{}, {slot}", operand::r64(r)));
            }
            _ => return Err(Kind::StackRegister(insn.to_string())),
        }
        Ok(())
    }
}
