//! What an instruction reads, writes and accesses, as far as the rewriter has to know.
//!
//! Everything errs to the safe side: an unknown instruction is taken to store through a memory operand, to
//! read every register it names and to change no register and no flag for certain.

use crate::operand::{Mem, Operand, RAX, RBX, RCX, RDI, RDX, RSI, Width};
use crate::parse::Insn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    None,
    Load,
    Store,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Effects {
    pub uses: u16,
    /// Registers whose old value is gone for certain.
    pub defs: u16,
    pub reads_flags: bool,
    pub kills_flags: bool,
}

pub const CALLER_SAVED: u16 = 0b0000_1111_1100_0111;
pub const ARGUMENTS: u16 = 0b0000_0111_1100_0111;
pub const CALLEE_SAVED: u16 = 0b1111_0000_0000_1000;

/// The mnemonic without its operand-size suffix, for the instructions that matter to the stack.
pub fn stem(insn: &Insn) -> &str {
    let op = insn.op.as_str();
    match op {
        "movq" | "mov" => "mov",
        "movabsq" | "movabs" => "movabs",
        "pushq" | "push" => "push",
        "popq" | "pop" => "pop",
        "callq" | "call" => "call",
        "retq" | "ret" => "ret",
        "jmpq" | "jmp" => "jmp",
        "leaveq" | "leave" => "leave",
        "leaq" | "lea" | "leal" | "leaw" => "lea",
        "addq" | "add" => "add",
        "subq" | "sub" => "sub",
        "andq" | "and" => "and",
        "ud1l" | "ud1q" | "ud1w" => "ud1",
        _ => op,
    }
}

pub fn is_jcc(op: &str) -> bool {
    op.starts_with('j') && !op.starts_with("jmp")
        || matches!(op, "loop" | "loope" | "loopne" | "loopz" | "loopnz" | "xbegin")
}

/// The name of a direct branch's target.
pub fn direct_target(insn: &Insn) -> Option<&str> {
    if !(is_jcc(&insn.op) || matches!(stem(insn), "jmp" | "call")) {
        return None;
    }
    match insn.args.first() {
        Some(Operand::Mem(m)) if m.base.is_none() && m.index.is_none() && m.segment.is_none() => {
            Some(m.disp.trim_end_matches("@PLT"))
        }
        _ => None,
    }
}

/// `call *f@GOTPCREL(%rip)` is a direct call in disguise.
pub fn got_target(insn: &Insn) -> Option<&str> {
    if !matches!(stem(insn), "jmp" | "call") {
        return None;
    }
    match insn.args.first() {
        Some(Operand::Star(o)) => match &**o {
            Operand::Mem(m) if m.is_rip() => m.disp.strip_suffix("@GOTPCREL"),
            _ => None,
        },
        _ => None,
    }
}

pub fn is_string_op(insn: &Insn) -> bool {
    let implicit = insn.args.is_empty()
        || insn.args.iter().all(|a| match a {
            Operand::Mem(m) => {
                matches!(m.base_gpr(), Some(RSI | RDI)) && m.index.is_none() && m.disp.is_empty()
            }
            Operand::Gpr(g) => g.num == RAX,
            _ => false,
        });
    implicit
        && matches!(
            insn.op.as_str(),
            "movsb"
                | "movsw"
                | "movsl"
                | "movsq"
                | "stosb"
                | "stosw"
                | "stosl"
                | "stosq"
                | "lodsb"
                | "lodsw"
                | "lodsl"
                | "lodsq"
                | "scasb"
                | "scasw"
                | "scasl"
                | "scasq"
                | "cmpsb"
                | "cmpsw"
                | "cmpsl"
                | "cmpsq"
                | "movs"
                | "stos"
                | "lods"
                | "scas"
                | "cmps"
        )
}

/// String instructions: do they use rsi, use rdi, write through rdi?
pub fn string_shape(op: &str) -> (bool, bool, bool) {
    match &op[..4] {
        "movs" => (true, true, true),
        "stos" => (false, true, true),
        "lods" => (true, false, false),
        "scas" => (false, true, false),
        _ => (true, true, false),
    }
}

