//! `pebble sfi stubs`: the bindings of `examples/sfi/codec.h`, used by a host in C and one in Rust; and what
//! it says of bad headers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sfi")
}

fn tool(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pebble-sfi")).args(arguments).output().expect("the tool")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A directory of this test's, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("pebble-sfi-stubs-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Place(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// With `PEBBLE_BLESS` the files in `examples` become what is made.
#[test]
fn the_examples_bindings_are_what_is_made() {
    let place = Place::new("made");
    let header = examples().join("codec.h").display().to_string();
    let names = ["codec_stubs.h", "codec_stubs.rs", "codec_exports.c"];
    let [c, rust, exports] = names.map(|name| place.file(name));
    let output = tool(&["stubs", &header, "--c", &c, "--rust", &rust, "--exports", &exports]);
    assert!(output.status.success(), "{output:?}");
    for name in names {
        let made = std::fs::read_to_string(place.file(name)).unwrap();
        if std::env::var_os("PEBBLE_BLESS").is_some() {
            std::fs::write(examples().join(name), &made).unwrap();
        }
        assert_eq!(
            made,
            std::fs::read_to_string(examples().join(name)).unwrap(),
            "{name}: run this with PEBBLE_BLESS=1"
        );
    }
}

const SAID: &str = "packed: 788, unpacked: 100000, the same
mean: 3, knows runs: 1, waves: 0, describes itself: run lengths, 1993
no text: the result is no text in the domain's memory
halvings: 6, and one call was ended in halvings
calls: 12
";

#[test]
fn hosts_in_c_and_rust_use_them() {
    let place = Place::new("used");
    let root = examples().join("../..");
    let exe = std::env::current_exe().expect("this test");
    let libraries = exe.parent().expect("its directory");
    let module = place.file("codec.pbl");
    run(Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
        .args(["cc", "-g", "-O2", "-Wall", "-Werror", "-fno-builtin", "-nostdlib", "-isystem"])
        .arg(root.join("sfi/libc/include"))
        .args([examples().join("codec.c"), examples().join("codec_exports.c")])
        .args(["-o", &module]));
    run(Command::new("clang-19")
        .args(["-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(root.join("sfi/runtime/include"))
        .arg(examples().join("codec_host.c"))
        .arg(libraries.join("libpebble_sfi_runtime.so"))
        .args(["-o", &place.file("host")]));
    assert_eq!(run(Command::new(place.file("host")).arg(&module).env("LD_LIBRARY_PATH", libraries)), SAID);
    let host = libraries.with_file_name("examples").join("codec_host");
    assert!(host.exists(), "examples are built when no test is named: cargo test -p pebble-sfi");
    assert_eq!(run(Command::new(host).arg(&module)), SAID);
}

#[test]
fn bad_headers_are_refused_with_the_place() {
    let place = Place::new("bad");
    let header = place.file("bad.h");
    let cases = [
        ("", "1:1: there is no prototype"),
        ("int f(int", "1:1: this declaration has no end"),
        ("/* no end\nint f(void);", "1:1: this comment has no end"),
        ("#define X 1\nint f(double x);", "2:7: portals carry words"),
        ("double f(void);", "1:1: a portal returns a word"),
        ("int f(int *x);", "1:13: this pointer's length is missing"),
        ("int f(int **x PBL_R(1));", "1:7: a pointer to a pointer"),
        ("int f(const int *x PBL_W(1));", "1:20: PBL_W lets the function write"),
        ("int f(int *x PBL_R(n), double *n PBL_R(1));", "1:20: n cannot count"),
        ("int f(int *x PBL_R(m), int n);", "1:20: m is neither an argument"),
        ("int f(int *x PBL_R(0));", "1:20: 0 is neither"),
        ("int f(int *x PBL_R n);", "1:20: ( should be here, not n"),
        ("int f(int *x PBL_X(1));", "1:14: PBL_X is unknown"),
        ("int f(int x PBL_R(1));", "1:13: PBL_R is for pointers"),
        ("int f(char *x PBL_STRING);", "1:15: PBL_STRING is for `const char *`"),
        ("int f(struct point *p PBL_R(1));", "1:7: struct is no type"),
        ("int f(colour c);", "1:7: colour is no type"),
        ("int f(int a, int b, int c, int d, int e, int g, int h);", "1:49: a portal takes at most 6 words"),
        ("PBL_PORTAL(xm) int f(void);", "1:12: \"xm\" is no stack and state"),
        ("int *f(void);", "1:1: a pointer into the domain"),
        ("int f(void) PBL_STRING;", "1:1: PBL_STRING is for a result"),
        ("int f(void) g;", "1:13: g is not understood"),
        ("int f(void);\n\n  int f(void);", "3:7: f is declared on line 1 too"),
        ("int bind(void);", "1:5: bind is a name of the bindings' own"),
        ("int limit(void);", "1:5: limit is a name of the bindings' own"),
        ("int f(int x_);", "1:7: x_: names that end with _"),
        ("int f(void) {", "1:13: this brace is never closed"),
    ];
    for (text, wanted) in cases {
        std::fs::write(&header, text).unwrap();
        let output = tool(&["stubs", &header, "--c", "-"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(&format!("bad.h:{wanted}")), "{text}: {said}");
        assert!(output.stdout.is_empty());
    }
}

/// Whatever else a header has does not disturb.
#[test]
fn the_rest_of_a_header_is_skipped() {
    let place = Place::new("rest");
    let header = place.file("my-lib.v2.h");
    let text = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n#define LONG \\\n  int g(double);\nstruct point \
        { int x, y; };\n\
                typedef struct { int (*f)(int); } table;\ntypedef unsigned long long wide; // int \
        h(double);\n\
                static inline int twice(int x) { return 2 * x; }\nint table[3];\nchar quote = '\"';\n\
                extern void set(wide type, uint8_t match[] PBL_W(type), const unsigned char *, int) ;\n\
        #ifdef __cplusplus\n}\n#endif\n";
    std::fs::write(
        &header,
        text.replace(", const unsigned char *, int)", ", const unsigned char * PBL_R(2), int)"),
    )
    .unwrap();
    let output = tool(&["stubs", &header, "--rust", "-"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let wanted =
        "pub fn set(&self, match_: &mut [u8], argument3: &[u8; 2], argument4: i32) -> Result<(), CallError>";
    assert!(
        said.contains(wanted) && said.contains("pub struct MyLib") && said.contains("\"smiwri\""),
        "{said}"
    );
    for (arguments, wanted) in [
        (&["stubs"][..], "usage:"),
        (&["stubs", "/nowhere.h", "--c", "-"], "/nowhere.h: "),
        (&["stubs", &header], "nothing to write"),
        (&["stubs", &header, "--c"], "--c needs a value"),
        (&["stubs", &header, "--name=9", "--c=-"], "is no name"),
        (&["stubs", &header, "--java", "-"], "unknown"),
    ] {
        let output = tool(arguments);
        assert!(
            !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(wanted),
            "{output:?}"
        );
    }
    assert!(tool(&["stubs", "--help"]).status.success());
}

/// Names that are words of C++: the bindings compile in both languages.
#[test]
fn words_of_cxx_are_names() {
    let place = Place::new("words");
    let header = place.file("words.h");
    let text = "int new(int class, const char *this PBL_STRING);\nunsigned delete(const int *template \
        PBL_R(typename), int typename);\n\
                int catch(int *operator PBL_O(2));\n";
    std::fs::write(&header, text).unwrap();
    let made = place.file("words_stubs.h");
    assert!(tool(&["stubs", &header, "--c", &made]).status.success());
    let include = examples().join("../../sfi/runtime/include").display().to_string();
    for (compiler, language) in [("clang-19", "c"), ("clang++-19", "c++")] {
        let check = ["-Wall", "-Werror", "-fsyntax-only", "-Wno-unused-function", "-x", language];
        run(Command::new(compiler).args(check).args(["-I", &include, &made]));
    }
    let said = std::fs::read_to_string(&made).unwrap();
    assert!(
        said.contains("words_new(") && said.contains("int32_t class_") && said.contains("\"new\""),
        "{said}"
    );
}
