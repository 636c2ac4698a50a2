//! Published data sets from R packages (evd 2.3-6.1; base R 4.2.2).

fn read(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Annual maximal sea levels at Port Pirie in m, 1923 to 1987 (evd: `portpirie`; Coles 2001).
pub(crate) fn port_pirie() -> Vec<f64> {
    read(include_str!("testdata/portpirie.txt"))
}
/// Annual maximal sea levels at Venice in cm, 1931 to 1981 (evd: `venice`; Coles 2001).
pub(crate) fn venice() -> Vec<f64> {
    read(include_str!("testdata/venice.txt"))
}
/// Insurance losses above 100,000 dollars, ascending (evd: `lossalae`; Frees and Valdez 1998).
pub fn losses() -> Vec<f64> {
    read(include_str!("testdata/losses.txt"))
}
/// Luteinising hormone in blood at ten minutes' distance (R: `lh`).
pub(crate) fn lh() -> Vec<f64> {
    read(include_str!("testdata/lh.txt"))
}
/// The level of Lake Huron in feet, 1875 to 1972 (R: `LakeHuron`).
pub(crate) fn lake_huron() -> Vec<f64> {
    read(include_str!("testdata/lakehuron.txt"))
}
/// Lynx trapped in Canada, 1821 to 1934 (R: `lynx`).
pub(crate) fn lynx() -> Vec<f64> {
    read(include_str!("testdata/lynx.txt"))
}
