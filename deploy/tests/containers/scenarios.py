# What must be true between an agent and its hosts, one function a story, told in order. How machines are made, cut off and
# restarted is world.py's.
#   scenarios.py ENGINE PROJECT RELEASE
import base64
import hashlib
import io
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from PIL import Image

from world import World, caught_at, until

FILES = "/home/dev/files"
LINES = [f"line {n} of a text that goes on for long\n" for n in range(1, 10_001)]
BINARY = bytes(range(256)) * 16
BIG = "count: 1\n" + "and so on, for forty million bytes.\n" * 1_150_000
PORT_OF_STATE = "sed -n 's|.*\"url\":\"http://127.0.0.1:\\([0-9]*\\)\".*|\\1|p' /tmp/filectx-1000/ssh-*"


def prepare(world):
    photo = Image.effect_noise((400, 300), 80).convert("RGB").resize((4000, 3000))
    jpeg = io.BytesIO()
    photo.save(jpeg, "JPEG", quality=90)
    for host in world.hosts:
        host.put(f"{FILES}/text.txt", "".join(LINES).encode())
        host.put(f"{FILES}/bytes.bin", BINARY)
        host.put(f"{FILES}/photo.jpg", jpeg.getvalue())
        host.put(f"{FILES}/secret.txt", b"for root alone\n", owner="root", mode="600")
        host.put(f"{FILES}/big.txt", BIG.encode())
        host.put(f"{FILES}/text2.txt", b"needle")
        host.run(f"mkfifo {FILES}/pipe; chown dev {FILES} {FILES}/pipe")
        host.run(f"mkdir {FILES}/many; cd {FILES}/many; i=0; while [ $i -lt 200 ]; do echo file $i >$i; i=$((i+1)); done")


def nothing_is_published_and_no_image_holds_a_key(world):
    for machine in (world.agent, *world.hosts):
        assert world.call("port", machine.id) == b"", machine.name
    for image in ("host", "agent"):
        keys = world.call("run", "--rm", "--network", "none", "--entrypoint", "find", f"localhost/filectx-{image}",
                          "/etc/ssh", "/keys", "/home", "-name", "*key*", "-type", "f")
        assert keys == b"", keys


def first_contact_installs(world):
    program = next(pathlib.Path(world.release).glob("filectxd-linux-" + os.uname().machine))
    name = "filectxd-0.1.0-" + hashlib.sha256(program.read_bytes()).hexdigest()[:12]
    for host, flags, place in [
        (world.minimal, [], "/home/dev/.local/share/filectx"),
        (world.host_a, ["--remote-dir", "~/fresh"], "/home/dev/fresh"),
        (world.host_b, ["--remote-dir", "~/fresh"], "/home/dev/fresh"),
    ]:
        assert host.run(f"ls -A {place} 2>/dev/null || true") == b"", "nothing is there before"
        out = world.filectx("--host", host.name, *flags, "--idle-timeout", "2", "read", f"{FILES}/text.txt:7").printed()
        assert b"line 7 of a text" in out, out
        assert host.run(f"ls -A {place}").decode().split() == [name]
        until(lambda: host.processes("filectxd") == [], f"{host.name}: the service ends by itself when idle", seconds=30)


def what_the_image_has_is_not_brought_again(world):
    for host in (world.host_a, world.host_b):
        world.filectx("--host", host.name, "read", f"{FILES}/text.txt:7").printed()
        place = "/home/dev/.local/share/filectx"
        assert host.run(f"find {place} -type f") == b"", "nothing but the image's link is there"


