//! Quotes an argument for a POSIX shell, so that a command that is printed can be pasted.

/// The argument as a shell takes it.
pub(crate) fn quoted(argument: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:,=+@%^".contains(byte);
    if !argument.is_empty() && argument.iter().all(plain) {
        return String::from_utf8_lossy(argument).into_owned();
    }
    match std::str::from_utf8(argument) {
        Ok(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        // `$'...'` can hold any byte; bash, zsh, ksh and POSIX 2024 know it.
        _ => format!("$'{}'", argument.iter().map(|byte| escaped(*byte)).collect::<String>()),
    }
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        // Octal has at most three digits: a digit behind it is not taken for a part of it.
        _ => format!("\\{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gives_back_what_was_quoted() {
        let table: [(&[u8], &str); 8] = [
            (b"src/main.rs:1-5", "src/main.rs:1-5"),
            (b"", "''"),
            (b"a b", "'a b'"),
            (b"it's", r"'it'\''s'"),
            (b"$HOME", "'$HOME'"),
            ("gr\u{fc}n".as_bytes(), "'gr\u{fc}n'"),
            (b"a\n1", "$'a\\0121'"),
            (b"\xff'", "$'\\377\\''"),
        ];
        for (argument, expected) in table {
            assert_eq!(quoted(argument), expected);
            let printf =
                std::process::Command::new("bash").arg("-c").arg(format!("printf %s {expected}")).output();
            // Only where the shell is there; the table holds without it.
            if let Ok(output) = printf {
                assert_eq!(output.stdout, argument, "{expected}");
            }
        }
    }
}
