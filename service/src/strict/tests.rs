//! Where a fault points, and that what is right is taken.

use super::*;
use filectx_openapi::{EditFileRequest, FindTextRequest, ReadFileContextRequest, WriteFileRequest};

fn pointer<T: for<'de> Deserialize<'de>>(body: &str) -> Option<String> {
    let fault = from_slice::<T>(body.as_bytes()).err().unwrap_or_else(|| panic!("{body} was taken"));
    assert!(!fault.message.is_empty());
    fault.pointer
}

#[test]
fn a_fault_points_to_its_field() {
    let cases = [
        ("{}", "/files"),
        ("[]", ""),
        ("7", ""),
        (r#"[[{"path":"a"}]]"#, ""),
        (r#"{"files":"x"}"#, "/files"),
        (r#"{"files":null}"#, "/files"),
        (r#"{"files":["/a"]}"#, "/files/0"),
        (r#"{"files":[["/a"]]}"#, "/files/0"),
        (r#"{"files":[{"path":"a"},{"path":7}]}"#, "/files/1/path"),
        (r#"{"files":[{"path":"a","lines":[1,2]}]}"#, "/files/0/lines"),
        (r#"{"files":[{"path":"a","path":"b"}]}"#, "/files/0/path"),
        (r#"{"files":[],"max_bytes":5}"#, "/max_bytes"),
        (r#"{"files":[],"a/b~c":5}"#, "/a~1b~0c"),
        (r#"{"files":[],"files":[]}"#, "/files"),
        (r#"{"files":[],"":1}"#, "/"),
        (r#"{"files":[{"line_ranges":[{"end":4}]}]}"#, "/files/0/line_ranges/0/start"),
        (r#"{"files":[{"line_ranges":[[1,4]]}]}"#, "/files/0/line_ranges/0"),
        (r#"{"files":[{"line_ranges":[{"start":1.5}]}]}"#, "/files/0/line_ranges/0/start"),
        (
            r#"{"files":[{"line_ranges":[{"start":99999999999999999999999}]}]}"#,
            "/files/0/line_ranges/0/start",
        ),
        (r#"{"files":[{"byte_range":[0,1]}]}"#, "/files/0/byte_range"),
        (r#"{"files":[{"byte_range":{"offset":-1}}]}"#, "/files/0/byte_range/offset"),
        (r#"{"files":[],"max_file_bytes":-1}"#, "/max_file_bytes"),
        (r#"{"files":[],"max_file_bytes":"1"}"#, "/max_file_bytes"),
        (r#"{"files":[{"as":"hex"}]}"#, "/files/0/as"),
        (r#"{"files":[{"as":7}]}"#, "/files/0/as"),
        (r#"{"files":[{"as":{"text":1}}]}"#, "/files/0/as"),
        (r#"{"files":[],"image":{"max_side":true}}"#, "/image/max_side"),
        (r#"{"files":[],"count_lines":1}"#, "/count_lines"),
    ];
    for (body, expected) in cases {
        assert_eq!(pointer::<ReadFileContextRequest>(body).as_deref(), Some(expected), "{body}");
    }
    assert_eq!(
        pointer::<EditFileRequest>(r#"{"edits":[{"old_text":"x"}]}"#).as_deref(),
        Some("/edits/0/new_text")
    );
    assert_eq!(pointer::<FindTextRequest>(r#"{"paths":["a",1],"pattern":""}"#).as_deref(), Some("/paths/1"));
    assert_eq!(pointer::<WriteFileRequest>(r#"{"binary_content":"?"}"#).as_deref(), Some("/binary_content"));
}

#[test]
fn what_is_not_json_has_no_pointer() {
    let deep = "[".repeat(200_000);
    for body in ["", "{", r#"{"files": ["#, r#"{"files":[]} x"#, r#"{"files":[],}"#, "nul", deep.as_str()] {
        assert_eq!(pointer::<ReadFileContextRequest>(body), None, "{}", &body[..body.len().min(20)]);
    }
    let bodies: [&[u8]; 2] = [b"{\"files\":[{\"path\":\"\xff\"}]}", b"\xff"];
    for body in bodies {
        assert_eq!(from_slice::<ReadFileContextRequest>(body).unwrap_err().pointer, None);
    }
    let half = pointer::<ReadFileContextRequest>(r#"{"files":[{"path":"\ud83d"}]}"#);
    assert_eq!(half.as_deref(), Some("/files/0/path"), "half a surrogate pair");
}

#[test]
fn a_good_body_is_taken_as_serde_takes_it() {
    let body = r#" {"files":[{"path":"é\n","line_ranges":[{"start":1,"end":null},{"start":2,"end":3}],"as":"text"}],
        "cwd":null,"count_lines":true,"image":{"max_side":5},"binary":"summary"} "#;
    let strict: ReadFileContextRequest = from_slice(body.as_bytes()).unwrap();
    let plain: ReadFileContextRequest = serde_json::from_str(body).unwrap();
    assert_eq!(serde_json::to_string(&strict).unwrap(), serde_json::to_string(&plain).unwrap());
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
    let body = r#"{"files":[{"path":"a","line_ranges":[{"start":1.0,"end":2e1}]}],"max_file_bytes":18446744073709551615}"#;
    let request: ReadFileContextRequest = from_slice(body.as_bytes()).unwrap();
    let range = request.files[0].line_ranges[0];
    assert_eq!((range.start, range.end, request.max_file_bytes), (1, Some(20), Some(u64::MAX)));
    for bad in ["1.5", "-1.0", "18446744073709551616.0", "1e300"] {
        let body = format!(r#"{{"files":[],"max_file_bytes":{bad}}}"#);
        assert_eq!(pointer::<ReadFileContextRequest>(&body).as_deref(), Some("/max_file_bytes"), "{bad}");
    }
}
