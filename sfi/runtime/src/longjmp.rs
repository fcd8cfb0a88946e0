//! `setjmp` and `longjmp` of a domain, and the portal of an import that nobody provides.
//!
//! Problem: `longjmp` sets the return stack pointer to what a buffer in the domain's memory says, which could
//! be anything. Strategy: the buffer is only a wish. The portal walks the return stack from its own call,
//! frame by frame, with what the verifier knows of each return site, and grants the wish where it finds the
//! frame. It never passes the call that entered the domain.

use crate::arena;
use crate::error::Error;
use crate::fault::Cause;
use crate::guard::guard;
use crate::instance::Shared;
use crate::record::Mark;
use pebble_portal::fault::{STACK_BYTES, record};
use std::arch::global_asm;
use std::sync::OnceLock;

struct Builtin {
    missing: u64,
    setjmp: u64,
    longjmp: u64,
    longjmp_bytes: u64,
}

static BUILTIN: OnceLock<Builtin> = OnceLock::new();

const UD2: [u8; 2] = [0x0f, 0x0b];
/// As long as `vzeroupper`, which not every processor has.
const NOP: [u8; 3] = [0x0f, 0x1f, 0x00];

// Templates, copied to where portal code lies, so that the signal handler knows whose fault theirs is.
global_asm!(
    ".pushsection .rodata.pebble_sfi,\"a\",@progbits",
    // A store through gs with a 32-bit address stays in the segment whatever the buffer's address is.
    "pebble_sfi_setjmp:",
    "movq %rbx, %gs:(%edi)",
    "movq %rbp, %gs:8(%edi)",
    "movq %r12, %gs:16(%edi)",
    "movq %r13, %gs:24(%edi)",
    "movq %r14, %gs:32(%edi)",
    "movq %r15, %gs:40(%edi)",
    "leaq 8(%rsp), %r11",
    "movq %r11, %gs:48(%edi)",
    "movq (%rsp), %r11",
    "movq %r11, %gs:56(%edi)",
    "xorl %eax, %eax; xorl %r11d, %r11d",
    "ret",
    "pebble_sfi_setjmp_end:",
    "pebble_sfi_longjmp:",
    "movq %rsp, %r11",
    "orq ${mask}, %r11",
    "movq -512(%rsp), %r10",
    "movq %rsp, %rdx",
    "movq %rbp, %rcx",
    "movq %r11, %r8",
    "movq {top}(%r11), %rax",
    "movq -8(%rax), %rsp",
    "andq $-16, %rsp",
    "subq $80, %rsp",
    "movq %rdx, 72(%rsp)",
    "movq %rsp, %r9",
    "callq *1f(%rip)",
    // Nothing of the walk is left for the domain.
    "pebble_sfi_longjmp_uppers:",
    "vzeroupper",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    "xorps %xmm\\n, %xmm\\n",
    ".endr",
    "testl %eax, %eax",
    "jz 2f",
    "movq (%rsp), %rbx",
    "movq 8(%rsp), %rbp",
    "movq 16(%rsp), %r12",
    "movq 24(%rsp), %r13",
    "movq 32(%rsp), %r14",
    "movq 40(%rsp), %r15",
    "movq 56(%rsp), %r11",
    "movq 64(%rsp), %rax",
    "movq 48(%rsp), %rsp",
    "xorl %ecx, %ecx; xorl %edx, %edx; xorl %esi, %esi; xorl %edi, %edi; xorl %r8d, %r8d; xorl %r9d, %r9d; \
     xorl %r10d, %r10d",
    "jmpq *%r11",
    "2: movq 72(%rsp), %rsp",
    "ud2",
    "1: .quad 0",
    "pebble_sfi_longjmp_end:",
    ".popsection",
    mask = const STACK_BYTES - 1,
    top = const record::from_mark(record::TOP),
    options(att_syntax),
);

unsafe extern "C" {
    static pebble_sfi_setjmp: u8;
    static pebble_sfi_setjmp_end: u8;
    static pebble_sfi_longjmp: u8;
    static pebble_sfi_longjmp_uppers: u8;
    static pebble_sfi_longjmp_end: u8;
}

fn template(begin: *const u8, end: *const u8) -> Vec<u8> {
    // SAFETY: both are labels of the section above, in this order.
    unsafe { std::slice::from_raw_parts(begin, end as usize - begin as usize) }.to_vec()
}