pub fn memory(insn: &Insn) -> Option<(usize, &Mem)> {
    insn.args.iter().enumerate().find_map(|(i, a)| match a {
        Operand::Mem(m) => Some((i, m)),
        Operand::Star(o) => match &**o {
            Operand::Mem(m) => Some((i, m)),
            _ => None,
        },
        _ => None,
    })
}

fn reads_last(op: &str) -> bool {
    let op = op.strip_prefix('v').unwrap_or(op);
    ["cmpb", "cmpw", "cmpl", "cmpq", "test", "push", "ucomis", "comis", "prefetch", "clflush", "clwb"]
        .iter()
        .any(|p| op.starts_with(p))
        || matches!(
            op,
            "cmp"
                | "bt"
                | "btl"
                | "btq"
                | "btw"
                | "ldmxcsr"
                | "fldcw"
                | "fldenv"
                | "frstor"
                | "fxrstor"
                | "ptest"
                | "jmp"
                | "jmpq"
                | "call"
                | "callq"
                | "verr"
                | "verw"
        )
        || ["mul", "div", "imul", "idiv"]
            .iter()
            .any(|p| op.strip_prefix(p).is_some_and(|s| matches!(s, "" | "b" | "w" | "l" | "q")))
        || op.starts_with("fld")
        || op.starts_with("fild")
        || op.starts_with("fbld")
        || ["fadd", "fsub", "fmul", "fdiv", "fcom", "fiadd", "fisub", "fimul", "fidiv", "ficom"]
            .iter()
            .any(|p| op.starts_with(p))
}

/// How an instruction accesses its memory operand.
pub fn access(insn: &Insn) -> Access {
    let Some((at, _)) = memory(insn) else { return Access::None };
    let op = insn.op.as_str();
    if op.starts_with("lea") || op.starts_with("nop") || is_jcc(op) || direct_target(insn).is_some() {
        return Access::None;
    }
    if op.starts_with("xchg") || op.starts_with("xadd") {
        return Access::Store;
    }
    if at + 1 != insn.args.len() {
        return Access::Load;
    }
    // Intel's gathers name the memory in the middle; everything else writes its last operand.
    if reads_last(op) { Access::Load } else { Access::Store }
}

/// A memory operand that is only a hint, or may not be accessed at all: proves nothing about its address.
pub fn access_is_certain(insn: &Insn) -> bool {
    let op = insn.op.as_str();
    !(op.starts_with("prefetch") || op.contains("mask") || op.contains("gather"))
}

/// gcc's fence: a locked access to the top of the stack that changes nothing.
pub fn is_fence(insn: &Insn) -> bool {
    let nothing = insn.args.first().and_then(Operand::imm) == Some(0);
    insn.prefixes.iter().any(|p| p == "lock") && insn.op.starts_with("or") && nothing
}

fn writes_last_only(insn: &Insn) -> bool {
    let op = insn.op.as_str();
    let n = insn.args.len();
    [
        "mov",
        "lea",
        "cvt",
        "vcvt",
        "vmov",
        "pmovmskb",
        "vpmovmskb",
        "pextr",
        "vpextr",
        "popcnt",
        "lzcnt",
        "tzcnt",
    ]
    .iter()
    .any(|p| op.starts_with(p))
        || op.starts_with("pop")
        || n >= 3
            && ["imul", "andn", "shlx", "shrx", "sarx", "rorx", "bextr", "pdep", "pext", "bzhi"]
                .iter()
                .any(|p| op.starts_with(p))
}

fn kills_flags(op: &str) -> bool {
    let op = op.trim_end_matches(['b', 'w', 'l', 'q']);
    matches!(
        op,
        "add" | "cmp" | "test" | "and" | "or" | "xor" | "neg" | "imu" | "mu" | "popcnt" | "bzhi" | "andn"
    ) || op == "su"
        || op == "sub"
        || op == "imul"
        || op == "mul"
        || op.starts_with("ucomis")
        || op.starts_with("comis")
        || op.starts_with("vucomis")
        || op.starts_with("vcomis")
}

fn reads_flags(op: &str) -> bool {
    is_jcc(op)
        || ["set", "cmov", "adc", "sbb", "rcl", "rcr", "adcx", "adox", "fcmov"]
            .iter()
            .any(|p| op.starts_with(p))
        || matches!(op, "lahf" | "pushf" | "pushfq" | "cmc" | "salc")
}