def a_batch_holds_all_kinds(world):
    for host in world.hosts:
        names = ["text.txt:10-12,9999-", "bytes.bin", "photo.jpg", "missing.txt", "secret.txt", "pipe"]
        ended = world.filectx("--host", host.name, "read", "--json", *(f"{FILES}/{name}" for name in names))
        assert ended.status == 1, ended
        answer = ended.json()
        first, last, binary, photo = answer["file_contexts"]
        assert first["text_content"] == "".join(LINES[9:12]) and first["line_range_start"] == 10
        assert last["text_content"] == "".join(LINES[9998:]) and last["line_count"] == len(LINES)
        assert base64.b64decode(binary["binary_content"]) == BINARY
        limits = world.filectx("--host", host.name, "info", "--json").json()["limits"]
        shown = base64.b64decode(photo["binary_content"])
        picture = Image.open(io.BytesIO(shown))
        picture.load()
        width, height = picture.size
        assert max(width, height) <= limits["image_max_side"] and width * height <= limits["image_max_pixels"]
        assert len(shown) <= limits["image_max_bytes"] and abs(width / height - 4 / 3) < 0.01
        assert (photo["image"]["source_width"], photo["image"]["width"]) == (4000, width), photo["image"]
        codes = [(failed["request_index"], failed["error"]["code"]) for failed in answer["failed_files"]]
        assert codes == [(3, "not_found"), (4, "permission_denied"), (5, "not_regular_file")], codes


def search_edit_and_write(world):
    for host in world.hosts:
        ask = lambda *args, **more: world.filectx("--host", host.name, *args, **more)
        assert ask("find", "needle", FILES).printed().decode() == f"{FILES}/text2.txt:1: needle\n"
        assert b"+found" in ask("edit", f"{FILES}/text2.txt", "--old", "needle", "--new", "found").printed()
        refused = ask("edit", f"{FILES}/text2.txt", "--old", "needle", "--new", "lost")
        assert refused.status == 1 and "no_match" in refused.err, refused
        assert host.get(f"{FILES}/text2.txt") == b"found"
        ask("write", f"{FILES}/new/deep.txt", stdin="größer\n".encode()).printed()
        assert host.get(f"{FILES}/new/deep.txt").decode() == "größer\n"
        assert host.run(f"stat -c %U:%a {FILES}/new/deep.txt") == b"dev:644\n"


def all_hosts_at_once(world):
    paths = [f"{FILES}/many/{n}" for n in range(200)]
    running = [(host, world.start("--host", host.name, "read", *paths)) for host in world.hosts]
    for host, command in running:
        out, err = command.communicate(timeout=60)
        assert command.returncode == 0 and out.count(b"file ") >= 200, (host.name, err)


def each_host_is_reached_as_it_allows(world):
    ways = {host["host"]: host["forward"] for host in world.filectx("hosts", "--json").json()["hosts"]}
    assert ways == {"host-a": "port", "host-b": "relay", "minimal": "port"}, ways


def another_user_of_the_host_gets_nothing(world):
    host = world.host_a
    host.run("id other >/dev/null 2>&1 || useradd other")
    port = host.run(PORT_OF_STATE).decode().split()[0]
    ask = lambda request: host.run(
        f"exec timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat >&3; cat <&3'", user="other", stdin=request.encode())
    body = f'{{"files":[{{"path":"{FILES}/text.txt"}}]}}'
    head = "HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
    for wrong in ("", "authorization: Bearer " + "0" * 64 + "\r\n"):
        answer = ask(f"POST /v1/read-file-context {head}{wrong}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}")
        assert answer.startswith(b"HTTP/1.1 401 ") and b'"code":"unauthorized"' in answer and b"line 1" not in answer, answer
    for what in ("cat /tmp/filectx-1000/*.token", "ls /tmp/filectx-1000"):
        said = host.run(f"{what} 2>&1 || echo refused", user="other")
        assert b"denied" in said and b"refused" in said, said


def a_restart_in_the_middle_of_a_read(world):
    host = world.host_a
    running, wanted = interrupted_read(world, host)
    host.restart()
    whole_or_nothing(running, wanted)
    assert b"line 7 of" in until_it_answers(world, host)


