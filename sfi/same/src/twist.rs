//! What csmith never writes, though compilers make special code of it: frames whose size is not known,
//! over-aligned locals, and arguments that do not fit in registers. It is put into the text of its programs,
//! and changes no value that they compute but a sum of its own.

/// How a program is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    None,
    /// `alloca` in every function.
    Alloca,
    /// A variable-length array in every block.
    Array,
    /// An over-aligned variable in every function, and `alloca` in every other.
    Aligned,
}

/// In front of the functions: what the changes use. Volatile, so that nobody computes the sum in advance.
const PRELUDE: &str = "
static volatile unsigned long pbl_g[9] = {40, 17, 3, 99, 1000003, 7, 65537, 12, 5};
static unsigned long pbl_sum;
#define PBL_TAKE long pbl_1, long pbl_2, long pbl_3, long pbl_4, long pbl_5, long pbl_6, long pbl_7, long pbl_8
#define PBL_GIVE pbl_g[1], pbl_g[2], pbl_g[3], pbl_g[4], pbl_g[5], pbl_g[6], pbl_g[7], pbl_g[8]
#define PBL_ADD pbl_sum += (pbl_1 ^ pbl_2) + (pbl_3 ^ pbl_4) * 3 + (pbl_5 ^ pbl_6) * 5 + (pbl_7 - pbl_8)
#define PBL_KEEP(p) (p[0] = 1, pbl_sum += p[0], (void)({ __asm__ volatile(\"\" :: \"r\"(p) : \"memory\"); }))
#define PBL_ALLOCA unsigned char *pbl_a = __builtin_alloca(pbl_g[0] & 63); PBL_KEEP(pbl_a);
#define PBL_ARRAY unsigned char pbl_v[pbl_g[0]]; PBL_KEEP(pbl_v);
#define PBL_ALIGNED _Alignas(64) unsigned char pbl_o[64]; PBL_KEEP(pbl_o); pbl_sum += (unsigned long)pbl_o & 63;
";

impl Twist {
    pub fn nth(seed: u64) -> Twist {
        [Twist::None, Twist::Alloca, Twist::Array, Twist::Aligned][(seed % 4) as usize]
    }

    /// A jump may not lead into the scope of an array of variable length.
    pub fn forbids_jumps(self) -> bool {
        self == Twist::Array
    }

    /// What a function begins with: the first block, and its number among the functions.
    fn function(self, number: usize) -> &'static str {
        match self {
            Twist::None => "",
            Twist::Alloca => "PBL_ALLOCA",
            Twist::Array => "PBL_ARRAY",
            Twist::Aligned if number.is_multiple_of(2) => "PBL_ALIGNED PBL_ALLOCA",
            Twist::Aligned => "PBL_ALIGNED",
        }
    }
}

/// The program, changed. Half of those with a changed frame pass eight more arguments to every function,
/// before its own.
pub fn twisted(text: &str, twist: Twist) -> String {
    if twist == Twist::None {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len() * 2);
    let (mut functions, mut fresh, mut declared) = (0, false, false);
    for line in text.lines() {
        let heading = (line.starts_with("static") || line.starts_with("inline"))
            && line.contains(" func_")
            && !line.contains('=');
        if heading && !declared {
            out.push_str(PRELUDE);
            declared = true;
        }
        let line = arguments(line, heading);
        if heading && !line.ends_with(';') {
            fresh = true;
        }
        let block = line.trim() == "{" || line.trim_start().starts_with("{ /*");
        match line.find('{').filter(|_| declared && block) {
            Some(at) if fresh => {
                fresh = false;
                functions += 1;
                let begin = twist.function(functions);
                out.push_str(&format!("{}{{ PBL_ADD; {begin}{}\n", &line[..at], &line[at + 1..]));
            }
            Some(at) if twist == Twist::Array => {
                out.push_str(&format!("{}{{ PBL_ARRAY{}\n", &line[..at], &line[at + 1..]));
            }
            _ => {
                let line =
                    line.replace("crc32_context ^ 0xFFFFFFFFUL", "crc32_context ^ pbl_sum ^ 0xFFFFFFFFUL");
                out.push_str(&line);
                out.push('\n');
            }
        }
    }
    out
}

/// Gives eight words to each function of the program's that a line names, in front of its own arguments.
fn arguments(line: &str, heading: bool) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("func_") {
        let own = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let digits = rest[at + 5..].bytes().take_while(u8::is_ascii_digit).count();
        let open = at + 5 + digits;
        if !own || digits == 0 || !rest[open..].starts_with('(') {
            out.push_str(&rest[..open]);
            rest = &rest[open..];
            continue;
        }
        out.push_str(&rest[..=open]);
        rest = &rest[open + 1..];
        let (word, none) = if heading { ("PBL_TAKE", "void)") } else { ("PBL_GIVE", ")") };
        out.push_str(word);
        match rest.strip_prefix(none) {
            Some(_) => rest = &rest[none.len() - 1..],
            None => out.push_str(", "),
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_take_and_get_eight_words_more() {
        assert_eq!(arguments("static int  func_1(void);", true), "static int  func_1(PBL_TAKE);");
        assert_eq!(arguments("static int  func_2(int p_3)", true), "static int  func_2(PBL_TAKE, int p_3)");
        let call = "x = safe_add_func_int8_t_s_s(func_1(), func_2(g_4));";
        assert_eq!(
            arguments(call, false),
            "x = safe_add_func_int8_t_s_s(func_1(PBL_GIVE), func_2(PBL_GIVE, g_4));"
        );
    }
}
