use pebble_image::*;
use std::collections::BTreeMap;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let m = Manifest::load(std::path::Path::new(&a[1])).unwrap();
    let mut components = BTreeMap::new();
    for c in &m.component {
        let bin = c.binary.clone().unwrap_or(c.package.trim_start_matches("pebble-").to_string());
        components.insert(c.name.clone(), std::fs::read(format!("{}/{bin}", a[2])).unwrap());
    }
    let art = Artifacts {
        nucleus: std::fs::read(format!("{}/nucleus", a[2])).unwrap(),
        components,
        archive: vec![],
    };
    match build(&m, &art) {
        Ok(i) => {
            println!("pages {} essential {} KB", i.report.image_bytes / 4096, i.report.essential_pages() * 4);
            for d in &i.report.domains {
                println!("{:?} {} pages text {} ro {} data {}", d.name, d.pages, d.text, d.rodata, d.data);
            }
            std::fs::write(&a[3], i.elf).unwrap()
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1)
        }
    }
}