def a_restart_in_the_middle_of_an_edit(world):
    # Caught while it reads, and while the new content lies beside the file.
    edits = {host: interrupted_edit(world, host, f"{FILES}/{at}") for host, at in
             ((world.host_a, "big.txt"), (world.host_b, ".filectx-"))}
    for host in edits:
        host.restart()
    for host, edit in edits.items():
        is_unknown(edit)
        # The file tells: it is whole, and nothing was published after the restart.
        assert host.get(f"{FILES}/big.txt").decode() == BIG
        until_it_answers(world, host)
        assert host.run(f"ls -A {FILES} | grep '^[.]filectx-' || true") == b"", "the next service clears up"
        for old, new in ((1, 2), (2, 1)):
            ended = world.filectx("--host", host.name, "edit", f"{FILES}/big.txt", "--old", f"count: {old}", "--new", f"count: {new}")
            assert f"+count: {new}" in ended.printed().decode()
            assert counts(host) == [f"count: {new}"]


def a_short_cut_loses_nothing(world):
    host = world.host_a
    read, wanted = interrupted_read(world, host)
    host.link("down")
    os.kill(host.service(), signal.SIGCONT)
    time.sleep(3)  # So long is the cut.
    host.link("up")
    assert whole_or_nothing(read, wanted) == 0


def a_long_cut_in_the_middle_of_edits_and_a_read(world):
    # Host A comes back when the agent's ssh has given it up, the others only when all has ended.
    back, away = world.host_a, world.minimal
    edits = {host: interrupted_edit(world, host, f"{FILES}/.filectx-") for host in (back, away)}
    read, wanted = interrupted_read(world, world.host_b)
    silent = {way for host in world.hosts for way in world.ways_to(host)}
    for host in world.hosts:
        host.link("down")
        os.kill(host.service(), signal.SIGCONT)
    try:
        until(lambda: not silent & set(world.agent.processes("ssh")), "ssh gives up what is silent")
        back.link("up")
        # Over a new way, the service that went on is asked what became of it.
        out, err = edits[back].communicate(timeout=180)
        assert edits[back].returncode == 0 and b"+count: 2" in out, (out, err)
        is_unknown(edits[away])
        assert whole_or_nothing(read, wanted) == 2, "the host is away"
        refused = world.filectx("--host", away.name, "read", f"{FILES}/text.txt:7")
        assert refused.status == 2 and refused.out == b"" and f"{away.name}: connect" in refused.err, refused
    finally:
        for host in world.hosts:
            host.link("up")
    # The file tells: the service had all it needed, and did it once.
    for host in edits:
        assert b"line 7 of" in until_it_answers(world, host)
        assert counts(host) == ["count: 2"]
    assert b"line 7 of" in until_it_answers(world, world.host_b)


def the_service_alone_in_a_root_that_is_read_only(world):
    with tempfile.TemporaryDirectory() as run:
        os.chmod(run, 0o711)
        name = f"{world.project}-alone"
        files = pathlib.Path(run, "files")
        files.mkdir()
        (files / "a.txt").write_text("one\ntwo\n")
        own = pathlib.Path(run, "run")
        own.mkdir(mode=0o700)
        os.chown(own, 65532, 65532)
        begun = time.monotonic()
        world.call("run", "--detach", "--name", name, "--read-only", "--network", "none", "--cap-drop", "ALL",
                   "--volume", f"{files}:/files:ro", "--volume", f"{own}:/run/filectx", "localhost/filectx-scratch")
        until((own / "filectxd.sock").exists, "it listens")
        print(f"  container to socket: {(time.monotonic() - begun) * 1000:.0f} ms")
        check = json.loads(world.call("inspect", "--format", "{{json .Config.Healthcheck.Test}}", name))
        assert check == ["CMD", "/filectxd", "healthcheck"], check
        world.call("exec", name, *check[1:])
        flags = ["--socket", str(own / "filectxd.sock"), "--token-file", str(own / "token")]
        # As its own user: nobody else's connection is taken, and nobody else reads the token.
        command = [f"{world.release}/filectx", *flags, "read", "/files/a.txt", "/etc/passwd"]
        done = subprocess.run(command, capture_output=True, user=65532, group=65532, cwd="/", env={"HOME": "/"})
        assert done.returncode == 1 and b"two" in done.stdout and b"outside_roots" in done.stderr, done
        state = world.call("inspect", "--format", "{{.Config.User}} {{.HostConfig.ReadonlyRootfs}}", name)
        assert state == b"65532:65532 true\n", state


