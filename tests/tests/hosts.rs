//! Hosts that stay connected, against real `sshd`s: ways that break, stand still or are not to be had, and many at once.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use filectx_client::hosts::{HostManager, HostState};
use filectx_client::session::{ServedBy, Session, SessionType, Tool, ToolUser};
use filectx_client::ssh::{self, HostOptions};
use filectx_client::{Error, Step};
use filectx_tests::line::Line;
use filectx_tests::programs::signal;
use filectx_tests::sessions::{editing, on_host, reading, run, text};
use filectx_tests::sshd::{self, Host};

/// Sends a signal to a server's sessions; one of them may have ended since they were listed.
fn tell(sessions: &[u32], signal: &str) {
    for pid in sessions {
        let mut kill = Command::new("kill");
        let _ = kill.arg(format!("-{signal}")).arg(pid.to_string()).stderr(Stdio::null()).status();
    }
}

/// Options under which what is silent is noticed within seconds.
fn quick(host: &Host) -> HostOptions {
    HostOptions { keep_alive: Duration::from_secs(1), patience: Duration::from_secs(10), ..host.options() }
}

#[test]
fn sessions_share_a_host_until_it_is_shut_down() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    let file = host.write("home/a.txt", "one\n");
    run(async {
        let manager = HostManager::new(host.place());
        let session = on_host(&manager);
        let error = session.read(&reading(&file)).await.expect_err("nobody is connected");
        assert!(matches!(error, Error::NotConnected { .. }), "{error}");
        assert!(session.supported_tools(ToolUser::Agent).await.is_empty());
        let (one, two) = tokio::join!(manager.connect(host.options()), manager.connect(host.options()));
        one.expect("connected");
        two.expect("connected");
        assert_eq!(host.services().len(), 1);
        let (request, other) = (reading(&file), on_host(&manager));
        let answers = tokio::join!(session.read(&request), other.read(&request));
        for answer in [answers.0, answers.1] {
            let answer = answer.expect("an answer");
            assert_eq!((text(&answer), &answer.served_by), ("one\n", &ServedBy::Host("host".into())));
        }
        let tools = session.supported_tools(ToolUser::Agent).await;
        assert_eq!(tools.len(), 7, "{tools:?}");
        let tools = session.supported_tools(ToolUser::CliAgent).await;
        assert_eq!(tools, [Tool::ReadFiles, Tool::ListDirectory, Tool::FindText, Tool::FindPaths]);
        let state = manager.watch("host").expect("it is known");
        assert!(matches!(&*state.borrow(), HostState::Connected(_)));
        manager.shutdown().await;
        assert!(matches!(&*state.borrow(), HostState::Ended(None)));
        assert!(manager.client_for_host("host").is_none());
    });
    wait_until("the connection has ended", || host.sessions().is_empty());
    assert_eq!(host.services().len(), 1, "the service may be others'");
    assert_eq!(std::fs::read_dir(host.path("agent")).expect("a directory").count(), 0, "nothing is left");
}

/// Waits for what another process does; it has 20 seconds.
#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn ways_that_break_are_made_anew_under_a_session() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    let line = Line::to(host.port, Duration::ZERO);
    host.reach_by(line.port);
    let file = host.write("home/a.txt", "one\n");
    run(async {
        let manager = HostManager::new(host.place());
        manager.connect(quick(&host)).await.expect("connected");
        let session = on_host(&manager);
        let mut state = manager.watch("host").expect("it is known");
        for breaking in ["cut", "service", "sessions"] {
            assert_eq!(text(&session.read(&reading(&file)).await.expect("an answer")), "one\n");
            match breaking {
                "cut" => line.cut(),
                "service" => signal(host.services()[0], "KILL"),
                _ => tell(&host.sessions(), "KILL"),
            }
            let mut answer = session.read(&reading(&file)).await;
            // The manager was quicker to notice: the host is not connected until the way is there again.
            if matches!(answer, Err(Error::NotConnected { .. })) {
                state.wait_for(|state| matches!(state, HostState::Connected(_))).await.expect("it is kept");
                answer = session.read(&reading(&file)).await;
            }
            assert_eq!(text(&answer.unwrap_or_else(|error| panic!("{breaking}: {error}"))), "one\n");
        }
        manager.shutdown().await;
    });
}

#[test]
fn a_line_that_stands_still_is_noticed_and_reads_recover() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    let file = host.write("home/a.txt", "one\n");
    run(async {
        let manager = HostManager::new(host.place());
        manager.connect(quick(&host)).await.expect("connected");
        let session = on_host(&manager);
        let mut state = manager.watch("host").expect("it is known");
        assert!(session.read(&reading(&file)).await.is_ok());
        // Half-open: both ends think that they are connected, and nothing comes.
        let stopped = host.sessions();
        tell(&stopped, "STOP");
        let started = Instant::now();
        let request = reading(&file);
        let (answer, noticed) = tokio::join!(session.read(&request), async {
            state.borrow_and_update();
            while matches!(&*state.borrow_and_update(), HostState::Connected(_)) {
                state.changed().await.expect("it is kept");
            }
            started.elapsed()
        });
        assert_eq!(text(&answer.expect("an answer")), "one\n");
        // Three looks of one second each, against 15 and two of ten with the defaults.
        assert!(noticed < Duration::from_secs(10), "{noticed:?}");
        tell(&stopped, "CONT");
        manager.shutdown().await;
    });
}

