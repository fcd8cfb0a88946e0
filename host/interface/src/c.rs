//! Stubs for callers in C: `pebble-interfaces.h`.

use crate::{Argument, Interface, Server, manual};
use std::fmt::Write;

const HEAD: &str = "\
/*
 * pebble-interfaces.h: calls of the servers' interfaces, with names and types of their words. Generated from
 * servers/<name>/interface.toml.
 *
 * A function makes the bare call (portal_call) through the portal that is its first argument; X_NAME is what to open it by.
 */
#ifndef PEBBLE_INTERFACES_H
#define PEBBLE_INTERFACES_H

#include <pebble.h>

/* So many words at least: the compiler says so where an array is shorter. */
#ifdef __cplusplus
#define PEBBLE_WORDS(count) count
#else
#define PEBBLE_WORDS(count) static count
#endif
";
const FOOT: &str = "\n#endif\n";

/// The header.
pub fn header(servers: &[Server]) -> String {
    let mut out = HEAD.to_string();
    servers.iter().flat_map(|server| &server.interfaces).for_each(|interface| out += &stub(interface));
    out + FOOT
}

fn stub(interface: &Interface) -> String {
    let Interface { name, spec, .. } = interface;
    let function = name.replace(['.', '-'], "_");
    let about = manual::cell(interface).replace("*/", "* /").replace("/*", "/ *");
    let (mut parameters, mut words) = (String::new(), String::new());
    let call = if spec.results == 0 { "portal_call(" } else { "portal_call_results(results, " };
    if spec.results > 0 {
        parameters += "long results[PEBBLE_WORDS(MAX_RESULTS)], ";
    }
    parameters += "int portal";
    for Argument { name, kind, .. } in interface.passed() {
        // Writing to a `String` cannot fail.
        match kind.words() {
            1 => {
                let (of, between) = (kind.c(), if kind.c().ends_with('*') { "" } else { " " });
                let _ = write!(parameters, ", {of}{between}{name}");
                let _ = write!(words, ", {name}");
            }
            count => {
                let _ = write!(parameters, ", const unsigned long {name}[PEBBLE_WORDS({count})]");
                words.extend((0..count).map(|n| format!(", {name}[{n}]")));
            }
        }
    }
    format!(
        "\n/* {name}, {spec}. {about} */\n#define {}_NAME \"{name}\"\n\
         static inline struct portal_result {function}({parameters}) {{\n    return {call}portal{words});\n\
         }}\n",
        function.to_uppercase()
    )
}
