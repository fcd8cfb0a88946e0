//! Instructions that access memory, in a form that stays in the segment.

use super::Emitter;
use crate::Level;
use crate::base::Load;
use crate::confine::{self, BASE, Region, Scope};
use crate::error::Kind;
use crate::isa::{self, Access};
use crate::operand::{self, Gpr, Mem, Operand, R11, RBP, RCX, RDI, RSI, RSP, Width};
use crate::parse::Insn;

impl Emitter<'_> {
    fn loads(&self) -> bool {
        self.options.level != Level::Write
    }

    pub(super) fn confined(&self, m: Mem, region: Region, access: Access) -> String {
        let pointer = region == Region::Pointer || region == Region::Frame && !self.options.stack;
        if pointer && confine::must_confine(access, self.loads()) {
            return m.confined().to_string();
        }
        m.to_string()
    }

    /// A load relative to the base register, through a zero-extended copy of the pointer.
    pub(super) fn load_by_base(&self, insn: &Insn, load: &Load, scope: &mut Scope) {
        let mut out = insn.clone();
        for arg in &mut out.args {
            if let Operand::Mem(m) = arg {
                let mut rest = m.disp.as_str();
                if !self.options.guard {
                    scope.line(format!("leal\t{m}, {}", operand::r32(load.copy)));
                    rest = "";
                } else if load.fresh {
                    let pointer = m.base_gpr().unwrap_or(load.copy);
                    scope.line(format!("movl\t{}, {}", operand::r32(pointer), operand::r32(load.copy)));
                }
                let (base, copy) = (operand::r64(load.base), operand::r64(load.copy));
                *arg = Operand::Other(format!("{rest}({base},{copy})"));
            }
        }
        scope.line(out.to_string());
    }

    /// An instruction that does not move the stack.
    pub(super) fn plain(&self, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        if isa::is_string_op(insn) {
            return self.string(insn, scope);
        }
        let mut out = insn.clone();
        // `rsp` and the frame pointer as values.
        for k in 0..out.args.len() {
            if let Operand::Gpr(g @ Gpr { num: RSP | RBP, .. }) = out.args[k] {
                if g.width != Width::B64 && g.width != Width::B32 {
                    return Err(Kind::StackRegister(insn.to_string()));
                }
                if isa::stem(insn) == "mov"
                    && k == 0
                    && let Some(d) = out.args[1].gpr()
                    && g.width == Width::B64
                {
                    return self.stack_value(g.num, d.num, insn, scope);
                }
                let r = scope.take()?;
                self.stack_value(g.num, r, insn, scope)?;
                out.args[k] = Operand::Gpr(Gpr { num: r, width: g.width });
            }
        }
        if let Some((at, m)) = isa::memory(insn) {
            let access = isa::access(insn);
            if m.segment.as_deref() == Some("%fs")
                && m.disp.trim() == "0"
                && m.base.is_none()
                && m.index.is_none()
            {
                let d = match (isa::stem(insn), out.args.get(1).and_then(Operand::gpr)) {
                    ("mov", Some(d)) => return scope.thread_pointer(d.num),
                    (_, Some(_)) => scope.take()?,
                    _ => {
                        return Err(Kind::Forbidden(
                            insn.to_string(),
                            "use thread-local variables by their names",
                        ));
                    }
                };
                scope.thread_pointer(d)?;
                out.args[at] = Operand::Gpr(Gpr { num: d, width: Width::B64 });
                scope.line(out.to_string());
                return Ok(());
            }
            if insn.op.starts_with("movabs") {
                return Err(Kind::Unsupported {
                    what: insn.to_string(),
                    hint: "compile with -mcmodel=small",
                });
            }
            let (m, region) = scope.translate(m, insn)?;
            let absolute = m.base.is_none() && m.index.is_none() && region == Region::Pointer;
            if absolute && confine::must_confine(access, self.loads()) {
                out.prefixes.push("addr32".into());
            }
            if self.options.level == Level::Check
                && region == Region::Pointer
                && access != Access::None
                && isa::access_is_certain(insn)
            {
                self.check(&m, scope);
            }
            let text = self.confined(m.clone(), region, access);
            out.args[at] = Operand::Other(text);
            // Label addresses are those of their slots.
            if isa::stem(insn) == "lea"
                && m.is_rip()
                && let Some(slot) = self.slots.get(&m.disp)
            {
                out.args[at] = Operand::Other(format!("{slot}(%rip)"));
            }
        }
        scope.line(out.to_string());
        Ok(())
    }

    /// Segment matching: traps where the pointer's upper half is not the segment's, which `bswap` brings to
    /// where 32 bits are compared. Live flags are not touched. All of the address is in the register at the
    /// trap: the runtime reads it there (`sfi/runtime/src/check.rs`).
    fn check(&self, m: &Mem, scope: &mut Scope) {
        if !scope.flags_busy {
            let r = if m.regs() & 1 << RCX == 0 { RCX } else { R11 };
            let (wide, narrow) = (operand::r64(r), operand::r32(r));
            scope.line(format!("pushq\t{wide}"));
            scope.line(format!("leaq\t{m}, {wide}"));
            scope.line(format!("subq\t{BASE}, {wide}"));
            scope.line(format!("bswapq\t{wide}"));
            scope.line(format!("testl\t{narrow}, {narrow}"));
            scope.line("je\t1f\n\tud2\n1:");
            scope.line(format!("popq\t{wide}"));
            return;
        }
        let taken = m.regs() | 1 << RCX;
        let r = (8..12).rev().find(|r| taken & 1 << r == 0).expect("an address has two registers at most");
        let (wide, narrow) = (operand::r64(r), operand::r32(r));
        scope.line(format!("pushq\t{wide}"));
        scope.line("pushq\t%rcx");
        scope.line(format!("leaq\t{m}, %rcx"));
        scope.line("bswapq\t%rcx");
        scope.line(format!("movq\t{BASE}, {wide}"));
        scope.line(format!("bswapq\t{wide}"));
        scope.line(format!("notl\t{narrow}"));
        scope.line(format!("leaq\t1(%rcx,{wide}), %rcx"));
        scope.line("jecxz\t1f\n\tud2\n1:");
        scope.line("popq\t%rcx");
        scope.line(format!("popq\t{wide}"));
    }

    fn string(&self, insn: &Insn, scope: &mut Scope) -> Result<(), Kind> {
        let (source, dest, writes) = isa::string_shape(&insn.op);
        if dest && (writes || self.loads()) {
            scope.sandbox(RDI)?;
        }
        if source && self.loads() {
            scope.sandbox(RSI)?;
        }
        let prefixes: Vec<&str> = insn.prefixes.iter().map(String::as_str).collect();
        let op = if insn.op.len() == 4 { return Err(Kind::Syntax(insn.to_string())) } else { &insn.op };
        scope.line(format!("{} {op}", prefixes.join(" ")).trim());
        Ok(())
    }
}