/// Registers and flags.
pub fn effects(insn: &Insn) -> Effects {
    let mut e = Effects::default();
    let op = insn.op.as_str();
    for a in &insn.args {
        match a {
            Operand::Mem(m) => e.uses |= m.regs(),
            Operand::Star(o) => match &**o {
                Operand::Mem(m) => e.uses |= m.regs(),
                Operand::Gpr(g) => e.uses |= 1 << g.num,
                _ => {}
            },
            Operand::Gpr(_) | Operand::Imm(_) | Operand::Other(_) => {}
        }
    }
    for (i, a) in insn.args.iter().enumerate() {
        let Operand::Gpr(g) = a else { continue };
        let last = i + 1 == insn.args.len();
        let bit = 1 << g.num;
        let wide = matches!(g.width, Width::B32 | Width::B64);
        if last && writes_last_only(insn) && !op.starts_with("push") {
            if wide {
                e.defs |= bit;
            } else {
                e.uses |= bit;
            }
        } else {
            e.uses |= bit;
        }
    }
    // Clearing idioms read nothing.
    if (op.starts_with("xor") || op.starts_with("sub"))
        && insn.args.len() == 2
        && insn.args[0] == insn.args[1]
        && let Some(g) = insn.args[1].gpr()
        && matches!(g.width, Width::B32 | Width::B64)
    {
        e.uses &= !(1 << g.num);
        e.defs |= 1 << g.num;
    }
    let ax = 1 << RAX;
    let dx = 1 << RDX;
    let cx = 1 << RCX;
    match op {
        _ if is_string_op(insn) => e.uses |= ax | cx | 1 << RSI | 1 << RDI,
        "cltd" | "cdq" | "cqto" | "cqo" | "cwtd" => {
            e.uses |= ax;
            if op != "cwtd" {
                e.defs |= dx;
            }
        }
        "cltq" | "cdqe" | "cwtl" | "cwde" | "cbtw" | "lahf" | "sahf" => e.uses |= ax,
        "cpuid" => e.uses |= ax | cx | dx | 1 << RBX,
        "rdtsc" => e.defs |= ax | dx,
        "rdtscp" => e.defs |= ax | dx | cx,
        "xgetbv" => {
            e.uses |= cx;
            e.defs |= ax | dx;
        }
        "cmpxchg8b" | "cmpxchg16b" => e.uses |= ax | dx | cx | 1 << RBX,
        _ if op.starts_with("cmpxchg") => e.uses |= ax,
        _ if op.starts_with("mulx") => e.uses |= dx,
        _ if ["mul", "div", "idiv"].iter().any(|p| op.starts_with(p)) && insn.args.len() == 1 => {
            e.uses |= ax | dx
        }
        _ if op.starts_with("imul") && insn.args.len() == 1 => e.uses |= ax | dx,
        _ if op.starts_with("loop") || op.starts_with("jrcxz") || op.starts_with("jecxz") => e.uses |= cx,
        _ if op.contains("pcmpe") || op.contains("pcmpistr") => {
            e.uses |= ax | dx | cx;
        }
        _ => {}
    }
    // The prefix `rep` alone (`rep ret`) changes nothing; unknown empty instructions read everything.
    if insn.args.is_empty() && !is_string_op(insn) && e.uses | e.defs == 0 && !harmless(op) {
        e.uses = !0;
    }
    e.reads_flags = reads_flags(op);
    e.kills_flags = kills_flags(op) && !e.reads_flags;
    e
}

/// Registers that an instruction may change, itself or as a side effect.
pub fn may_write(insn: &Insn) -> u16 {
    let op = insn.op.as_str();
    if matches!(stem(insn), "push" | "jmp")
        || is_jcc(op)
        || op.starts_with("cmp") && !op.starts_with("cmpxchg")
    {
        return 0;
    }
    let e = effects(insn);
    let gprs = || insn.args.iter().filter_map(Operand::gpr);
    let mut mask = e.defs;
    if !op.starts_with("test") {
        mask |= gprs().next_back().map_or(0, |g| 1 << g.num);
    }
    // Some write two of their operands, or registers that they do not name.
    if op.starts_with('x') || op.starts_with("mulx") {
        mask |= gprs().fold(0, |m, g| m | 1 << g.num);
    }
    if insn.args.len() <= 1 || is_string_op(insn) || op.starts_with("cmpxchg") {
        mask |= e.uses;
    }
    mask
}

