//! Why a module is refused: the address, the rule that it breaks, and what to do about it.

use core::fmt;

/// Why, and at which segment offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub at: u32,
    pub rule: Rule,
}

macro_rules! rules {
    ($($name:ident: $text:literal;)*) => {
        /// The rules of the contract, one per property.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule { $($name,)* }
        impl Rule {
            pub const ALL: &'static [Rule] = &[$(Rule::$name,)*];
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$name => stringify!($name),)* }
            }
            pub const fn text(self) -> &'static str {
                match self { $(Rule::$name => $text,)* }
            }
        }
    };
}

rules! {
    Layout: "text, data, ftab, exports or scratch do not fit together; rebuild the module with the tool's \
        linker script";
    Truncated: "the last instruction is cut off; the text's end is wrong";
    Instruction: "this instruction is not on the allow-list; compile without it, or call a portal for what \
        it does";
    Prefix: "this prefix has no meaning here, or stands twice, or at the wrong place; use the assembler's \
        encoding";
    StackPointer: "rsp is named by an instruction other than call, ret, push and pop; rewrite the function";
    DataStackPointer: "rbp is changed in a way that is not known statically; rewrite the function";
    Untouched: "rbp went down by more than a page and the next instruction does not touch (%rbp); add a \
        touch";
    Depth: "push, pop, ret or jump at a wrong depth of the return stack; balance it";
    Delta: "rbp is above its value at entry, too far below it, or not back at a return; balance it";
    Store: "this store may leave the segment; confine its address";
    Load: "this load may leave the segment; confine its address, or use level write";
    Context: "gs without the 32-bit address size reads only the two words of the context page";
    Import: "this is not the portal-table entry of an import";
    String: "a string instruction needs the fact in-segment of rdi (at full of rsi too) and no override";
    Target: "the branch does not lead to an instruction of the text, or not to one of the labels section";
    Label: "the branch or fall-through arrives with another depth or delta, or with fewer saved slots";
    Facts: "the branch or fall-through arrives without a fact that the label's record promises";
    Hint: "the labels section is missing, leads out of the text, or into an instruction; link the module \
        again";
    Record: "the facts section is not sorted, not at instructions, or a record is malformed";
    Callee: "the call, export or slot does not lead to a function entry";
    Indirect: "an indirect jump or call without the full sequence right before it";
    Table: "a jump table or slot table lies outside its section, leads astray, or is scanned too often";
    Dynamic: "a branch or label where rbp is dynamic";
    FallsOff: "the code runs past its end";
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}: {}: {}", self.at, self.rule.name(), self.rule.text())
    }
}

impl core::error::Error for Refusal {}
