//! A strict reader of OpenMetrics text 1.0 for counters, gauges and histograms: a collector may
//! refuse what it refuses.

use std::collections::{BTreeMap, BTreeSet};

/// A sample: its labels and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// Samples by their full name (`x_total`, `x_bucket`).
pub type Samples = BTreeMap<String, Vec<Sample>>;

#[derive(Default)]
struct Family {
    kind: String,
    unit: String,
    has_help: bool,
}

/// The samples of a text, or the first error.
pub fn read(text: &str) -> Result<Samples, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end with `# EOF`")?;
    let mut samples = Samples::new();
    let (mut seen, mut series) = (BTreeSet::new(), BTreeSet::new());
    let mut name = String::new();
    let mut family = Family::default();
    for (number, line) in body.split_terminator('\n').enumerate() {
        let wrong = |what: &str| format!("line {}: {what}: {line}", number + 1);
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (Some(word), Some(of), Some(value)) = (words.next(), words.next(), words.next())
            else {
                return Err(wrong("an incomplete comment"));
            };
            if word == "TYPE" {
                let known = ["counter", "gauge", "histogram"].contains(&value);
                (name, family) = (of.to_owned(), Family::default());
                family.kind = value.to_owned();
                if !known || !is_name(of) || !seen.insert(of.to_owned()) {
                    return Err(wrong("an unknown type, a wrong name, or a family twice"));
                }
                continue;
            }
            if of != name {
                return Err(wrong("it is about another family"));
            }
            match word {
                "UNIT" if family.unit.is_empty() && of.ends_with(&format!("_{value}")) => {
                    family.unit = value.to_owned()
                }
                "HELP" if !family.has_help => {
                    family.has_help = true;
                    unescaped(value).ok_or_else(|| wrong("a wrong escape"))?;
                }
                _ => return Err(wrong("an unknown comment, one twice, or a wrong unit")),
            }
            continue;
        }
        let (whole, sample) = sample(line).map_err(|what| wrong(&what))?;
        let suffix = whole.strip_prefix(&name).ok_or_else(|| wrong("no type stands before it"))?;
        let fits = match family.kind.as_str() {
            "counter" => suffix == "_total" && sample.value >= 0.0,
            "gauge" => suffix.is_empty(),
            _ => ["_bucket", "_count", "_sum"].contains(&suffix) && sample.value >= 0.0,
        };
        if !fits || !family.has_help || sample.labels.contains_key("le") != (suffix == "_bucket") {
            return Err(wrong("its name or value does not fit its type"));
        }
        if !series.insert((whole.clone(), sample.labels.clone())) {
            return Err(wrong("the same sample twice"));
        }
        samples.entry(whole).or_default().push(sample);
    }
    histograms(&samples)?;
    Ok(samples)
}

/// Buckets ascend, end with +Inf, and agree with `_count`.
fn histograms(samples: &Samples) -> Result<(), String> {
    for (name, buckets) in samples {
        let Some(family) = name.strip_suffix("_bucket") else { continue };
        let mut of_series: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
        for bucket in buckets {
            let mut labels = bucket.labels.clone();
            let edge = labels.remove("le").expect("it was looked for");
            let edge = match edge.as_str() {
                "+Inf" => f64::INFINITY,
                text if text.contains('.') => {
                    text.parse().map_err(|_| format!("{name}: {text}"))?
                }
                text => return Err(format!("{name}: `{text}` is no canonical number")),
            };
            of_series.entry(labels).or_default().push((edge, bucket.value));
        }
        for (labels, buckets) in of_series {
            let ascend = buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
            let last = buckets.last().filter(|(edge, _)| edge.is_infinite());
            let count = samples.get(&format!("{family}_count")).into_iter().flatten();
            let count = count.clone().find(|count| count.labels == labels);
            if !ascend || last.map(|(_, count)| *count) != count.map(|count| count.value) {
                return Err(format!("{name} {labels:?}: buckets {buckets:?}"));
            }
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(match chars.next()? {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            c => plain.push(c),
        }
    }
    Some(plain)
}

/// `name{label="value",…} value`.
fn sample(line: &str) -> Result<(String, Sample), String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(mut inner) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inner.split_once("=\"").ok_or("a label without a value")?;
            let mut escaped = false;
            let end = after.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let end = end.ok_or("a value without an end")?;
            let value = unescaped(&after[..end]).ok_or("a wrong escape")?;
            if !is_name(label) || labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("a wrong label, or one twice: {label}"));
            }
            inner = &after[end + 1..];
            match inner.strip_prefix(',') {
                Some(more) => inner = more,
                None => break,
            }
        }
        rest = inner.strip_prefix('}').ok_or("labels without an end")?;
    }
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let plain = value.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let number = value.parse::<f64>().ok().filter(|_| plain && is_name(name));
    let value = number.ok_or("a wrong value or name")?;
    Ok((name.to_owned(), Sample { labels, value }))
}