def the_service_starts_at_once(world):
    program = next(pathlib.Path(world.release).glob("filectxd-linux-" + os.uname().machine))
    times = []
    with tempfile.TemporaryDirectory() as run:
        for _ in range(20):
            begun = time.monotonic()
            service = subprocess.Popen([program, "--ready-json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       env={"XDG_RUNTIME_DIR": run})
            assert b'"url"' in service.stdout.readline()
            times.append((time.monotonic() - begun) * 1000)
            service.terminate()
            service.communicate(timeout=10)
    print(f"  program to ready line: median {statistics.median(times):.1f} ms of {len(times)}, {min(times):.1f} to {max(times):.1f}")


def interrupted_read(world, host):
    """A read of the big file, whose service is stopped in the middle of it."""
    wanted = host.get(f"{FILES}/big.txt").decode()
    read = ["read", "--json", "--max-file-bytes", "60000000", f"{FILES}/big.txt"]
    return interrupted(world, host, read, f"{FILES}/big.txt", lambda: None), wanted


def interrupted_edit(world, host, at):
    """An edit of the big file, whose service is stopped as soon as it has `at` open."""
    edit = lambda old, new: ["edit", f"{FILES}/big.txt", "--old", f"count: {old}", "--new", f"count: {new}"]
    return interrupted(world, host, edit(1, 2), at, lambda: world.filectx("--host", host.name, *edit(2, 1)).printed())


def interrupted(world, host, command, at, undo):
    """A command whose service is stopped in the middle of it; one that was too quick for that is undone and begun anew."""
    until_it_answers(world, host)
    service = host.service()
    for _ in range(20):
        running = world.start("--host", host.name, *command)
        if caught_at(running, service, at):
            return running
        assert running.communicate() and running.returncode == 0, f"{command} on {host.name}: {running.returncode}"
        undo()
    raise AssertionError(f"{command} was never caught at {at}")


def whole_or_nothing(running, wanted):
    """A read that was disturbed gives all, or says why not; never a part."""
    out, err = running.communicate(timeout=180)
    if running.returncode == 0:
        [file] = json.loads(out)["file_contexts"]
        assert file["text_content"] == wanted
    else:
        assert running.returncode == 2 and out == b"" and err != b"", (out[:1000], err)
    return running.returncode


def is_unknown(edit):
    """An edit that was sent, and whose answer did not come."""
    out, err = edit.communicate(timeout=180)
    assert edit.returncode == 2 and b"outcome_unknown" in err and out == b"", (out, err)


def counts(host):
    """The lines of the big file that edits change."""
    return host.run(f"grep ^count: {FILES}/big.txt").decode().splitlines()


def until_it_answers(world, host):
    ended = []
    def answers():
        ended[:] = [world.filectx("--host", host.name, "read", f"{FILES}/text.txt:7")]
        return ended[0].status == 0
    until(answers, f"{host.name} answers", pause=0.2)
    return ended[0].out


STORIES = [
    nothing_is_published_and_no_image_holds_a_key,
    first_contact_installs,
    what_the_image_has_is_not_brought_again,
    a_batch_holds_all_kinds,
    search_edit_and_write,
    all_hosts_at_once,
    each_host_is_reached_as_it_allows,
    another_user_of_the_host_gets_nothing,
    a_restart_in_the_middle_of_a_read,
    a_restart_in_the_middle_of_an_edit,
    a_short_cut_loses_nothing,
    a_long_cut_in_the_middle_of_edits_and_a_read,
    the_service_alone_in_a_root_that_is_read_only,
    the_service_starts_at_once,
]


def main():
    engine, project, release = sys.argv[1:]
    world = World(engine, project)
    world.release = release
    prepare(world)
    for story in STORIES:
        begun = time.monotonic()
        story(world)
        print(f"  {story.__name__.replace('_', ' ')}: {time.monotonic() - begun:.1f} s", flush=True)


main()
