//! One instruction, as iced-x86 sees it: what it reads, writes and where it may go.

use iced_x86::{
    Code, CodeSize, CpuidFeature, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction,
    InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use std::collections::HashMap;
use std::rc::Rc;

pub const RSP: usize = 4;
pub const RBP: usize = 5;

/// One access to memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub segment: Register,
    pub base: Register,
    pub index: Register,
    pub scale: i64,
    /// Of an operand relative to `rip`: to the begin of the instruction.
    pub disp: i64,
    pub size: usize,
    pub write: bool,
    /// 32-bit address size.
    pub short: bool,
    pub rip: bool,
    /// It faults for sure if its address is bad.
    pub certain: bool,
}

/// A decoded instruction at address 0.
#[derive(Debug)]
pub struct Op {
    pub insn: Instruction,
    pub flow: FlowControl,
    pub banned: bool,
    pub accesses: Vec<Access>,
    /// General registers that are written, and of those the ones whose upper half is zero then.
    pub written: u16,
    pub zeroed: u16,
    /// `rsp` is named, or used by anything but push, pop, call and ret.
    pub names_rsp: bool,
    /// A prefix 0x66: of a branch, processors disagree what it means.
    pub p66: bool,
    pub p67: bool,
    pub x87: bool,
    pub fp_control: bool,
    pub timer: bool,
}

/// Number of a general register, in encoding order.
pub fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full as usize - Register::RAX as usize)
}

/// Instructions by their bytes: most stand in a module more than once, and in every mutant again.
#[derive(Default)]
pub struct Cache(HashMap<[u8; 15], Option<Rc<Op>>>);

impl Cache {
    /// The instruction at the begin of `bytes`, if it is one.
    pub fn op(&mut self, bytes: &[u8]) -> Option<Rc<Op>> {
        let mut key = [0; 15];
        let n = bytes.len().min(15);
        key[..n].copy_from_slice(&bytes[..n]);
        if self.0.len() > 200_000 {
            self.0.clear();
        }
        let op = self.0.entry(key).or_insert_with(|| decode(&key).map(Rc::new)).clone();
        op.filter(|op| op.insn.len() <= n)
    }
}

fn decode(bytes: &[u8; 15]) -> Option<Op> {
    let mut insn = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    if insn.is_invalid() {
        // a gather that names a register twice faults; it is judged as if it went on
        insn = Decoder::with_ip(64, bytes, 0, DecoderOptions::NO_INVALID_CHECK).decode();
        if insn.is_invalid() || !insn.is_vsib() {
            return None;
        }
    }
    let prefixes = bytes.iter().take_while(|b| {
        matches!(b, 0x66 | 0x67 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3)
    });
    let (p66, p67) = prefixes.fold((false, false), |(a, b), p| (a | (*p == 0x66), b | (*p == 0x67)));
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&insn);
    let explicit = (0..insn.op_count()).any(|i| insn.op_kind(i) == OpKind::Memory);
    let stack = is_stack(&insn);
    let mut op = Op {
        insn,
        flow: insn.flow_control(),
        banned: is_banned(&insn),
        accesses: vec![],
        written: 0,
        zeroed: 0,
        names_rsp: (0..insn.op_count())
            .any(|i| insn.op_kind(i) == OpKind::Register && number(insn.op_register(i)) == Some(RSP)),
        p66,
        p67,
        x87: is_x87(&insn) && !matches!(insn.mnemonic(), Mnemonic::Fldcw | Mnemonic::Fnstcw),
        fp_control: matches!(
            insn.mnemonic(),
            Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr | Mnemonic::Fldcw | Mnemonic::Fninit
        ),
        timer: matches!(insn.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Rdpru),
    };
    for memory in info.used_memory() {
        if stack
            && memory.base() == Register::RSP
            && memory.index() == Register::None
            && !names(&insn, Register::RSP)
        {
            continue; // the return stack
        }
        use OpAccess::*;
        let write = matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite);
        if !write && !matches!(memory.access(), Read | CondRead) {
            continue; // an address without an access
        }
        let always = !matches!(memory.access(), CondRead | CondWrite) || is_cmov(&insn);
        let rip = explicit && insn.is_ip_rel_memory_operand() && memory.base() == Register::None;
        op.accesses.push(Access {
            segment: memory.segment(),
            base: memory.base(),
            index: memory.index(),
            scale: memory.scale() as i64,
            disp: memory.displacement() as i64,
            size: memory.memory_size().size(),
            write,
            short: memory.address_size() == CodeSize::Code32 || explicit && p67,
            rip,
            certain: explicit
                && always
                && !is_x87(&insn)
                && !insn.is_string_instruction()
                && !is_masked(&insn),
        });
    }
    for used in info.used_registers() {
        use OpAccess::*;
        let Some(register) = number(used.register()) else { continue };
        op.names_rsp |= register == RSP && !stack;
        if matches!(used.access(), Write | CondWrite | ReadWrite | ReadCondWrite) && register != RSP {
            op.written |= 1 << register;
            op.zeroed |= (is_zeroed(&insn, used.register()) as u16) << register;
        }
    }
    op.names_rsp |= names(&insn, Register::RSP);
    Some(op)
}

/// Whether the memory operand is built on a register.
fn names(insn: &Instruction, register: Register) -> bool {
    (0..insn.op_count()).any(|i| insn.op_kind(i) == OpKind::Memory)
        && [insn.memory_base(), insn.memory_index()].iter().any(|r| r.full_register() == register)
}

