//! Instructions with `ah`, `bh`, `ch` or `dh` beside a memory operand: seldom written by compilers, and never
//! where one of `r8` to `r15` is named.
//!
//! Problem: what a rewriter puts in the place of such an operand must do without those, however few registers
//! the program leaves, in frames at no known place too. Strategy: for each high byte a program of all such
//! instructions with all kinds of operands. Each is in a function of its own, which gives every register a
//! value before, and makes a sum of registers, flags and memory behind.

use std::fmt::Write;

/// The registers whose second byte has a name.
const HIGH: [&str; 4] = ["a", "b", "c", "d"];

/// With `H` for the byte and `M` for the memory.
const FORMS: [&str; 32] = [
    "movb H, M",
    "movb M, H",
    "addb H, M",
    "addb M, H",
    "adcb H, M",
    "adcb M, H",
    "subb H, M",
    "subb M, H",
    "sbbb H, M",
    "sbbb M, H",
    "andb H, M",
    "andb M, H",
    "orb H, M",
    "orb M, H",
    "xorb H, M",
    "xorb M, H",
    "cmpb H, M",
    "cmpb M, H",
    "testb H, M",
    "xchgb H, M",
    "xchgb M, H",
    "xaddb H, M",
    "lock xaddb H, M",
    "cmpxchgb H, M",
    "lock cmpxchgb H, M",
    "lock addb H, M",
    "lock xorb H, M",
    // No operand in memory, and registers that only these can be extended to.
    "setc H\n\tmovb H, M",
    "movzbl H, %edx\n\tmovb %dl, M",
    "movsbl H, %ecx\n\tmovl %ecx, M",
    "movsbw M, %dx\n\tmovb %dl, H",
    "movzbl M, %ecx\n\tmovb H, M",
];

/// How a function begins and ends.
struct Frame {
    begin: &'static str,
    end: &'static str,
    places: &'static [&'static str],
}

const FRAMES: [Frame; 3] = [
    Frame {
        begin: "pushq %rbp\n\tmovq %rsp, %rbp\n\tpushq %rbx\n\tsubq $56, %rsp",
        end: "movq -8(%rbp), %rbx\n\tleave\n\tret",
        places: &[
            "-32(%rbp)",
            "8(%rsp)",
            "8(%rsp,%rsi)",
            "pbl_bytes(%rip)",
            "8(%rdi)",
            "8(%rdi,%rsi,2)",
            "%fs:pbl_thread@tpoff",
            "%fs:pbl_thread@tpoff(%rsi)",
            "%fs:pbl_thread@tpoff(%rsi,%rdi,2)",
        ],
    },
    // A size that is not known.
    Frame {
        begin: "pushq %rbp\n\tmovq %rsp, %rbp\n\tpushq %rbx\n\tsubq $56, %rsp\n\tmovl $32, %eax\n\tsubq \
            %rax, %rsp",
        end: "movq -8(%rbp), %rbx\n\tleave\n\tret",
        places: &["(%rsp)", "8(%rsp,%rsi)", "-32(%rbp)", "-40(%rbp,%rsi)", "8(%rdi)"],
    },
    // Aligned, as gcc does it: the frame pointer is at no known place.
    Frame {
        begin: "leaq 8(%rsp), %r10\n\tandq $-64, %rsp\n\tpushq -8(%r10)\n\tpushq %rbp\n\tmovq %rsp, %rbp\n\
            \tpushq %r10\n\tpushq %rbx\n\tsubq $112, %rsp",
        end: "addq $112, %rsp\n\tpopq %rbx\n\tpopq %r10\n\tpopq %rbp\n\tleaq -8(%r10), %rsp\n\tret",
        places: &["-32(%rbp)", "-56(%rbp,%rsi)", "-72(%rbp,%rsi,4)", "8(%rsp)"],
    },
];

/// In loops that chase pointers the base may be in a register: with one behind the pointer.
const CHASE: &str = "movl $3, %esi\n.Lpbl_N:\n\tmovq (%rdi), %rdi\n\taddb 8(%rdi), H\n\tcmpb 9(%rdi), H\n\
    \tmovb H, 10(%rdi)\n\tdecl %esi\n\tjne .Lpbl_N";