fn harmless(op: &str) -> bool {
    matches!(
        op,
        "" | "nop"
            | "ud2"
            | "endbr64"
            | "cld"
            | "mfence"
            | "lfence"
            | "sfence"
            | "pause"
            | "vzeroupper"
            | "vzeroall"
            | "emms"
            | "leave"
            | "leaveq"
            | "ret"
            | "retq"
            | "hlt"
            | "int3"
    ) || op.starts_with('f')
}

/// Registers that cannot be in an instruction that names a high byte: `r8` to `r15`.
const EXTENDED: u16 = 0xff00;

/// Registers that may not come to stand in the instruction's operands.
pub fn excluded(insn: &Insn) -> u16 {
    let high = |a: &Operand| a.gpr().is_some_and(|g| g.width == Width::High);
    if insn.args.iter().any(high) { EXTENDED } else { 0 }
}

/// All registers that an instruction reads or writes.
pub fn touched(insn: &Insn) -> u16 {
    let e = effects(insn);
    insn.args.iter().filter_map(Operand::gpr).fold(e.uses | e.defs, |m, g| m | 1u16 << g.num)
}

/// Instructions that never go on to the next one.
pub fn ends_block(insn: &Insn) -> bool {
    matches!(stem(insn), "jmp" | "ret" | "ud2" | "hlt" | "ud1")
}

/// Instructions that no module may contain.
pub fn forbidden(insn: &Insn) -> Option<&'static str> {
    const CALLS: &str = "call an import of the runtime instead; the C library does so for system calls";
    const SEGMENTS: &str =
        "the segment registers are the runtime's; for thread-local variables use _Thread_local";
    const WIDE: &str =
        "only AVX2 and less is: compile with -mno-avx512f, or with -march=x86-64-v3 instead of -march=native";
    // With the size's suffix or without.
    let base = insn.op.strip_suffix(['l', 'q']).unwrap_or(&insn.op);
    if matches!(base, "wrgsbase" | "wrfsbase" | "rdgsbase" | "rdfsbase") {
        return Some(SEGMENTS);
    }
    Some(match insn.op.as_str() {
        "syscall" | "sysenter" | "int" | "sysret" | "iret" | "iretq" | "into" => CALLS,
        "swapgs" => SEGMENTS,
        "wrmsr" | "rdmsr" | "in" | "out" | "cli" | "sti" => {
            "no process may use it; let the host do it behind an import"
        }
        "std" | "popf" | "popfq" | "popfw" | "pushf" | "pushfq" | "pushfw" => {
            "the direction flag must stay clear; count down in a loop, and use conditional instructions for \
             other flags"
        }
        "wrpkru" | "rdpkru" | "xrstor" | "xrstors" | "xsave" | "xsavec" | "fxrstor" | "fxsave" => {
            "state that the runtime relies on; save what you need by single instructions"
        }
        "enter" | "lcall" | "ljmp" | "lret" => "use the plain forms of call, jmp and ret",
        "xlat" | "xlatb" | "maskmovdqu" | "maskmovq" | "vmaskmovdqu" => {
            "its address is implicit; use a load or store with an operand"
        }
        "xbegin" | "xend" | "xabort" | "xtest" => "transactions are not; use atomics or a lock",
        _ if insn.args.iter().any(|a| matches!(a.to_string().as_str(), "%fs" | "%gs")) => SEGMENTS,
        _ if wide(insn) => WIDE,
        _ => return None,
    })
}

/// A clock of the processor's, by which one can tell what others have left in its caches.
pub fn timer(insn: &Insn) -> Option<&'static str> {
    let reads = matches!(insn.op.as_str(), "rdtsc" | "rdtscp" | "rdpru");
    reads.then_some(
        "it reads a clock, and -fpbl-no-timer says that nothing does; ask the C library for the time",
    )
}

/// AVX-512: its registers, masks, roundings.
fn wide(insn: &Insn) -> bool {
    let text = insn.to_string();
    let upper = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let digits: String = text[at + name.len()..].chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().is_ok_and(|n| n > 15)
        })
    };
    text.contains("%zmm") || text.contains('{') || text.contains("%k") || upper("%xmm") || upper("%ymm")
}
