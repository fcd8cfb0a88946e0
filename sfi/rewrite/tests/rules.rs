//! One small text a rule: what comes out, and what is refused with its line.

use pebble_sfi_rewrite::{Level, Options, rewrite};

/// Without what is told debuggers.
fn out(level: Level, body: &str) -> String {
    untold(&whole(&Options::new(level), body))
}

/// At level `full`, with the base in a register.
fn with_base(body: &str) -> String {
    untold(&whole(&Options { base: true, ..Options::new(Level::Full) }, body))
}

fn untold(text: &str) -> String {
    let told = |line: &&str| !line.starts_with("\t.cfi_");
    text.lines().filter(told).map(|line| format!("{line}\n")).collect()
}

fn whole(options: &Options, body: &str) -> String {
    let text = format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\n{body}\n\t.size f, .-f\n");
    rewrite(&text, "t.s", options).unwrap_or_else(|e| panic!("{e}\n{text}"))
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
    let body = "\tpushq %rbp\n\tmovq %rsp, %rbp\n\tpushq %rbx\n\tsubq $24, %rsp\n\tmovl %edi, -12(%rbp)\n\
        \tmovq %rdi, %rbx\n\
                \tcall g\n\taddq $24, %rsp\n\tpopq %rbx\n\tpopq %rbp\n\tretq";
    let t = out(Level::Full, body);
    assert!(t.contains("pushq\t%rbx") && t.contains("popq\t%rbx"), "{t}");
    assert!(!t.contains("%rsp") && !t.contains("pushq\t%rbp"), "{t}");
    // rsp at entry - 40 is rbp at entry - 48; the slot at rsp at entry - 20 is 20 above it.
    assert!(t.contains("leaq\t-48(%rbp), %rbp") && t.contains("movl\t%edi, 20(%rbp)"), "{t}");
    assert!(t.contains("call\tg$code") && t.contains("leaq\t48(%rbp), %rbp"), "{t}");
}

#[test]
fn debuggers_are_told_of_every_move() {
    let body = "\tpushq %rbx\n\tsubq $16, %rsp\n\tmovq %rdi, (%rsp)\n\tmovq %rdi, %rbx\n\tcall g\n\taddq \
        $16, %rsp\n\tpopq %rbx\n\tret";
    let t = whole(&Options::new(Level::Full), body);
    // The data stack pointer's escape: DW_CFA_val_expression of rbp is DW_OP_breg6 32.
    let wanted = [
        ".cfi_startproc",
        "pushq\t%rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset %rbx, -16",
        "leaq\t-32(%rbp), %rbp",
        ".cfi_escape 0x16, 6, 2, 118, 32",
        "call\tg$code",
        "leaq\t32(%rbp), %rbp",
        ".cfi_same_value %rbp",
        "popq\t%rbx",
        ".cfi_def_cfa_offset 8",
        ".cfi_same_value %rbx",
        "retq",
        ".cfi_endproc",
    ];
    let mut rest = t.as_str();
    for part in wanted {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} is missing: {t}")).1;
    }
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

/// A jump through a table of labels with so many entries, after `mask`.
fn computed_goto(mask: &str, entries: usize) -> String {
    let quads = "\t.quad .L1\n".repeat(entries);
    let table = format!("\t.section .data.rel.ro,\"aw\",@progbits\nT:\n{quads}\t.text\n");
    out(Level::Write, &format!("{mask}\tleaq T(%rip), %rcx\n\tjmpq *(%rcx,%rsi,8)\n.L1:\n\tret\n{table}"))
}

#[test]
fn a_table_is_addressed_and_its_number_masked_once() {
    let t = computed_goto("\tandl $7, %esi\n", 8);
    let jump = "leaq\tT(%rip), %rcx\n\tmovslq\t(%rcx,%rsi,4), %rsi\n\taddq\t%rcx, %rsi\n\tjmp\t*%rsi\n";
    assert!(t.contains(&format!("f$code:\n\tandl\t$7, %esi\n\t{jump}")), "{t}");
    // A mask that lets more through, or leaves holes, or is of another register, is no mask; nor is one that
    // a branch avoids.
    for mask in [
        "\tandl $15, %esi\n",
        "\tandl $5, %esi\n",
        "\tandl $7, %edx\n",
        "\tandl $7, %esi\n.L2:\n\tcmpl $1, %edx\n\tje .L2\n",
    ] {
        assert!(computed_goto(mask, 8).contains(&format!("andl\t$7, %esi\n\t{jump}")), "{mask}");
    }
    assert!(computed_goto("", 200).contains(&format!("movzbl\t%sil, %esi\n\t{jump}")));
    // A part of a register that is written afterwards, and a call, say nothing of the address that was in it.
    let after = "\tandl $7, %esi\n\tleaq T(%rip), %rax\n\tjmpq *(%rax,%rsi,8)\n.L1:\n\tsete %al\n\tmovb \
        1(%rdi), %al\n\tcall g\n\tret\n";
    let quads = "\t.quad .L1\n".repeat(8);
    let t =
        out(Level::Write, &format!("{after}\t.section .data.rel.ro,\"aw\",@progbits\nT:\n{quads}\t.text\n"));
    assert!(t.contains("leaq\tT(%rip), %rax\n\tmovslq"), "{t}");
    // Where the address is used before the jump, it stays.
    let used = computed_goto("\tleaq T(%rip), %rcx\n\tmovq %rcx, %rax\n", 8);
    assert_eq!(used.matches("leaq\tT(%rip), %rcx").count(), 2, "{used}");
}

