//! The batch script: what it asks for, where its log goes, and the command inside `flatout run`.

use super::grid::Grid;
use super::quote::{quoted, word};
use flatout_core::{Explain, Message, explained, message};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Request {
    pub command: Vec<OsString>,
    pub name: String,
    /// GPUs a node; 0 asks for none.
    pub gpus: u32,
    pub nodes: u32,
    /// One process a GPU, each with a record of its own.
    pub ranks: bool,
    pub cpus_per_gpu: u64,
    /// `32G`, a node; Slurm's default without.
    pub memory: Option<String>,
    /// `24:00:00`, as Slurm writes it.
    pub time: String,
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    /// Folder of the logs.
    pub logs: Option<String>,
    pub grid: Grid,
    /// The option of the command that names its output folder, and the folder: each task of an array gets one of its own inside.
    pub task_folder: Option<(String, PathBuf)>,
    /// Tasks of an array at once.
    pub at_once: Option<u32>,
    /// Further `#SBATCH` options: `constraint=a100`.
    pub more: Vec<String>,
    /// The flatout that shall record; by its full path, for a job's `PATH` is not ours.
    pub flatout: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ScriptError {
    NoCommand,
    /// A value that cannot stand in an `#SBATCH` line.
    BadValue {
        option: &'static str,
        value: String,
    },
}

impl Explain for ScriptError {
    fn message(&self) -> Message {
        match self {
            Self::NoCommand => message!(en: "no command for the job", zh: "没有给出作业要运行的命令"),
            Self::BadValue { option, value } => {
                let value = value.escape_debug();
                message!(en: "`{value}` is not valid for --{option}", zh: "`{value}` 不能用于 --{option}")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::NoCommand => {
                message!(en: "flatout slurm script -- python train.py", zh: "flatout slurm script -- python train.py")
            }
            Self::BadValue { option: "time", .. } => message!(
                en: "use minutes, hours:minutes:seconds, or days-hours: 90, 12:00:00, 2-00",
                zh: "可写分钟、时:分:秒或 天-时：90、12:00:00、2-00"
            ),
            Self::BadValue { option: "mem", .. } => {
                message!(en: "use a number with K, M, G or T: 32G", zh: "数字加 K、M、G 或 T：32G")
            }
            Self::BadValue { .. } => message!(
                en: "only letters, digits and _ - . / = : , + @ are allowed, without spaces",
                zh: "只能使用字母、数字和 _ - . / = : , + @，不能有空格"
            ),
        })
    }
}
explained!(ScriptError);

/// The whole script. Bytes, because a command's words may be any bytes.
pub fn script(request: &Request) -> Result<Vec<u8>, ScriptError> {
    if request.command.is_empty() {
        return Err(ScriptError::NoCommand);
    }
    let mut out = b"#!/bin/bash\n".to_vec();
    for line in directives(request)? {
        out.extend_from_slice(format!("#SBATCH {line}\n").as_bytes());
    }
    out.extend_from_slice(b"\nset -u\n");
    if start_of(request) != Start::Here {
        out.extend_from_slice(RENDEZVOUS.as_bytes());
    }
    combination(request, &mut out);
    out.extend_from_slice(start(request).as_slice());
    Ok(out)
}

/// Who starts the command, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// The script, on the job's first node.
    Here,
    /// `srun`, once per node: the command is torchrun, which starts the node's ranks.
    PerNode,
    /// `srun`, once per GPU.
    PerRank,
}

fn start_of(request: &Request) -> Start {
    match (request.ranks, request.nodes > 1) {
        (true, _) => Start::PerRank,
        (false, true) if is_torchrun(&request.command) => Start::PerNode,
        _ => Start::Here,
    }
}

/// Whether all but the first node of such a job would have nothing to do.
pub fn uses_first_node_only(request: &Request) -> bool {
    request.nodes > 1 && start_of(request) == Start::Here
}

/// `torchrun …`, or a Python with `-m torch.distributed.run` or its predecessor.
fn is_torchrun(command: &[OsString]) -> bool {
    let Some((program, rest)) = command.split_first() else {
        return false;
    };
    let name = Path::new(program).file_name().unwrap_or_default();
    if name == "torchrun" {
        return true;
    }
    let module = rest.windows(2).find(|pair| pair[0] == "-m");
    name.to_string_lossy().starts_with("python")
        && module.is_some_and(|pair| {
            pair[1] == "torch.distributed.run"
                || pair[1] == "torch.distributed.launch"
                || pair[1] == "torchrun"
        })
}

