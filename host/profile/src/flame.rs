//! The flame graph: who took how much, for whom.
//!
//! A box is a domain, named with the portal by which it was entered, and stands on the domain that has called
//! it; on the domain stand its functions, and the code of its portals. Widths are instructions. What is
//! narrower than a hair is left out. The picture is plain SVG, without a script: a browser shows numbers
//! where the pointer is.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::{Names, Recording};

const WIDTH: f64 = 1600.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 44.0;
/// Of a letter, about.
const LETTER: f64 = 6.6;
/// Narrower boxes are left out.
const HAIR: f64 = 0.2;

/// A box and those that stand on it.
#[derive(Debug, Default)]
pub struct Frame {
    pub instructions: u64,
    pub above: BTreeMap<String, Frame>,
    function: bool,
}

impl Frame {
    fn add(&mut self, name: &str, instructions: u64, function: bool) -> &mut Frame {
        let frame = self.above.entry(name.into()).or_default();
        frame.instructions += instructions;
        frame.function = function;
        frame
    }

    /// Boxes one on the other, this one included.
    fn height(&self) -> usize {
        1 + self.above.values().map(Frame::height).max().unwrap_or(0)
    }
}

/// The boxes of a recording. The lowest is all of it.
pub fn frames(recording: &Recording, names: &Names) -> Frame {
    let mut root = Frame { instructions: recording.total, ..Frame::default() };
    if recording.outside > 0 {
        root.add("(start)", recording.outside, true);
    }
    for (n, node) in recording.nodes.iter().enumerate().filter(|(_, node)| node.all() > 0) {
        let mut frame = &mut root;
        for id in recording.way(crate::NodeId::new(n)) {
            let place = &recording.nodes[id.index()];
            let domain = names.domain(place.domain);
            let entry = names.entry(place);
            let name = match place.parent {
                None => domain.into(),
                Some(_) if entry.split(['.', ':', '+']).next() == Some(domain) => entry,
                Some(_) => format!("{domain}: {entry}"),
            };
            frame = frame.add(&name, node.all(), false);
        }
        for (block, count) in &node.blocks {
            frame.add(names.function(*block), *count, true);
        }
        if node.legs > 0 {
            frame.add("(portal code)", node.legs, true);
        }
        if node.short > 0 {
            frame.add("(short-circuit portals)", node.short, true);
        }
    }
    root
}

/// The picture.
pub fn svg(root: &Frame, title: &str) -> String {
    let mut out = String::new();
    // A string takes whatever is written.
    let _ = draw(&mut out, root, title);
    out
}

fn draw(out: &mut String, root: &Frame, title: &str) -> fmt::Result {
    let height = HEAD + root.height() as f64 * ROW + 10.0;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"
 font-family="monospace" font-size="11">"#
    )?;
    writeln!(out, r##"<rect width="100%" height="100%" fill="#fdfdfb"/>"##)?;
    writeln!(out, r#"<text x="10" y="24" font-size="15">{}</text>"#, escaped(title))?;
    let scale = (WIDTH - 20.0) / root.instructions.max(1) as f64;
    let whole = Box { name: "all", x: 10.0, y: height - 10.0 - ROW, scale, total: root.instructions };
    whole.draw(out, root)?;
    writeln!(out, "</svg>")
}

struct Box<'a> {
    name: &'a str,
    x: f64,
    y: f64,
    scale: f64,
    total: u64,
}

impl Box<'_> {
    fn draw(&self, out: &mut String, frame: &Frame) -> fmt::Result {
        let width = frame.instructions as f64 * self.scale;
        if width < HAIR {
            return Ok(());
        }
        let (x, y, colour) = (self.x, self.y, colour(self.name, frame.function));
        let share = frame.instructions as f64 * 100.0 / self.total.max(1) as f64;
        let name = escaped(self.name);
        let count = crate::table::grouped(frame.instructions);
        write!(out, r#"<g><title>{name}: {count} instructions, {share:.2}%</title>"#)?;
        let (wide, high) = ((width - 0.3).max(HAIR), ROW - 1.0);
        write!(
            out,
            r#"<rect x="{x:.1}" y="{y}" width="{wide:.1}" height="{high}" rx="1" fill="{colour}"/>"#
        )?;
        let room = ((width - 6.0) / LETTER).max(0.0) as usize;
        if room >= 3 {
            let cut: String = match self.name.chars().count() {
                long if long > room => self.name.chars().take(room - 2).chain("..".chars()).collect(),
                _ => self.name.into(),
            };
            write!(out, r#"<text x="{:.1}" y="{}">{}</text>"#, x + 3.0, y + 12.0, escaped(&cut))?;
        }
        writeln!(out, "</g>")?;
        let mut x = x;
        for (name, above) in &frame.above {
            Box { name, x, y: y - ROW, ..*self }.draw(out, above)?;
            x += above.instructions as f64 * self.scale;
        }
        Ok(())
    }
}

/// Domains have colours of their own, functions are all of the same sort.
fn colour(name: &str, function: bool) -> String {
    let domain = name.split(['.', ':', '+']).next().unwrap_or(name);
    let hash = |text: &str| text.bytes().fold(17_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
    match function {
        true => format!("hsl({},80%,{}%)", 40 + hash(name) % 15, 72 + hash(name) % 10),
        false => format!("hsl({},45%,70%)", hash(domain) % 360),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            control if control.is_control() => out.push('?'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands on a box is never wider.
    fn is_sound(frame: &Frame) -> bool {
        let above: u64 = frame.above.values().map(|frame| frame.instructions).sum();
        let whole =
            if frame.above.is_empty() { above <= frame.instructions } else { above == frame.instructions };
        whole && frame.above.values().all(is_sound)
    }

    #[test]
    fn boxes_stand_on_those_who_called() {
        let (recording, names) = crate::fold::tests::example();
        let root = frames(&recording, &names);
        assert!(is_sound(&root), "{root:?}");
        let shell = &root.above["shell"];
        assert_eq!((shell.instructions, shell.above["main"].instructions), (500, 76));
        let file = &shell.above["file.read"];
        assert_eq!((file.instructions, file.above["file.read"].instructions), (400, 200));
    }

    #[test]
    fn the_picture_is_whole() {
        let (recording, names) = crate::fold::tests::example();
        let svg = svg(&frames(&recording, &names), "shell & <others>");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("shell &amp; &lt;others&gt;") && svg.contains("file::read&lt;u8&gt;"));
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }
}