/// What is wanted behind the instruction: registers that are summed, and whether the flags are.
const WANTED: [(&[&str], bool); 3] = [
    (&["rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11"], true),
    (&["rbx", "rcx", "rdx", "rsi"], false),
    (&["rbx", "rcx", "rdx", "r8", "r9", "r10", "r11"], false),
];

const DATA: &str = "#include <stdio.h>
static struct { void *next; unsigned long bytes[3]; } pbl_ring = { &pbl_ring };
static unsigned long pbl_bytes[3] __attribute__((used));
static _Thread_local unsigned long pbl_thread[8] __attribute__((used));
";

/// The programs' names and texts.
pub fn programs() -> Vec<(String, String)> {
    (0..HIGH.len()).map(|k| (format!("{}h", HIGH[k]), program(k))).collect()
}

fn program(high: usize) -> String {
    let mut functions = Vec::new();
    for frame in &FRAMES {
        for place in frame.places {
            for form in FORMS {
                let n = functions.len();
                functions.push(function(n, high, frame, place, form, n / FORMS.len() + n + high));
            }
        }
        for wanted in 0..WANTED.len() {
            let n = functions.len();
            functions.push(function(n, high, frame, "8(%rdi)", CHASE, wanted));
        }
    }
    let mut out = DATA.to_string();
    let mut table = String::new();
    for (n, lines) in functions.iter().enumerate() {
        let _ = writeln!(out, "unsigned long pbl_f{n}(void *) __attribute__((visibility(\"hidden\")));");
        let _ = write!(table, "pbl_f{n}, ");
        for line in lines.lines() {
            let _ = writeln!(out, "__asm__({line:?});");
        }
    }
    let _ = write!(
        out,
        "static unsigned long (*const table[])(void *) = {{ {table} }};\n\
         int main(void) {{\n  for (unsigned k = 0; k < sizeof table / sizeof *table; k++) printf(\"%u \
         %lx\\n\", k, table[k](&pbl_ring));\n  return 0;\n}}\n"
    );
    out
}

/// One function, which returns a sum of what the instruction has left.
fn function(n: usize, high: usize, frame: &Frame, place: &str, form: &str, wanted: usize) -> String {
    let (registers, flags) = WANTED[wanted % WANTED.len()];
    let pointer = place.contains("(%rdi");
    let mut out = vec![format!(".text\n\t.type pbl_f{n},@function\npbl_f{n}:\n\t{}", frame.begin)];
    if !pointer || place.contains("%fs") {
        out.push("movl $5, %edi".into());
    }
    out.push(format!("movl $3, %esi\n\tmovabsq $0x91a2b3c4d5e6f708, %rax\n\tmovq %rax, {place}"));
    for (k, r) in ["rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11"].iter().enumerate() {
        let value = 0x0123_4567_89ab_cdefu64.rotate_left((7 * k + n) as u32);
        out.push(format!("movabsq ${value:#x}, %{r}"));
    }
    out.push(format!("cmpl ${}, %r9d", n * 0x0654_3210 % 0x7fff_ffff));
    let byte = format!("%{}h", HIGH[high]);
    out.push(form.replace('H', &byte).replace('M', place).replace('N', &n.to_string()));
    let sum = |r: &&str| format!("leaq (%{r},%rax,2), %rax");
    out.extend(registers.iter().map(sum));
    if flags {
        out.push("setc %cl\n\tseto %dl\n\tsetz %bl\n\tsets %r8b\n\tsetp %r9b".into());
        out.extend(["rcx", "rdx", "rbx", "r8", "r9"].iter().map(sum));
    }
    // The address is still what it was, too.
    out.push(format!("movq {place}, %rcx"));
    out.push(format!("leaq (%rcx,%rax,2), %rax\n\t{}\n\t.size pbl_f{n}, .-pbl_f{n}", frame.end));
    out.join("\n\t")
}