fn directives(request: &Request) -> Result<Vec<String>, ScriptError> {
    let name = safe_name(&request.name);
    let is_array = !request.grid.is_empty();
    let log = if is_array { "%x-%A_%a.log" } else { "%x-%j.log" };
    let log = request.logs.as_deref().map_or_else(
        || log.to_owned(),
        |folder| format!("{}/{log}", folder.trim_end_matches('/')),
    );
    let tasks = if request.ranks { request.gpus.max(1) } else { 1 };
    let cpus = cpus_per_task(request);
    let mut lines = vec![
        format!("--job-name={name}"),
        format!("--nodes={}", request.nodes.max(1)),
        format!("--ntasks-per-node={tasks}"),
        format!("--cpus-per-task={cpus}"),
    ];
    if request.gpus > 0 {
        lines.push(format!("--gpus-per-node={}", request.gpus));
    }
    if let Some(memory) = &request.memory {
        lines.push(format!("--mem={}", checked("mem", memory, is_memory)?));
    }
    lines.push(format!("--time={}", checked("time", &request.time, is_time)?));
    for (option, value) in [
        ("partition", &request.partition),
        ("account", &request.account),
        ("qos", &request.qos),
    ] {
        if let Some(value) = value {
            lines.push(format!("--{option}={}", checked(option, value, word)?));
        }
    }
    if is_array {
        let at_once = request
            .at_once
            .map_or_else(String::new, |count| format!("%{}", count.max(1)));
        lines.push(format!("--array=0-{}{at_once}", request.grid.count() - 1));
    }
    lines.push(format!("--output={}", checked("logs", &log, word)?));
    for option in &request.more {
        lines.push(format!(
            "--{}",
            checked("sbatch", option.trim_start_matches("--"), word)?
        ));
    }
    Ok(lines)
}

fn cpus_per_task(request: &Request) -> u64 {
    // Without ranks one process feeds all the GPUs of the node.
    let gpus = if request.ranks { 1 } else { request.gpus.max(1) };
    request.cpus_per_gpu.max(1) * u64::from(gpus)
}

pub(super) fn checked<'a>(
    option: &'static str,
    value: &'a str,
    is_good: fn(&str) -> bool,
) -> Result<&'a str, ScriptError> {
    if is_good(value) {
        Ok(value)
    } else {
        Err(ScriptError::BadValue {
            option,
            value: value.to_owned(),
        })
    }
}

pub(super) fn is_memory(text: &str) -> bool {
    let number = text.strip_suffix(['K', 'M', 'G', 'T']).unwrap_or(text);
    !number.is_empty() && number.len() <= 12 && number.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_time(text: &str) -> bool {
    text == "UNLIMITED"
        || text.len() <= 20
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'-'))
}

/// A name may be anything; Slurm's file patterns and its parser leave these.
pub(super) fn safe_name(name: &str) -> String {
    let safe: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(60)
        .collect();
    let safe = safe.trim_start_matches(['-', '.']).to_owned();
    if safe.is_empty() { "job".into() } else { safe }
}

/// Where the ranks meet, for torch.distributed.
const RENDEZVOUS: &str = r#"MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))
export MASTER_ADDR MASTER_PORT
"#;

/// Each rank learns its number from Slurm; its words pass through untouched.
const RANK: &str = r#"bash -c 'export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS"; exec "$@"' rank"#;

/// torchrun takes what its command line leaves open from these. Node 0 of the job is the one that the others meet at.
const NODE: &str = r#"bash -c 'export PET_NNODES="$SLURM_JOB_NUM_NODES" PET_NODE_RANK="$SLURM_NODEID" PET_MASTER_ADDR="$MASTER_ADDR" PET_MASTER_PORT="$MASTER_PORT" PET_RDZV_ID="$SLURM_JOB_ID"; exec "$@"' node"#;

