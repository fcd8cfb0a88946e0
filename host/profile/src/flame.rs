//! The flame graph: who took how much, for whom.
//!
//! A box is a domain, named with the portal by which it was entered, and stands on the domain that has called
//! it; on the domain stand its functions, and the code of its portals. Widths are instructions. What is
//! narrower than a hair is left out. A domain has a colour, and its functions have pale ones of the same hue;
//! the legend names those that take most. The picture is plain SVG, without a script: a browser shows numbers
//! and whole names where the pointer is.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::short::ways;
use crate::table::{grouped, percent};
use crate::{Fold, Names, Recording};

const WIDTH: f64 = 1600.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 70.0;
const MARGIN: f64 = 10.0;
/// Of a letter, about.
const LETTER: f64 = 6.6;
/// Narrower boxes are left out.
const HAIR: f64 = 0.2;
/// Domains in the legend, at most.
const MOST_NAMED: usize = 12;
/// From one domain's hue to the next's: no two of a few are alike.
const HUES: f64 = 137.5;

/// What a box is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// All of it; what belongs to no domain.
    #[default]
    Whole,
    Domain(String),
    /// A function of that domain.
    Function(String),
    Portal,
}

/// A box and those that stand on it.
#[derive(Debug, Default)]
pub struct Frame {
    pub instructions: u64,
    pub above: BTreeMap<String, Frame>,
    kind: Kind,
}

impl Frame {
    fn add(&mut self, name: &str, instructions: u64, kind: Kind) -> &mut Frame {
        let frame = self.above.entry(name.into()).or_default();
        frame.instructions += instructions;
        frame.kind = kind;
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
        root.add("(start)", recording.outside, Kind::Whole);
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
            frame = frame.add(&name, node.all(), Kind::Domain(domain.into()));
        }
        for (block, count) in &node.blocks {
            frame.add(names.function(*block), *count, Kind::Function(names.domain(node.domain).into()));
        }
        if node.legs > 0 {
            frame.add("(portal code)", node.legs, Kind::Portal);
        }
        if node.short > 0 {
            frame.add("(short-circuit portals)", node.short, Kind::Portal);
        }
    }
    root
}

/// The picture.
pub fn svg(root: &Frame, fold: &Fold, title: &str) -> String {
    let mut out = String::new();
    // A string takes whatever is written.
    let _ = draw(&mut out, root, fold, title);
    out
}