/// `push` and `pop` of a 64-bit general register, near calls and returns.
fn is_stack(insn: &Instruction) -> bool {
    matches!(
        insn.code(),
        Code::Push_r64
            | Code::Push_rm64
            | Code::Pop_r64
            | Code::Pop_rm64
            | Code::Call_rel32_64
            | Code::Call_rm64
            | Code::Retnq
    )
}

/// Whether a write of this register is one of all of its 32 lower bits, which clears the upper ones on every
/// processor.
fn is_zeroed(insn: &Instruction, register: Register) -> bool {
    use Mnemonic::*;
    if matches!(insn.mnemonic(), Bsf | Bsr | Tzcnt | Lzcnt | Cmpxchg | Cmpxchg8b | Shld | Shrd) {
        return false; // may leave it alone, or processors disagree
    }
    use Code::{Cdq, Cpuid, Cwde, Div_rm32, Idiv_rm32, Imul_rm32, Mul_rm32};
    if matches!(insn.code(), Cdq | Cpuid | Cwde | Div_rm32 | Idiv_rm32 | Imul_rm32 | Mul_rm32 | Code::Rdtsc) {
        return true;
    }
    let whole = register.full_register();
    let operands =
        (0..insn.op_count()).filter(|i| insn.op_kind(*i) == OpKind::Register).map(|i| insn.op_register(i));
    let mut sizes = operands.filter(|r| r.full_register() == whole).map(|r| r.size());
    match insn.op0_register() {
        first if insn.op_kind(0) == OpKind::Register && first.full_register() == whole => first.size() == 4,
        _ => sizes.next() == Some(4) && sizes.all(|size| size == 4),
    }
}

fn is_cmov(insn: &Instruction) -> bool {
    insn.cpuid_features().contains(&CpuidFeature::CMOV)
        && insn.op_kind(0) == OpKind::Register
        && !is_x87(insn)
}

fn is_masked(insn: &Instruction) -> bool {
    use Mnemonic::*;
    let masked = matches!(
        insn.mnemonic(),
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq | Maskmovdqu | Vmaskmovdqu
    );
    masked || insn.is_vsib()
}

fn is_x87(insn: &Instruction) -> bool {
    use CpuidFeature::*;
    insn.cpuid_features().iter().any(|f| matches!(f, FPU | FPU287 | FPU387))
}

/// What a domain may not have, whatever its operands.
fn is_banned(insn: &Instruction) -> bool {
    use Mnemonic::*;
    let stays = matches!(
        insn.mnemonic(),
        Int | Int1
            | Into
            | In
            | Out
            | Insb
            | Insw
            | Insd
            | Outsb
            | Outsw
            | Outsd
            | Std
            | Pushf
            | Pushfq
            | Popf
            | Popfq
            | Sti
            | Cli
            | Lar
            | Lsl
            | Verr
            | Verw
            | Sgdt
            | Sidt
            | Sldt
            | Str
            | Smsw
            | Hlt
            | Fnstenv
            | Fnsave
            | Frstor
            | Fldenv
            | Emms
            | Lss
            | Lfs
            | Lgs
            | Enter
            | Leave
            | Fxrstor
            | Fxrstor64
            | Xlatb
            | Jmpe
    );
    let other = !matches!(insn.encoding(), EncodingKind::Legacy | EncodingKind::VEX);
    let registers = (0..insn.op_count()).any(|i| {
        let register = insn.op_register(i);
        insn.op_kind(i) == OpKind::Register
            && (register.is_segment_register()
                || register.is_mm()
                || register.is_cr()
                || register.is_dr()
                || register.is_tr())
    });
    let far = matches!(
        insn.flow_control(),
        FlowControl::Call | FlowControl::Return | FlowControl::XbeginXabortXend
    ) && !matches!(insn.code(), Code::Call_rel32_64 | Code::Retnq);
    let branch = matches!(insn.flow_control(), FlowControl::IndirectCall | FlowControl::IndirectBranch)
        && !matches!(insn.code(), Code::Call_rm64 | Code::Jmp_rm64);
    stays
        || other
        || registers
        || far
        || branch
        || insn.is_privileged()
        || !insn.cpuid_features().iter().all(known)
}

/// Extensions of the processor whose instructions only compute.
fn known(feature: &CpuidFeature) -> bool {
    use CpuidFeature::*;
    matches!(
        feature,
        INTEL8086
            | INTEL186
            | INTEL286
            | INTEL386
            | INTEL486
            | X64
            | ADX
            | AES
            | AVX
            | AVX2
            | BMI1
            | BMI2
            | CLFLUSHOPT
            | CLFSH
            | CLWB
            | CMOV
            | CMPXCHG16B
            | CPUID
            | CX8
            | F16C
            | FMA
            | FPU
            | FPU287
            | FPU387
            | GFNI
            | LZCNT
            | MOVBE
            | MULTIBYTENOP
            | PAUSE
            | PCLMULQDQ
            | POPCNT
            | PREFETCHW
            | RDPRU
            | RDRAND
            | RDSEED
            | RDTSCP
            | SHA
            | SSE
            | SSE2
            | SSE3
            | SSSE3
            | SSE4_1
            | SSE4_2
            | SSE4A
            | TSC
            | VAES
            | VPCLMULQDQ
            | AVX_VNNI
            | CET_IBT
    )
}
