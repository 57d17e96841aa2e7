//! A directory in aligned columns: type and mode, size, time, name, and what a link leads to.

use filectx_openapi::{EntryType, LinkTarget, ListDirectoryResponse, ListEntry};

use super::{Paint, Style};

/// The entries, one a line.
pub fn list(response: &ListDirectoryResponse, style: Style) -> String {
    let sizes: Vec<String> = response.entries.iter().map(|entry| entry.size_bytes.to_string()).collect();
    let width = sizes.iter().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for (entry, size) in response.entries.iter().zip(&sizes) {
        let about = format!("{}{}  {size:>width$}  {}", letter(entry.type_), mode(&entry.mode), time(entry));
        out.push_str(&format!("{}  {}\n", style.paint(Paint::Dim, &about), name(entry, style)));
    }
    out
}

fn name(entry: &ListEntry, style: Style) -> String {
    let shown = style.name(&entry.name);
    match entry.type_ {
        EntryType::Directory => style.paint(Paint::Bold, &format!("{shown}/")),
        EntryType::Symlink => {
            let target = style.name(entry.link_target.as_deref().unwrap_or("?"));
            let what = match entry.target {
                Some(LinkTarget::File) | None => "",
                Some(LinkTarget::Directory) => "/",
                Some(LinkTarget::Fifo) => " (fifo)",
                Some(LinkTarget::Socket) => " (socket)",
                Some(LinkTarget::BlockDevice) => " (block device)",
                Some(LinkTarget::CharDevice) => " (character device)",
                Some(LinkTarget::Missing) => " (missing)",
                Some(LinkTarget::Loop) => " (loop)",
                Some(LinkTarget::Outside) => " (outside)",
                Some(LinkTarget::Unreadable) => " (unreadable)",
            };
            let slash = what == "/" && target.ends_with('/');
            format!("{} -> {target}{}", style.paint(Paint::Path, &shown), if slash { "" } else { what })
        }
        _ => shown,
    }
}

fn letter(type_: EntryType) -> char {
    match type_ {
        EntryType::File => '-',
        EntryType::Directory => 'd',
        EntryType::Symlink => 'l',
        EntryType::Fifo => 'p',
        EntryType::Socket => 's',
        EntryType::BlockDevice => 'b',
        EntryType::CharDevice => 'c',
    }
}

/// `rwxr-xr-x` for `"0755"`; the text itself where it is no mode.
fn mode(octal: &str) -> String {
    let Ok(bits) = u32::from_str_radix(octal, 8) else { return octal.to_owned() };
    let mut text: Vec<char> =
        (0..9).rev().map(|bit| if bits >> bit & 1 == 1 { ['x', 'w', 'r'][bit % 3] } else { '-' }).collect();
    for (bit, at, with_x, without) in [(11, 2, 's', 'S'), (10, 5, 's', 'S'), (9, 8, 't', 'T')] {
        if bits >> bit & 1 == 1 {
            text[at] = if text[at] == 'x' { with_x } else { without };
        }
    }
    text.into_iter().collect()
}

/// The time of the last change, in UTC: the host's zone is not known here.
fn time(entry: &ListEntry) -> String {
    let seconds = entry.last_modified_epoch_millis.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of a day counted from 1970-01-01 (Howard Hinnant's `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, type_: EntryType, size: u64) -> ListEntry {
        ListEntry {
            name: name.into(),
            name_base64: None,
            type_,
            size_bytes: size,
            last_modified_epoch_millis: 1_735_689_599_999,
            mode: "0755".into(),
            link_target: None,
            link_target_base64: None,
            target: None,
        }
    }

    #[test]
    fn columns_are_aligned() {
        let link = |name: &str, to: &str, target| ListEntry {
            link_target: Some(to.into()),
            target: Some(target),
            ..entry(name, EntryType::Symlink, 3)
        };
        let response = ListDirectoryResponse {
            path: "/".into(),
            path_base64: None,
            entries: vec![
                entry("a", EntryType::File, 12_345),
                entry("d", EntryType::Directory, 40),
                link("l", "gone", LinkTarget::Missing),
                link("m", "d", LinkTarget::Directory),
                link("n", "d/", LinkTarget::Directory),
            ],
            total: 5,
            truncation: None,
        };
        let expected = "\
-rwxr-xr-x  12345  2024-12-31 23:59:59Z  a
drwxr-xr-x     40  2024-12-31 23:59:59Z  d/
lrwxr-xr-x      3  2024-12-31 23:59:59Z  l -> gone (missing)
lrwxr-xr-x      3  2024-12-31 23:59:59Z  m -> d/
lrwxr-xr-x      3  2024-12-31 23:59:59Z  n -> d/
";
        assert_eq!(list(&response, Style::default()), expected);
    }

    #[test]
    fn modes_are_written_as_ls_does() {
        let table = [
            ("0644", "rw-r--r--"),
            ("0000", "---------"),
            ("4755", "rwsr-xr-x"),
            ("2644", "rw-r-Sr--"),
            ("1777", "rwxrwxrwt"),
            ("odd", "odd"),
        ];
        for (octal, text) in table {
            assert_eq!(mode(octal), text);
        }
    }

    #[test]
    fn days_become_dates() {
        let table = [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (19_782, (2024, 2, 29)),
            (-25_509, (1900, 2, 28)),
            (47_540, (2100, 2, 28)),
        ];
        for (days, expected) in table {
            assert_eq!(date(days), expected, "{days}");
        }
    }
}