#[test]
fn an_edit_on_a_line_that_stands_still_happens_once_or_is_unknown() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    let file = host.write("home/a.txt", "x\n");
    run(async {
        let manager = HostManager::new(host.place());
        manager.connect(quick(&host)).await.expect("connected");
        let session = on_host(&manager);
        // An edit that finds its own result again would make it two.
        for round in 0..3 {
            let before = std::fs::read_to_string(&file).expect("a file").lines().count();
            let stopped = host.sessions();
            let edit = editing(&file, "x\n", "x\ny\n");
            if round != 1 {
                tell(&stopped, "STOP");
            }
            let (answer, ()) = tokio::join!(session.edit(&edit), async {
                if round == 1 {
                    tokio::task::yield_now().await;
                    tell(&stopped, "STOP");
                }
            });
            // What was on its way when all stood still arrives now, if it ever does.
            tell(&stopped, "CONT");
            wait_until("the old connection has ended", || {
                stopped.iter().all(|pid| !host.sessions().contains(pid)) || answer.is_ok()
            });
            let after = std::fs::read_to_string(&file).expect("a file").lines().count();
            match answer {
                Ok(_) => assert_eq!(after, before + 1, "round {round}"),
                Err(Error::OutcomeUnknown { .. }) => {
                    assert!(after == before || after == before + 1, "round {round}");
                }
                Err(error) => panic!("round {round}: {error}"),
            }
            manager.recovered("host").await.expect("it comes back");
        }
        manager.shutdown().await;
    });
}

#[test]
fn a_host_that_is_gone_is_tried_again_with_pauses() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    let line = Line::to(host.port, Duration::ZERO);
    host.reach_by(line.port);
    run(async {
        let manager = HostManager::new(host.place());
        manager.connect(quick(&host)).await.expect("connected");
        let mut state = manager.watch("host").expect("it is known");
        // Nobody listens where the host is said to be now.
        let nowhere =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|at| at.local_addr()).expect("a port");
        host.reach_by(nowhere.port());
        line.cut();
        let mut waits = 0;
        while waits < 2 {
            state.changed().await.expect("it is kept");
            if let HostState::Waiting(error, _) = &*state.borrow_and_update() {
                assert_eq!(error.step, Step::Connect, "{error}");
                waits += 1;
            }
        }
        assert!(manager.client_for_host("host").is_none());
        host.reach_by(line.port);
        manager.recovered("host").await.expect("it comes back");
        manager.shutdown().await;
    });
}

#[test]
fn a_host_that_lets_nobody_in_is_not_tried_again() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    std::fs::write(host.path("user_key.pub"), "").expect("a file");
    run(async {
        let manager = HostManager::new(host.place());
        let error = manager.connect(host.options()).await.expect_err("no key");
        assert_eq!(error.step, Step::Authenticate, "{error}");
        let state = manager.watch("host").expect("it is known");
        assert!(matches!(&*state.borrow(), HostState::Ended(Some(_))));
        manager.shutdown().await;
    });
}

#[test]
fn a_shell_that_hangs_is_given_up() {
    if !sshd::available() {
        return;
    }
    let host = Host::start("");
    host.write("home/.bashrc", "echo waiting for the moon\nsleep 1000\n");
    run(async {
        let options = HostOptions { patience: Duration::from_secs(2), ..host.options() };
        let place = host.place();
        let error = ssh::connect(&place, &options, &|_| {}).await.expect_err("it hangs");
        assert_eq!(error.step, Step::Probe, "{error}");
        assert!(error.said.contains("waiting for the moon") && error.detail.contains("2 s"), "{error}");
        let _ = ssh::disconnect(&place, &options).await;
    });
}

#[test]
fn twenty_hosts_are_read_side_by_side() {
    const HOSTS: usize = 20;
    if !sshd::available() {
        return;
    }
    let hosts: Vec<Host> = (0..HOSTS).map(|_| Host::start("")).collect();
    let files: Vec<_> =
        hosts.iter().enumerate().map(|(i, host)| host.write("home/a.txt", &format!("host {i}\n"))).collect();
    // One manager: each host under a name of its own, in the ssh of the first.
    let config: String = hosts
        .iter()
        .enumerate()
        .map(|(i, host)| {
            let own = std::fs::read_to_string(host.path("ssh_config")).expect("a file");
            own.replacen("Host host", &format!("Host host{i}"), 1)
        })
        .collect();
    hosts[0].write("ssh_config", &config);
    run(async {
        let manager = HostManager::new(hosts[0].place());
        let mut connecting = tokio::task::JoinSet::new();
        for i in 0..HOSTS {
            let options = HostOptions {
                destination: format!("host{i}"),
                patience: Duration::from_secs(120),
                ..hosts[0].options()
            };
            let manager = manager.clone();
            connecting.spawn(async move { manager.connect(options).await });
        }
        while let Some(connected) = connecting.join_next().await {
            connected.expect("no panic").unwrap_or_else(|error| panic!("{error}"));
        }
        let mut reads = tokio::task::JoinSet::new();
        for (i, file) in files.iter().enumerate() {
            let kind = SessionType::Remote { host_id: Some(format!("host{i}")) };
            let session = Session::new(kind, Arc::new(manager.clone()), None);
            let request = reading(file);
            reads.spawn(async move { (i, session.read(&request).await) });
        }
        while let Some(read) = reads.join_next().await {
            let (i, answer) = read.expect("no panic");
            assert_eq!(text(&answer.expect("an answer")), format!("host {i}\n"));
        }
        assert!(hosts.iter().all(|host| host.services().len() == 1), "each has its own");
        manager.shutdown().await;
    });
}
