# Hooks of schemathesis: half of what is sent and should be taken leads to files that are there, so that answers are
# looked at, and not refusals alone. The choice hangs on the body, so a run can be had again.
import hashlib
import itertools
import json
import os

import schemathesis
from schemathesis.generation import GenerationMode

ROOT = os.environ["DOCUMENT_ROOT"]
NAMES = ["text.txt", "crlf.txt", "binary", "picture.ppm", "link", "directory", "missing", "new/file"]
KEYS = itertools.count()


@schemathesis.hook
def map_case(context, case):
    body = case.body
    if not isinstance(body, dict) or case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return case
    # Opaque: only an answer makes one, and no schema says which.
    body.pop("after", None)
    choice = int(hashlib.sha256(json.dumps(body, default=str).encode()).hexdigest(), 16)
    if choice % 2:
        lead(body, choice // 2)
    # The parts of a form come in this order, which no schema says; and within a part schemathesis forgets rules that hold of
    # several fields.
    if "request" in body and "content" in body:
        body["content"] = body.pop("content")
        request = body["request"]
        if sum(isinstance(request.get(name), str) for name in ("path", "path_base64")) != 1:
            request["path"] = NAMES[choice % len(NAMES)]
            request.pop("path_base64", None)
        if request.get("create_only"):
            request.pop("expected_revision", None)
    # Each with a key of its own: under one key another body is refused.
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"key-{next(KEYS)}"
    return case


def lead(body, choice):
    request = body.get("request", body)
    request["cwd"] = ROOT
    files = request.get("files", [request])
    for place, file in enumerate(files):
        if file.keys() & {"path", "path_base64"}:
            file.pop("path_base64", None)
            file["path"] = NAMES[(choice + place) % len(NAMES)]
    if "pattern" in request:
        request["paths"] = ["."]
    if "edits" in request and choice % 3:
        request["edits"][0]["old_text"] = "two"
    if choice % 4:
        request.pop("expected_revision", None)
