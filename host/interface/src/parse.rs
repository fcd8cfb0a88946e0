//! A description's text becomes a [`Server`], or an error that says where and what to do.

use crate::words::{is_rust, is_taken};
use crate::{Argument, Error, Interface, Kind, Place, Server, unique};
use pebble_abi::errno;
use pebble_abi::link::{NAMELEN, SPECLEN};
use pebble_portal::spec::{Arg, Spec};
use serde::Deserialize;
use toml::Spanned;

/// What the library makes for every server that asks for it.
pub const COMMON: &str = "lib/pebble/interface.toml";
const COMMON_TEXT: &str = include_str!("../../../lib/pebble/interface.toml");

/// A description as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    /// Its clients go on when another instance takes its place: `X.handover`, `X.takeover`.
    #[serde(default)]
    replaceable: bool,
    /// It has a heap: `heap.X`.
    #[serde(default)]
    heap: bool,
    #[serde(default)]
    interface: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    spec: Spanned<String>,
    from: String,
    /// The last part of the name where it is left out.
    entry: Option<String>,
    #[serde(default)]
    switches: bool,
    arguments: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    result: String,
    more: Option<Spanned<Vec<String>>>,
    errors: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    meaning: String,
}

/// The description of the server in folder `folder`; `file` is what errors call it.
pub fn server(file: &str, folder: &str, text: &str) -> Result<Server, Error> {
    let File { about, replaceable, heap, interface } = read(file, text)?;
    let mut interfaces = interface
        .into_iter()
        .map(|entry| checked(file, text, entry, |name| name.into()))
        .collect::<Result<Vec<_>, _>>()?;
    let prefix = one_prefix(&interfaces)?.unwrap_or(folder).to_string();
    if replaceable {
        interfaces.extend(common("*.", &prefix)?);
    }
    if heap {
        interfaces.extend(common("heap.", folder)?);
    }
    unique(interfaces.iter())?;
    Ok(Server { folder: folder.into(), about: folded(&about), interfaces })
}

/// Those that the library makes whose names begin so, for one server.
fn common(begins: &str, server: &str) -> Result<Vec<Interface>, Error> {
    let File { interface, .. } = read(COMMON, COMMON_TEXT)?;
    let chosen = interface.into_iter().filter(|entry| entry.name.get_ref().starts_with(begins));
    chosen.map(|entry| checked(COMMON, COMMON_TEXT, entry, |name| name.replace('*', server))).collect()
}

/// The interfaces that the library makes, for the manual: `X` stands for the server.
pub fn library() -> Result<Server, Error> {
    let mut interfaces = common("*.", "X")?;
    interfaces.extend(common("heap.", "X")?);
    Ok(Server { folder: "pebble".into(), about: String::new(), interfaces })
}

fn read(file: &str, text: &str) -> Result<File, Error> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        let at = Place { file: file.into(), line };
        Error { at, interface: String::new(), what: error.message().trim().into() }
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Line ends in a text are only for its writer.
fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All names of a server begin alike.
fn one_prefix(interfaces: &[Interface]) -> Result<Option<&str>, Error> {
    let Some(first) = interfaces.first() else { return Ok(None) };
    let prefix = first.parts().0;
    match interfaces.iter().find(|interface| interface.parts().0 != prefix) {
        Some(other) => {
            Err(other.wrong(format!("the names of a server begin alike: write {prefix}.{}", other.parts().1)))
        }
        None => Ok(Some(prefix)),
    }
}

fn checked(file: &str, text: &str, entry: Entry, named: impl Fn(&str) -> String) -> Result<Interface, Error> {
    let name = named(entry.name.get_ref());
    let place = |at: usize| Place { file: file.into(), line: line_of(text, at) };
    let at = place(entry.name.span().start);
    let wrong = |what: String| Error { at: at.clone(), interface: name.clone(), what };
    let wrong_in = |at: usize| {
        let (at, name) = (place(at), &name);
        move |what: String| Error { at: at.clone(), interface: name.clone(), what }
    };
    fits_name(&name).map_err(wrong)?;
    let wrong_spec = wrong_in(entry.spec.span().start);
    let text_of_spec = entry.spec.get_ref();
    if text_of_spec.len() > SPECLEN {
        return Err(wrong_spec(format!("the specification has more than {SPECLEN} characters")));
    }
    let spec = Spec::parse(text_of_spec)
        .map_err(|error| wrong_spec(format!("specification {text_of_spec:?}, {error}")))?;
    let function = entry.entry.as_deref().unwrap_or(name.rsplit('.').next().unwrap_or_default());
    if !is_identifier(function) || is_rust(function) {
        return Err(wrong(format!("{function:?} cannot be a function's name: say it with `entry`")));
    }
    if entry.from.trim().is_empty() {
        return Err(wrong("`from` is empty: say who may open it".into()));
    }
    // A list that is left out is empty, and what is wrong with that is said where the interface begins.
    let list = |list: Option<Spanned<Vec<String>>>| {
        let at = list.as_ref().map_or(entry.name.span().start, |list| list.span().start);
        (list.map(Spanned::into_inner).unwrap_or_default(), wrong_in(at))
    };
    let (texts, wrong_argument) = list(entry.arguments);
    let arguments = all(&texts, argument).and_then(|list| fit_letters(&spec, &list).map(|()| list));
    let arguments = arguments.and_then(differ).map_err(&wrong_argument)?;
    let (texts, wrong_more) = list(entry.more);
    let more = all(&texts, argument).and_then(|list| fit_results(&spec, &list).map(|()| list));
    let more = more.and_then(differ).map_err(wrong_more)?;
    let (texts, wrong_error) = list(entry.errors);
    let errors = all(&texts, known_error).map_err(wrong_error)?;
    let interface = Interface {
        spec,
        entry: function.into(),
        switches: entry.switches,
        from: folded(&entry.from),
        arguments,
        result: folded(&entry.result),
        more,
        errors,
        meaning: folded(&entry.meaning),
        name: name.clone(),
        at: at.clone(),
    };
    let own = interface.passed().map(|argument| argument.name.as_str()).find(|name| OWN.contains(name));
    match own {
        Some(own) => {
            Err(wrong_argument(format!("argument {own:?}: stubs call their own so: choose another name")))
        }
        None => Ok(interface),
    }
}

