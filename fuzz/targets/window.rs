//! Random bytes as a window, as the head and the records of a valid one, and, if they begin with a
//! brace, as the document of windows.
use punctual_bundle::WindowsReader;
use punctual_bundle::windows::WindowHead;
use punctual_record::wire;
use std::fs;

pub fn fuzz(bytes: &[u8]) {
    look(bytes);
    // With valid checksums and lengths: the content behind them is examined, too.
    let half = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (head, records) = bytes.split_at(half);
    let mut sound = b"PNCTWIN1".to_vec();
    for word in
        [head.len() as u32, crc32fast::hash(head), records.len() as u32, crc32fast::hash(records)]
    {
        sound.extend_from_slice(&word.to_le_bytes());
    }
    sound.extend_from_slice(bytes);
    look(&sound);
    let place = std::env::temp_dir().join(format!("punctual-fuzz-window-{}", std::process::id()));
    let _ = fs::create_dir_all(place.join("windows"));
    let file = if bytes.starts_with(b"{") { "windows.json" } else { "000000.window" };
    fs::write(place.join("windows").join(file), &sound).expect("a file in a temporary directory");
    fs::write(place.join("windows/windows.json"), head).expect("a file in a temporary directory");
    if let Some(windows) = WindowsReader::open(&place) {
        let _ = windows.limit_findings();
        for window in &windows.windows {
            let _ = window.read();
        }
    }
    let _ = fs::remove_dir_all(&place);
}

fn look(bytes: &[u8]) {
    if let Ok((head, lanes)) = WindowHead::read(bytes) {
        assert_eq!(head.lanes.len(), lanes.len());
        let _ = (head.latency(), head.is_partial());
        for records in lanes {
            let _ = wire::decode(records).count();
        }
    }
}
