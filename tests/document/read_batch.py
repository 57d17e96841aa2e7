# A client that openapi-python-client made of the document reads a batch of a text, a binary and a missing file.
#   read_batch.py URL TOKEN_FILE DIRECTORY     the client, `filectx_client`, is on PYTHONPATH; the service may read there
import base64
import pathlib
import sys
import tempfile

from filectx_client import AuthenticatedClient
from filectx_client.api.files import read_file_context
from filectx_client.models import (
    Code,
    FailedFile,
    FileContext,
    FileRequest,
    LineEnding,
    LineRange,
    Problem,
    ReadFileContextRequest,
    ReadFileContextResponse,
)
from filectx_client.types import UNSET

url, token_file, directory = sys.argv[1:]
token = pathlib.Path(token_file).read_text().strip()
binary = bytes(range(256)) * 4
with tempfile.TemporaryDirectory(dir=directory) as place:
    text = pathlib.Path(place, "text.txt")
    text.write_text("one\ntwo\nthree\n")
    pathlib.Path(place, "binary").write_bytes(binary)
    request = ReadFileContextRequest(
        cwd=place,
        files=[
            FileRequest(path="text.txt", line_ranges=[LineRange(start=2, end=3)]),
            FileRequest(path="binary"),
            FileRequest(path="missing"),
        ],
    )
    client = AuthenticatedClient(base_url=url, token=token)
    answer = read_file_context.sync(client=client, body=request)
    refused = read_file_context.sync(client=AuthenticatedClient(base_url=url, token="0" * 64), body=request)

assert isinstance(answer, ReadFileContextResponse), answer
lines, content = answer.file_contexts
(failed,) = answer.failed_files
assert isinstance(lines, FileContext) and isinstance(content, FileContext) and isinstance(failed, FailedFile)

assert lines.request_index == 0 and lines.file_name == str(text)
assert lines.text_content == "two\nthree\n" and (lines.line_range_start, lines.line_range_end) == (2, 3)
assert lines.line_ending is LineEnding.LF and lines.line_count == 3 and lines.binary_content is UNSET

assert content.request_index == 1 and content.file_size_bytes == len(binary)
assert base64.b64decode(content.binary_content) == binary and content.text_content is UNSET

assert failed.request_index == 2 and failed.error.code is Code.NOT_FOUND and failed.error.message

assert isinstance(refused, Problem) and refused.code is Code.UNAUTHORIZED and refused.status == 401
print("the generated client reads what there is, and is told what failed")
