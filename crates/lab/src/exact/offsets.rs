//! Offsets of members in a kernel's structures, from its type information (BTF,
//! Documentation/bpf/btf.rst).

const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const UNION: u32 = 5;

/// The offset in bytes of each of these members of a structure; `None` for a missing one, or if the
/// information is malformed.
pub(crate) fn of_members<const N: usize>(
    btf: &[u8],
    structure: &str,
    members: [&str; N],
) -> [Option<u32>; N] {
    let mut found = [None; N];
    // Unreadable data ends the search: earlier results are valid.
    let _ = find_members(btf, structure, &members, &mut found);
    found
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn find_members(
    btf: &[u8],
    structure: &str,
    members: &[&str],
    found: &mut [Option<u32>],
) -> Option<()> {
    if u16::from_le_bytes(btf.get(0..2)?.try_into().ok()?) != MAGIC {
        return None;
    }
    let header = u32_at(btf, 4)? as usize;
    let section = |at: usize| {
        let begin = header.checked_add(u32_at(btf, at)? as usize)?;
        btf.get(begin..begin.checked_add(u32_at(btf, at + 4)? as usize)?)
    };
    let (types, strings) = (section(8)?, section(16)?);
    let is_named = |name: u32, wanted: &str| {
        let rest = strings.get(name as usize..).unwrap_or_default();
        rest.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    };
    let mut at = 0;
    loop {
        let (name, info) = (u32_at(types, at)?, u32_at(types, at + 4)?);
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        at += 12;
        if kind == STRUCT && is_named(name, structure) {
            for place in (0..count).map(|number| at + 12 * number) {
                // With bit fields the upper byte is a size.
                let bits = u32_at(types, place + 8)?;
                let bits = if info >> 31 == 1 { bits & 0xff_ffff } else { bits };
                let name = u32_at(types, place)?;
                for (member, found) in members.iter().zip(found.iter_mut()) {
                    if is_named(name, member) {
                        *found = Some(bits / 8);
                    }
                }
            }
            return Some(());
        }
        at += trailing_bytes(kind, count)?;
    }
}

/// The number of bytes after the head of a type; `None` for an unknown kind.
fn trailing_bytes(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Forward declarations, pointers, type names, qualifiers, functions, floats, type tags.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, declaration tags.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        STRUCT | UNION | 15 | 19 => 12 * count,
        // Enumerations, prototypes.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure `task` with `pid` at 8 and `comm` at 24, after an integer.
    fn btf() -> Vec<u8> {
        let strings = b"\0task\0pid\0comm\0";
        let types: Vec<u32> =
            vec![0, 1 << 24, 4, 32, 1, STRUCT << 24 | 2, 40, 6, 1, 64, 10, 1, 192];
        let types: Vec<u8> = types.into_iter().flat_map(u32::to_le_bytes).collect();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0]);
        let len = types.len() as u32;
        let header = [24, 0, len, len, strings.len() as u32];
        bytes.extend(header.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn struct_offsets_are_read_from_btf() {
        let found = of_members(&btf(), "task", ["comm", "pid", "none"]);
        assert_eq!(found, [Some(24), Some(8), None]);
        assert_eq!(of_members(&btf(), "other", ["pid"]), [None]);
    }

    #[test]
    fn truncated_btf_never_panics() {
        let whole = btf();
        for len in 0..whole.len() {
            of_members(&whole[..len], "task", ["comm"]);
        }
    }

    #[test]
    fn struct_offsets_are_read_from_the_running_kernel() {
        let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let [comm, pid] = of_members(&btf, "task_struct", ["comm", "pid"]);
        assert!(comm > pid && pid > Some(0), "{comm:?} {pid:?}");
    }
}