fn make() -> Result<&'static Builtin, Error> {
    static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = crate::instance::lock(&MAKING);
    if BUILTIN.get().is_none() {
        let setjmp = template(&raw const pebble_sfi_setjmp, &raw const pebble_sfi_setjmp_end);
        let mut longjmp = template(&raw const pebble_sfi_longjmp, &raw const pebble_sfi_longjmp_end);
        if !crate::portal::wide_vectors() {
            let at =
                (&raw const pebble_sfi_longjmp_uppers as usize) - (&raw const pebble_sfi_longjmp as usize);
            longjmp[at..at + NOP.len()].copy_from_slice(&NOP);
        }
        let target = longjmp.len() - 8;
        longjmp[target..].copy_from_slice(&(jump as *const () as u64).to_le_bytes());
        let made = Builtin {
            missing: arena::fixed(&UD2)?,
            setjmp: arena::fixed(&setjmp)?,
            longjmp: arena::fixed(&longjmp)?,
            longjmp_bytes: longjmp.len() as u64,
        };
        let _ = BUILTIN.set(made);
    }
    BUILTIN.get().ok_or(Error::NoCode)
}

pub fn is_builtin(name: &str) -> bool {
    matches!(name, "pbl_setjmp" | "pbl_longjmp")
}

/// Portal code for imports that are this runtime's own, and for those that nobody provides.
pub fn builtin(name: &str) -> Result<u64, Error> {
    let built = make()?;
    Ok(match name {
        "pbl_setjmp" => built.setjmp,
        "pbl_longjmp" => built.longjmp,
        _ => built.missing,
    })
}

/// In the signal handler: what an illegal instruction in portal code stands for.
pub fn cause(rip: u64) -> Cause {
    match BUILTIN.get() {
        Some(b) if b.missing == rip => Cause::Import,
        Some(b) if rip.wrapping_sub(b.longjmp) < b.longjmp_bytes => Cause::LongJump,
        _ => Cause::Nesting,
    }
}

/// From the portal: 1 and the new registers in `out` (rbx, rbp, r12-r15, rsp, rip, rax), or 0.
extern "C" fn jump(buffer: u64, value: u32, rsp: u64, rbp: u64, mark: u64, out: &mut [u64; 9]) -> u32 {
    let mark = Mark(mark);
    // SAFETY: the record's instance is kept by the call that entered it.
    let shared: &Shared = unsafe { &*(mark.get(record::INSTANCE) as *const Shared) };
    match guard(|| find(shared, mark, buffer, rsp, rbp)) {
        Some(Some(found)) => {
            out[..8].copy_from_slice(&found);
            out[8] = u64::from(value.max(1));
            1
        }
        _ => 0,
    }
}

fn find(shared: &Shared, mark: Mark, buffer: u64, mut rsp: u64, mut rbp: u64) -> Option<[u64; 8]> {
    let mut bytes = [0; 64];
    shared.read(buffer, &mut bytes).ok()?;
    let word =
        |i: usize| bytes.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    let site = |address: u64| {
        let at = u32::try_from(address.checked_sub(shared.base)?).ok()?;
        shared.module.verdict.site(&shared.module, at)
    };
    let wish = site(word(7))?;
    // Words that must be there still: all, or all but the `rbp` that was pushed last, for the call alone.
    let words = match wish.pushed {
        Some((word, _)) if word + 1 == wish.depth => word,
        _ => wish.depth,
    };
    let wanted = word(6).checked_add(u64::from(wish.depth) * 8)?;
    let mask = (1u64 << (u32::from(words.min(15)) * 4)) - 1;
    // Each step goes up the stack, which ends at a return address that is no site of the module. It may be
    // long, and each step too: whoever ends the call ends the walk.
    while !crate::ending::over(shared) {
        let here = site(mark.peek(rsp)?)?;
        let return_word = rsp + 8 + u64::from(here.depth) * 8;
        let place = |word: u8| return_word - (u64::from(word) + 1) * 8;
        let (held, delta) = match (here.delta, here.pushed) {
            (Some(delta), _) => (rbp, delta),
            (None, Some((word, delta))) => (mark.peek(place(word))?, delta),
            // The function has thrown it away, and can never return.
            (None, None) => return None,
        };
        let entry = held.wrapping_sub(i64::from(delta) as u64);
        let known = here.depth >= words && (u64::from(here.slots) ^ u64::from(wish.slots)) & mask == 0;
        if here.entry == wish.entry && return_word == wanted && known {
            let at = |delta: i32| entry.wrapping_add(i64::from(delta) as u64);
            // The code will pop it, and the word may hold anything by now.
            if let Some((word, delta)) = wish.pushed {
                mark.poke(place(word), at(delta));
            }
            // A dynamic one is wherever in the segment the buffer says.
            let rbp = wish.delta.map_or(shared.base | u64::from(word(1) as u32), at);
            return Some([word(0), rbp, word(2), word(3), word(4), word(5), word(6), word(7)]);
        }
        (rsp, rbp) = (return_word, entry);
    }
    None
}