/// Which combination this task of an array runs: its options become the script's own arguments.
fn combination(request: &Request, out: &mut Vec<u8>) {
    if request.grid.is_empty() {
        out.extend_from_slice(b"set --\n");
        return;
    }
    out.extend_from_slice(b"case \"$SLURM_ARRAY_TASK_ID\" in\n");
    for task in 0..request.grid.count() {
        out.extend_from_slice(format!("  {task}) set --").as_bytes());
        for option in request.grid.options(task) {
            out.push(b' ');
            out.extend(quoted(OsStr::new(&option)));
        }
        if let Some((option, folder)) = &request.task_folder {
            let mut words = OsString::from(format!("--{option}="));
            words.push(folder.join(safe_name(&request.grid.name(task))));
            out.push(b' ');
            out.extend(quoted(&words));
        }
        out.extend_from_slice(b" ;;\n");
    }
    out.extend_from_slice(b"  *) echo \"no combination $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\nesac\n");
}

fn start(request: &Request) -> Vec<u8> {
    // srun does not take the CPUs of the batch script's own request.
    let cpus = cpus_per_task(request);
    let srun = |words: &str| {
        format!(
            "exec srun --kill-on-bad-exit=1 --cpus-per-task=\"${{SLURM_CPUS_PER_TASK:-{cpus}}}\" {words} \\\n  "
        )
    };
    let mut line = match start_of(request) {
        Start::Here => "exec ".to_owned(),
        Start::PerNode => srun(NODE),
        Start::PerRank => srun(RANK),
    }
    .into_bytes();
    line.extend(quoted(request.flatout.as_os_str()));
    line.extend_from_slice(b" run --name ");
    line.extend(quoted(OsStr::new(&safe_name(&request.name))));
    line.extend_from_slice(b" -- \\\n ");
    for part in &request.command {
        line.push(b' ');
        line.extend(quoted(part));
    }
    line.extend_from_slice(b" \"$@\"\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn request(command: &[&str]) -> Request {
        Request {
            command: command.iter().map(OsString::from).collect(),
            name: "train".into(),
            gpus: 1,
            nodes: 1,
            ranks: false,
            cpus_per_gpu: 8,
            memory: Some("32G".into()),
            time: "24:00:00".into(),
            partition: Some("gpu".into()),
            account: None,
            qos: None,
            logs: None,
            grid: Grid::default(),
            task_folder: None,
            at_once: None,
            more: Vec::new(),
            flatout: "/opt/flatout".into(),
        }
    }

    fn text(request: &Request) -> String {
        String::from_utf8(script(request).unwrap()).unwrap()
    }

    #[test]
    fn the_plain_script() {
        assert_eq!(
            text(&request(&["python", "train.py", "--name", "it's"])),
            "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=8\n#SBATCH --gpus-per-node=1\n#SBATCH --mem=32G\n#SBATCH --time=24:00:00\n#SBATCH --partition=gpu\n#SBATCH --output=%x-%j.log\n\nset -u\nset --\nexec /opt/flatout run --name train -- \\\n  python train.py --name 'it'\\''s' \"$@\"\n"
        );
    }

    #[test]
    fn nothing_typed_can_begin_a_line_or_a_command() {
        for bad in ["a b", "a\n#SBATCH --uid=0", "$(id)", "a;b", "'", "-x", ""] {
            let wrong = Request {
                partition: Some(bad.into()),
                ..request(&["true"])
            };
            assert!(
                matches!(
                    script(&wrong),
                    Err(ScriptError::BadValue {
                        option: "partition",
                        ..
                    })
                ),
                "{bad}"
            );
            let more = Request {
                more: vec![bad.into()],
                ..request(&["true"])
            };
            assert!(script(&more).is_err() || bad == "-x", "{bad}");
            let time = Request {
                time: bad.into(),
                ..request(&["true"])
            };
            assert!(script(&time).is_err(), "{bad}");
        }
        let named = text(&Request {
            name: "x\n#SBATCH --uid=0".into(),
            ..request(&["true"])
        });
        assert!(named.contains("--job-name=x__SBATCH_--uid_0\n"), "{named}");
        let command = text(&request(&["echo", "\n#SBATCH --time=1\n$(touch /tmp/never)"]));
        // Slurm stops looking for directives at the first command.
        let before = command.split("set -u").next().unwrap();
        assert!(
            !before.contains("--time=1\n") && command.contains("'\n#SBATCH"),
            "{command}"
        );
        assert!(matches!(script(&request(&[])), Err(ScriptError::NoCommand)));
    }

    /// The script in a real shell, with `srun` and flatout replaced by something that prints its words.
    fn run_it(request: &Request, task: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("flat out");
        std::fs::write(&fake, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&fake, executable).unwrap();
        let path = folder.path().join("job.sh");
        std::fs::write(
            &path,
            script(&Request {
                flatout: fake,
                ..request.clone()
            })
            .unwrap(),
        )
        .unwrap();
        let output = Command::new("bash")
            .arg(&path)
            .env("SLURM_ARRAY_TASK_ID", task)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_command_arrives_word_for_word() {
        let plain = run_it(&request(&["python", "my train.py", "$(id)", "a'b"]), "");
        assert_eq!(
            plain,
            [
                "run",
                "--name",
                "train",
                "--",
                "python",
                "my train.py",
                "$(id)",
                "a'b"
            ]
        );
        let grid = Grid::parse(&["lr=1e-3,$(id)".to_owned(), "h=1,2".to_owned()]).unwrap();
        let searched = Request {
            grid,
            at_once: Some(2),
            ..request(&["python", "train.py"])
        };
        assert_eq!(
            run_it(&searched, "3")[4..],
            ["python", "train.py", "--lr=$(id)", "--h=2"]
        );
        assert!(
            text(&searched).contains("#SBATCH --array=0-3%2\n") && text(&searched).contains("%x-%A_%a.log")
        );
    }

    #[test]
    fn ranks_get_a_process_a_gpu() {
        let ranks = text(&Request {
            ranks: true,
            gpus: 4,
            nodes: 2,
            ..request(&["python", "train.py"])
        });
        assert!(
            ranks.contains("--ntasks-per-node=4\n") && ranks.contains("--cpus-per-task=8\n"),
            "{ranks}"
        );
        assert!(ranks.contains("srun") && ranks.contains("MASTER_ADDR"));
        let one = text(&Request {
            gpus: 4,
            ..request(&["torchrun", "train.py"])
        });
        assert!(
            one.contains("--cpus-per-task=32\n") && !one.contains("srun"),
            "{one}"
        );
    }

    #[test]
    fn several_nodes_get_a_torchrun_each() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        // Two nodes; the command shows what it would be started with.
        program(
            "srun",
            "#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nfor node in 0 1; do SLURM_NODEID=$node \"$@\"; done\n",
        );
        program("scontrol", "#!/bin/sh\nprintf 'n1\\nn2\\n'\n");
        program(
            "flatout",
            "#!/bin/sh\necho $PET_NNODES $PET_NODE_RANK $PET_MASTER_ADDR:$PET_MASTER_PORT \"$@\"\n",
        );
        let of = |command: &[&str]| Request {
            nodes: 2,
            gpus: 4,
            flatout: folder.path().join("flatout"),
            ..request(command)
        };
        let run = |request: &Request| {
            let path = folder.path().join("job.sh");
            std::fs::write(&path, script(request).unwrap()).unwrap();
            let folders = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
            let output = Command::new("bash")
                .arg(path)
                .env("PATH", folders)
                .envs([("SLURM_JOB_NUM_NODES", "2"), ("SLURM_JOB_ID", "7")])
                .env("SLURM_JOB_NODELIST", "n[1-2]")
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let torchrun = of(&["torchrun", "--nproc_per_node", "4", "my train.py"]);
        let words = "run --name train -- torchrun --nproc_per_node 4 my train.py";
        assert_eq!(
            run(&torchrun),
            format!("2 0 n1:10007 {words}\n2 1 n1:10007 {words}\n")
        );
        assert!(text(&torchrun).contains("SLURM_CPUS_PER_TASK:-32}"));
        assert!(!uses_first_node_only(&torchrun));
        let module = of(&[
            "/opt/bin/python3",
            "-u",
            "-m",
            "torch.distributed.run",
            "train.py",
        ]);
        assert_eq!(run(&module).lines().count(), 2);
        let plain = of(&["python", "train.py"]);
        assert_eq!(run(&plain).lines().count(), 1);
        assert!(uses_first_node_only(&plain));
    }
}
