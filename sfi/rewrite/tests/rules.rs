//! One small text a rule: what comes out, and what is refused with its line.

use pebble_sfi_rewrite::{Level, Options, rewrite};

fn out(level: Level, body: &str) -> String {
    let text = format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\n{body}\n\t.size f, .-f\n");
    rewrite(&text, "t.s", &Options::new(level)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn refused(body: &str) -> String {
    let text = format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\n{body}\n");
    match rewrite(&text, "t.s", &Options::new(Level::Full)) {
        Ok(t) => panic!("accepted:\n{t}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn stores_are_confined_and_loads_only_at_full() {
    let body = "\tmovq %rax, 8(%rdi,%rsi,4)\n\tmovq 16(%rdi), %rax\n\tret";
    let w = out(Level::Write, body);
    assert!(w.contains("%gs:8(%edi,%esi,4)") && w.contains("movq\t16(%rdi), %rax"), "{w}");
    let f = out(Level::Full, body);
    assert!(f.contains("%gs:16(%edi)"), "{f}");
}

#[test]
fn frame_slots_move_to_the_data_stack_and_saves_stay() {
    let body = "\tpushq %rbp\n\tmovq %rsp, %rbp\n\tpushq %rbx\n\tsubq $24, %rsp\n\tmovl %edi, -12(%rbp)\n\tmovq %rdi, %rbx\n\
                \tcall g\n\taddq $24, %rsp\n\tpopq %rbx\n\tpopq %rbp\n\tretq";
    let t = out(Level::Full, body);
    assert!(t.contains("pushq\t%rbx") && t.contains("popq\t%rbx"), "{t}");
    assert!(!t.contains("%rsp") && !t.contains("pushq\t%rbp"), "{t}");
    // rsp at entry - 40 is rbp at entry - 48; the slot at rsp at entry - 20 is 20 above it.
    assert!(t.contains("leaq\t-48(%rbp), %rbp") && t.contains("movl\t%edi, 20(%rbp)"), "{t}");
    assert!(t.contains("call\tg$code") && t.contains("leaq\t48(%rbp), %rbp"), "{t}");
}

#[test]
fn a_large_frame_is_touched() {
    let t = out(Level::Write, "\tsubq $8200, %rsp\n\tmovl $1, 4(%rsp)\n\tcall g\n\taddq $8200, %rsp\n\tret");
    assert!(t.contains("leaq\t-8208(%rbp), %rbp\n\tmovb\t$0, (%rbp)"), "{t}");
}

#[test]
fn indirect_calls_go_through_the_ftab() {
    let t = out(Level::Write, "\tsubq $8, %rsp\n\tcall *%rax\n\taddq $8, %rsp\n\tret");
    let want = "movl\t%eax, %r11d\n\tandl\t$__pbl_ftab_mask, %r11d\n\taddq\t%gs:0x10000, %r11\n\tcall\t*%r11";
    assert!(t.contains(want), "{t}");
}

#[test]
fn string_stores_are_brought_into_the_segment() {
    let t = out(Level::Write, "\trep\n\tstosq\n\tret");
    assert!(t.contains("movl\t%edi, %edi\n\taddq\t%gs:0x10000, %rdi\n\trep stosq"), "{t}");
}

#[test]
fn live_flags_survive() {
    // The comparison's flags are used after the string instruction: no addq may stand between.
    let t = out(Level::Write, "\tcmpl $1, %esi\n\tstosb\n\tje .L1\n\tmovl $2, %eax\n.L1:\n\tret");
    assert!(!t.contains("addq") && t.contains("leaq\t("), "{t}");
}

#[test]
fn a_label_that_only_later_code_reaches_has_a_record() {
    let body = "\tpushq %rbx\n\tjmp .L2\n.L1:\n\tmovl $1, %ebx\n.L2:\n\tcmpl $3, %ebx\n\tjne .L1\n\tpopq %rbx\n\tret";
    let t = out(Level::Write, body);
    assert!(t.contains(".pbl.facts") && t.contains("0x10000001, 0"), "{t}");
}

#[test]
fn what_a_domain_may_not_do_is_refused_by_line() {
    for bad in ["syscall", "wrgsbase %rax", "std", "popfq", "int $0x80", "movq %gs:0, %rax"] {
        let e = refused(&format!("\tnop\n\t{bad}\n\tret"));
        assert!(e.starts_with("t.s:6: "), "{bad}: {e}");
    }
    assert!(refused("\tmovq %rax, %rbp\n\tret").contains("-fno-omit-frame-pointer"));
    assert!(refused("\tpushq %rdi\n\tje .L1\n\tpushq %rsi\n.L1:\n\tret").contains("different stack depths"));
}