fn draw(out: &mut String, root: &Frame, fold: &Fold, title: &str) -> fmt::Result {
    let height = HEAD + root.height() as f64 * ROW + MARGIN;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"
 font-family="monospace" font-size="11">"#
    )?;
    writeln!(out, r##"<rect width="100%" height="100%" fill="#fdfdfb"/>"##)?;
    writeln!(out, r#"<text x="{MARGIN}" y="24" font-size="15">{}</text>"#, escaped(title))?;
    let hues = hues(fold);
    legend(out, fold, &hues)?;
    let picture = Picture {
        scale: (WIDTH - 2.0 * MARGIN) / root.instructions.max(1) as f64,
        total: root.instructions,
        hues,
    };
    picture.draw(out, root, "all", MARGIN, height - MARGIN - ROW)?;
    writeln!(out, "</svg>")
}

/// Who takes most has the first: what is wide differs most.
fn hues(fold: &Fold) -> BTreeMap<&str, u32> {
    let domains = fold.domains.iter().enumerate();
    domains.map(|(n, row)| (row.name.as_str(), (200.0 + n as f64 * HUES) as u32 % 360)).collect()
}

fn legend(out: &mut String, fold: &Fold, hues: &BTreeMap<&str, u32>) -> fmt::Result {
    let mut x = MARGIN;
    let domains = fold.domains.iter().filter(|row| !row.name.starts_with('('));
    for row in domains.take(MOST_NAMED) {
        let text = format!("{} {:.1}%", row.name, percent(row.instructions, fold.total));
        let wide = 24.0 + text.chars().count() as f64 * LETTER;
        if x + wide > WIDTH {
            break;
        }
        let colour = colour(&Kind::Domain(row.name.clone()), hues, "");
        writeln!(out, r#"<rect x="{x:.1}" y="40" width="11" height="11" rx="1" fill="{colour}"/>"#)?;
        writeln!(out, r#"<text x="{:.1}" y="50">{}</text>"#, x + 15.0, escaped(&text))?;
        x += wide + 8.0;
    }
    Ok(())
}

struct Picture<'a> {
    scale: f64,
    total: u64,
    hues: BTreeMap<&'a str, u32>,
}

impl Picture<'_> {
    fn draw(&self, out: &mut String, frame: &Frame, name: &str, x: f64, y: f64) -> fmt::Result {
        let width = frame.instructions as f64 * self.scale;
        if width < HAIR {
            return Ok(());
        }
        let colour = colour(&frame.kind, &self.hues, name);
        let (whole, count) = (escaped(name), grouped(frame.instructions));
        let share = percent(frame.instructions, self.total);
        write!(out, r#"<g><title>{whole}: {count} instructions, {share:.2}%</title>"#)?;
        let (wide, high) = ((width - 0.3).max(HAIR), ROW - 1.0);
        write!(
            out,
            r#"<rect x="{x:.1}" y="{y}" width="{wide:.1}" height="{high}" rx="1" fill="{colour}"/>"#
        )?;
        if let Some(label) = label(name, ((width - 6.0) / LETTER).max(0.0) as usize) {
            write!(out, r#"<text x="{:.1}" y="{}">{}</text>"#, x + 3.0, y + 12.0, escaped(&label))?;
        }
        writeln!(out, "</g>")?;
        let mut x = x;
        for (name, above) in &frame.above {
            self.draw(out, above, name, x, y - ROW)?;
            x += above.instructions as f64 * self.scale;
        }
        Ok(())
    }
}

/// The longest way to write the name for which there is room; of the shortest the beginning.
fn label(name: &str, room: usize) -> Option<String> {
    if let Some(fits) = ways(name).find(|way| way.chars().count() <= room) {
        return Some(fits);
    }
    let shortest = ways(name).last()?;
    (room >= 4).then(|| shortest.chars().take(room - 2).chain("..".chars()).collect())
}

fn colour(kind: &Kind, hues: &BTreeMap<&str, u32>, name: &str) -> String {
    let hue = |domain: &str| hues.get(domain).copied().unwrap_or(0);
    // Neighbours differ a little.
    let shade = name.bytes().fold(0, |sum: u32, byte| sum + u32::from(byte)) % 8;
    match kind {
        Kind::Whole => "hsl(0,0%,80%)".into(),
        Kind::Domain(domain) => format!("hsl({},55%,66%)", hue(domain)),
        Kind::Function(domain) => format!("hsl({},60%,{}%)", hue(domain), 82 + shade),
        Kind::Portal => "hsl(0,0%,88%)".into(),
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
        let fold = Fold::new(&recording, &names);
        let svg = svg(&frames(&recording, &names), &fold, "shell & <others>");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("shell &amp; &lt;others&gt;") && svg.contains("file::read&lt;u8&gt;"));
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        assert!(svg.contains("<title>file.read: 400 instructions, 80.00%</title>"), "{svg}");
        assert!(svg.contains(">shell 15.2%</text>"), "{svg}");
    }

    #[test]
    fn domains_are_told_apart_by_colours() {
        let (recording, names) = crate::fold::tests::example();
        let fold = Fold::new(&recording, &names);
        let hues = hues(&fold);
        let of = |kind: fn(String) -> Kind, domain: &str| colour(&kind(domain.into()), &hues, "");
        assert_ne!(of(Kind::Domain, "shell"), of(Kind::Domain, "file"));
        assert_ne!(of(Kind::Function, "shell"), of(Kind::Function, "file"));
        let hue = |colour: String| colour.split(',').next().map(String::from);
        assert_eq!(hue(of(Kind::Domain, "file")), hue(of(Kind::Function, "file")));
    }

    #[test]
    fn labels_fit() {
        let name = "<pebble::region::Region>::zero_page";
        let labels = [40, 20, 12, 6, 3].map(|room| label(name, room));
        let fit = [Some(name), Some("<Region>::zero_page"), Some("zero_page"), Some("zero.."), None];
        assert_eq!(labels, fit.map(|label| label.map(String::from)));
    }
}
