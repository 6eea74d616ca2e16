//! A whole Slurm on this machine for the length of a test: munge, MariaDB, slurmdbd, slurmctld and slurmd, all their state in one
//! temporary folder, their ports free ones of loopback. Dropping it ends all of it.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 7] = [
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "slurmdbd",
    "slurmctld",
    "slurmd",
    "sacctmgr",
];
/// For one daemon to come up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Two nodes on one machine, a daemon each.
pub const NODES: [&str; 2] = ["first", "second"];

pub struct Cluster {
    pub folder: tempfile::TempDir,
    daemons: Vec<Child>,
    nodes: Vec<&'static str>,
    /// More lines of slurm.conf.
    more: String,
}

/// The cluster, or why there can be none here.
pub fn start() -> Result<Cluster, String> {
    start_with(&NODES, |_| String::new())
}

/// The same with other nodes, and with more lines of slurm.conf for the cluster's folder.
pub fn start_with(nodes: &[&'static str], more: impl Fn(&Path) -> String) -> Result<Cluster, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let exists = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !exists(program)).collect();
    if !missing.is_empty() {
        return Err(format!(
            "not installed: {}; apt-get install slurm-wlm slurmdbd mariadb-server munge",
            missing.join(", ")
        ));
    }
    // SAFETY: geteuid only reads a number.
    if unsafe { libc::geteuid() } != 0 {
        return Err("its daemons need root".into());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut cluster = Cluster {
        more: more(folder.path()),
        folder,
        daemons: Vec::new(),
        nodes: nodes.to_vec(),
    };
    match cluster.bring_up() {
        Ok(()) => Ok(cluster),
        Err(reason) => Err(format!("{reason}\n{}", cluster.logs())),
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its number").port()
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !is_there() {
        if Instant::now() > deadline {
            return Err(format!("{what} did not come up"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

impl Cluster {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn conf(&self) -> std::path::PathBuf {
        self.path().join("slurm.conf")
    }

    fn bring_up(&mut self) -> Result<(), String> {
        let folder = self.path().display().to_string();
        // Jobs and daemons of other users must be able to look inside.
        let _ = fs::set_permissions(self.path(), fs::Permissions::from_mode(0o755));
        let spools = self.nodes.iter().map(|node| format!("spool/{node}"));
        for name in ["db", "state", "spool"]
            .map(str::to_owned)
            .into_iter()
            .chain(spools)
        {
            fs::create_dir(self.path().join(name)).map_err(|error| error.to_string())?;
        }
        let (controller, database) = (free_port(), free_port());
        self.configure(controller, database);
        self.munge(&folder)?;
        self.database(&folder)?;
        self.spawn("slurmdbd", &["-D"])?;
        wait_for("slurmdbd", || TcpStream::connect(("127.0.0.1", database)).is_ok())?;
        self.tool("sacctmgr", &["-i", "add", "cluster", "throwaway"])?;
        self.spawn("slurmctld", &["-c", "-D"])?;
        wait_for("slurmctld", || {
            TcpStream::connect(("127.0.0.1", controller)).is_ok()
        })?;
        for node in self.nodes.clone() {
            self.spawn("slurmd", &["-D", "-N", node])?;
        }
        wait_for("slurmd", || {
            self.tool("sinfo", &["-h", "-o", "%t"])
                .is_ok_and(|state| state.trim() == "idle")
        })
    }

    fn configure(&self, controller: u16, database: u16) {
        let (folder, host) = (self.path().display(), host());
        let nodes: String = self
            .nodes
            .iter()
            .map(|node| {
                let port = free_port();
                format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=2000 Gres=gpu:2 State=UNKNOWN\n")
            })
            .collect();
        let more = &self.more;
        // A job that lost its node waits for its credential to expire: two minutes by default.
        let write =
            |name: &str, text: String| fs::write(self.path().join(name), text).expect("the configuration");
        write(
            "slurmdbd.conf",
            format!(
                "AuthType=auth/munge\nAuthInfo=socket={folder}/munge.sock\nDbdHost=localhost\nDbdPort={database}\nSlurmUser=root\nPidFile={folder}/slurmdbd.pid\nLogFile={folder}/slurmdbd.log\nStorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser=root\nStorageLoc=acct\n"
            ),
        );
        let _ = fs::set_permissions(
            self.path().join("slurmdbd.conf"),
            fs::Permissions::from_mode(0o600),
        );
        write(
            "slurm.conf",
            format!(
                "ClusterName=throwaway\nSlurmctldHost={host}(127.0.0.1)\nAuthType=auth/munge\nAuthInfo=socket={folder}/munge.sock,cred_expire=10\nSlurmUser=root\nSlurmdUser=root\nSlurmctldPort={controller}\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool/%n\nSlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd-%n.pid\nSlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd-%n.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\nReturnToService=2\nSlurmdParameters=config_overrides\nSchedulerParameters=sched_interval=1,batch_sched_delay=0\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\nJobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=task=1\nAccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=localhost\nAccountingStoragePort={database}\nAccountingStoragePass={folder}/munge.sock\nAccountingStorageTRES=gres/gpu\nGresTypes=gpu\nKillWait=2\nMinJobAge=300\n{nodes}PartitionName=gpu Nodes=ALL Default=YES MaxTime=60 DefMemPerCPU=200 State=UP\n{more}"
            ),
        );
        // Two files stand for two GPUs.
        write("gpu0", String::new());
        write("gpu1", String::new());
        write(
            "gres.conf",
            format!(
                "NodeName={} Name=gpu File={folder}/gpu[0-1]\n",
                self.nodes.join(",")
            ),
        );
    }

    fn munge(&mut self, folder: &str) -> Result<(), String> {
        let key = self.path().join("munge.key");
        let mut bytes = vec![0u8; 1024];
        std::io::Read::read_exact(
            &mut fs::File::open("/dev/urandom").map_err(|error| error.to_string())?,
            &mut bytes,
        )
        .and_then(|()| fs::write(&key, bytes))
        .and_then(|()| fs::set_permissions(&key, fs::Permissions::from_mode(0o400)))
        .map_err(|error| error.to_string())?;
        let at = |option: &str, name: &str| format!("--{option}={folder}/{name}");
        self.spawn(
            "munged",
            &[
                "--foreground",
                "--force",
                "--num-threads=2",
                &at("socket", "munge.sock"),
                &at("key-file", "munge.key"),
                &at("pid-file", "munged.pid"),
                &at("seed-file", "munge.seed"),
            ],
        )?;
        let socket = self.path().join("munge.sock");
        wait_for("munged", || socket.exists())
    }

    fn database(&mut self, folder: &str) -> Result<(), String> {
        let data = format!("--datadir={folder}/db");
        self.tool(
            "mariadb-install-db",
            &[
                "--no-defaults",
                &data,
                "--user=root",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
        )?;
        self.spawn(
            "mariadbd",
            &[
                "--no-defaults",
                "--user=root",
                &data,
                &format!("--socket={folder}/db.sock"),
                "--skip-networking",
                "--skip-grant-tables",
                &format!("--pid-file={folder}/db.pid"),
                "--innodb-buffer-pool-size=32M",
                "--innodb-flush-log-at-trx-commit=0",
            ],
        )?;
        let socket = self.path().join("db.sock");
        wait_for("mariadbd", || socket.exists())
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("SLURM_CONF", self.conf())
            .env("MYSQL_UNIX_PORT", self.path().join("db.sock"))
            .stdin(Stdio::null());
        command
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let log = fs::File::create(self.path().join(format!("{program}.out")))
            .map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let child = self
            .command(program, arguments)
            .stdout(log)
            .stderr(errors)
            .spawn();
        self.daemons
            .push(child.map_err(|error| format!("{program}: {error}"))?);
        Ok(())
    }

    /// One of Slurm's own commands; what it printed.
    pub fn tool(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut limited = vec!["20", program];
        limited.extend(arguments);
        let output = self
            .command("timeout", &limited)
            .output()
            .map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(format!(
                "{program}: {}{}",
                text(&output.stdout),
                text(&output.stderr)
            ))
        }
    }

    /// Ends a node as a power failure does: its daemon, the steps on it and their processes, without a word to the controller.
    pub fn lose(&mut self, node: &str) {
        let kill = |pid: u32| {
            // SAFETY: the number is of a process of this cluster, found a moment ago.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        };
        let wanted = format!("-N\0{node}\0");
        for daemon in &mut self.daemons {
            let command = fs::read_to_string(format!("/proc/{}/cmdline", daemon.id())).unwrap_or_default();
            if command.contains(&wanted) {
                let _ = daemon.kill();
                let _ = daemon.wait();
            }
        }
        let variable = |text: &str| format!("\0{text}\0");
        let (name, conf) = (
            variable(&format!("SLURMD_NODENAME={node}")),
            variable(&format!("SLURM_CONF={}", self.conf().display())),
        );
        let processes: Vec<u32> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid: &u32| {
                let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let text = format!("\0{}", String::from_utf8_lossy(&bytes));
                text.contains(&name) && text.contains(&conf)
            })
            .collect();
        // The step's daemon first: it would report the end of its processes.
        for pid in &processes {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            let parent = parent.and_then(|parent| parent.trim().parse::<u32>().ok());
            let is_step = |pid: u32| {
                fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|comm| comm.starts_with("slurmstepd"))
            };
            parent.filter(|pid| is_step(*pid)).into_iter().for_each(kill);
        }
        processes.into_iter().for_each(kill);
    }

    /// The ends of all logs, for a test that failed.
    pub fn logs(&self) -> String {
        let files = fs::read_dir(self.path())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let logs = files.filter(|path| {
            path.extension()
                .is_some_and(|ending| ending == "log" || ending == "out")
        });
        logs.map(|path| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!(
                "== {}\n{}\n",
                path.display(),
                lines[lines.len().saturating_sub(8)..].join("\n")
            )
        })
        .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.daemons.len() >= 5 {
            let _ = self.tool("scancel", &["--user=root"]);
        }
        // The last started ends first; the database only when nobody writes any more.
        while let Some(mut daemon) = self.daemons.pop() {
            // SAFETY: the child has not been waited for, so its number is still its own.
            unsafe { libc::kill(daemon.id() as i32, libc::SIGTERM) };
            let deadline = Instant::now() + Duration::from_secs(5);
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().split('.').next().unwrap_or("localhost").to_owned()
}
