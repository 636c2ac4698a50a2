//! /proc/interrupts: the row that counts the measured interrupt.

use std::fmt;

const FILE: &str = "/proc/interrupts";

/// Rows of /proc/interrupts, of a CPU or of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterruptRows {
    pub row: RowMatch,
    /// The CPU whose column counts.
    pub cpu: Option<u32>,
}

/// The way of finding a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowMatch {
    /// By the end of the description: the same words on all architectures.
    Described(&'static str),
    /// By the number of the interrupt.
    Number(u32),
    /// By the name of its handler.
    Handler(String),
}

impl fmt::Display for InterruptRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.row {
            RowMatch::Described(words) => write!(f, "{FILE}, \"{words}\"")?,
            RowMatch::Number(number) => write!(f, "{FILE}, row {number}")?,
            RowMatch::Handler(name) => write!(f, "{FILE}, the row of {}", name.escape_debug())?,
        }
        self.cpu.map_or(Ok(()), |cpu| write!(f, ", CPU {cpu}"))
    }
}

impl InterruptRows {
    pub fn read_count(&self) -> Result<u64, String> {
        self.count_in(&read()?).ok_or_else(|| format!("{self}: there is no such row"))
    }

    fn count_in(&self, text: &str) -> Option<u64> {
        let columns = column_cpus(text)?;
        let mut sum = None;
        for (label, counts) in split_rows(text) {
            let words: Vec<&str> = counts.split_ascii_whitespace().collect();
            let is_it = match &self.row {
                RowMatch::Described(description) => counts.trim_end().ends_with(description),
                RowMatch::Number(number) => label == number.to_string(),
                RowMatch::Handler(name) => {
                    handler_names(&words, columns.len()).any(|handler| handler == name)
                }
            };
            if !is_it {
                continue;
            }
            let wanted = columns
                .iter()
                .zip(&words)
                .filter(|(column, _)| self.cpu.is_none_or(|cpu| cpu == **column));
            let row: u64 = wanted.filter_map(|(_, word)| word.parse::<u64>().ok()).sum();
            sum = Some(sum.unwrap_or(0) + row);
        }
        sum
    }
}

fn read() -> Result<String, String> {
    std::fs::read_to_string(FILE).map_err(|why| format!("{FILE}: {why}"))
}

/// The CPU of each column.
fn column_cpus(text: &str) -> Option<Vec<u32>> {
    text.lines()
        .next()?
        .split_ascii_whitespace()
        .map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect()
}

fn split_rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(label, rest)| (label.trim(), rest))
}

/// The names at the end of a row, separated by commas. Text before the first name belongs to the
/// controller.
fn handler_names<'a>(words: &[&'a str], columns: usize) -> impl Iterator<Item = &'a str> {
    words.iter().skip(columns).map(|word| word.trim_end_matches(','))
}

/// The number of the interrupt with a handler of this name.
pub fn number_of(name: &str) -> Option<u32> {
    find_number(&read().ok()?, name)
}

fn find_number(text: &str, name: &str) -> Option<u32> {
    let columns = column_cpus(text)?.len();
    let mut found = split_rows(text).filter(|(_, rest)| {
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        handler_names(&words, columns).any(|handler| handler == name)
    });
    found.find_map(|(label, _)| label.parse().ok())
}

/// The number of handlers that share an interrupt.
pub(crate) fn read_sharers(number: u32) -> usize {
    read().ok().and_then(|text| count_sharers(&text, number)).unwrap_or(1)
}

fn count_sharers(text: &str, number: u32) -> Option<usize> {
    let (_, rest) = split_rows(text).find(|(label, _)| *label == number.to_string())?;
    Some(rest.matches(", ").count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = concat!(
        "           CPU0       CPU2       \n",
        " 11:         10          5   IO-APIC  11-fasteoi   uhci, uio_pci_generic\n",
        " 12:          1          0   IO-APIC  12-edge      i8042\n",
        "24:  7 8 gpio-sim 1 Edge punctual-5\n",
        "LOC:        100        200   Local timer interrupts\n",
        "ERR:          3\n",
        "IPI1: 4 5 Function call interrupts\n",
        "broken\n"
    );

    #[test]
    fn interrupt_rows_are_found_by_number_description_or_handler() {
        let count = |row: &RowMatch, cpu| InterruptRows { row: row.clone(), cpu }.count_in(TEXT);
        assert_eq!(count(&RowMatch::Number(11), None), Some(15));
        assert_eq!(count(&RowMatch::Number(11), Some(2)), Some(5));
        assert_eq!(count(&RowMatch::Number(11), Some(1)), Some(0));
        assert_eq!(count(&RowMatch::Described("Local timer interrupts"), Some(0)), Some(100));
        assert_eq!(count(&RowMatch::Described("Function call interrupts"), Some(2)), Some(5));
        assert_eq!(count(&RowMatch::Handler("punctual-5".into()), None), Some(15));
        assert_eq!(count(&RowMatch::Handler("punctual-6".into()), None), None);
        assert_eq!(
            (find_number(TEXT, "uio_pci_generic"), find_number(TEXT, "nobody")),
            (Some(11), None)
        );
        assert_eq!((count_sharers(TEXT, 11), count_sharers(TEXT, 12)), (Some(2), Some(1)));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[ -~\n]{0,300}", number in 0u32..40) {
            let _ = InterruptRows { row: RowMatch::Number(number), cpu: Some(1) }.count_in(&text);
            let _ = (find_number(&text, "x"), count_sharers(&text, number));
        }
    }
}
