//! What the 1993 paper measured (Wahbe, Lucco, Anderson and Graham, "Efficient software-based fault
//! isolation").

/// A line of its Table 1, in percent.
pub struct Line {
    pub name: &'static str,
    /// Stores and jumps, then loads too, then the instructions that were added, on the DEC 5000.
    pub dec5000: [f64; 3],
    /// Stores and jumps, then loads too, on the DEC-ALPHA.
    pub alpha: Option<[f64; 2]>,
}

const fn line(name: &'static str, dec5000: [f64; 3], alpha: Option<[f64; 2]>) -> Line {
    Line { name, dec5000, alpha }
}

pub const TABLE_1: &[Line] = &[
    line("052.alvinn", [1.4, 33.4, 19.4], Some([8.1, 35.5])),
    line("bps", [5.6, 15.5, 8.9], Some([4.7, 20.3])),
    line("cholesky", [0.0, 22.7, 6.5], Some([0.0, 9.3])),
    line("026.compress", [3.3, 13.3, 10.9], Some([4.3, 0.0])),
    line("056.ear", [-1.2, 19.1, 12.4], Some([3.7, 18.3])),
    line("023.eqntott", [2.9, 34.4, 2.7], Some([2.3, 17.4])),
    line("008.espresso", [12.4, 27.0, 11.8], Some([13.3, 33.6])),
    line("001.gcc1.35", [3.1, 18.7, 17.0], None),
    line("022.li", [5.1, 23.4, 14.9], Some([5.4, 16.2])),
    line("locus", [8.7, 30.4, 10.3], Some([4.3, 8.7])),
    line("mp3d", [10.7, 10.7, 13.3], Some([0.0, 6.7])),
    line("psgrind", [10.4, 19.5, 12.1], Some([8.0, 36.0])),
    line("qcd", [0.5, 27.0, 8.8], Some([-0.8, 12.1])),
    line("072.sc", [5.6, 11.2, 8.0], None),
    line("tracker", [-0.8, 10.5, 3.9], Some([10.9, 19.9])),
    line("water", [0.7, 7.4, 6.7], Some([4.3, 12.3])),
];

/// Its averages: stores and jumps, loads too, instructions added, on the DEC 5000.
pub const AVERAGE: [f64; 3] = [4.3, 21.8, 10.5];
pub const AVERAGE_ALPHA: [f64; 2] = [4.3, 17.6];

pub fn find(name: &str) -> Option<&'static Line> {
    TABLE_1.iter().find(|line| line.name == name)
}

/// Table 2, in microseconds: a call with no registers saved, with integer registers, with all; a C call; a
/// pipe's round trip.
pub const DEC5000_CROSSING: [f64; 5] = [1.11, 1.81, 2.83, 0.10, 204.72];
pub const ALPHA_CROSSING: [f64; 5] = [0.75, 1.35, 1.80, 0.06, 227.88];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_average_to_what_the_paper_says() {
        for column in 0..3 {
            let mean = TABLE_1.iter().map(|line| line.dec5000[column]).sum::<f64>() / TABLE_1.len() as f64;
            assert!((mean - AVERAGE[column]).abs() < 1.6, "{column}: {mean}");
        }
        assert!(find("water").is_some() && find("doom").is_none());
    }
}