fn fits_name(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    match name.split_once('.') {
        _ if name.len() > NAMELEN => Err(format!("the name has more than {NAMELEN} characters: shorten it")),
        Some((server, method)) if !server.is_empty() && is_identifier(&method.replace('-', "_")) => {
            // `X` stands for a server in the manual.
            match (server == "X" || server.chars().all(good)) && (method == "X" || method.chars().all(good)) {
                true => Ok(()),
                false => Err("a name is of lower-case letters, digits, '_' and '-'".into()),
            }
        }
        _ => Err("a name is `server.method`, with one dot".into()),
    }
}

fn is_identifier(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(begins) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What stubs call their own.
const OWN: [&str; 3] = ["portal", "portal_call", "results"];

/// `name: type, note`; in brackets if the portal supplies it. The type may be left out where it is the name.
fn argument(text: &str) -> Result<Argument, String> {
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let (head, note) = inner.unwrap_or(text).split_once(',').unwrap_or((inner.unwrap_or(text), ""));
    let (name, kind) = head.split_once(':').unwrap_or((head, head));
    let (name, kind) = (name.trim(), kind.trim());
    if !is_identifier(name) {
        return Err(format!("argument {text:?}: write \"name: type\", or \"name: type, note\""));
    }
    if is_taken(name) {
        return Err(format!("argument {text:?}: {name:?} is a word of C's or Rust's: choose another name"));
    }
    let kind = Kind::parse(kind)
        .ok_or_else(|| format!("argument {text:?}: no type {kind:?}: use one of {}", crate::kind::ALL))?;
    Ok(Argument { name: name.into(), kind, note: folded(note), by_portal: inner.is_some() })
}

/// Each of the texts, as what it is read as.
fn all<T>(texts: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    texts.iter().map(|text| read(text)).collect()
}

/// No two have one name.
fn differ(list: Vec<Argument>) -> Result<Vec<Argument>, String> {
    let twice = |n: &usize| list[..*n].iter().any(|before| before.name == list[*n].name);
    match (1..list.len()).find(twice) {
        Some(n) => Err(format!("{:?} is there twice: give each its own name", list[n].name)),
        None => Ok(list),
    }
}

/// One argument for each letter, of its kind.
fn fit_letters(spec: &Spec, arguments: &[Argument]) -> Result<(), String> {
    let words: usize = arguments.iter().map(|argument| argument.kind.words()).sum();
    let letters: String = spec.args.iter().map(|letter| letter.letter()).collect();
    if words != spec.args.len() {
        return Err(format!(
            "specification \"{spec}\" has {} argument letters ({letters:?}), `arguments` has {words} words: \
             give each letter its argument",
            spec.args.len()
        ));
    }
    let mut rest = spec.args.iter();
    for argument in arguments {
        for letter in rest.by_ref().take(argument.kind.words()) {
            fit_letter(argument, *letter)?;
        }
    }
    Ok(())
}

fn fit_letter(argument: &Argument, letter: Arg) -> Result<(), String> {
    let Argument { name, kind, by_portal, .. } = argument;
    let shown = letter.letter();
    if kind.words() > 1 && letter != Arg::Word {
        return Err(format!(
            "argument `{name}` is {} words, but letter '{shown}' is among them: they have to be 'i'",
            kind.words()
        ));
    }
    if let Some(wanted) = kind.misfit(letter) {
        return Err(format!("argument `{name}` is a {kind}, but letter '{shown}' is {wanted}"));
    }
    match (by_portal, letter.is_word()) {
        (true, true) => Err(format!("argument `{name}` is the caller's (letter '{shown}'): no brackets")),
        (false, false) => Err(format!(
            "argument `{name}` is supplied by the portal (letter '{shown}'): write it in brackets"
        )),
        _ => Ok(()),
    }
}

/// As many further words as the specification lets through, or fewer.
fn fit_results(spec: &Spec, more: &[Argument]) -> Result<(), String> {
    let words: usize = more.iter().map(|word| word.kind.words()).sum();
    match usize::from(spec.results) {
        0 if words > 0 => Err(format!("`more` has {words} words: let them through with \">{words}\"")),
        results if words > results => {
            Err(format!("`more` has {words} words, but specification \"{spec}\" lets {results} through"))
        }
        results if results > 0 && words == 0 => Err(format!(
            "specification \"{spec}\" lets {results} words through: say with `more` what they are"
        )),
        _ => Ok(()),
    }
}

/// `NAME`, or `NAME, when`.
fn known_error(text: &str) -> Result<(String, String), String> {
    let (name, note) = text.split_once(',').unwrap_or((text, ""));
    match errno::ALL.iter().any(|known| known.name() == Some(name.trim())) {
        true => Ok((name.trim().into(), folded(note))),
        false => Err(format!("no error {name:?} in abi/src/errno.rs")),
    }
}
