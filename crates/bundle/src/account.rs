//! The time breakdown of every sample of a series: `NNNN.account.json` beside its statistics.
//! docs/reference/bundle.md describes it.

use crate::{BundleError, Member};
use punctual_core::cause::CAUSES;
use punctual_core::{Account, AccountBucket, AccountCost, CauseKind, Fact, MAIN_PARTS};
use serde::{Deserialize, Serialize};
use std::io;

const SCHEMA: &str = "punctual-account/2";

/// The breakdown of a series' samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SeriesAccount {
    /// Whether the series ended; if not, as of the last checkpoint.
    pub complete: bool,
    pub account: Account,
    /// Samples without kernel events: the timer woke no thread, as it was not asleep. All of their
    /// time is unknown.
    pub unattributed: u64,
    /// Kernel records lost to a full buffer, on all CPUs of the run. Their samples are among the
    /// unattributed.
    pub lost: u64,
    pub cost: Fact<AccountCost>,
}

/// The format of the file. Rows name their parts in the order of `parts`, so that later versions
/// may add parts.
#[derive(Serialize, Deserialize)]
struct AccountDocument {
    schema: String,
    complete: bool,
    unattributed: u64,
    lost: u64,
    cost: Fact<AccountCost>,
    parts: Vec<String>,
    buckets: Vec<AccountRow>,
}

#[derive(Serialize, Deserialize)]
struct AccountRow {
    from: u64,
    width: u64,
    count: u64,
    ns: Vec<u64>,
    longest: Vec<u64>,
}

/// Writes the breakdown, or why there is none.
pub(crate) fn write(member: &Member, account: &Fact<SeriesAccount>) -> Result<(), BundleError> {
    let document = match account {
        Fact::Known(account) => Fact::Known(to_document(account)),
        Fact::Unavailable(why) => Fact::Unavailable(why.clone()),
        Fact::NotAsked => Fact::NotAsked,
    };
    member.replace_with(|out| serde_json::to_writer(out, &document).map_err(io::Error::from))
}

fn to_document(account: &SeriesAccount) -> AccountDocument {
    let by_part = |of: &[u64; CAUSES]| MAIN_PARTS.iter().map(|part| of[*part as usize]).collect();
    let row = |(from, bucket): (u64, &AccountBucket)| AccountRow {
        from,
        width: Account::bucket_width(from),
        count: bucket.count,
        ns: by_part(&bucket.parts),
        longest: by_part(&bucket.longest),
    };
    AccountDocument {
        schema: SCHEMA.to_owned(),
        complete: account.complete,
        unattributed: account.unattributed,
        lost: account.lost,
        cost: account.cost.clone(),
        parts: MAIN_PARTS.iter().map(|part| part.id().to_owned()).collect(),
        buckets: account.account.occupied_buckets().map(row).collect(),
    }
}

/// [`Fact::NotAsked`] without a file. An unreadable file is unavailable and reported.
pub(crate) fn read(member: &Member, damage: &mut Vec<String>) -> Fact<SeriesAccount> {
    let read = member.read_json().and_then(|document| match document {
        Fact::Known(document) => restore_account(document)
            .map(Fact::Known)
            .map_err(|why| BundleError::from_damage(member.path(), why)),
        Fact::Unavailable(why) => Ok(Fact::Unavailable(why)),
        Fact::NotAsked => Ok(Fact::NotAsked),
    });
    match read {
        Ok(account) => account,
        Err(error) if error.is_missing() => Fact::NotAsked,
        Err(error) => {
            damage.push(error.to_string());
            Fact::Unavailable(error.to_string())
        }
    }
}

fn restore_account(document: AccountDocument) -> Result<SeriesAccount, String> {
    if document.schema != SCHEMA {
        return Err(format!("`{}` is not {SCHEMA}", document.schema.escape_debug()));
    }
    let known_cause =
        |word: &String| CauseKind::from_id(word).filter(|cause| MAIN_PARTS.contains(cause));
    // A part unknown to this version is from a later one.
    let parts: Vec<CauseKind> =
        document.parts.iter().map(|word| known_cause(word).unwrap_or(CauseKind::Unknown)).collect();
    let sorted = |values: Vec<u64>| -> Result<[u64; CAUSES], String> {
        if values.len() != parts.len() {
            return Err(format!("a row has {} values for {} parts", values.len(), parts.len()));
        }
        let mut by_part = [0u64; CAUSES];
        for (part, value) in parts.iter().zip(values) {
            let sum = by_part[*part as usize].checked_add(value);
            by_part[*part as usize] = sum.ok_or("a row adds up to more than 64 bits hold")?;
        }
        Ok(by_part)
    };
    let (mut account, mut last, mut total) = (Account::default(), None, 0u64);
    for row in document.buckets {
        if row.width != Account::bucket_width(row.from)
            || row.from % row.width != 0
            || last.is_some_and(|last| row.from <= last)
        {
            return Err(format!(
                "the bucket of {} ns is out of order or of another width",
                row.from
            ));
        }
        last = Some(row.from);
        total = total.checked_add(row.count).ok_or("the samples are more than 64 bits hold")?;
        let bucket = AccountBucket {
            count: row.count,
            parts: sorted(row.ns)?,
            longest: sorted(row.longest)?,
        };
        if bucket
            .longest
            .iter()
            .try_fold(0u64, |sum, n| sum.checked_add(*n))
            .is_none_or(|sum| sum > bucket.count)
        {
            return Err(format!(
                "more samples than there are had a longest part, in the bucket of {} ns",
                row.from
            ));
        }
        account.restore_bucket(row.from, bucket);
    }
    let (complete, unattributed, lost, cost) =
        (document.complete, document.unattributed, document.lost, document.cost);
    Ok(SeriesAccount { complete, account, unattributed, lost, cost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{Nanos, Split};

    fn some() -> SeriesAccount {
        let mut account = Account::default();
        for k in 0..500 {
            let mut split = Split::default();
            split.add(CauseKind::Irq, Nanos(k * 7));
            split.add(CauseKind::NonPreemptible, Nanos(k * k));
            account.record_split(&split);
        }
        let cost = AccountCost { per_sample: Nanos(900), runs_per_sample: 11, samples: 60 };
        SeriesAccount { complete: true, account, unattributed: 3, lost: 1, cost: Fact::Known(cost) }
    }

    #[test]
    fn an_account_is_read_back_as_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = Member::from_root(directory.path()).join("0000.account.json");
        let mut damage = Vec::new();
        assert_eq!(read(&path, &mut damage), Fact::NotAsked);
        for account in [Fact::Known(some()), Fact::Unavailable("no BTF".to_owned())] {
            write(&path, &account).unwrap();
            assert_eq!(read(&path, &mut damage), account);
        }
        assert_eq!(damage, Vec::<String>::new());
    }

    #[test]
    fn an_inconsistent_account_is_reported_as_damage() {
        let directory = tempfile::tempdir().unwrap();
        let path = Member::from_root(directory.path()).join("0000.account.json");
        write(&path, &Fact::Known(some())).unwrap();
        let text = path.read_text().unwrap();
        for (from, to) in [
            ("\"width\":1,", "\"width\":3,"),
            ("\"irq\",", ""),
            ("account/2", "account/9"),
            ("{", "["),
        ] {
            path.replace_bytes(text.replacen(from, to, 1).as_bytes()).unwrap();
            let mut damage = Vec::new();
            assert!(matches!(read(&path, &mut damage), Fact::Unavailable(_)), "{from}");
            assert_eq!(damage.len(), 1);
        }
    }
}
