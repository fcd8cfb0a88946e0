//! The tables of the manual, between two markers for each server.
//!
//! ```text
//! <!-- interfaces of clock -->
//! | interface | ...
//! <!-- end -->
//! ```

use crate::{Argument, Interface, Server};
use std::fmt::Write;

const BEGIN: &str = "<!-- interfaces of ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// A page with its tables made anew. An error: a marker without its end, or of nobody.
pub fn refreshed(page: &str, servers: &[Server]) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = page.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        out.extend([line, "\n"]);
        let Some(folder) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(CLOSE)) else {
            continue;
        };
        let server = servers.iter().find(|server| server.folder == folder);
        out +=
            &table(server.ok_or_else(|| format!("line {}: no server {folder:?} exports anything", n + 1))?);
        if !lines.any(|(_, line)| line == END) {
            return Err(format!("line {}: no line {END:?} follows", n + 1));
        }
        out.extend([END, "\n"]);
    }
    Ok(out)
}

/// The marker behind which a server's table stands.
pub fn marker(server: &Server) -> String {
    format!("{BEGIN}{}{CLOSE}", server.folder)
}

/// What a server exports, a row each.
pub fn table(server: &Server) -> String {
    let mut out = "| interface | spec | from | arguments and result |\n|---|---|---|---|\n".to_string();
    for interface in &server.interfaces {
        let Interface { name, spec, from, .. } = interface;
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "| `{name}` | `{spec}` | {from} | {} |", cell(interface));
    }
    out
}

/// `(caller), words → result; further results. Meaning. Errors`; without results `(caller), words: meaning`.
pub fn cell(interface: &Interface) -> String {
    let mut call = list(&interface.arguments, ", ");
    if !interface.result.is_empty() || !interface.more.is_empty() {
        let arrow = if call.is_empty() { "→ " } else { " → " };
        call += arrow;
        call += &interface.result;
        if !interface.more.is_empty() {
            call += if interface.result.is_empty() { "" } else { "; " };
            call += &list(&interface.more, ", ");
        }
    }
    let error = |(name, when): &(String, String)| match when.as_str() {
        "" => format!("-{name}"),
        _ => format!("-{name} ({when})"),
    };
    let errors = interface.errors.iter().map(error).collect::<Vec<_>>().join("; ");
    let answers = call.contains('→');
    let meaning = if answers { capital(&interface.meaning) } else { interface.meaning.clone() };
    let between = if answers { ". " } else { ": " };
    let told = [call, meaning].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(between);
    [told, errors].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(". ")
}

fn list(arguments: &[Argument], between: &str) -> String {
    let shown = |Argument { name, note, by_portal, .. }: &Argument| match (by_portal, note.as_str()) {
        (true, "") => format!("({name})"),
        (true, note) => format!("({name}: {note})"),
        (false, "") => name.clone(),
        (false, note) => format!("{name} ({note})"),
    };
    arguments.iter().map(shown).collect::<Vec<_>>().join(between)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