#[test]
fn a_register_that_a_switch_has_given_up_is_left_alone() {
    let switch = |between: &str| {
        let load = "\tleaq T(%rip), %rcx\n\tmovslq (%rcx,%rsi,4), %rsi\n\taddq %rcx, %rsi\n";
        let table = "\t.section .rodata\nT:\n\t.long .L1-T\n\t.long .L1-T\n\t.text\n";
        let after = "\tjmpq *%rsi\n.L1:\n\tmovl %ecx, %eax\n\tret\n";
        out(Level::Write, &format!("{load}{between}{after}{table}"))
    };
    assert!(switch("").contains("f$code:\n\tandl\t$1, %esi\n\tleaq\tT(%rip), %rcx\n\tmovslq"));
    let t = switch("\tmovl $5, %ecx\n");
    let written = t.find("movl\t$5, %ecx").unwrap_or_else(|| panic!("{t}"));
    assert!(!t[written..].contains(", %rcx"), "{t}");
}

#[test]
fn the_number_of_an_entry_outlives_a_jump_that_is_made_again() {
    let load = "\tleaq T(%rip), %rcx\n\tmovslq (%rcx,%rsi,4), %rsi\n\taddq %rcx, %rsi\n.L1:\n\tdecl %edi\n\
        \tje .L2\n\tjmpq *%rsi\n";
    let table = "\t.section .rodata\nT:\n\t.long .L1-T\n\t.long .L2-T\n\t.text\n";
    let t = out(Level::Write, &format!("{load}.L2:\n\tret\n{table}"));
    assert!(t.contains("movl\t%esi, %r11d\n\tandl\t$1, %r11d") && t.contains("jmp\t*%r11"), "{t}");
    // Loaded right before the jump it does not: who returns may only seem to want it.
    let load = "\tleaq T(%rip), %rcx\n\tmovslq (%rcx,%rax,4), %rax\n\taddq %rcx, %rax\n\tjmpq *%rax\n.L1:\n";
    let t = out(Level::Write, &format!("{load}.L2:\n\tret\n{table}"));
    assert!(t.contains("andl\t$1, %eax") && t.contains("jmp\t*%rax"), "{t}");
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
    let body = "\tpushq %rbx\n\tjmp .L2\n.L1:\n\tmovl $1, %ebx\n.L2:\n\tcmpl $3, %ebx\n\tjne .L1\n\tpopq \
        %rbx\n\tret";
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

/// A list is searched: the loop's own pointer comes from the load of the iteration before.
const CHASE: &str = "\tjmp .L2\n.L1:\n\tmovq 16(%rdi), %rdi\n\ttestq %rdi, %rdi\n\tje .L3\n.L2:\n\tmovl \
    (%rdi), %eax\n\
                     \tandl 4(%rdi), %eax\n\tcmpl %esi, %eax\n\tjne .L1\n.L3:\n\tmovq %rdi, %rax\n\tret";

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn chained_loads_are_relative_to_a_hoisted_base() {
    let t = with_base(CHASE);
    assert!(t.contains("movq\t%gs:0x10000, %r11\n\tjmp\t.L2"), "{t}");
    assert!(t.contains("movl\t%edi, %r10d\n\tmovl\t(%r11,%r10), %eax\n\tandl\t4(%r11,%r10), %eax"), "{t}");
    // Both labels of the loop promise the base, and no others do.
    assert_eq!((count(&t, ".short\t0, 0, 2048, 0"), count(&t, ".short")), (2, 2), "{t}");
    assert!(!t.contains("%gs:("), "{t}");
    // Loads that nothing waits for are not worth a register.
    let plain = CHASE.replace("movq 16(%rdi), %rdi", "leaq 16(%rdi), %rdi");
    assert!(!with_base(&plain).contains("0x10000"));
}

#[test]
fn each_optimisation_can_be_switched_off() {
    let with = |change: fn(&mut Options), body: &str| {
        let mut options = Options { base: true, ..Options::new(Level::Full) };
        change(&mut options);
        let text = format!("\t.text\n\t.type f,@function\nf:\n{body}\n");
        rewrite(&text, "t.s", &options).unwrap_or_else(|e| panic!("{e}"))
    };
    assert!(with(|o| o.base = false, CHASE).contains("andl\t%gs:4(%edi), %eax"));
    let copies = |t: &str| count(t, "movl\t%edi, %");
    assert_eq!((copies(&with(|_| {}, CHASE)), copies(&with(|o| o.merge = false, CHASE))), (2, 3));
    assert!(with(|o| o.guard = false, CHASE).contains("leal\t4(%rdi), %r10d\n\tandl\t(%r11,%r10), %eax"));
    let frame = "\tsubq $24, %rsp\n\tmovl %edi, 4(%rsp)\n\tcall g\n\taddq $24, %rsp\n\tret";
    assert!(with(|_| {}, frame).contains("movl\t%edi, 4(%rbp)"));
    assert!(with(|o| o.stack = false, frame).contains("movl\t%edi, %gs:4(%ebp)"));
    assert!(!with(|_| {}, frame).contains("movb\t$0, (%rbp)"));
    assert!(with(|o| o.elide = false, frame).contains("movb\t$0, (%rbp)"));
}

#[test]
fn a_base_register_is_borrowed_where_none_is_free() {
    // Every register that the loop does not use is needed behind it.
    let used = ["rcx", "rdx", "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    let mut body = CHASE.replace("\tret", "");
    for r in used {
        body += &format!("\taddq %{r}, %rax\n");
    }
    let t = with_base(&(body + "\tret"));
    assert!(t.contains("pushq\t%r11\n\tmovq\t%gs:0x10000, %r11\n\tjmp\t.L2"), "{t}");
    // It is given back on both ways out: behind the loop, and by a detour for the branch.
    assert!(t.contains("\tje\t.Lpbl_x") && t.contains("\tjne\t.L1\n\tpopq\t%r11\n.L3:"), "{t}");
    assert!(t.contains("\tpopq\t%r11\n\tjmp\t.L3"), "{t}");
    // The records know of the word, which is no preserved register's.
    assert_eq!(count(&t, ", 0x10000000, 0"), 2, "{t}");
}

/// What a borrowed register holds when it is pushed is said to be the caller's only if nobody has written it,
/// in the records and to debuggers.
#[test]
fn a_borrowed_register_that_has_been_written_is_no_preserved_one() {
    let named = ["rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13"];
    let all: String = named.iter().map(|r| format!("\taddq %{r}, %rax\n")).collect();
    let looped = CHASE.replace("\tret", "").replacen(".L1:\n", &format!(".L1:\n{all}"), 1);
    for (before, slots, told) in [
        ("", "0x10000004", ".cfi_offset %r14, -16"),
        ("\tmovq %r14, g(%rip)\n\tmovq %rsi, %r14\n", "0x10000000", ".cfi_def_cfa_offset 16"),
        ("\txchgq %r14, g(%rip)\n", "0x10000000", ".cfi_def_cfa_offset 16"),
    ] {
        let body = format!("{before}{looped}\taddq %r14, %rax\n\taddq %r15, %rax\n\tret");
        let text = whole(&Options { base: true, ..Options::new(Level::Full) }, &body);
        assert!(text.contains("pushq\t%r14"), "{text}");
        assert_eq!(
            (count(&text, &format!(", {slots}, 0")), text.contains(told)),
            (2, true),
            "{before}{text}"
        );
        assert_eq!(text.contains(".cfi_offset %r14"), before.is_empty(), "{text}");
    }
}

#[test]
fn code_without_a_type_is_refused_with_what_to_do() {
    let text = "\t.text\n\t.globl g\ng:\n\tmovl $1, %eax\n\tret\n";
    let e = rewrite(text, "t.s", &Options::new(Level::Full)).expect_err("refused").to_string();
    assert!(e.starts_with("t.s:3: `g` is code") && e.contains(".type g, @function"), "{e}");
}

/// What the verifier would refuse when the module is loaded is refused here, with the place and what to do.
#[test]
fn what_no_module_may_contain_is_named() {
    for (body, said) in [
        (
            "\twrgsbase %rax",
            "t.s:5: `wrgsbase\t%rax` is not allowed in a fault domain; the segment registers",
        ),
        ("\tnop\n\tvaddps %zmm1, %zmm2, %zmm3", "t.s:6: `vaddps\t%zmm1, %zmm2, %zmm3` is not allowed"),
        ("\tvmovdqu64 (%rdi), %ymm17", "compile with -mno-avx512f, or with -march=x86-64-v3"),
        ("\tvmovdqu32 (%rdi), %xmm2{%k1}{z}", "-mno-avx512f"),
        ("\tkmovd %k1, %eax", "-mno-avx512f"),
        ("\tsyscall", "call an import of the runtime"),
        ("\tmovl %fs, %eax", "not allowed"),
        ("\trdfsbaseq %rax", "t.s:5: `rdfsbaseq\t%rax` is not allowed"),
        ("\trdgsbasel %eax", "the segment registers"),
        ("\tpushq %rbp\n\tpushq %rdi\n\tpopf\n\tpopq %rbp\n\tret", "t.s:7: `popf` is not allowed"),
        ("\tnop\n\t.byte 0x0f, 0x05", "t.s:6: `.byte 0x0f, 0x05` puts bytes among the code"),
        ("\t.quad 7", "place data in .rodata"),
        ("\tmovq (%rdi), %rsp\n\tret", "t.s:6: no confined form of `ret`; rsp is not where it was"),
        ("\tmovq %rdi, %rsp\n\tret", "a return address cannot be pushed"),
        ("\tpushq %rdi\n\tret", "a return address cannot be pushed"),
        ("\tret $8", "a return address cannot be pushed"),
    ] {
        let error = refused(body);
        assert!(error.contains(said), "{body}: {error}");
    }
    let located = refused(
        "\t.file 1 \"/src\" \"dir/name.c\"\n\t.loc 1 41 3\n\tnop\n\t.loc 1 42 3\n\tsyscall\n\t.loc 1 43 3",
    );
    assert!(located.starts_with("dir/name.c:42: (line 9 of t.s) `syscall`"), "{located}");
}

/// A switch of four cases on `rdi`, between what is before the load of the entry and the jump.
fn switched(before: &str, after: &str) -> String {
    let load = "\tmovslq (%rdx,%rdi,4), %rax\n";
    let cases = ".La:\tleal 1(%rdx), %eax\n\tret\n.Lb:\tleal 2(%rdx), %eax\n\tret\n";
    let table =
        "\t.section .rodata\n.LT:\t.long .La-.LT\n\t.long .Lb-.LT\n\t.long .Lb-.LT\n\t.long .La-.LT\n\t.text";
    format!("\tleaq .LT(%rip), %rdx\n{before}{load}{after}\tjmp *%rax\n{cases}{table}")
}

#[test]
fn a_table_s_register_may_hold_something_else_at_the_jump() {
    let same = out(Level::Full, &switched("", "\taddq %rdx, %rax\n"));
    assert!(same.contains("leaq\t.LT(%rip), %rdx\n\tmovslq\t(%rdx,%rax,4), %rax"), "{same}");
    let other = out(Level::Full, &switched("", "\taddq %rdx, %rax\n\tmovl $77, %edx\n"));
    assert!(!other.contains("movslq\t(%rdx,"), "{other}");
}

#[test]
fn two_loads_may_feed_one_jump() {
    let twice = "\ttestl %esi, %esi\n\tje .L1\n\tmovslq (%rdx,%rcx,4), %rax\n\tjmp .L2\n.L1:\n";
    let t = out(Level::Full, &switched(twice, ".L2:\taddq %rdx, %rax\n"));
    let indices = t.contains("movl\t%ecx, %eax") && t.contains("movl\t%edi, %eax");
    assert!(indices && t.matches("movslq").count() == 1, "{t}");
}

#[test]
fn a_jump_with_all_registers_live_lends_some() {
    let registers = ["rcx", "rsi", "rdi", "r8", "r9", "r10", "r11"];
    let sum: String = registers.iter().map(|r| format!("\taddq %{r}, %rax\n")).collect();
    let table = "\t.section .data.rel.ro,\"aw\",@progbits\nT:\n\t.quad .L1\n\t.quad .L2\n\t.text\n";
    let jump = "\tjmp *(%rdx,%rax,8)\n";
    let t = out(
        Level::Full,
        &format!("\tleaq T(%rip), %rdx\n{jump}.L1:\n{jump}.L2:\n\tmovq %rdx, %rax\n{sum}\tret\n{table}"),
    );
    let way = "\tpopq\t%r11\n\tjmp\t.L1\n";
    assert!(t.matches("pushq\t%r11").count() == 2 && t.matches(way).count() == 1, "{t}");
}

#[test]
fn a_switch_may_be_worked_out_once_and_either_way() {
    let t = out(
        Level::Full,
        &switched("", "\taddq %rax, %rdx\n\tmovq %rdx, %rax\n.L3:\n").replace(".Lb:", ".Lb:\tjmp .L3\n"),
    );
    assert!(t.contains("movl\t%eax, %edx") && !t.contains("jmp\t*%rax") && !t.contains("jmp\t*%rdx"), "{t}");
}
