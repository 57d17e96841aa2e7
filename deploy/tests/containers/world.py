# The machines of the container tests as objects: what runs in them, and what can happen to them. What is expected of
# filectx stands in scenarios.py.
import json
import os
import pathlib
import signal
import subprocess
import time


class World:
    """All machines of a compose project."""

    def __init__(self, engine, project):
        self.engine = engine
        self.project = project
        self.agent = Machine(self, "agent")
        self.hosts = [Machine(self, name) for name in ("host-a", "host-b", "minimal")]
        self.host_a, self.host_b, self.minimal = self.hosts

    def call(self, *args, **more):
        """Runs the container engine to its end and gives what it printed."""
        done = subprocess.run([self.engine, *args], capture_output=True, timeout=120, **more)
        assert done.returncode == 0, f"{args}: {done.stderr.decode()}"
        return done.stdout

    def filectx(self, *args, stdin=b""):
        """Runs filectx on the agent's machine to its end."""
        running = self.start(*args)
        out, err = running.communicate(stdin, timeout=180)
        return Ended(running.returncode, out, err)

    def start(self, *args):
        """Starts filectx on the agent's machine."""
        command = [self.engine, "exec", "-i", self.agent.id, "filectx", *args]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


    def ways_to(self, host):
        """The ssh processes of the agent that keep a connection to the host."""
        return [pid for pid in self.agent.processes("ssh") if host.name.encode() in arguments(pid)]


class Ended:
    """A command that came to its end."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err.decode()

    def __repr__(self):
        return f"status {self.status}\n{self.out[-2000:]}\n{self.err}"

    def printed(self):
        assert self.status == 0, self
        return self.out

    def json(self):
        assert self.out, self
        return json.loads(self.out)


class Machine:
    """One container."""

    def __init__(self, world, service):
        self.world, self.name = world, service
        found = world.call("ps", "--quiet", "--filter", f"label=com.docker.compose.project={world.project}",
                           "--filter", f"label=com.docker.compose.service={service}")
        self.id = found.decode().strip()
        assert self.id, f"{service} does not run"

    def run(self, script, user="root", stdin=b""):
        """Runs a shell script in it, and gives what that printed."""
        return self.world.call("exec", "-i", "--user", user, self.id, "sh", "-euc", script, input=stdin)

    def put(self, path, content, owner="dev", mode="644"):
        self.run(f"mkdir -p {os.path.dirname(path)}; cat >{path}; chown {owner} {path}; chmod {mode} {path}", stdin=content)

    def get(self, path):
        return self.run(f"cat {path}")

    def pid(self):
        return int(self.world.call("inspect", "--format", "{{.State.Pid}}", self.id))

    def processes(self, name):
        """The processes in it whose name begins so, as this machine numbers them."""
        own = os.readlink(f"/proc/{self.pid()}/ns/pid")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "comm").read_text().startswith(name) \
                        and os.readlink(entry / "ns/pid") == own:
                    found.append(int(entry.name))
            except OSError:
                pass  # It ended meanwhile.
        return found

    def service(self):
        """The one filectxd that serves in it: others may be relays."""
        found = [pid for pid in self.processes("filectxd") if b"--listen" in arguments(pid) and b"relay" not in arguments(pid)]
        assert len(found) == 1, f"{self.name}: {found}"
        return found[0]

    def restart(self):
        self.world.call("restart", "--time", "0", self.id)

    def link(self, state):
        """Cuts it off from the network, or lets it in again."""
        done = subprocess.run(["nsenter", "-t", str(self.pid()), "-n", "ip", "link", "set", "eth0", state])
        assert done.returncode == 0


def arguments(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def caught_at(running, pid, path):
    """Stops the process `pid`, which `running` asks, as soon as it has a file open whose path begins so. False: it was quicker."""
    caught = []
    def ended_or_caught():
        for fd in os.scandir(f"/proc/{pid}/fd"):
            try:
                if os.readlink(fd.path).startswith(path):
                    os.kill(pid, signal.SIGSTOP)
                    caught.append(fd)
                    return True
            except OSError:
                pass  # It was closed meanwhile.
        return running.poll() is not None
    until(ended_or_caught, f"{pid} opens {path}", pause=0)
    return caught != []


def until(condition, what, seconds=90, pause=0.02):
    """Waits for a condition, and fails where it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(pause)
